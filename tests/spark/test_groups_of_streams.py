"""Aggregates over joins of three and more streams, without Spark: a group leaves once, complete, and as soon
as every stream has promised its key. The judge counts with nested loops.

Every bucket is restored from its snapshot behind each micro-batch.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from streamjoin.spark import frames
from streamjoin.spark.bucket import Bucket, rows_schema
from streamjoin.spark.groups import Groups
from streamjoin.spark.layout import Layout, choose_bucket_columns

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("v", pa.int64()), ("t", pa.int64())])
PROMISE = pa.schema([("x", pa.int64()), ("t", pa.int64())])
Row = tuple[int, int, int, int]
BATCHES, KEYS = 6, 12


def new_layout(query: sj.Query, by: str) -> Layout:
    aggregates = (sj.count(by=by, as_="rows"), sj.sum("c_v", by=by), sj.max("a_v", by=by))
    operator = sj.Operator(query, schemas={name: SCHEMA for name in query.stream_names})
    schema = Groups(query, aggregates, rows_schema(operator, query)).schema
    promised = {
        name: ("x",) for name in query.stream_names if query.streams[query.stream_index(name)].schemes
    }
    schemas = (SCHEMA,) * len(query.streams)
    return Layout(
        query, schemas, 1, choose_bucket_columns(query, (by,)), promised, "rows", aggregates, schema
    )


def frame(kind: int, stream: int, rows: list[Any], schema: pa.Schema) -> bytes:
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
    seen = max(row[-1] for row in rows) if kind == frames.ROWS else None
    return frames.write_frame(kind, stream, seen, pa.record_batch(columns, schema=schema))


def random_batches(rng: random.Random, streams: int) -> list[list[tuple[list[Row], list[tuple[int, int]]]]]:
    """Per micro-batch and stream: rows and promised keys. Each stream ends a key in a batch of its own."""
    ends = [[rng.randrange(BATCHES + 2) for _ in range(KEYS)] for _ in range(streams)]
    found = []
    for number in range(BATCHES):
        batch = []
        for place in range(streams):
            open_keys = [key for key in range(KEYS) if ends[place][key] >= number]
            rows = [
                (rng.choice(open_keys), rng.randrange(3), rng.randrange(100), number * 10 + rng.randrange(10))
                for _ in range(rng.randrange(8) if open_keys else 0)
            ]
            closed = [(key, number * 10 + 9) for key in range(KEYS) if ends[place][key] == number]
            batch.append((sorted(rows, key=lambda row: row[3]), closed))
        found.append(batch)
    return found


def nested_loops(sides: list[list[Row]], chain: bool, window: int | None) -> dict[int, tuple[Any, ...]]:
    """Per x of the first stream: rows, sum of c.v, largest a.v."""
    found: dict[int, list[tuple[int, int]]] = {}
    for rows in itertools.product(*sides):
        times = [row[3] for row in rows]
        equal = rows[0][0] == rows[1][0] and (
            rows[1][1] == rows[2][1] if chain else all(row[0] == rows[0][0] for row in rows)
        )
        if equal and (window is None or max(times) - min(times) <= window):
            found.setdefault(rows[0][0], []).append((rows[2][2], rows[0][2]))
    return {
        x: (x, len(parts), sum(c for c, _ in parts), max(a for _, a in parts)) for x, parts in found.items()
    }


def check(seed: int, query: sj.Query, *, chain: bool, window: int | None) -> int:
    """Return how many groups came before the end."""
    rng = random.Random(seed)
    streams = len(query.streams)
    layout = new_layout(query, "a_x")
    promising = [bool(stream.schemes) for stream in query.streams]
    bucket = Bucket(layout)
    sides: list[list[Row]] = [[] for _ in range(streams)]
    closed: list[set[int]] = [set() for _ in range(streams)]
    emitted: Counter[tuple[Any, ...]] = Counter()
    for batch in random_batches(rng, streams):
        data = []
        for place, (rows, promises) in enumerate(batch):
            sides[place] += rows
            if rows:
                data.append(frame(frames.ROWS, place, rows, SCHEMA))
            if promises and promising[place]:
                closed[place] |= {key for key, _ in promises}
                data.append(frame(frames.PUNCTUATIONS, place, promises, PROMISE))
        for table in bucket.apply(data):
            emitted.update(tuple(row.values()) for row in table.to_pylist())
        expected = nested_loops(sides, chain, window)
        over = set.intersection(*closed) if not chain else set()
        for x in over & expected.keys():
            assert emitted[expected[x]] == 1, f"seed {seed}: group {x} is complete"
        bucket = Bucket.restore(layout, bucket.snapshot())
    early = emitted.total()
    for table in bucket.finish():
        emitted.update(tuple(row.values()) for row in table.to_pylist())
    assert emitted == Counter(nested_loops(sides, chain, window).values()), f"seed {seed}"
    return early


@pytest.mark.parametrize("streams", [3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_groups_of_many_streams_leave_once_and_complete(seed: int, streams: int) -> None:
    window = random.Random(seed).choice([None, 15, 40])
    names = "abcd"[:streams]
    query = sj.Query(
        [sj.Stream(name, time="t", punctuations=["x"]) for name in names],
        on=[f"{a}.x = {b}.x" for a, b in itertools.pairwise(names)],
        within=() if window is None else sj.within(window),
    )
    check(seed, query, chain=False, window=window)


@pytest.mark.parametrize("seed", range(6))
def test_groups_of_a_chain_leave_once_and_complete(seed: int) -> None:
    """The third stream says nothing of x: the promises of the first two, and the window, end a group."""
    streams = [sj.Stream(name, time="t", punctuations=["x"] if name != "c" else []) for name in "abc"]
    query = sj.Query(streams, on=["a.x = b.x", "b.y = c.y"], within=sj.within(15))
    assert check(seed, query, chain=True, window=15) > 0
