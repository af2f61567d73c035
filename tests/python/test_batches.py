"""What may be pushed: tables of several chunks, empty batches, pandas, anything with Arrow PyCapsules."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import streamjoin as sj

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("note", pa.string())])


class ArrayOnly:
    """Has nothing but `__arrow_c_array__`."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


class StreamOnly:
    """Has nothing but `__arrow_c_stream__`."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class SchemaOnly:
    """Has nothing but `__arrow_c_schema__`."""

    def __arrow_c_schema__(self) -> Any:
        return SCHEMA.__arrow_c_schema__()


def operator() -> sj.Operator:
    query = sj.Query(
        [sj.Stream("a", time="t"), sj.Stream("b", time="t")],
        on=["a.k = b.k"],
        within=sj.within("1 s"),
        how="full",
    )
    return sj.Operator(query, schemas={"a": SchemaOnly(), "b": SCHEMA})


def table(*keys: int | None) -> pa.Table:
    notes = [None if key is None else f"note {key}" for key in keys]
    return pa.table({"k": pa.array(keys, pa.int64()), "t": [0] * len(keys), "note": notes}, schema=SCHEMA)


CHUNKED = pa.concat_tables([table(1, 2), table(), table(3), table(4, 5)])

FORMS = {
    "record batch": table(1, 2, 3, 4, 5).to_batches()[0],
    "several chunks": CHUNKED,
    "other column order": CHUNKED.select(["note", "t", "k"]),
    "schema metadata": CHUNKED.replace_schema_metadata({"made": "here"}),
    "reader": pa.RecordBatchReader.from_batches(SCHEMA, CHUNKED.to_batches()),
    "array capsule": ArrayOnly(table(1, 2, 3, 4, 5).to_batches()[0]),
    "stream capsule": StreamOnly(CHUNKED),
    "pandas": CHUNKED.to_pandas(),
    "pandas with an index": CHUNKED.to_pandas().set_index(pd.Index([9, 8, 7, 6, 5])),
    "pandas, other column order": CHUNKED.to_pandas()[["t", "note", "k"]],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_rows_joins_alike(form: str) -> None:
    op = operator()
    op.push("b", table(2, 3, 9))
    rows = op.push("a", FORMS[form]).rows.select(["a_k", "a_note", "b_note"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(2, "note 2", "note 2"), (3, "note 3", "note 3")]
    assert op.stats().rows_in == {"a": 5, "b": 3}


EMPTY = {
    "batch": pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in SCHEMA], schema=SCHEMA),
    "table without chunks": pa.Table.from_batches([], schema=SCHEMA),
    "table of empty chunks": pa.concat_tables([table(), table()]),
    "stream capsule": StreamOnly(pa.Table.from_batches([], schema=SCHEMA)),
    "pandas": table().to_pandas(),
}


@pytest.mark.parametrize("form", EMPTY)
def test_an_empty_batch_changes_nothing(form: str) -> None:
    op = operator()
    op.push("b", table(2))
    for _ in range(3):
        out = op.push("a", EMPTY[form])
        assert (out.rows.num_rows, out.punctuations.num_rows, out.late.num_rows) == (0, 0, 0)
    assert op.push("a", table(2)).rows.num_rows == 1
    op.validate()


def test_a_pandas_null_is_null() -> None:
    op = operator()
    frame = pd.DataFrame({"k": pd.array([1, None], dtype="Int64"), "t": [0, 0], "note": ["x", None]})
    out = op.push("a", frame)  # the null key matches nothing: out at once, unmatched
    assert out.rows.select(["a_k", "a_note"]).to_pylist() == [{"a_k": None, "a_note": None}]


BAD = {
    "pandas of another type": (table(1).to_pandas().assign(k=["x"]), "schema"),
    "pandas without a column": (table(1).to_pandas().drop(columns="note"), "note"),
    "pandas with one more": (table(1).to_pandas().assign(zip=1), "zip"),
    "array that is no struct": (pa.array([1]), "schema"),
    "a dict": ({"k": [1]}, "Arrow data or a pandas DataFrame"),
    "a column twice": (
        pa.Table.from_arrays([*table(1).columns, pa.array([1])], ["k", "t", "note", "k"]),
        "k",
    ),
}


@pytest.mark.parametrize("form", BAD)
def test_what_does_not_fit_is_refused_with_the_stream_named(form: str) -> None:
    data, word = BAD[form]
    op = operator()
    with pytest.raises(sj.DataError, match="stream 'a'") as raised:
        op.push("a", data)
    assert word in str(raised.value)
    assert op.stats().rows_in["a"] == 0
