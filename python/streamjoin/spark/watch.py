"""Watching a streaming join: its statistics from a checkpoint, and per micro-batch as it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

import streamjoin as sj
from streamjoin.spark.processor import OBSERVED, TOTALS, Head


def state_stats(spark: SparkSession, checkpoint: str, *, batch: int | None = None) -> dict[int, sj.Stats]:
    """Return the `Stats` of every bucket, as of the last committed micro-batch or of an earlier one.

    Reads through Spark's state data source; the query may be running or not.

    >>> import tempfile
    >>> from streamjoin.spark import join, register
    >>> register(spark)
    >>> def read(stream):
    ...     return spark.readStream.format("nexmark").option("stream", stream).option("events", 500).load()
    >>> auction = sj.Stream("auction", time="date_time", window="12 hours")
    >>> bid = sj.Stream("bid", time="date_time", window="0 s")
    >>> joined = join(
    ...     sj.Query([auction, bid], on=["auction.id = bid.auction"]),
    ...     {"auction": read("auction"), "bid": read("bid")},
    ... )
    >>> with tempfile.TemporaryDirectory() as checkpoint:
    ...     writer = joined.writeStream.format("noop").option("checkpointLocation", checkpoint)
    ...     running = writer.start()
    ...     running.processAllAvailable()
    ...     running.stop()
    ...     stats = state_stats(spark, checkpoint)
    >>> sum(bucket.state_rows["auction"] for bucket in stats.values())
    30
    """
    reader = spark.read.format("statestore").option("stateVarName", "head")
    if batch is not None:
        reader = reader.option("batchId", batch)
    rows = reader.load(str(checkpoint)).selectExpr("key.bucket AS bucket", "value.head AS head").collect()
    return {row["bucket"]: sj.Stats(**Head.of(row["head"]).stats) for row in sorted(rows)}


def totals_of(progress: Any) -> list[dict[str, int]]:
    """Return the totals of each join in a streaming query after a micro-batch."""
    observed = progress.observedMetrics
    return [_total(observed[name]["totals"]) for name in sorted(observed) if name.startswith(f"{OBSERVED}_")]


def _total(lines: list[str]) -> dict[str, int]:
    """Put the totals of all buckets together; the slack is the largest of theirs."""
    shares = [tuple(map(int, line.split())) for line in lines]
    by_name = zip(TOTALS, zip(*shares, strict=True) if shares else [(0,)] * len(TOTALS), strict=True)
    return {name: max(values) if name == "slack" else sum(values) for name, values in by_name}


class JoinListener(StreamingQueryListener):
    """Hands the totals of each micro-batch to a function: `spark.streams.addListener(JoinListener(print))`.

    The function gets a dict: batch, name of the query; sizes behind the micro-batch: state_rows, state_bytes,
    payload_bytes, buffered, and slack, the largest K of a bucket in microseconds; counters since the query
    began: rows_in, rows_out, purged, invalidated, late, violations, and the same of the micro-batch alone:
    new_rows_in, ... new_violations. Of the micro-batch alone too: written_bytes, what went to the state
    store, and rebuilt, how many buckets had to be read back from it.

    >>> listener = JoinListener(print)
    >>> spark.streams.addListener(listener)
    >>> spark.streams.removeListener(listener)
    """

    def __init__(self, report: Callable[[dict[str, Any]], None]) -> None:
        """Keep the function."""
        self._report = report

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to tell yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Report a micro-batch of a query that has a join in it."""
        for totals in totals_of(event.progress):
            self._report({"batch": event.progress.batchId, "name": event.progress.name, **totals})

    def onQueryIdle(self, event: Any) -> None:
        """Nothing new."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to tell any more."""
