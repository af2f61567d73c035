"""Three streams, every join type, every type that Spark sends by Arrow: the rows of nested loops."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import streamjoin as sj
from feed import SECOND, Batch, Feed, auction_batches, auction_query, nested_loops
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "zoned": (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)),
    "local": (pa.timestamp("us"), dt.datetime(1969, 1, 2, 3, 4, 5, 6)),
    "day": (pa.date32(), dt.date(1900, 2, 3)),
    "money": (pa.decimal128(38, 7), Decimal("-12345678901234567890.1234567")),
    "numbers": (pa.list_(pa.int32()), [1, None, 3]),
    "nested": (pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))]), {"a": "x", "b": [0.5]}),
    "mapped": (pa.map_(pa.string(), pa.int64()), [("k", 1), ("l", None)]),
    "raw": (pa.binary(), b"\0\xff"),
    "text": (pa.string(), "äöü"),
    "yes": (pa.bool_(), True),
    "tiny": (pa.int8(), -128),
    "real": (pa.float32(), 0.25),
    "duration": (pa.duration("us"), dt.timedelta(days=-1, microseconds=5)),
}
PLAIN = pa.schema([("k", pa.int32()), ("t", pa.timestamp("us"))])
RICH = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), *((n, t) for n, (t, _) in TYPES.items())])


def three_streams(how_long: str, **options: Any) -> sj.Query:
    streams = [sj.Stream(name, time="t") for name in "abc"]
    return sj.Query(streams, on=["a.k = b.k", "b.k = c.k"], within=sj.within(how_long), **options)


def test_three_streams_with_every_payload_type(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(17)
    feed = Feed(spark, tmp_path, {"a": PLAIN, "b": RICH, "c": PLAIN})
    sent: list[Batch] = []
    for number in range(3):
        batch: Batch = {"a": [], "b": [], "c": []}
        for name in batch:
            for _ in range(12):
                key = rng.randrange(4)
                time = (number * 10 + rng.randrange(10)) * SECOND
                payload = [rng.choice([value, None]) for _, value in TYPES.values()] if name == "b" else []
                batch[name].append((key, time, *payload))
        feed.send(batch)
        sent.append(batch)
        if number != 1:  # batches 1 and 2 in one run, from the checkpoint of batch 0
            totals = feed.run(feed.join(three_streams("6 s"), buckets=2, punctuations={}))
    assert totals[-1]["rebuilt"] == 0  # whichever worker got the third batch
    a, b, c = ([row for batch in sent for row in batch[name]] for name in "abc")
    expected = Counter(
        repr([*map(plain, x), *map(plain, y), *map(plain, z)])
        for x, y, z in product(a, b, c)
        if x[0] == y[0] == z[0] and max(x[1], y[1], z[1]) - min(x[1], y[1], z[1]) <= 6 * SECOND
    )
    assert len(expected) > 50
    table = spark.read.parquet(str(tmp_path / "out_checkpoint")).toArrow()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    assert Counter(repr([plain(value) for value in row]) for row in rows) == expected


def plain(value: Any) -> Any:
    """A value as it compares: times as microseconds, since Spark shows them in its own way."""
    if isinstance(value, dt.datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (zoned - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    return value


def test_every_join_type_in_one_streaming_query(spark: SparkSession, tmp_path: Path) -> None:
    far = 10_000 * SECOND
    last: Batch = {"auction": [(-1, "x", far)], "bid": [(-2, 0, far)]}
    batches = [*auction_batches(seed=21, batches=2), last]
    feed = Feed(spark, tmp_path)
    for batch in batches:
        feed.send(batch)
    joins = []
    for how in ("right", "full", "left_semi", "left_anti"):
        joined = feed.join(auction_query(how=how), buckets=2)
        for name in ("bid_item", "bid_price", "bid_placed"):
            if name not in joined.columns:
                joined = joined.withColumn(
                    name, F.lit(None).cast("timestamp" if "placed" in name else "long")
                )
        joins.append(joined.withColumn("how", F.lit(how)))
    whole = joins[0]
    for joined in joins[1:]:
        whole = whole.unionByName(joined)
    totals = feed.run(whole)
    assert len(totals) == 4 * len(batches)
    assert not any(t["rebuilt"] for t in totals)  # the joins of one query keep their buckets apart
    inner, left = nested_loops(batches), nested_loops(batches, "left")
    del left[(*last["auction"][0], None, None, None)]  # its bids may still come
    matched = {row[3:] for row in inner}
    lonely = Counter(
        (None,) * 3 + bid for batch in batches[:-1] for bid in batch["bid"] if bid not in matched
    )
    nothing = (None,) * 3
    semi = Counter({row[:3]: 0 for row in inner})
    auctions = Counter(a for batch in batches[:-1] for a in batch["auction"])
    semi = Counter({a: n for a, n in auctions.items() if a in semi})
    anti = Counter({row: n for row, n in left.items() if row[3:] == nothing})
    expected = {
        "right": inner + lonely,
        "full": left + lonely,
        "left_semi": Counter({(*a, *nothing): n for a, n in semi.items()}),
        "left_anti": anti,
    }
    # A bid is final once auctions are past it: the last one, far behind all, is not.
    found = feed.results()
    for how, rows in expected.items():
        assert Counter({r[:-1]: n for r, n in found.items() if r[-1] == how}) == rows, how
