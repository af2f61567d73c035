"""Snapshots whose checksum was made to fit after a byte was changed: what lies behind the checksum sees them.

Each is refused with a SnapshotError, or gives an operator whose invariants hold and that can be used. Never
anything else, least of all a crash.
"""

from __future__ import annotations

import hashlib
import os
import random

import pyarrow as pa
import pytest
import streamjoin as sj
from streamjoin import snapshot

SEED = int(os.environ.get("STREAMJOIN_SEED", random.SystemRandom().randrange(2**32)))
CHANGES = int(os.environ.get("STREAMJOIN_CASES", "150"))
PLAIN = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("v", pa.float64())])
WORDS = pa.schema([("k", pa.string()), ("t", pa.timestamp("ms")), ("v", pa.list_(pa.string()))])


def with_checksum(blob: bytes) -> bytes:
    body = blob[snapshot._HEAD.size :]
    head = snapshot._HEAD.pack(snapshot.MAGIC, snapshot.VERSION, hashlib.sha256(body).digest())
    return head + body


def batch(schema: pa.Schema, keys: range) -> pa.RecordBatch:
    rows = [
        {"k": key if schema is PLAIN else f"key {key}", "t": 10 + key, "v": 0.5}
        if schema is PLAIN
        else {"k": f"key {key}", "t": 10 + key, "v": ["x", None, "y"]}
        for key in keys
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def query(streams: int) -> sj.Query:
    names = "abc"[:streams]
    return sj.Query(
        [sj.Stream(name, time="t", punctuations=["k"] if streams == 2 else ()) for name in names],
        on=[f"a.k = {name}.k" for name in names[1:]],
        within=sj.within("50 s"),
    )


def used(schema: pa.Schema, streams: int) -> sj.Operator:
    op = sj.Operator(query(streams), schemas=dict.fromkeys("abc"[:streams], schema))
    op.push("a", batch(schema, range(0, 12)))
    op.push("b", batch(schema, range(6, 20)))
    if streams == 2:
        key = 3 if schema is PLAIN else "key 3"
        op.punctuate("b", {"k": [key]})
        op.punctuate("a", {"k": sj.Range(key, None)})
    return op


@pytest.mark.parametrize("schema", [PLAIN, WORDS], ids=["integers", "words"])
@pytest.mark.parametrize("streams", [2, 3])
def test_a_changed_byte_is_refused_or_does_no_harm(schema: pa.Schema, streams: int) -> None:
    print(f"STREAMJOIN_SEED={SEED}")
    chance = random.Random(SEED)
    blob = used(schema, streams).snapshot()
    assert with_checksum(blob) == blob
    refused = 0
    for _ in range(CHANGES):
        place = chance.randrange(snapshot._HEAD.size, len(blob))
        changed = bytearray(blob)
        changed[place] ^= 1 << chance.randrange(8)
        try:
            op = sj.Operator.restore(query(streams), with_checksum(bytes(changed)))
        except sj.SnapshotError:
            refused += 1
            continue
        op.validate()
        if not op._finished:
            op.push("b", batch(schema, range(30, 32)))
            op.finish()
            op.validate()
    assert refused > CHANGES // 10


def test_columns_that_the_state_holds_are_written_once() -> None:
    # The state holds strings as codes, and milliseconds as microseconds.
    for schema, left_out in ((PLAIN, ["k", "t"]), (WORDS, list[str]())):
        op = used(schema, 2)
        parts = snapshot.read(op.snapshot(), repr(query(2)))
        written = pa.ipc.open_stream(parts[4]).schema
        assert [field.name for field in written if pa.types.is_null(field.type)] == left_out
        again = sj.Operator.restore(query(2), op.snapshot())
        more = batch(schema, range(5, 9))
        assert again.push("b", more).rows.equals(op.push("b", more).rows)


def test_a_column_that_the_state_is_too_short_for_is_refused() -> None:
    parts = snapshot.read(used(PLAIN, 2).snapshot(), repr(query(2)))
    rows = pa.ipc.open_stream(parts[4]).read_all()
    beyond = {snapshot.IN_STATE: str(len(parts[1]) - 8)}
    parts[4] = snapshot.batch_to_bytes(
        rows.cast(rows.schema.set(0, rows.schema.field(0).with_metadata(beyond)))
    )
    with pytest.raises(sj.SnapshotError, match="in the state, which is too short"):
        sj.Operator.restore(query(2), snapshot.write(repr(query(2)), parts))


def test_payload_that_lacks_rows_is_refused() -> None:
    blob = used(PLAIN, 2).snapshot()
    parts = snapshot.read(blob, repr(query(2)))
    short = batch(PLAIN, range(0, 3))
    parts[4] = snapshot.batch_to_bytes(short)
    with pytest.raises(sj.SnapshotError, match="payload of"):
        sj.Operator.restore(query(2), snapshot.write(repr(query(2)), parts))
