"""Punctuations of single keys that come with the rows of a batch, as the native core takes them.

punctuations   item_id  t        rows   t            before   1  3
                  7     2               1
                  9     -               2  <- 7 behind the rows up to its time
                                        3  <- 9 behind all: it has no time
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.batches import to_batch
from streamjoin.errors import DataError
from streamjoin.inputs import Inputs
from streamjoin.keys import NativeColumn
from streamjoin.times import SMALLEST

Times = npt.NDArray[np.int64]
PromisedKeys = tuple[npt.NDArray[np.int64], Times, list[NativeColumn]]  # in front of which rows, times, keys


class KeyColumns(Protocol):
    """What knows the key columns of its streams."""

    key_columns: list[list[str]]

    def native_keys(self, side: int, rows: pa.RecordBatch, *, what: str) -> list[NativeColumn]:
        """Return the key columns of a batch as the core reads them."""


def promised_keys(inputs: Inputs, place: int, keys: KeyColumns, data: Any, times: Times) -> PromisedKeys:
    """Return a table of punctuations as keys among rows at `times`; DataError if it does not fit."""
    what = f"stream {inputs.names[place]!r}, punctuations"
    schema, time = inputs.schemas[place], inputs.query.streams[place].time
    columns = list(dict.fromkeys(keys.key_columns[place]))
    has_time = time in _names(data)
    wanted = [schema.field(name) for name in dict.fromkeys([*columns, *([time] if has_time else [])])]
    rows = to_batch(data, pa.schema(wanted), what=what)
    at = np.full(rows.num_rows, SMALLEST, dtype=np.int64)
    known = np.zeros(rows.num_rows, dtype=np.bool_)
    if has_time:
        column = rows.column(time)
        known = pc.is_valid(column).to_numpy(zero_copy_only=False)
        at[known] = inputs.unit.integers(column.drop_null(), what=f"{what}, time column {time!r}")
    clock = np.maximum.accumulate(times) if len(times) else times
    before = np.where(known, np.searchsorted(clock, at, side="right"), len(times)).astype(np.int64)
    order = np.argsort(np.where(known, at, np.iinfo(np.int64).max), kind="stable")
    if not (order[1:] > order[:-1]).all():
        rows, at, before = rows.take(pa.array(order)), at[order], before[order]
    return before, at, keys.native_keys(place, rows, what=what)


def not_with_rows(stream: str) -> DataError:
    """Return the error for a join that takes punctuations in calls of their own."""
    return DataError(
        f"stream {stream!r}, push: expected punctuations in calls of their own, got some with the rows; "
        "together they are for two streams that are joined on values and taken in arrival order"
    )


def _names(data: Any) -> list[str]:
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return list(data.schema.names)
    if hasattr(data, "__arrow_c_schema__"):
        return list(pa.schema(data).names)
    return [str(name) for name in getattr(data, "columns", [])]
