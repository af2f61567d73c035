"""The source `nexmark`: proportions, references and closings that hold, batch and streaming alike."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import streamjoin as sj
from feed import rows_of
from pyspark.sql import DataFrame, SparkSession
from streamjoin import spark as sjs
from streamjoin.spark.demo import QUERY
from streamjoin.spark.nexmark import NexmarkSource, Site

SITE = Site(seed=4, round_us=60_000_000, open_rounds=10, disorder_us=0)


def test_bids_are_on_open_auctions_and_closings_are_true() -> None:
    auctions = {row["id"]: row for row in SITE.rows("auction", 0, 100).to_pylist()}
    bids = SITE.rows("bid", 0, 100).to_pylist()
    assert (SITE.rows("person", 0, 100).num_rows, len(auctions), len(bids)) == (100, 300, 4600)
    closings = {row["auction"]: row["date_time"] for row in SITE.rows("closing", 0, 100).to_pylist()}
    for bid in bids:
        auction = auctions[bid["auction"]]
        assert auction["date_time"] <= bid["date_time"] <= auction["expires"]
        assert bid["date_time"] <= closings.get(bid["auction"], bid["date_time"])
    assert closings.keys() <= auctions.keys()
    assert all(auctions[item]["expires"] == closed for item, closed in closings.items())


@pytest.mark.parametrize("stream", ["person", "auction", "bid", "closing"])
def test_rows_do_not_depend_on_how_they_are_cut(stream: str) -> None:
    whole = SITE.rows(stream, 0, 50)
    pieces = pa.Table.from_batches([SITE.rows(stream, at, at + 5) for at in range(0, 50, 5)])
    assert pieces.to_pylist() == whole.to_pylist()
    assert SITE.rows(stream, 0, 50) == whole
    assert Site(5, 60_000_000, 10, 0).rows(stream, 0, 50) != whole


def load(reader: Any, stream: str, **options: Any) -> DataFrame:
    options = {"events": 3000, "events_per_batch": 1500, "open_rounds": 10, "seed": 4, **options}
    return reader.format("nexmark").option("stream", stream).options(**options).load()


def test_streaming_counts_are_those_of_nested_loops(spark: SparkSession, tmp_path: Path) -> None:
    sjs.register(spark)
    static = {name: load(spark.read, name) for name in ("auction", "bid", "closing")}
    assert static["auction"].count() == 180
    bids = Counter(row.auction for row in static["bid"].collect())
    # With `unique` and closings both streams have promised an auction when it closes: its count is final
    # then.
    closed = {row.auction for row in static["closing"].collect()}
    streams = {name: load(spark.readStream, name) for name in ("auction", "bid")}
    counts = sjs.join(
        QUERY,
        streams,
        punctuations={"bid": load(spark.readStream, "closing")},
        aggregate=sj.count(by="auction_id", as_="bids"),
    )
    reports: list[dict[str, Any]] = []
    listener = sjs.JoinListener(reports.append)
    spark.streams.addListener(listener)
    writer = counts.writeStream.format("memory").queryName("counts")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # type: ignore[union-attr]
    spark.streams.removeListener(listener)
    expected = Counter((item, bids[item]) for item in closed if item in bids)
    assert rows_of(spark.table("counts")) == expected
    stats = sjs.state_stats(spark, str(tmp_path / "checkpoint"))
    assert len(stats) == 2
    assert sum(s.rows_in["bid"] for s in stats.values()) == sum(bids.values())
    assert sum(s.state_rows["auction"] for s in stats.values()) == 180 - len(closed)
    assert reports[-1]["state_rows"] == sum(sum(s.state_rows.values()) for s in stats.values())
    assert reports[-1]["purged"] == sum(sum(s.purged.values()) for s in stats.values()) > 0
    for name in ("rows_in", "rows_out", "purged", "late"):
        assert sum(report[f"new_{name}"] for report in reports) == reports[-1][name]
    assert {report["slack"] for report in reports} == {0}
    before = sjs.state_stats(spark, str(tmp_path / "checkpoint"), batch=0)
    assert sum(sum(s.purged.values()) for s in before.values()) == reports[0]["new_purged"]


def test_bad_options_are_named(spark: SparkSession) -> None:
    sjs.register(spark)
    with pytest.raises(Exception, match=r"expected one of .* got 'bids'"):
        load(spark.read, "bids")
    with pytest.raises(Exception, match="seed: expected a number that is not negative, got 'x'"):
        load(spark.read, "bid", seed="x").collect()
    with pytest.raises(Exception, match="rate: expected events a second, more than none, got '0'"):
        load(spark.read, "bid", rate="0").collect()


def test_rate_and_disorder_are_those_asked_for() -> None:
    options = {"stream": "bid", "events": "5000", "rate": "500", "disorder_seconds": "2"}
    late = NexmarkSource(options)._site()
    plain = NexmarkSource({**options, "disorder_seconds": "0"})._site()
    in_order, moved = (
        np.array(site.rows("bid", 0, 100).column("date_time").cast(pa.int64())) for site in (plain, late)
    )
    assert (np.diff(in_order) > 0).all()
    assert in_order[-1] - in_order[0] < 10_000_000 <= in_order[-1] - in_order[0] + 2_000_000  # 5000 at 500/s
    delays = in_order - moved
    assert delays.min() >= 0
    assert 1_900_000 < delays.max() <= 2_000_000
    assert (np.diff(moved) < 0).any()
    assert NexmarkSource({"stream": "bid"})._site().round_us == 60_000_000
