"""Packing and buckets together, without Spark: rows spread over buckets give what nested loops give.

Every bucket is restored from its snapshot behind each micro-batch.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from feed import AUCTION, BID, CLOSING, SECOND, Batch, auction_batches, auction_query, nested_loops
from streamjoin.spark import packing
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout, bucket_ids, choose_bucket_columns

BUCKETS = 3
Row = tuple[Any, ...]
PLAIN = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.int64())])


def new_layout(
    query: sj.Query, schemas: tuple[pa.Schema, ...], promised: dict[str, tuple[str, ...]]
) -> Layout:
    operator = sj.Operator(query, schemas=dict(zip(query.stream_names, schemas, strict=True)))
    result = operator.advance(query.stream_names[0], -1).rows.schema
    columns = choose_bucket_columns(query, None)
    return Layout(query, schemas, BUCKETS, columns, promised, "rows", (), result)


def packed(run: packing.Pass, rows: list[Row], schema: pa.Schema) -> Iterator[tuple[int, bytes]]:
    if rows:
        columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
        buckets = pa.array([row[0] % BUCKETS for row in rows], pa.int32())
        table = pa.table(columns, schema=schema).append_column(packing.BUCKET, buckets)
        for frame in run(table.to_batches()):
            yield frame.column("bucket")[0].as_py(), frame.column("frame")[0].as_py()


class Buckets:
    """All buckets of a layout, and what they have given."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.held = {key: Bucket(layout) for key in bucket_ids(BUCKETS)}
        self.found: Counter[Row] = Counter()

    def send(self, frames: list[tuple[int, bytes]]) -> None:
        for key, bucket in self.held.items():
            for table in bucket.apply([frame for to, frame in frames if to == key]):
                columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
                self.found.update(zip(*(column.to_pylist() for column in columns), strict=True))
            self.held[key] = Bucket.restore(self.layout, bucket.snapshot())


def frames_of(layout: Layout, batch: Batch) -> list[tuple[int, bytes]]:
    return [
        *packed(packing.pack_rows(layout, 0), batch["auction"], AUCTION),
        *packed(packing.pack_rows(layout, 1), batch["bid"], BID),
        *packed(packing.pack_punctuations(layout, 1), batch["closing"], CLOSING),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_rows_within_the_slack_are_not_cut_off_by_other_buckets(seed: int) -> None:
    """Every third bid comes a batch later than its time, behind closings that speak of later times."""
    batches = auction_batches(seed=seed, batches=3)
    sent: list[Batch] = [
        {**batch, "bid": [bid for place, bid in enumerate(batch["bid"]) if place % 3]} for batch in batches
    ]
    for number, batch in enumerate(batches):
        sent[min(number + 1, 2)]["bid"] += batch["bid"][::3]
    far = 10_000 * SECOND
    sent.append({"auction": [(-1, "x", far)], "bid": [(-2, 0, far)], "closing": []})
    query = auction_query(how="left", disorder=sj.Slack("60 s"))
    layout = new_layout(query, (AUCTION, BID), {"bid": ("item",)})
    buckets = Buckets(layout)
    for batch in sent:
        buckets.send(frames_of(layout, batch))
    assert buckets.found == nested_loops(batches, "left")


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("seed", range(3))
def test_promises_of_whole_keys_go_in_as_tables(seed: int, how: str) -> None:
    batches = auction_batches(seed=seed, batches=4)
    layout = new_layout(auction_query(how=how), (AUCTION, BID), {"bid": ("item",)})
    buckets = Buckets(layout)
    for batch in batches:
        buckets.send(frames_of(layout, batch))
    promised = sum(bucket.operator.stats().punctuations_in["bid"] for bucket in buckets.held.values())
    assert promised == sum(len(batch["closing"]) for batch in batches)
    for bucket in buckets.held.values():
        for table in bucket.finish():
            columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
            buckets.found.update(zip(*(column.to_pylist() for column in columns), strict=True))
    assert buckets.found == nested_loops(batches, how)


@pytest.mark.parametrize("seed", range(2))
def test_ten_streams_are_joined_in_buckets(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"s{place}" for place in range(10)]
    query = sj.Query(
        [sj.Stream(name, time="t") for name in names],
        on=[f"{a}.k = {b}.k" for a, b in pairwise(names)],
        within=sj.within(30),
    )
    layout = new_layout(query, (PLAIN,) * 10, {})
    buckets = Buckets(layout)
    sent: list[list[Row]] = [[] for _ in names]
    for number in range(4):
        frames: list[tuple[int, bytes]] = []
        for place, rows in enumerate(sent):
            new = [(rng.randrange(4), rng.randrange(99), number * 20 + rng.randrange(20)) for _ in range(3)]
            rows += new
            frames += packed(packing.pack_rows(layout, place), new, PLAIN)
        buckets.send(frames)

    def extended(row: list[Row], place: int) -> Iterator[Row]:
        if place == len(sent):
            yield tuple(value for part in row for value in part)
            return
        for new in sent[place]:
            times = [part[2] for part in (*row, new)]
            if (not row or new[0] == row[0][0]) and max(times) - min(times) <= 30:
                yield from extended([*row, new], place + 1)

    expected = Counter(extended([], 0))
    assert expected
    assert buckets.found == expected
