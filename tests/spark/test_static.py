"""One pass over a sorted partition, without Spark: what it gives does not depend on how it is cut, and it
holds the window alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from feed import AUCTION, BID, SECOND, auction_query
from streamjoin.spark import static
from streamjoin.spark.bucket import rows_schema
from streamjoin.spark.layout import Layout, choose_bucket_columns

PROMISE = pa.struct([("item", pa.int64()), ("placed", pa.timestamp("us", "UTC"))])
PARTITION = pa.schema(
    [
        ("_tag", pa.int32()),
        ("_at", pa.int64()),
        ("rows_0", pa.struct(list(AUCTION))),
        ("rows_1", pa.struct(list(BID))),
        ("promises_1", PROMISE),
    ]
)
Event = tuple[int, int, tuple[Any, ...]]  # time, tag (0 auction, 1 bid, 3 closing), values


def layout(query: sj.Query) -> Layout:
    operator = sj.Operator(query, schemas={"auction": AUCTION, "bid": BID})
    columns = choose_bucket_columns(query, None)
    result = rows_schema(operator, query)
    return Layout(query, (AUCTION, BID), 1, columns, {"bid": ("item",)}, "rows", (), result)


def partition(events: list[Event]) -> pa.RecordBatch:
    rows = []
    for at, tag, values in sorted(events, key=lambda event: event[:2]):
        name = {0: "rows_0", 1: "rows_1", 3: "promises_1"}[tag]
        names = [PARTITION.field(name).type.field(i).name for i in range(len(values))]
        rows.append({"_tag": tag, "_at": at, name: dict(zip(names, values, strict=True))})
    return pa.RecordBatch.from_pylist(rows, schema=PARTITION)


def random_events(seed: int) -> list[Event]:
    """Closings that some bids break: such a bid is no match, if it stands behind the closing."""
    rng = random.Random(seed)
    events: list[Event] = []
    for _ in range(60):
        at, item = rng.randint(0, 60) * SECOND, rng.randrange(4)
        tag = rng.choice((0, 0, 1, 1, 1, 3))
        values = {0: (item, "x", at), 1: (item, rng.randrange(9), at), 3: (item, at)}[tag]
        events.append((at, tag, values))
    return events


def nested_loops(events: list[Event]) -> Counter[tuple[Any, ...]]:
    closed: dict[int, int] = {}
    for at, _, values in sorted(e for e in events if e[1] == 3):
        closed.setdefault(values[0], at)
    found: Counter[tuple[Any, ...]] = Counter()
    for _, auction_tag, a in events:
        for at, bid_tag, b in events:
            if (auction_tag, bid_tag) == (0, 1) and a[0] == b[0] and 0 <= at - a[2] <= 40 * SECOND:
                found[(*a, *b)] += at <= closed.get(b[0], at)
    return +found


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_results_do_not_depend_on_how_a_partition_is_cut(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(static, "LARGEST_PIECE", piece)
    for seed in range(20):
        events = random_events(seed)
        rows: Counter[tuple[Any, ...]] = Counter()
        for batch in static._joined(layout(auction_query()))([partition(events)]):
            columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in batch.columns]
            rows.update(zip(*(column.to_pylist() for column in columns), strict=True))
        assert rows == nested_loops(events), f"seed {seed}"


def test_one_hot_key_is_held_for_its_window_only(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []

    class Watched(static.Bucket):
        def advance(self, place: int, seen: int) -> sj.Output:
            output = super().advance(place, seen)
            held.append(sum(self.operator.stats().stored_rows.values()))
            return output

    monkeypatch.setattr(static, "Bucket", Watched)
    seconds, per_batch = 20_000, 500  # an auction and a bid a second, all of one item; the window is 40 s

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, seconds, per_batch):
            times = [second * SECOND for second in range(start, start + per_batch)]
            yield partition([(t, 0, (1, "x", t)) for t in times] + [(t, 1, (1, 1, t)) for t in times])

    results = sum(batch.num_rows for batch in static._joined(layout(auction_query()))(batches()))
    assert results == 41 * seconds - 40 * 41 // 2
    assert max(held) < 8 * per_batch  # of 40,000


def test_pieces_shrink_where_rows_have_many_results() -> None:
    wanted, largest = static.WANTED_RESULTS, static.LARGEST_PIECE
    assert static._next_size(1000, 1000 * wanted) == 1
    assert static._next_size(1000, 10 * wanted) == 100
    assert static._next_size(1000, 0) == 2000
    assert static._next_size(largest, 0) == largest
