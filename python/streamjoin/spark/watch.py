"""Watching a streaming join: its statistics from a checkpoint, and per micro-batch as it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

import streamjoin as sj
from streamjoin.spark.processor import OBSERVED


def state_stats(spark: SparkSession, checkpoint: str, *, batch: int | None = None) -> dict[int, sj.Stats]:
    """Return the `Stats` of every bucket, as of the last committed micro-batch or of an earlier one.

    Reads through Spark's state data source; the query may be running or not.
    """
    reader = spark.read.format("statestore").option("stateVarName", "head")
    if batch is not None:
        reader = reader.option("batchId", batch)
    rows = reader.load(str(checkpoint)).selectExpr("key.bucket AS bucket", "value.stats AS stats").collect()
    return {row["bucket"]: sj.Stats(**json.loads(row["stats"])) for row in sorted(rows)}


def totals_of(progress: Any) -> list[dict[str, int]]:
    """Return the totals of each join in a streaming query after a micro-batch."""
    observed = progress.observedMetrics
    return [observed[name].asDict() for name in sorted(observed) if name.startswith(f"{OBSERVED}_")]


class JoinListener(StreamingQueryListener):
    """Hands the totals of each micro-batch to a function: `spark.streams.addListener(JoinListener(print))`.

    The function gets a dict: batch, name of the query, state_rows, state_bytes, payload_bytes, and
    counters since the query began: rows_in, rows_out, purged, invalidated, late, violations. Of the
    micro-batch alone: written_bytes, what went to the state store, and rebuilt, how many buckets had to
    be read back from it.
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
