"""Streaming joins give the rows of a nested loop, however they are spread."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import streamjoin as sj
from feed import BID, SECOND, Batch, Feed, auction_batches, auction_query, nested_loops
from pyspark.sql import SparkSession

FAR = 10_000 * SECOND
# Far behind everything: every row before it is final.
LAST: Batch = {"auction": [(-1, "x", FAR)], "bid": [(-2, 0, FAR)]}


@pytest.mark.parametrize("buckets", [1, 3])
def test_left_join_is_that_of_nested_loops(spark: SparkSession, tmp_path: Path, buckets: int) -> None:
    batches = [*auction_batches(seed=buckets, batches=2), LAST]
    feed = Feed(spark, tmp_path)
    for batch in batches:
        feed.send(batch)
    feed.run(feed.join(auction_query(how="left"), buckets=buckets))
    expected = nested_loops(batches, "left")
    del expected[(*LAST["auction"][0], None, None, None)]  # its bids may still come
    assert feed.results() == expected


def test_punctuations_late_rows_and_violations_are_reachable(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path)
    feed.send({"auction": [(1, "x", 10), (2, "y", 20)], "bid": [(1, 5, 15)], "closing": [(1, 30)]})
    # A bid on item 2 behind the clock of bids, one on the closed item 1, and one that is as it should be.
    feed.send({"auction": [(3, "z", 90)], "bid": [(2, 6, 14), (1, 7, 40), (2, 8, 50)]})
    feed.run(feed.join(auction_query(), buckets=2, emit="all"))
    nothing = (None,) * 3
    # Item 1: the bid at 15 is invalidated once the clock of auctions is past 15, which the auction at 20
    # does before the closing comes; so the closing is propagated at once, at its own time.
    assert feed.results() == Counter(
        [
            ("row", None, None, None, 1, "x", 10, 1, 5, 15),
            ("row", None, None, None, 2, "y", 20, 2, 8, 50),
            ("punctuation", 30, None, None, 1, None, None, 1, None, None),
            ("late", None, "bid", 1, *nothing, 2, 6, 14),
            ("violation", None, "bid", None, *nothing, 1, 7, 40),
        ]
    )


def test_groups_are_emitted_once_and_complete(spark: SparkSession, tmp_path: Path) -> None:
    batches = [*auction_batches(seed=5, batches=3), LAST]
    feed = Feed(spark, tmp_path)
    for batch in batches:
        # The closing stands among the bids, marked by its price.
        closings = [(item, -1, time) for item, time in batch.get("closing", [])]
        feed.send({"auction": batch["auction"], "bid": batch["bid"] + closings})
    by = "auction_item"
    column = "bid_price"
    joined = feed.join(
        auction_query(),
        buckets=3,
        punctuations={"bid": "price = -1"},
        aggregate=[
            sj.count(by=by, as_="bids"),
            sj.sum(column, by=by),
            sj.min(column, by=by),
            sj.max(column, by=by),
            sj.avg(column, by=by),
        ],
    )
    assert joined.columns == [by, "bids", "sum_bid_price", "min_bid_price", "max_bid_price", "avg_bid_price"]
    feed.run(joined)
    assert feed.results() == expected_groups(batches)


def expected_groups(batches: list[Batch]) -> Counter[tuple[Any, ...]]:
    prices: dict[int, list[int]] = {}
    for row, times in nested_loops(batches).items():
        prices.setdefault(row[0], []).extend([row[4]] * times)
    closed = {item for batch in batches for item, _ in batch.get("closing", [])}
    return Counter(
        (item, len(found), sum(found), min(found), max(found), sum(found) / len(found))
        for item, found in prices.items()
        if item in closed
    )


def test_two_queries_of_one_session_keep_their_states_apart(spark: SparkSession, tmp_path: Path) -> None:
    # One key only: the other buckets get no row at all, and unmatched rows come out all the same.
    batches: list[Batch] = [
        {"auction": [(7, "x", 0)], "bid": [(7, 1, 0)]},
        {"auction": [(7, "y", 50 * SECOND)], "bid": [(7, 2, 60 * SECOND)]},
        LAST,
    ]
    feed = Feed(spark, tmp_path)
    joined = feed.join(auction_query(how="left"), buckets=4)
    for batch in batches:
        feed.send(batch)
        feed.run(joined, "first")
    feed.run(joined, "second")
    expected = nested_loops(batches, "left")
    del expected[(*LAST["auction"][0], None, None, None)]
    assert feed.results("first") == expected
    assert feed.results("second") == expected


def test_rows_within_the_slack_are_not_cut_off_by_other_buckets(spark: SparkSession, tmp_path: Path) -> None:
    """Every third bid comes a batch later than its time, behind closings that speak of later times."""
    batches = auction_batches(seed=8, batches=3)
    sent: list[Batch] = [
        {**batch, "bid": [bid for place, bid in enumerate(batch["bid"]) if place % 3]} for batch in batches
    ]
    for number, batch in enumerate(batches):
        sent[min(number + 1, 2)]["bid"] += batch["bid"][::3]
    feed = Feed(spark, tmp_path)
    for batch in [*sent, LAST]:
        feed.send(batch)
    feed.run(feed.join(auction_query(how="left", disorder=sj.Slack("60 s")), buckets=3))
    assert feed.results() == nested_loops(batches, "left")


def test_static_frames_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    batches = auction_batches(seed=9, batches=4)
    feed = Feed(spark, tmp_path)
    for batch in batches:
        feed.send(batch)
    from feed import rows_of

    for how in ("inner", "left"):
        for buckets in (1, 3):
            joined = feed.join(auction_query(how=how), streaming=False, buckets=buckets)
            assert rows_of(joined) == nested_loops(batches, how), (how, buckets)
    groups = feed.join(auction_query(), streaming=False, aggregate=sj.count(by="auction_item", as_="bids"))
    counts = Counter(row[0] for row in nested_loops(batches).elements())
    assert rows_of(groups) == Counter(counts.items())


def test_late_rows_do_not_depend_on_buckets(spark: SparkSession, tmp_path: Path) -> None:
    # Bid 2 at 5 is behind the bid at 9 of another bucket: late with any number of buckets.
    assert BID.names == ["item", "price", "placed"]
    feed = Feed(spark, tmp_path)
    feed.send({"auction": [(item, "x", 1) for item in range(8)], "bid": [(0, 1, 9)]})
    feed.send({"bid": [(item, 2, 5 + item) for item in range(8)]})
    feed.run(feed.join(auction_query(), buckets=8, emit="all"))
    kinds = Counter((row[0], row[7], row[9]) for row in feed.results().elements())
    expected = [("row", 0, 9), *(("late" if 5 + item < 9 else "row", item, 5 + item) for item in range(8))]
    assert kinds == Counter(expected)


def test_grouping_keys_are_placed_as_spark_places_them(spark: SparkSession) -> None:
    from pyspark.sql import functions as F
    from streamjoin.spark.layout import spark_hash

    rows = (
        spark.range(100).select(F.col("id").cast("int").alias("k"), F.hash(F.col("id").cast("int"))).collect()
    )
    assert all(spark_hash(key) == hashed for key, hashed in rows)
