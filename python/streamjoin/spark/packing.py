"""Packing: rows of a stream become frames by bucket, in `mapInArrow`. Unpacking: result blobs become rows.

A packing task sends every bucket the largest time it has seen of its stream, rows or not: a bucket that
gets no rows
advances all the same. The largest over all tasks of a micro-batch is the stream's clock, as if there were one
bucket only; the clock goes no further, so a later row of just that time is in order.

Memory: the rows of one packing task of one micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import streamjoin as sj
from streamjoin.spark import frames
from streamjoin.spark.layout import Layout, bucket_ids

BUCKET, PUNCTUATION = "_bucket", "_punctuation"
PACKED = pa.schema([("bucket", pa.int32()), ("frame", pa.binary())])
Pass = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def pack_rows(layout: Layout, stream: int) -> Pass:
    """Return the pass over rows of a stream, each with its bucket, and a mark if it may be a punctuation."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = _whole(batches)
        if table is None:
            return
        packer = _Packer(layout, stream)
        if PUNCTUATION in table.schema.names:
            marks = pc.fill_null(table.column(PUNCTUATION), False)
            yield from packer.punctuations(table.filter(marks))
            table = table.filter(pc.invert(marks))
        yield from packer.rows(table)

    return run


def pack_punctuations(layout: Layout, stream: int) -> Pass:
    """Return the pass over the punctuations of a stream, each with its bucket; null is every bucket."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = _whole(batches)
        if table is not None:
            yield from _Packer(layout, stream).punctuations(table)

    return run


def unpack(layout: Layout) -> Pass:
    """Return the pass that turns result blobs into rows."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column("blob"):
                if blob.is_valid:
                    yield from frames.read_results(blob.as_buffer())

    return run


class _Packer:
    """Frames of one packing task."""

    def __init__(self, layout: Layout, stream: int) -> None:
        self._stream = stream
        self._name = layout.query.stream_names[stream]
        self._schema = layout.schemas[stream]
        self._time = layout.query.streams[stream].time
        self._columns = layout.punctuation_columns.get(self._name, ())
        self._ids = bucket_ids(layout.buckets)
        self._heartbeats = layout.delay is not None

    def rows(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Cut rows into one frame a bucket, each in time order, and heartbeats for the rest."""
        if table.num_rows == 0:
            return
        what = f"stream {self._name!r}, time column {self._time!r}"
        times = microseconds(table.column(self._time), what=what)
        seen = int(times.max()) if self._heartbeats else None
        table, buckets = sorted_by(table, times, table.column(BUCKET).to_numpy())
        rows = fitted(table, self._schema)
        ends = np.searchsorted(buckets, np.arange(len(self._ids) + 1))
        for bucket, key in enumerate(self._ids):
            start, stop = int(ends[bucket]), int(ends[bucket + 1])
            if start < stop:
                share = rows.slice(start, stop - start)
                yield _packed(key, frames.write_frame(frames.ROWS, self._stream, seen, share))
            elif seen is not None:
                yield _packed(key, frames.write_frame(frames.HEARTBEAT, self._stream, seen, None))

    def punctuations(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Cut punctuations into one frame a bucket; what names no bucket goes to each."""
        if table.num_rows == 0:
            return
        named = [name for name in (*self._columns, self._time) if name in table.schema.names]
        schema = pa.schema([self._schema.field(name) for name in dict.fromkeys(named)])
        buckets = pc.fill_null(table.column(BUCKET), -1).to_numpy()
        for bucket, key in enumerate(self._ids):
            share = table.filter(pa.array((buckets == bucket) | (buckets == -1)))
            if share.num_rows:
                batch = fitted(share, schema)
                yield _packed(key, frames.write_frame(frames.PUNCTUATIONS, self._stream, None, batch))


def _packed(bucket: int, frame: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([bucket], pa.int32()), pa.array([frame], pa.binary())], schema=PACKED)


def _whole(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    found = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(found) if found else None


def fitted(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of a schema as one batch. Spark's time zone only shows times: it is replaced."""
    columns = []
    for field in schema:
        column = table.column(field.name).combine_chunks()
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def microseconds(column: pa.ChunkedArray, *, what: str) -> npt.NDArray[np.int64]:
    """Return a time column as integers; DataError if a time is missing."""
    if column.null_count:
        raise sj.DataError(f"{what}: expected a time in every row, got null")
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)))
    values: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return values


def sorted_by(
    table: pa.Table, times: npt.NDArray[np.int64], buckets: npt.NDArray[np.int32]
) -> tuple[pa.Table, npt.NDArray[np.int32]]:
    """Return the rows by bucket, then time, otherwise as they came, and their buckets."""
    order = None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")
    if buckets.min() != buckets.max():
        small = buckets.astype(np.uint16) if buckets.max() < 1 << 16 else buckets  # sorted by radix
        by_bucket = np.argsort(small if order is None else small[order], kind="stable")
        order = by_bucket if order is None else order[by_bucket]
    if order is None:
        return table, buckets
    return table.combine_chunks().take(order), buckets[order]
