"""The auction query on a local Spark: counts of bids as they become final, and what punctuations save.

    streamjoin demo [--events N] [--batches N] [--picture FILE]

Bids join their auctions within twelve hours; a closing is a punctuation: no more bids on this auction. The
second run has the same rows without closings: the same matches, but every auction is held for the whole
window.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import streamjoin as sj
from streamjoin import spark as sjs
from streamjoin.progress import Progress
from streamjoin.spark.checks import PROVIDER, ROCKSDB
from streamjoin.spark.watch import totals_of

QUERY = sj.Query(
    [
        sj.Stream("auction", time="date_time", window="12 hours", unique="id"),
        sj.Stream("bid", time="date_time", window="0 s", punctuations=["auction"]),
    ],
    on=["auction.id = bid.auction"],
)


HELP = """\
An auction site on a local Spark; Java 17 and the extra `spark` are needed, and a minute or two. Bids join
their auctions within twelve hours, and are counted; a closing says: no more bids on this auction.

  first run    with closings: each count is shown once it is final, and closed auctions leave the state
  second run   the same rows without closings: the same matches, but every auction is held for its window

At the end: the most rows that each run held, and a picture of them over time.

examples:
  streamjoin demo
  streamjoin demo --events 200000 --batches 20 --picture /tmp/state.svg
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="streamjoin demo", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--events", type=_positive, default=50_000, help="events of the auction site (default: %(default)s)"
    )
    parser.add_argument("--batches", type=_positive, default=10, help="micro-batches (default: %(default)s)")
    parser.add_argument(
        "--picture", type=_picture, default="streamjoin-demo.png",
        help="where to draw, .png or .svg (default: %(default)s)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        sjs.check_environment()
    except sj.QueryError as missing:
        print(f"streamjoin demo: {missing}", file=sys.stderr)
        return 2
    print(f"{options.events:,} events of an auction site: 1 person, 3 auctions, 46 bids in 50")
    try:
        promised, plain = both_runs(options.events, options.batches)
    except (PySparkException, Py4JError, RuntimeError) as error:
        print(f"streamjoin demo: Spark failed: {str(error).strip().partition(chr(10))[0]}", file=sys.stderr)
        return 2
    if promised[-1].matches != plain[-1].matches:
        print(f"matches differ: {promised[-1].matches} and {plain[-1].matches}", file=sys.stderr)
        return 1
    most = [max(step.state_rows for step in steps) for steps in (promised, plain)]
    print(f"  {plain[-1].matches:,} matches, as with closings")
    _heading("Most rows held after a micro-batch:")
    print(f"  {most[0]:8,} with closings\n  {most[1]:8,} without")
    if draw(options.picture, promised, plain):
        print(f"picture: {options.picture}")
    return 0


def both_runs(events: int, batches: int) -> tuple[list[Step], list[Step]]:
    """Run with closings and without, on a Spark of their own."""
    print("starting Spark ...", flush=True)
    spark = start_spark()
    try:
        sjs.register(spark)
        _heading("Bids per auction, each count shown once it is final. A closing is a punctuation:")
        promised = run(spark, events, batches, with_closings=True)
        _heading("The same without closings: the window alone bounds the state.")
        return promised, run(spark, events, batches, with_closings=False)
    finally:
        spark.stop()


def _picture(text: str) -> Path:
    """Refuse now what could not be drawn after two minutes."""
    path = Path(text)
    if path.suffix.lower() not in (".png", ".svg"):
        raise argparse.ArgumentTypeError(f"expected a name that ends with .png or .svg, got {text!r}")
    if not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"expected a folder that can be written to, got {text!r}")
    return path


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above zero, got {text!r}")
    return number


def _heading(text: str) -> None:
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(f"\n\033[1m{text}\033[0m" if bold else f"\n{text}", flush=True)


def start_spark() -> SparkSession:
    """Return a Spark session on this machine; what its JVM and workers have to say goes into a file."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryFile() as log:
        try:
            with _written_to(log.fileno()):
                return _session()
        except Exception:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise


@contextmanager
def _written_to(file: int) -> Iterator[None]:
    """Let processes that start in here write there."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        yield
    finally:
        for number, own in zip((1, 2), kept, strict=True):
            os.dup2(own, number)
            os.close(own)


def _session() -> SparkSession:
    builder: Any = SparkSession.builder
    spark: SparkSession = (
        builder.master("local[2]")
        .appName("streamjoin demo")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")  # it will not live for long
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config(PROVIDER, ROCKSDB)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def source(spark: SparkSession, stream: str, events: int, batches: int) -> DataFrame:
    """Return one stream of the auction site."""
    per_batch = -(-events // batches)
    reader = spark.readStream.format("nexmark").option("stream", stream)
    return reader.option("events", events).option("events_per_batch", per_batch).load()


@dataclass(frozen=True)
class Step:
    """What one micro-batch held and had found by its end."""

    state_rows: int
    matches: int


def run(spark: SparkSession, events: int, batches: int, *, with_closings: bool) -> list[Step]:
    """Run the query to the end of the events; returns what each micro-batch held."""
    streams = {name: source(spark, name, events, batches) for name in ("auction", "bid")}
    closings = source(spark, "closing", events, batches).select("auction", "date_time")
    joined = sjs.join(
        QUERY, streams, punctuations={"bid": closings} if with_closings else None,
        aggregate=sj.count(by="auction_id", as_="bids") if with_closings else (),
    )  # fmt: skip
    final: dict[int, list[Row]] = {}

    def keep(frame: DataFrame, number: int) -> None:
        if with_closings:
            final[number] = sorted(frame.collect())  # sorting in Spark would run the join twice, to sample
        else:
            frame.write.format("noop").mode("append").save()

    steps: list[Step] = []
    with tempfile.TemporaryDirectory() as folder, Progress("  micro-batches", batches) as progress:
        progress.step(0)
        query = joined.writeStream.foreachBatch(keep).option("checkpointLocation", folder).start()
        while len(steps) < batches and query.isActive:
            time.sleep(0.2)
            done = [p for p in query.recentProgress if p.numInputRows and totals_of(p)]
            for report in done[len(steps) :]:
                totals = totals_of(report)[0]
                steps.append(Step(totals["state_rows"], totals["rows_out"]))
                progress.clear()
                if with_closings:
                    print(_shown(report.batchId, final.get(report.batchId, [])), flush=True)
                progress.step()
        query.stop()
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
    return steps


def _shown(number: int, rows: list[Row]) -> str:
    """Return the counts that became final with a micro-batch: how many, and the last few."""
    last = ", ".join(f"{row.bids} on auction {row.auction_id}" for row in rows[-3:])
    return f"  batch {number:2}: {len(rows):5,} counts final" + (f", among them {last}" if last else "")


def draw(path: Path, promised: list[Step], plain: list[Step]) -> bool:
    """Draw the rows held after each micro-batch, with and without punctuations."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: pip install matplotlib")
        return False
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for steps, label in ((plain, "window alone"), (promised, "window and punctuations")):
        axes.plot(range(1, len(steps) + 1), [step.state_rows for step in steps], marker="o", label=label)
    axes.set(xlabel="micro-batch", ylabel="rows held", title="State of the auction join", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)
    return True


if __name__ == "__main__":
    sys.exit(main())
