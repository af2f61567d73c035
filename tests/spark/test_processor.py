"""The processor on Spark's own tester of processors: what it writes, and when it must rebuild.

What Spark does with it is tested on Spark, in test_faults.py.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import streamjoin as sj
from feed import AUCTION, BID, SECOND, WINDOW, Batch, auction_batches, auction_query, nested_loops
from pyspark.sql.streaming import TwsTester
from streamjoin.spark import frames, residents
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout, bucket_ids, choose_bucket_columns, spark_hash
from streamjoin.spark.processor import Head, JoinProcessor


def layout(window: int = WINDOW, **options: Any) -> Layout:
    query = auction_query(window, **options)
    operator = sj.Operator(query, schemas={"auction": AUCTION, "bid": BID})
    result = operator.advance("bid", 0).rows.schema
    columns = choose_bucket_columns(query, None)
    return Layout(query, (AUCTION, BID), 1, columns, {"bid": ("item",)}, "rows", (), result)


def frames_of(batch: dict[str, list[tuple[Any, ...]]]) -> list[bytes]:
    found = []
    for stream, (name, schema) in enumerate((("auction", AUCTION), ("bid", BID))):
        rows = sorted(batch[name], key=lambda row: row[2])
        if rows:
            columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
            table = pa.record_batch(columns, schema=schema)
            found.append(frames.write_frame(frames.ROWS, stream, rows[-1][2], table))
    return found


def new_tester(min_log_bytes: int = 0) -> TwsTester:
    return TwsTester(JoinProcessor(layout(), min_log_bytes=min_log_bytes))


def run(tester: TwsTester, batch: dict[str, list[tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
    return send(tester, frames_of(batch))


def send(tester: TwsTester, data: list[bytes]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    part = tester.testInPandas(0, pd.DataFrame({"frame": data}))
    for blob in part["blob"].dropna():
        for table in frames.read_results(pa.py_buffer(blob)):
            columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
            found.update(zip(*(column.to_pylist() for column in columns), strict=True))
    return found


def head_of(tester: TwsTester) -> Head:
    value = tester.peekValueState("head", 0)
    assert value is not None
    return Head.of(value[0])


@pytest.fixture(autouse=True)
def no_residents() -> Iterator[None]:
    residents.HELD.clear()
    yield
    residents.HELD.clear()


@pytest.mark.parametrize("min_log_bytes", [0, 3000, 1 << 30])
def test_stale_and_lost_residents_are_rebuilt(min_log_bytes: int) -> None:
    batches = auction_batches(seed=11, batches=12)
    committed = new_tester(min_log_bytes)
    found: Counter[tuple[Any, ...]] = Counter()
    for number, batch in enumerate(batches):
        run(copy.deepcopy(committed), batch)  # an attempt that is not committed leaves its bucket resident
        if number % 3 == 2:
            residents.HELD.clear()  # another worker, in the midst of a snapshot too
        found += run(committed, batch)
    assert found == nested_loops(batches)


def test_an_older_committed_state_is_gone_back_to() -> None:
    batches = auction_batches(seed=12, batches=4)
    committed = new_tester()
    run(committed, batches[0])
    old = copy.deepcopy(committed)
    expected = run(committed, batches[1])
    run(committed, batches[2])
    assert run(old, batches[1]) == expected


def test_a_bucket_without_rows_for_many_batches_keeps_up() -> None:
    """Heartbeats alone, with rebuilds between: an unmatched row comes in its time, and rows go on behind."""
    committed = TwsTester(JoinProcessor(layout(how="left"), min_log_bytes=0))
    first: Batch = {"auction": [(1, "x", 0), (2, "y", 0)], "bid": [(1, 5, 3 * SECOND)]}
    lonely = (2, "y", 0, None, None, None)
    found = run(committed, first)
    for number in range(4, 2 * WINDOW):
        if number % 7 == 0:
            residents.HELD.clear()
        found += send(
            committed,
            [frames.write_frame(frames.HEARTBEAT, stream, number * SECOND, None) for stream in (0, 1)],
        )
        assert found[lonely] == (number > WINDOW)
    assert head_of(committed).written_bytes < 100
    again = 2 * WINDOW * SECOND
    last: Batch = {"auction": [(3, "z", again)], "bid": [(3, 6, again + SECOND)]}
    found += run(committed, last)
    assert found == nested_loops([first, last], "left")


@pytest.mark.parametrize("window", [40, 400])
def test_a_batch_writes_what_it_brings_not_what_is_held(window: int) -> None:
    """At most three times its frames, with ten times the state too, and the store follows what is alive."""
    batches = auction_batches(seed=13, batches=60)
    committed = TwsTester(JoinProcessor(layout(window), min_log_bytes=0))
    snapshots = set()
    for batch in batches:
        brought = sum(len(frame) + 8 for frame in frames_of(batch))
        run(committed, batch)
        head = head_of(committed)
        assert head.written_bytes <= 3.5 * brought  # frames are not all of one size
        snapshots.add(head.first_piece)
        parts = committed.peekMapState("parts", 0)
        segments = [number for (number,) in parts if number >= 0]
        assert sorted(segments) == list(range(head.first_segment, head.next_segment))
        assert len(parts) - len(segments) == head.pieces + head.next_pieces
    assert len(snapshots) > 2
    stored = sum(len(value[0]) for value in parts.values())
    assert stored < sum(len(frame) for batch in batches for frame in frames_of(batch))


def test_the_store_shrinks_when_the_rows_are_dead() -> None:
    batches = auction_batches(seed=16, batches=10, rows=400)
    committed = new_tester()
    for batch in batches:
        run(committed, batch)
    before = head_of(committed)
    far = 10_000 * 1_000_000
    for number in range(3):
        later = far + number
        run(committed, {"auction": [(1, "x", later)], "bid": [(2, 1, later)]})
    after = head_of(committed)
    assert after.snapshot_bytes + after.log_bytes < (before.snapshot_bytes + before.log_bytes) / 4


def test_a_checkpoint_of_another_query_or_number_of_buckets_is_refused() -> None:
    """Bucket 0 has the same key however many there are: it meets its old state."""
    committed = new_tester()
    batch = auction_batches(seed=17, batches=1)[0]
    run(committed, batch)
    for other, expected in (
        (replace(layout(), buckets=3), "it was made with buckets=1, got buckets=3; pass buckets=1"),
        (layout(late="insert"), "it was made by another query"),
    ):
        stranger = TwsTester(JoinProcessor(other, min_log_bytes=0))
        stranger.updateValueState("head", 0, (head_of(committed).text(),))
        with pytest.raises(sj.SnapshotError, match=expected):
            run(stranger, batch)


def test_a_damaged_checkpoint_is_an_error() -> None:
    committed = new_tester(1 << 30)
    batch = auction_batches(seed=14, batches=1)[0]
    run(committed, batch)
    committed.updateMapState("parts", 0, {})
    residents.HELD.clear()
    with pytest.raises(sj.SnapshotError, match="the checkpoint is damaged"):
        run(committed, batch)


def test_groups_survive_a_snapshot() -> None:
    plain = layout()
    count = sj.count(by="auction_item", as_="bids")
    counted = Layout(**{**plain.__dict__, "aggregates": (count,)})
    bucket = Bucket(counted)
    batch = auction_batches(seed=15, batches=1)[0]
    assert bucket.apply(frames_of(batch)) == []
    bucket = Bucket.restore(counted, bucket.snapshot())
    rows = [row for table in bucket.finish() for row in table.to_pylist()]
    counts = Counter(row[0] for row in nested_loops([batch]).elements())
    assert {row["auction_item"]: row["bids"] for row in rows} == counts


@pytest.mark.parametrize("buckets", [1, 2, 3, 8, 64])
def test_buckets_spread_evenly_over_partitions(buckets: int) -> None:
    ids = bucket_ids(buckets)
    assert ids[0] == 0
    assert sorted(spark_hash(key) % buckets for key in ids) == list(range(buckets))
