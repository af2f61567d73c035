"""Nothing is lost and nothing comes twice: restarts, failed tasks, bad rows, other checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import streamjoin as sj
from feed import Feed, auction_batches, auction_query, nested_loops
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamjoin.spark.join import MIN_LOG_BYTES


def failing_once(joined: DataFrame, marker: Path) -> DataFrame:
    """Fail the first task that has a result, after its bucket has joined the batch."""
    path = str(marker)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pathlib import Path

        for batch in batches:
            if batch.num_rows and not Path(path).exists():
                Path(path).touch()
                raise RuntimeError("this task fails once")
            yield batch

    return joined.mapInArrow(run, joined.schema)


def test_restarts_and_failing_tasks_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    batches = auction_batches(seed=2, batches=4)
    feed = Feed(spark, tmp_path)
    spark.conf.set(MIN_LOG_BYTES, "0")  # snapshots and segments take turns
    try:
        joined = feed.join(auction_query(), buckets=2)
        for number, batch in enumerate(batches):
            feed.send(batch)
            feed.run(failing_once(joined, tmp_path / f"failed_{number}"))
            assert (tmp_path / f"failed_{number}").exists()
    finally:
        spark.conf.unset(MIN_LOG_BYTES)
    assert feed.results() == nested_loops(batches)


def test_a_bad_row_stops_the_query_which_goes_on_after_repair(spark: SparkSession, tmp_path: Path) -> None:
    batches = auction_batches(seed=3, batches=2)
    feed = Feed(spark, tmp_path)
    feed.send(batches[0])
    good = list(batches[1]["bid"])
    feed.send({**batches[1], "bid": [*good, (1, 1, None)]})
    with pytest.raises(StreamingQueryException, match="stream 'bid', time column 'placed': expected a time"):
        feed.run(feed.join(auction_query(), buckets=2))
    feed.resend({**batches[1], "bid": good})
    with pytest.raises(StreamingQueryException, match="it was made with buckets=2, got buckets=3"):
        feed.run(feed.join(auction_query(), buckets=3))
    with pytest.raises(StreamingQueryException, match="it was made by another query"):
        feed.run(feed.join(auction_query(late="insert"), buckets=2))
    feed.run(feed.join(auction_query(), buckets=2))
    assert feed.results() == nested_loops(batches)


def test_a_query_fails_before_it_starts_if_it_cannot_run(spark: SparkSession, tmp_path: Path) -> None:
    from streamjoin import spark as sjs
    from streamjoin.spark import checks

    feed = Feed(spark, tmp_path)
    feed.send(auction_batches(seed=1, batches=1)[0])
    query = auction_query()
    static, stream = feed.static, feed.stream
    both = {"auction": static("auction"), "bid": static("bid")}

    def refused(
        expected: str, *, joining: sj.Query = query, streams: object = both, **options: object
    ) -> None:
        with pytest.raises(sj.QueryError, match=expected):
            sjs.join(joining, streams, **options)  # type: ignore[arg-type]

    refused("expected a DataFrame of stream 'bid'", streams={"auction": static("auction")})
    refused("expected the streams .* got 'bids'", streams={**both, "bids": static("bid")})
    refused("stream 'bid': expected a DataFrame, got 3", streams={**both, "bid": 3})
    refused(
        "stream 'bid': expected a time column 'placed'", streams={**both, "bid": static("bid").drop("placed")}
    )
    refused("expected a column 'item'", streams={**both, "bid": static("bid").drop("item")})
    text = static("bid").withColumn("item", F.col("item").cast("string"))
    refused("auction.item = bid.item", streams={**both, "bid": text})
    refused("use readStream for all or read for all", streams={**both, "bid": stream("bid")})
    refused("emit: expected one of", emit="everything")
    refused("buckets: expected a positive integer", buckets=0)
    refused("expected a SQL condition over its columns", punctuations={"bid": "no_such_column = 1"})
    refused("expected a condition, got 'price'", punctuations={"bid": "price"})
    refused("got the column 'price'", punctuations={"bid": static("bid")})
    refused("needs exactly one scheme", punctuations={"auction": "seller = 'x'"})
    refused("expected one of .* got 'no'", aggregate=sj.count(by="no"))
    refused("expected a column of numbers", aggregate=sj.sum("auction_seller", by="auction_item"))
    streaming = {"auction": stream("auction"), "bid": stream("bid")}
    refused(
        "a function cannot be recognised after a restart",
        joining=auction_query(where=lambda columns: columns["bid.price"] > 3),
        streams=streaming,
    )
    provider = spark.conf.get(checks.PROVIDER)
    spark.conf.unset(checks.PROVIDER)
    try:
        refused("the state store provider must be RocksDB", streams=streaming)
    finally:
        spark.conf.set(checks.PROVIDER, provider)
    with pytest.raises(sj.QueryError, match="pandas below 3"):
        checks.check_pandas("3.0.1")
