"""The payload of one stream: Arrow batches by number, and result columns gathered from them.

Batches stay as they came. The native core names a row by (batch, row) and says when a batch has no live row
left; then it goes. When fewer than half of the stored rows are alive, the survivors are copied together into
one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin import _core
from streamjoin.taking import take_all

MISSING = 0xFFFFFFFF
SLACK_ROWS = 1024  # dead rows that are not worth a copy
RowRefs = npt.NDArray[np.uint32]
# A table where a column needs several chunks: the rows of many batches may have more values than the indices
# of their dictionaries can tell apart.
Batch: TypeAlias = pa.RecordBatch | pa.Table
Column: TypeAlias = pa.Array | pa.ChunkedArray


class RowStore:
    """Stored batches of one stream. `stream` is its place among the `streams` parts of a result row."""

    def __init__(self, schema: pa.Schema, stream: int, streams: int) -> None:
        """Start without batches."""
        self.schema = schema
        self.stored_rows = 0
        self._stream = stream
        self._streams = streams
        self._layouts = [_layout(field.type) for field in schema]
        self._payload = _core.Payload(self._layouts)
        self._batches: dict[int, Batch] = {}
        self._free: list[int] = []

    def next_number(self) -> int:
        """Return the number that the next stored batch gets."""
        return self._free[-1] if self._free else len(self._batches)

    def put(self, batch: Batch) -> int:
        """Store a batch and return its number."""
        number = self.next_number()
        if self._free:
            self._free.pop()
        self._batches[number] = batch
        self._payload.put(
            number, [_addresses(c, kind) for c, (kind, _) in zip(batch.columns, self._layouts, strict=True)]
        )
        self.stored_rows += batch.num_rows
        return number

    def put_again(self, batches: Sequence[pa.RecordBatch], *, rows: int) -> None:
        """Store what was `only_batch()`, read back from a snapshot; ValueError if it has not so many rows."""
        table = pa.Table.from_batches(batches, schema=self.schema)
        if table.num_rows != rows:
            raise ValueError(f"expected the payload of {rows} rows, got {table.num_rows}")
        if not rows:
            return
        if len(batches) == 1:
            self.put(batches[0])
            return
        columns = [
            column if kind == "elsewhere" else column.combine_chunks()
            for column, (kind, _) in zip(table.columns, self._layouts, strict=True)
        ]
        self.put(pa.Table.from_arrays(columns, schema=self.schema))

    def drop(self, number: int) -> None:
        """Let a batch go."""
        self._payload.drop(number)
        self.stored_rows -= self._batches.pop(number).num_rows
        self._free.append(number)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored batches."""
        return sum(batch.nbytes for batch in self._batches.values())

    def gather(self, rows: RowRefs, column: int) -> Column:
        """Return a column for result rows (a batch and a row number per stream); null where missing."""
        field = self.schema.field(column)
        kind, _ = self._layouts[column]
        if kind == "elsewhere":
            return self._take(rows, column)
        values, offsets, validity, null_count = self._payload.gather(rows, self._stream, column)
        buffers: list[Any] = [validity, offsets, values] if offsets is not None else [validity, values]
        arrow = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
        return pa.Array.from_buffers(field.type, len(rows), arrow, null_count=null_count)

    def batch_of(self, refs: RowRefs) -> Batch:
        """Return the rows at these (batch, row) references as one batch."""
        rows = np.full((len(refs), self._streams, 2), MISSING, dtype=np.uint32)
        rows[:, self._stream] = refs
        columns = [self.gather(rows, i) for i in range(len(self.schema))]
        chunked = any(isinstance(column, pa.ChunkedArray) for column in columns)
        return (pa.Table if chunked else pa.RecordBatch).from_arrays(columns, schema=self.schema)

    def replace_all(self, batch: Batch) -> None:
        """Let every batch go for one, stored under `next_number()`, that holds all live rows."""
        others = list(self._batches)
        number = self.put(batch)
        for other in others:
            self.drop(other)
        if not batch.num_rows:
            self.drop(number)

    def only_batch(self) -> Batch:
        """Return the one batch there is after `replace_all`."""
        empty = pa.RecordBatch.from_arrays(
            [pa.nulls(0, field.type) for field in self.schema], schema=self.schema
        )
        return next(iter(self._batches.values()), empty)

    def is_mostly_dead(self, live_rows: int) -> bool:
        """Return whether fewer than half of the stored rows are alive."""
        return self.stored_rows > 2 * live_rows + SLACK_ROWS

    def _take(self, rows: RowRefs, column: int) -> Column:
        """Gather a column that only Arrow itself can: its batches one behind the other, then take."""
        parts = rows.reshape(len(rows), self._streams, 2)
        batches, refs = parts[:, self._stream, 0], parts[:, self._stream, 1].astype(np.int64)
        present = batches != MISSING
        used = [int(number) for number in np.unique(batches[present])]
        type_ = self.schema.field(column).type
        if not used:
            return pa.nulls(len(rows), type_)
        start = np.zeros(max(used) + 1, dtype=np.int64)
        lengths = [self._batches[number].num_rows for number in used]
        start[used] = np.cumsum([0, *lengths[:-1]])
        refs[present] += start[batches[present]]
        chunks = [c for number in used for c in _chunks(self._batches[number].column(column))]
        return take_all(pa.chunked_array(chunks, type=type_), pa.array(refs, mask=~present))


def _layout(type_: pa.DataType) -> tuple[str, int]:
    if pa.types.is_boolean(type_):
        return "bits", 0
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return "binary", 0
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        return "large_binary", 0
    if pa.types.is_primitive(type_) or pa.types.is_decimal(type_) or pa.types.is_fixed_size_binary(type_):
        return "fixed", type_.bit_width // 8
    return "elsewhere", 0


def _chunks(column: Column) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _addresses(column: Column, kind: str) -> tuple[int, int, int, int]:
    if kind == "elsewhere":
        return 0, 0, 0, 0
    if isinstance(column, pa.ChunkedArray):  # beside one that needs chunks
        column = column.chunk(0)
    buffers = column.buffers()
    addresses = [0 if buffer is None else buffer.address for buffer in buffers]
    validity = addresses[0] if column.null_count else 0
    offsets = addresses[1] if len(addresses) == 3 else 0
    return addresses[-1], offsets, validity, column.offset
