"""Every Arrow type travels through the join as payload and comes back as it was.

Rows carry an `id`; the judge looks the payload of that id up in a Python list. Each type goes through joins
of several batches with offsets, outer joins, compaction, and a snapshot.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import streamjoin as sj

Column = tuple[pa.DataType, list[Any]]
UTC, BERLIN = dt.UTC, "Europe/Berlin"


def moments(tz: dt.tzinfo | None = None) -> list[Any]:
    """Whole seconds, so that every unit holds them."""
    return [dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=tz), None, dt.datetime(2024, 2, 29, 12, tzinfo=tz)]


def columns() -> Iterator[tuple[str, Column]]:
    """Name, type and values of each payload; values repeat as often as a test needs rows."""
    for width in (8, 16, 32, 64):
        low, high = -(2 ** (width - 1)), 2 ** (width - 1) - 1
        yield f"int{width}", (getattr(pa, f"int{width}")(), [low, None, high, 0])
        yield f"uint{width}", (getattr(pa, f"uint{width}")(), [2**width - 1, None, 0, 7])
    yield "float16", (pa.float16(), [np.float16(1.5), None, np.float16(-0.25)])
    yield "float32", (pa.float32(), [1.5, None, float("-inf"), -0.25])
    yield "float64", (pa.float64(), [0.1, None, float("inf"), 1e-300])
    yield "bool", (pa.bool_(), [True, None, False, True, True])
    yield "null", (pa.null(), [None])
    texts = ["", None, "a", "ä" * 40, "longer than twelve bytes"]
    for name in ("string", "large_string", "string_view"):
        yield name, (getattr(pa, name)(), texts)
    blobs = [b"", None, b"\x00\xff", b"z" * 50]
    for name in ("binary", "large_binary", "binary_view"):
        yield name, (getattr(pa, name)(), blobs)
    yield "fixed_size_binary", (pa.binary(3), [b"abc", None, b"\x00\x00\x00"])
    for width, digits in ((32, 9), (64, 18), (128, 38), (256, 76)):
        largest = Decimal(10**digits - 1).scaleb(-2) if digits <= 18 else Decimal("12345678901234567890.12")
        yield (
            f"decimal{width}",
            (getattr(pa, f"decimal{width}")(digits, 2), [largest, None, -largest, Decimal("0.01")]),
        )
    yield "date32", (pa.date32(), [dt.date(1950, 1, 1), None, dt.date(2024, 2, 29)])
    yield "date64", (pa.date64(), [dt.date(1950, 1, 1), None, dt.date(2024, 2, 29)])
    for unit in ("s", "ms"):
        yield f"time32[{unit}]", (pa.time32(unit), [dt.time(23, 59, 59), None, dt.time(0)])
    for unit in ("us", "ns"):
        yield f"time64[{unit}]", (pa.time64(unit), [dt.time(23, 59, 59, 999999), None, dt.time(0)])
    for unit in ("s", "ms", "us", "ns"):
        yield f"timestamp[{unit}]", (pa.timestamp(unit), moments())
        yield f"timestamp[{unit}, UTC]", (pa.timestamp(unit, "UTC"), moments(UTC))
        yield f"duration[{unit}]", (pa.duration(unit), [dt.timedelta(-3), None, dt.timedelta(0, 5)])
    yield "timestamp[us, Berlin]", (pa.timestamp("us", BERLIN), moments(UTC))
    intervals = [pa.MonthDayNano([1, -2, 3]), None, pa.MonthDayNano([0, 0, 10**15])]
    yield "month_day_nano_interval", (pa.month_day_nano_interval(), intervals)
    yield "dictionary<string>", (pa.dictionary(pa.int8(), pa.string()), ["x", None, "y", "x"])
    yield "dictionary<int64>", (pa.dictionary(pa.int32(), pa.int64()), [5, None, -(2**60)])
    lists = [[1, None], None, [], [2, 3, 4]]
    for name in ("list_", "large_list", "list_view", "large_list_view"):
        yield name, (getattr(pa, name)(pa.int64()), lists)
    yield "fixed_size_list", (pa.list_(pa.int32(), 2), [[1, 2], None, [None, 4]])
    yield "list<string>", (pa.list_(pa.string()), [["a", "bb"], None, [None], []])
    struct = pa.struct([("a", pa.int64()), ("b", pa.string())])
    yield "struct", (struct, [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}])
    yield "map", (pa.map_(pa.string(), pa.int64()), [[("k", 1), ("l", None)], None, []])
    nested = pa.list_(pa.struct([("s", pa.list_(pa.string())), ("d", pa.decimal128(5, 1))]))
    yield "nested", (nested, [[{"s": ["a"], "d": Decimal("1.5")}, None], None, [{"s": None, "d": None}]])
    views = pa.struct([("l", pa.list_(pa.string_view())), ("m", pa.map_(pa.string(), pa.binary_view()))])
    yield (
        "nested views",
        (views, [{"l": ["v" * 20, None], "m": [("k", b"w" * 20)]}, None, {"l": [], "m": None}]),
    )
    yield "run_end_encoded", (pa.run_end_encoded(pa.int32(), pa.string()), ["r", "r", None, "s"])
    if hasattr(pa, "uuid"):
        ids = [uuid.UUID(int=1).bytes, None, uuid.UUID(int=2**127).bytes]
        yield "extension<uuid>", (pa.uuid(), ids)
    if hasattr(pa, "json_"):
        yield "extension<json>", (pa.json_(), [json.dumps({"a": 1}), None, "[]"])
    fields = [pa.field("i", pa.int64()), pa.field("s", pa.string())]
    yield "sparse_union", (pa.sparse_union(fields), [1, "u", None, 2**40])
    yield "dense_union", (pa.dense_union(fields), [1, "u", None, 2**40])


COLUMNS = dict(columns())


@pytest.fixture(params=COLUMNS)
def column(request: pytest.FixtureRequest) -> Column:
    return COLUMNS[request.param]


# Making tables ------------------------------------------------------------------------------------


def array(type_: pa.DataType, values: list[Any]) -> pa.Array:
    if isinstance(type_, pa.UnionType):
        return union_array(type_, values)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))
    if pa.types.is_run_end_encoded(type_):
        return run_end_array(type_, values)
    return pa.array(values, type_)


def union_array(type_: pa.UnionType, values: list[Any]) -> pa.Array:
    """Integers go to child 0, texts to child 1, None to a null of child 0."""
    kinds = [int(isinstance(value, str)) for value in values]
    codes, names = pa.array(kinds, pa.int8()), [type_.field(i).name for i in (0, 1)]
    if type_.mode == "sparse":
        children = [
            pa.array(
                [v if k == kind else None for v, k in zip(values, kinds, strict=True)], type_.field(kind).type
            )
            for kind in (0, 1)
        ]
        return pa.UnionArray.from_sparse(codes, children, names)
    children = [
        pa.array([v for v, k in zip(values, kinds, strict=True) if k == kind], type_.field(kind).type)
        for kind in (0, 1)
    ]
    offsets = [kinds[:place].count(kind) for place, kind in enumerate(kinds)]
    return pa.UnionArray.from_dense(codes, pa.array(offsets, pa.int32()), children, names)


def run_end_array(type_: pa.DataType, values: list[Any]) -> pa.Array:
    ends = [i + 1 for i, value in enumerate(values) if i + 1 == len(values) or values[i + 1] != value]
    runs = pa.array([values[end - 1] for end in ends], type_.value_type)
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, type_.run_end_type), runs, type_)


def schema(type_: pa.DataType) -> pa.Schema:
    return pa.schema([("id", pa.int64()), ("k", pa.int64()), ("t", pa.int64()), ("payload", type_)])


def batch(column: Column, ids: range) -> pa.RecordBatch:
    """Row `id` has the key `id`, time 0 and value number `id`. Sliced out of a longer batch."""
    type_, values = column
    around = [-3, -2, -1, *ids, -2, -1]
    payload = array(type_, [values[i % len(values)] for i in around])
    columns = [pa.array(around), pa.array(around), pa.array([0] * len(around)), payload]
    return pa.RecordBatch.from_arrays(columns, schema=schema(type_)).slice(3, len(ids))


def make(column: Column, how: str = "inner") -> sj.Operator:
    query = sj.Query(
        [sj.Stream("a", time="t"), sj.Stream("b", time="t")],
        on=["a.k = b.k"],
        within=sj.within("1 s"),
        how=how,
    )
    return sj.Operator(query, schemas={name: schema(column[0]) for name in ("a", "b")})


# The judge ----------------------------------------------------------------------------------------


def plain(type_: pa.DataType, values: pa.ChunkedArray) -> list[Any]:
    """Values as Python ones, extension types as what they store."""
    if isinstance(type_, pa.BaseExtensionType):
        return [
            None if value is None else value.as_py() for chunk in values.chunks for value in chunk.storage
        ]
    if type_ in (pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.time64("ns")):
        return [value.value if value.is_valid else None for value in values]
    return list(values.to_pylist())


def check(column: Column, rows: pa.Table, expected: list[tuple[int | None, int | None]]) -> None:
    """The rows are exactly those ids, and beside each id stands its payload."""
    type_, values = column
    rows.validate(full=True)
    found = list(zip(rows["a_id"].to_pylist(), rows["b_id"].to_pylist(), strict=True))
    assert sorted(found, key=str) == sorted(expected, key=str)
    wanted = plain(type_, pa.chunked_array([array(type_, values)]))
    for side in ("a", "b"):
        assert rows.schema.field(f"{side}_payload").type == type_
        came = plain(type_, rows[f"{side}_payload"])
        ids = rows[f"{side}_id"].to_pylist()
        assert came == [None if i is None else wanted[i % len(wanted)] for i in ids]


# What each type goes through ----------------------------------------------------------------------


def test_payload_of_sliced_batches_comes_back_as_it_was(column: Column) -> None:
    op = make(column)
    op.push("a", batch(column, range(0, 5)))
    op.push("a", batch(column, range(5, 12)))
    out = op.push("b", batch(column, range(2, 9)))
    check(column, out.rows, [(i, i) for i in range(2, 9)])
    out = op.push("b", pa.Table.from_batches([batch(column, range(9, 11)), batch(column, range(11, 14))]))
    check(column, out.rows, [(i, i) for i in range(9, 12)])
    check(column, op.push("a", batch(column, range(0, 0))).rows, [])
    check(column, op.push("a", batch(column, range(12, 15))).rows, [(12, 12), (13, 13)])


def test_payload_of_a_missing_side_is_null(column: Column) -> None:
    op = make(column, "full")
    op.push("a", batch(column, range(0, 6)))
    check(column, op.push("b", batch(column, range(4, 9))).rows, [(4, 4), (5, 5)])
    lonely = [(i, None) for i in range(4)] + [(None, i) for i in range(6, 9)]
    check(column, op.finish().rows, lonely)


def test_late_rows_keep_their_payload(column: Column) -> None:
    op = make(column)
    op.advance("a", 10)
    out = op.push("a", batch(column, range(0, 4)))
    check(column, out.late, [(i, None) for i in range(4)])


def test_payload_survives_compaction(column: Column) -> None:
    op = make(column)
    for start in range(0, 3000, 500):
        op.push("a", batch(column, range(start, start + 500)))
    op.punctuate("b", {"k": sj.Range(0, 2699)})
    stats = op.stats()
    assert stats.state_rows["a"] == 300
    assert stats.stored_rows["a"] <= 2 * 300 + 1024
    op.push("a", batch(column, range(3000, 3100)))
    out = op.push("b", batch(column, range(2700, 3050)))
    check(column, out.rows, [(i, i) for i in range(2700, 3050)])


def test_payload_survives_a_copy_of_scattered_rows(column: Column) -> None:
    op = make(column)
    for start in range(0, 3000, 500):
        op.push("a", batch(column, range(start, start + 500)))
    op.punctuate("b", {"k": [i for i in range(3000) if i % 10]})
    assert op.stats().stored_rows["a"] <= 2 * 300 + 1024
    out = op.push("b", batch(column, range(3000, 3001)))
    check(column, out.rows, [])
    check(column, op.push("b", batch(column, range(0, 3000, 10))).rows, [(i, i) for i in range(0, 3000, 10)])


def test_payload_survives_a_snapshot(column: Column) -> None:
    op = make(column, "full")
    op.push("a", batch(column, range(0, 5)))
    op.push("b", batch(column, range(100, 104)))
    op = sj.Operator.restore(op.query, op.snapshot())
    op.push("a", batch(column, range(5, 8)))
    check(column, op.push("b", batch(column, range(3, 7))).rows, [(i, i) for i in range(3, 7)])
    lonely = [(i, None) for i in (0, 1, 2, 7)] + [(None, i) for i in range(100, 104)]
    check(column, op.finish().rows, lonely)


# Dictionaries whose values together are more than their indices can tell apart -----------------------


def narrow(values: list[Any]) -> pa.Array:
    names = pa.array(sorted({value for value in values if value is not None}), pa.string())
    numbers = {name: number for number, name in enumerate(names.to_pylist())}
    indices = pa.array([None if value is None else numbers[value] for value in values], pa.int8())
    return pa.DictionaryArray.from_arrays(indices, names)


def in_a_struct(values: list[Any]) -> pa.Array:
    return pa.StructArray.from_arrays([narrow(values)], names=["x"])


@pytest.mark.parametrize("wrapped", [narrow, in_a_struct])
def test_batches_may_have_more_values_together_than_narrow_indices_can_count(wrapped: Any) -> None:
    type_ = wrapped([None]).type

    def value(i: int) -> str | None:
        return None if i % 11 == 3 else f"value {i}"

    def pushed(ids: list[int], values: list[str | None]) -> pa.RecordBatch:
        numbers = pa.array(ids, pa.int64())
        columns = [numbers, numbers, pa.array([0] * len(ids)), wrapped(values)]
        return pa.RecordBatch.from_arrays(columns, schema=schema(type_))

    def check_probed(op: sj.Operator, ids: list[int]) -> None:
        rows = op.push("b", pushed(ids, [None] * len(ids))).rows
        rows.validate(full=True)
        assert rows.schema.field("a_payload").type == type_
        assert rows["a_id"].to_pylist() == ids
        plain_values = [value(i) for i in ids]
        expected = plain_values if wrapped is narrow else [{"x": v} for v in plain_values]
        assert rows["a_payload"].to_pylist() == expected

    op = make((type_, []))
    for start in range(0, 3000, 100):
        ids = list(range(start, start + 100))
        op.push("a", pushed(ids, [value(i) for i in ids]))
    interleaved = [i + j for i in range(100) for j in range(0, 3000, 100)]
    check_probed(op, interleaved)
    op.punctuate("b", {"k": [i for i in range(3000) if i % 5]})  # the rest is copied together
    assert op.stats().stored_rows["a"] <= 2 * 600 + 1024
    left = [i for i in interleaved if i % 5 == 0]
    check_probed(op, left)
    op = sj.Operator.restore(op.query, op.snapshot())
    check_probed(op, left)
