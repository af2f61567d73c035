"""The processor alone: a resident bucket that is not the committed one is rebuilt."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import streamjoin as sj
from feed import AUCTION, BID, auction_batches, auction_query, nested_loops
from streamjoin.spark import frames, processor
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout, bucket_ids, choose_bucket_columns, spark_hash
from streamjoin.spark.processor import JoinProcessor


class Store:
    """What is committed: a value and a map, as the state store holds them."""

    def __init__(self) -> None:
        self.head: tuple[Any, ...] | None = None
        self.log: dict[tuple[int], tuple[bytes]] = {}
        self.written = 0

    def copy(self) -> Store:
        other = Store()
        other.head, other.log = self.head, dict(self.log)
        return other

    def getValueState(self, name: str, schema: str) -> Store:
        return self

    def getMapState(self, name: str, key: str, value: str) -> Store:
        return self

    def get(self) -> tuple[Any, ...] | None:
        return self.head

    def update(self, value: tuple[Any, ...]) -> None:
        self.head = value

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:
        return self.log.get(key)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.written += len(value[0])
        self.log[key] = value

    def clear(self) -> None:
        self.log.clear()


def layout() -> Layout:
    query = auction_query()
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


def run(
    store: Store, batch: dict[str, list[tuple[Any, ...]]], min_log_bytes: int = 0
) -> Counter[tuple[Any, ...]]:
    join = JoinProcessor(layout(), min_log_bytes=min_log_bytes)
    join.init(store)  # type: ignore[arg-type]
    found: Counter[tuple[Any, ...]] = Counter()
    for part in join.handleInputRows((0,), iter([pd.DataFrame({"frame": frames_of(batch)})]), None):
        for blob in part["blob"].dropna():
            for rows in frames.read_results(pa.py_buffer(blob)):
                columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in rows.columns]
                found.update(zip(*(column.to_pylist() for column in columns), strict=True))
    return found


@pytest.mark.parametrize("min_log_bytes", [0, 1 << 30])
def test_stale_and_lost_residents_are_rebuilt(min_log_bytes: int) -> None:
    batches = auction_batches(seed=11, batches=8)
    store = Store()
    found: Counter[tuple[Any, ...]] = Counter()
    for number, batch in enumerate(batches):
        run(store.copy(), batch, min_log_bytes)  # an attempt that is not committed leaves its bucket resident
        if number % 3 == 2:
            processor.RESIDENT.clear()  # another worker
        found += run(store, batch, min_log_bytes)
    processor.RESIDENT.clear()
    assert found == nested_loops(batches)


def test_an_older_committed_state_is_gone_back_to() -> None:
    batches = auction_batches(seed=12, batches=4)
    store = Store()
    run(store, batches[0])
    old = store.copy()
    expected = run(store, batches[1])
    run(store, batches[2])
    assert run(old, batches[1]) == expected
    processor.RESIDENT.clear()


def test_a_batch_writes_what_it_brings_not_what_is_held() -> None:
    """Written bytes are at most twice the frames, up to the first snapshot's worth."""
    batches = auction_batches(seed=13, batches=30)
    store = Store()
    brought = 0
    for batch in batches:
        brought += sum(len(frame) + 8 for frame in frames_of(batch))
        run(store, batch, 1 << 12)
    processor.RESIDENT.clear()
    assert store.written <= 2 * brought
    assert len(store.log) < len(batches)  # old segments are gone


def test_a_damaged_log_is_an_error() -> None:
    store = Store()
    batch = auction_batches(seed=14, batches=1)[0]
    run(store, batch, 1 << 30)
    store.log.clear()
    processor.RESIDENT.clear()
    with pytest.raises(sj.SnapshotError, match="the checkpoint is damaged"):
        run(store, batch)


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
