"""The payload of one stream: Arrow batches by number, and result columns gathered from them.

Batches stay as they came. The native core names a row by (batch, row) and says when a batch has no live row
left; then it goes. When fewer than half of the stored rows are alive, the survivors are copied together into
one batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin import _core

MISSING = 0xFFFFFFFF
SLACK_ROWS = 1024  # dead rows that are not worth a copy
RowRefs = npt.NDArray[np.uint32]


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
        self._batches: dict[int, pa.RecordBatch] = {}
        self._free: list[int] = []

    def next_number(self) -> int:
        """Return the number that the next stored batch gets."""
        return self._free[-1] if self._free else len(self._batches)

    def put(self, batch: pa.RecordBatch) -> int:
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

    def drop(self, number: int) -> None:
        """Let a batch go."""
        self._payload.drop(number)
        self.stored_rows -= self._batches.pop(number).num_rows
        self._free.append(number)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored batches."""
        return sum(batch.nbytes for batch in self._batches.values())

    def gather(self, rows: RowRefs, column: int) -> pa.Array:
        """Return a column for result rows (a batch and a row number per stream); null where missing."""
        field = self.schema.field(column)
        kind, _ = self._layouts[column]
        if kind == "elsewhere":
            return self._take(rows, column)
        values, offsets, validity, null_count = self._payload.gather(rows, self._stream, column)
        buffers: list[Any] = [validity, offsets, values] if offsets is not None else [validity, values]
        arrow = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
        return pa.Array.from_buffers(field.type, len(rows), arrow, null_count=null_count)

    def batch_of(self, refs: RowRefs) -> pa.RecordBatch:
        """Return the rows at these (batch, row) references as one batch."""
        rows = np.full((len(refs), self._streams, 2), MISSING, dtype=np.uint32)
        rows[:, self._stream] = refs
        columns = [self.gather(rows, i) for i in range(len(self.schema))]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def replace_all(self, batch: pa.RecordBatch) -> None:
        """Let every batch go for one, stored under `next_number()`, that holds all live rows."""
        others = list(self._batches)
        number = self.put(batch)
        for other in others:
            self.drop(other)
        if not batch.num_rows:
            self.drop(number)

    def only_batch(self) -> pa.RecordBatch:
        """Return the one batch there is after `replace_all`."""
        empty = pa.RecordBatch.from_arrays(
            [pa.nulls(0, field.type) for field in self.schema], schema=self.schema
        )
        return next(iter(self._batches.values()), empty)

    def is_mostly_dead(self, live_rows: int) -> bool:
        """Return whether fewer than half of the stored rows are alive."""
        return self.stored_rows > 2 * live_rows + SLACK_ROWS

    def _take(self, rows: RowRefs, column: int) -> pa.Array:
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
        chunks = pa.chunked_array([self._batches[number].column(column) for number in used], type=type_)
        if pa.types.is_dictionary(type_):
            chunks = chunks.unify_dictionaries()
        indices = pa.array(refs, mask=~present)
        return _taken(pa.concat_arrays(chunks.chunks), indices)


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


def _taken(column: pa.Array, indices: pa.Array) -> pa.Array:
    """Take rows, also of types that pyarrow has no kernel for: views and runs, in their plain form."""
    type_ = column.type
    if pa.types.is_run_end_encoded(type_):
        taken = _taken(pc.run_end_decode(column), indices)
        return pc.run_end_encode(taken, run_end_type=type_.run_end_type)
    plain = _without_views(type_)
    return column.take(indices) if plain == type_ else column.cast(plain).take(indices).cast(type_)


def _without_views(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_binary_view(type_):
        return pa.large_binary()
    if pa.types.is_struct(type_):
        return pa.struct([_field_without_views(type_.field(i)) for i in range(type_.num_fields)])
    if pa.types.is_map(type_):
        return pa.map_(
            _field_without_views(type_.key_field),
            _field_without_views(type_.item_field),
            keys_sorted=type_.keys_sorted,
        )
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_field_without_views(type_.value_field), type_.list_size)
    for is_kind, kind in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_kind(type_):
            return kind(_field_without_views(type_.value_field))
    return type_


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(_without_views(field.type))


def _addresses(column: pa.Array, kind: str) -> tuple[int, int, int, int]:
    if kind == "elsewhere":
        return 0, 0, 0, 0
    buffers = column.buffers()
    addresses = [0 if buffer is None else buffer.address for buffer in buffers]
    validity = addresses[0] if column.null_count else 0
    offsets = addresses[1] if len(addresses) == 3 else 0
    return addresses[-1], offsets, validity, column.offset
