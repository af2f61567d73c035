"""What cannot run is refused before a query starts, with a word on what to do."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
import streamjoin as sj
from feed import Feed, auction_batches, auction_query
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from streamjoin import spark as sjs
from streamjoin.spark import checks


def test_a_query_fails_before_it_starts_if_it_cannot_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    integers = static("auction").withColumn("opened", F.lit("today"))
    refused("time column auction.opened: expected timestamps", streams={**both, "auction": integers})
    closings = {"bid": stream("closing")}
    refused("static stream 'auction', stream 'bid'", punctuations=closings)
    wrong = static("closing").withColumn("item", F.col("item").cast("string"))
    refused("column 'item': expected the type of the stream, bigint, got string", punctuations={"bid": wrong})
    versions = {"protobuf": "5.0", "pandas": "3.0.1"}
    monkeypatch.setattr(importlib.metadata, "version", lambda package: found_version(versions, package))
    refused("needs pandas below 3: pip install 'pandas<3'; got 3.0.1", streams=streaming)
    versions["pandas"] = "2.3.0"
    sjs.join(query, streaming)
    del versions["protobuf"]
    refused("needs protobuf: pip install 'streamjoin\\[spark\\]'", streams=streaming)


def found_version(versions: dict[str, str], package: str) -> str:
    if package not in versions:
        raise importlib.metadata.PackageNotFoundError(package)
    return versions[package]


def test_a_machine_without_java_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sjs.check_environment()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        sj.QueryError, match=f"openjdk-17-jre-headless.*found no java in JAVA_HOME={tmp_path}"
    ):
        sjs.check_environment()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sj.QueryError, match="found no java on the PATH"):
        sjs.check_environment()
