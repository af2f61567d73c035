"""The auction query on a local Spark: counts of bids as they become final, and what punctuations save.

    python -m streamjoin.spark.demo [--events N] [--batches N] [--picture FILE]

Bids join their auctions within twelve hours; a closing is a punctuation: no more bids on this auction. The
second run has the
same rows without closings: the same matches, but every auction is held for the whole window.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin import spark as sjs
from streamjoin.spark.watch import totals_of

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
QUERY = sj.Query(
    [
        sj.Stream("auction", time="date_time", window="12 hours", unique="id"),
        sj.Stream("bid", time="date_time", window="0 s", punctuations=["auction"]),
    ],
    on=["auction.id = bid.auction"],
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(prog="streamjoin demo", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--events", type=int, default=60_000, help="events of the auction site (default: %(default)s)"
    )
    parser.add_argument("--batches", type=int, default=12, help="micro-batches (default: %(default)s)")
    parser.add_argument(
        "--picture", default="streamjoin-demo.png", help="where to draw (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        print(
            "streamjoin demo: Spark needs Java 17; on Debian: apt-get install openjdk-17-jre-headless",
            file=sys.stderr,
        )
        return 1
    spark = start_spark()
    try:
        sjs.register(spark)
        print("bids per auction, as counts become final (closings are punctuations)")
        promised = run(spark, options.events, options.batches, with_closings=True)
        print("the same without closings: the window alone bounds the state")
        plain = run(spark, options.events, options.batches, with_closings=False)
    finally:
        spark.stop()
    if promised[-1]["matches"] != plain[-1]["matches"]:
        print(f"matches differ: {promised[-1]['matches']} and {plain[-1]['matches']}", file=sys.stderr)
        return 1
    rows = [max(step["state_rows"] for step in steps) for steps in (promised, plain)]
    print(
        f"most rows held: {rows[0]:,} with closings, {rows[1]:,} without; matches: {plain[-1]['matches']:,}"
    )
    if draw(Path(options.picture), promised, plain):
        print(f"picture: {options.picture}")
    return 0


def start_spark() -> SparkSession:
    """Return a quiet Spark session on this machine."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    spark: SparkSession = (
        builder.master("local[2]")
        .appName("streamjoin demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def source(spark: SparkSession, stream: str, events: int, batches: int) -> DataFrame:
    """Return one stream of the auction site."""
    per_batch = -(-events // batches)
    reader = spark.readStream.format("nexmark").option("stream", stream)
    return reader.option("events", events).option("events_per_batch", per_batch).load()


def run(spark: SparkSession, events: int, batches: int, *, with_closings: bool) -> list[dict[str, Any]]:
    """Run the query to the end of the events; returns what each micro-batch held."""
    streams = {name: source(spark, name, events, batches) for name in ("auction", "bid")}
    closings = source(spark, "closing", events, batches).select("auction", "date_time")
    joined = sjs.join(
        QUERY, streams, punctuations={"bid": closings} if with_closings else None,
        aggregate=sj.count(by="auction_id", as_="bids") if with_closings else (),
    )  # fmt: skip
    steps: list[dict[str, Any]] = []

    def show(frame: DataFrame, number: int) -> None:
        rows = frame.orderBy(frame.columns[0]).tail(3) if with_closings else []
        if rows:
            shown = ", ".join(f"auction {row[0]}: {row[1]} bids" for row in rows)
            print(f"\r{' ' * 40}\r  batch {number}: ... {shown}", flush=True)
        else:
            frame.write.format("noop").mode("append").save()

    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        writer = joined.writeStream.foreachBatch(show).option("checkpointLocation", folder)
        query = writer.start()
        while len(steps) < batches and query.isActive:
            time.sleep(0.2)
            done = [p for p in query.recentProgress if p.numInputRows and totals_of(p)]
            for progress in done[len(steps) :]:
                totals = totals_of(progress)[0]
                steps.append({"state_rows": totals["state_rows"], "matches": totals["rows_out"]})
                _progress_bar(len(steps), batches, time.monotonic() - started)
        query.stop()
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
    print()
    return steps


def _progress_bar(done: int, of: int, seconds: float) -> None:
    filled = 24 * done // of
    print(f"\r  [{'#' * filled}{'.' * (24 - filled)}] {done}/{of} {seconds:4.0f} s", end="", flush=True)


def draw(path: Path, promised: list[dict[str, Any]], plain: list[dict[str, Any]]) -> bool:
    """Draw the rows held after each micro-batch, with and without punctuations."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: pip install matplotlib")
        return False
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for steps, label in ((plain, "window alone"), (promised, "window and punctuations")):
        axes.plot(range(1, len(steps) + 1), [step["state_rows"] for step in steps], marker="o", label=label)
    axes.set(xlabel="micro-batch", ylabel="rows held", title="State of the auction join", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)
    return True


if __name__ == "__main__":
    sys.exit(main())
