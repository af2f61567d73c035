"""The bytes of a snapshot: versioned, checksummed, and bound to the query they were taken of.

    "STREAMJOIN" | version | checksum of all that follows | header length | header (JSON) | parts

The header holds the fingerprint of the query and the lengths of the parts. Parts are opaque here: the state
of the native core, and per stream its schema and its live rows as an Arrow IPC stream, without the columns
that the state holds as well.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Collection, Sequence

import pyarrow as pa

from streamjoin.errors import SnapshotError

MAGIC = b"STREAMJOIN"
VERSION = 1
IN_STATE = b"in state"
SAMPLE = 256  # bytes by which a column is looked for in the state
_HEAD = struct.Struct("<10sI32s")
_LENGTH = struct.Struct("<Q")


def write(fingerprint: str, parts: Sequence[bytes]) -> bytes:
    """Pack the parts of a snapshot."""
    header = json.dumps({"query": fingerprint, "parts": [len(part) for part in parts]}).encode()
    body = b"".join([_LENGTH.pack(len(header)), header, *parts])
    return _HEAD.pack(MAGIC, VERSION, hashlib.sha256(body).digest()) + body


def read(blob: bytes | memoryview, fingerprint: str) -> list[bytes]:
    """Return the parts of a snapshot; SnapshotError if it is damaged, newer, or of another query."""
    blob = memoryview(blob).cast("B")
    if len(blob) < _HEAD.size + _LENGTH.size or blob[: len(MAGIC)] != MAGIC:
        raise SnapshotError(
            f"expected the bytes of a streamjoin snapshot, got {len(blob)} bytes that are none"
        )
    _, version, checksum = _HEAD.unpack_from(blob)
    if version != VERSION:
        newer = "made by a newer streamjoin" if VERSION < version < VERSION + 2**16 else "damaged"
        raise SnapshotError(f"expected a snapshot of version {VERSION}, got version {version}: it is {newer}")
    body = blob[_HEAD.size :]
    if hashlib.sha256(body).digest() != checksum:
        raise SnapshotError("the snapshot is damaged: its checksum does not match its content")
    (length,) = _LENGTH.unpack_from(body)
    try:
        header = json.loads(bytes(body[_LENGTH.size : _LENGTH.size + length]))
        query, sizes = header["query"], [int(size) for size in header["parts"]]
    except (ValueError, KeyError, TypeError) as error:
        raise SnapshotError(f"the snapshot is damaged: its header cannot be read: {error}") from error
    if query != fingerprint:
        raise SnapshotError(f"expected a snapshot of this query:\n  {fingerprint}\ngot one of:\n  {query}")
    parts = []
    at = _LENGTH.size + length
    for size in sizes:
        parts.append(bytes(body[at : at + size]))  # its rows outlive the other parts
        at += size
    if at != len(body) or min(sizes, default=0) < 0:
        raise SnapshotError(f"the snapshot is damaged: expected {at} bytes, got {len(body)}")
    return parts


def batch_to_bytes(
    batch: pa.RecordBatch | pa.Table, state: bytes = b"", shared: Collection[str] = ()
) -> bytes:
    """Return a batch, or a table in chunks, with its schema as an Arrow IPC stream.

    Of the columns named in `shared`, those whose values stand in `state` as they are, are left to it: a join
    keeps times and integer keys beside the rows they come from, in the same order.
    """
    if isinstance(batch, pa.RecordBatch):
        for place, field in enumerate(batch.schema):
            at = _place_in(state, batch.column(place)) if field.name in shared else -1
            if at >= 0:
                left_out = pa.field(field.name, pa.null(), metadata={IN_STATE: str(at)})
                batch = batch.set_column(place, left_out, pa.nulls(batch.num_rows))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write(batch)
    return bytes(sink.getvalue())


def batches_from_bytes(data: bytes, state: bytes, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Read back what `batch_to_bytes` wrote; ValueError or ArrowException if what it says is not true."""
    with pa.ipc.open_stream(data) as stream:
        batches = [_completed(batch, state, schema) for batch in stream]
    for batch in batches:
        batch.validate(full=True)
    return batches


def _place_in(state: bytes, column: pa.Array) -> int:
    """Return where the values of a column stand in the state, or -1."""
    fixed = pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)
    if not fixed or column.null_count or not len(column):
        return -1
    width = column.type.bit_width // 8
    values = memoryview(column.buffers()[1]).cast("B")[
        column.offset * width : (column.offset + len(column)) * width
    ]
    at = state.find(bytes(values[:SAMPLE]))
    return at if at >= 0 and memoryview(state)[at : at + len(values)] == values else -1


def _completed(batch: pa.RecordBatch, state: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns that were left to the state."""
    for place, field in enumerate(batch.schema):
        at = (field.metadata or {}).get(IN_STATE)
        if at is None:
            continue
        whole = schema.field(field.name)
        start = int(at)
        stop = start + batch.num_rows * (whole.type.bit_width // 8)
        if not 0 <= start <= stop <= len(state):
            raise ValueError(f"column {field.name!r}: expected its values in the state, which is too short")
        values = pa.Array.from_buffers(
            whole.type, batch.num_rows, [None, pa.py_buffer(state[start:stop])], null_count=0
        )
        batch = batch.set_column(place, whole, values)
    return batch
