"""Frames: what travels between Spark's stages, as bytes.

    input frame    kind (1) | stream (1) | largest time of the packing task (8) | Arrow IPC stream, or nothing

Three kinds: rows of a stream, punctuations of a stream, and a heartbeat, which carries the time alone.
Frames of rows carry it too. Results travel as bare Arrow IPC streams.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

ROWS, PUNCTUATIONS, HEARTBEAT = 0, 1, 2
NO_TIME = -(2**63)
_HEAD = struct.Struct("<BBq")
_LENGTH = struct.Struct("<Q")
_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))
_PLAIN = pa.ipc.IpcWriteOptions()
RESULT_ROWS = 1 << 17  # of one result blob: a value of a Spark column must stay far below 2 GiB


@dataclass(frozen=True)
class Frame:
    """One input frame, taken apart. `seen` is the largest time of the stream in its packing task."""

    kind: int
    stream: int
    seen: int | None
    table: pa.Table | None


def write_frame(kind: int, stream: int, seen: int | None, batch: pa.RecordBatch | None) -> bytes:
    """Return a frame as bytes; rows are compressed, since they go over the network and into the log."""
    head = _HEAD.pack(kind, stream, NO_TIME if seen is None else seen)
    return head if batch is None else head + _ipc([batch], batch.schema, _COMPRESSED)


def read_frame(data: bytes) -> Frame:
    """Take a frame apart."""
    kind, stream, seen = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    table = pa.ipc.open_stream(pa.py_buffer(body)).read_all() if len(body) else None
    return Frame(kind, stream, None if seen == NO_TIME else seen, table)


def join_frames(frames: Iterable[bytes]) -> bytes:
    """Put the frames of a micro-batch behind each other: a segment of the log."""
    return b"".join(part for frame in frames for part in (_LENGTH.pack(len(frame)), frame))


def split_frames(segment: bytes) -> Iterator[bytes]:
    """Undo `join_frames`."""
    at = 0
    while at < len(segment):
        (length,) = _LENGTH.unpack_from(segment, at)
        at += _LENGTH.size
        yield segment[at : at + length]
        at += length


def write_results(table: pa.Table) -> Iterator[bytes]:
    """Return result rows as blobs of bounded size."""
    for start in range(0, table.num_rows, RESULT_ROWS):
        piece = table.slice(start, RESULT_ROWS).combine_chunks()
        yield _ipc(piece.to_batches(), table.schema, _PLAIN)


def read_results(blob: pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Undo `write_results` for one blob."""
    with pa.ipc.open_stream(blob) as stream:
        yield from stream


def write_table(table: pa.Table) -> bytes:
    """Return a table as compressed bytes."""
    return _ipc(table.to_batches(), table.schema, _COMPRESSED)


def read_table(data: bytes) -> pa.Table:
    """Undo `write_table`."""
    return pa.ipc.open_stream(data).read_all()


def _ipc(batches: list[pa.RecordBatch], schema: pa.Schema, options: pa.ipc.IpcWriteOptions) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue())
