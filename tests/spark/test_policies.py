"""Late rows, disorder and ten streams on Spark: the rows of nested loops."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from feed import AUCTION, BID, SECOND, Batch, Feed, auction_batches, auction_query, nested_loops
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from streamjoin import spark as sjs
from streamjoin.spark import frames
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout, choose_bucket_columns

FAR = 10_000 * SECOND
POLICIES: dict[str, dict[str, Any]] = {
    "insert": {"late": "insert"},
    "slack": {"disorder": sj.Slack("5 s")},
    "max_slack": {"disorder": sj.MaxSlack()},
    "recall": {"disorder": sj.Recall(0.99, period="1 min")},
}


def test_every_policy_in_one_streaming_query(spark: SparkSession, tmp_path: Path) -> None:
    """A bid comes a batch behind its time, four seconds late: inserted, or waited for, it meets its auction.

    What learns its slack cannot wait for the first late row: there it is on an item that has no auction.
    """
    batches = auction_batches(seed=31, batches=2)
    newest = max(bid[2] for bid in batches[0]["bid"])
    known: Batch = {"auction": [(70, "x", newest - 5 * SECOND)], "bid": []}
    late: Batch = {"auction": [], "bid": [(70, 1, newest - 4 * SECOND)]}
    # No heartbeats go between buckets that learn: far behind everything stand rows in each of them, twice,
    # since a stream waits for the other to be as far.
    last: list[Batch] = [
        {
            "auction": [(-i, "x", at) for i in range(1, 9)],
            "bid": [(100 + i, 0, at) for i in range(8)],
        }
        for at in (FAR, 2 * FAR)
    ]
    first = {**batches[0], "auction": batches[0]["auction"] + known["auction"]}
    second = {**batches[1], "bid": batches[1]["bid"] + late["bid"]}
    feed = Feed(spark, tmp_path)
    for batch in (first, second, *last):
        feed.send(batch)
    whole = None
    for name, policy in POLICIES.items():
        joined = feed.join(auction_query(**policy), buckets=2).withColumn("policy", F.lit(name))
        whole = joined if whole is None else whole.unionByName(joined)
    assert whole is not None
    totals = feed.run(whole)
    assert len(totals) == 4 * len(POLICIES)
    expected = nested_loops([first, second])
    (pair,) = [row for row in expected if row[0] == 70]
    found = feed.results()
    for name in POLICIES:
        rows = Counter({row[:-1]: n for row, n in found.items() if row[-1] == name})
        if name in ("max_slack", "recall"):
            rows[pair] += 1 - rows[pair]  # they may have learned too late
        assert rows == expected, name
    learned = {t["slack"] for t in totals[-len(POLICIES) :]}
    assert 5 * SECOND in learned  # as told
    assert max(learned) >= 4 * SECOND  # as seen


def test_ten_streams_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(41)
    names = [f"s{place}" for place in range(10)]
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64())])
    query = sj.Query(
        [sj.Stream(name, time="t") for name in names],
        on=[f"{a}.k = {b}.k" for a, b in pairwise(names)],
        within=sj.within(30),
    )
    feed = Feed(spark, tmp_path, {name: schema for name in names})
    sent: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names}
    for number in range(2):
        batch: Batch = {name: [(key, number * 20 + rng.randrange(20)) for key in (0, 1)] for name in names}
        for name in names:
            sent[name] += batch[name]
        feed.send(batch)
    feed.run(sjs.join(query, {name: feed.stream(name) for name in names}, buckets=2))

    def extended(row: list[tuple[Any, ...]], place: int) -> Iterator[tuple[Any, ...]]:
        if place == len(names):
            yield tuple(value for part in row for value in part)
            return
        for new in sent[names[place]]:
            times = [part[1] for part in (*row, new)]
            if (not row or new[0] == row[0][0]) and max(times) - min(times) <= 30:
                yield from extended([*row, new], place + 1)

    expected = Counter(extended([], 0))
    assert expected
    assert feed.results() == expected


@pytest.mark.parametrize(
    ("policy", "kind", "error"),
    [
        ({"late": "error"}, frames.ROWS, sj.LateRowError),
        ({"on_violation": "error"}, frames.PUNCTUATIONS, sj.PunctuationViolation),
    ],
)
def test_a_refused_row_is_named_and_leaves_the_bucket_as_it_was(
    policy: dict[str, Any], kind: int, error: type[Exception]
) -> None:
    query = auction_query(**policy)
    operator = sj.Operator(query, schemas={"auction": AUCTION, "bid": BID})
    result = operator.advance("bid", -1).rows.schema
    columns = choose_bucket_columns(query, None)
    bucket = Bucket(Layout(query, (AUCTION, BID), 1, columns, {"bid": ("item",)}, "rows", (), result))

    def bids(item: int, at: int) -> bytes:
        row = pa.record_batch([pa.array([v], f.type) for v, f in zip((item, 1, at), BID, strict=True)], BID)
        return frames.write_frame(frames.ROWS, 1, at, row)

    bucket.apply([bids(1, 50)])
    if kind == frames.PUNCTUATIONS:
        promise = pa.record_batch([pa.array([1])], names=["item"])
        bucket.apply([frames.write_frame(frames.PUNCTUATIONS, 1, None, promise)])
    before = bucket.snapshot()
    refused = bids(2, 10) if kind == frames.ROWS else bids(1, 60)
    with pytest.raises(error, match="'bid'"):
        bucket.apply([refused])
    assert bucket.snapshot() == before


def test_an_unsafe_query_is_refused_before_anything_runs(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "x long, t timestamp")
    streams = [sj.Stream("a", time="t", punctuations=["x"]), sj.Stream("b", time="t")]
    with pytest.raises(
        sj.UnsafeQueryError, match=r"(?s)'a' would grow.*remedy: punctuations=\['x'\] on stream"
    ):
        sjs.join(sj.Query(streams, ["a.x = b.x"]), {"a": frame, "b": frame})
    sjs.join(sj.Query(streams, ["a.x = b.x"], require_safe=False), {"a": frame, "b": frame})
