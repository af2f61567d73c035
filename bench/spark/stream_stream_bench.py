"""How fast is a streaming interval join, next to Spark's own on the same files?

    python bench/spark/stream_stream_bench.py [--rows N] [--batches N] [--skip NAME ...]

Two streams, N rows a side and micro-batch, +-120 s, about 0.85 matches a row. Three joins run one after the
other: Spark's with RocksDB state, Spark's with in-memory state, and ours (RocksDB). The number of result
rows must agree; rows/s are those after the first three micro-batches, while the JVM warms up.

State bytes: what a join holds in memory (Spark's `memoryUsedBytes`, and our buckets with their columns), in
the files of its store as they are in the end, and in the checkpoint, which keeps older versions too.

Expected: ours at least 10 times the first and 3 times the second; state bytes at most half.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import streamjoin as sj
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener
from session import IN_MEMORY, PROVIDER, ROCKSDB, processor_seconds, run_to_end, start_spark
from streamjoin import spark as sjs
from streamjoin.spark.watch import totals_of

SPAN = 60  # seconds of events in one micro-batch
WINDOW = 120
WARM_UP = 3


def write_files(folder: Path, rows: int, batches: int) -> None:
    """Uniform keys, as many as give 0.85 matches a row: rows * (2 * window / span) / keys."""
    rng = np.random.default_rng(1)
    keys = int(rows * 2 * WINDOW / SPAN / 0.85)
    for side in ("left", "right"):
        (folder / side).mkdir()
        for number in range(batches):
            times = np.sort(rng.integers(0, SPAN * 1_000_000, rows)) + number * SPAN * 1_000_000
            table = pa.table(
                {
                    "k": rng.integers(0, keys, rows),
                    "v": rng.random(rows),
                    "t": pa.array(times).cast(pa.timestamp("us", "UTC")),
                }
            )
            path = folder / side / f"{number:05}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number,) * 2)


def sources(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    return {
        side: spark.readStream.schema("k long, v double, t timestamp")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / side))
        for side in ("left", "right")
    }


def built_in(spark: SparkSession, folder: Path) -> DataFrame:
    sides = {
        side: frame.select([F.col(c).alias(f"{side}_{c}") for c in frame.columns]).withWatermark(
            f"{side}_t", "0 seconds"
        )
        for side, frame in sources(spark, folder).items()
    }
    near = f"right_t BETWEEN left_t - INTERVAL {WINDOW} SECONDS AND left_t + INTERVAL {WINDOW} SECONDS"
    return sides["left"].join(sides["right"], F.expr(f"left_k = right_k AND {near}"))


def ours(spark: SparkSession, folder: Path) -> DataFrame:
    query = sj.Query(
        [sj.Stream("left", time="t"), sj.Stream("right", time="t")],
        on=["left.k = right.k"],
        within=sj.within(f"{WINDOW} s"),
    )
    return sjs.join(query, sources(spark, folder), buckets=2)


class ProcessorTimes(StreamingQueryListener):
    """Reads the processor time of Spark and its Python workers at the end of each micro-batch."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}

    def onQueryStarted(self, event: Any) -> None:
        self.at = {-1: processor_seconds()}

    def onQueryProgress(self, event: Any) -> None:
        self.at[event.progress.batchId] = processor_seconds()

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        pass


def run(joined: DataFrame, checkpoint: Path) -> list[Any]:
    counted = joined.observe("answer", F.count(F.lit(1)).alias("rows"))
    return run_to_end(counted, checkpoint)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--batches", type=int, default=7)
    parser.add_argument("--skip", nargs="*", default=[], choices=["rocksdb", "memory", "ours"])
    options = parser.parse_args()
    spark = start_spark()
    joins = {
        "rocksdb": (built_in, ROCKSDB),
        "memory": (built_in, IN_MEMORY),
        "ours": (ours, ROCKSDB),
    }
    clock = ProcessorTimes()
    spark.streams.addListener(clock)
    speeds: dict[str, float] = {}
    per_second: dict[str, float] = {}
    held: dict[str, dict[str, int]] = {}
    answers: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        write_files(folder, options.rows, options.batches)
        for name, (make, provider) in joins.items():
            if name in options.skip:
                continue
            spark.conf.set(PROVIDER, provider)
            steps = run(make(spark, folder), folder / f"checkpoint_{name}")
            warm = steps[WARM_UP:]
            seconds = sum(p.durationMs["triggerExecution"] for p in warm) / 1000
            speeds[name] = sum(p.numInputRows for p in warm) / seconds
            answers[name] = sum(p.observedMetrics["answer"]["rows"] for p in steps)
            size = sum(f.stat().st_size for f in (folder / f"checkpoint_{name}").rglob("*") if f.is_file())
            print(
                f"{name:8} {speeds[name]:10,.0f} rows/s  {answers[name]:,} results  "
                f"checkpoint {size / 1e6:,.1f} MB"
            )
            print("         batches, ms:", [p.durationMs["triggerExecution"] for p in steps], flush=True)
            while len(clock.at) <= len(steps):
                time.sleep(0.1)
            used = [clock.at[p.batchId] - clock.at[p.batchId - 1] for p in steps]
            per_second[name] = sum(p.numInputRows for p in warm) / sum(used[WARM_UP:])
            print(f"         processor s: {[round(u, 2) for u in used]}, {per_second[name]:,.0f} rows/s")
            state = steps[-1].stateOperators[0]
            stored = state.customMetrics.get("rocksdbSstFileSize", 0)
            resident = totals_of(steps[-1])[0] if name == "ours" else {"state_bytes": 0, "payload_bytes": 0}
            memory = state.memoryUsedBytes + resident["state_bytes"] + resident["payload_bytes"]
            held[name] = {"memory": memory, "files": stored, "both": memory + stored, "checkpoint": size}
            print(f"         state: {memory / 1e6:,.1f} MB in memory, {stored / 1e6:,.1f} MB in files")
            if name == "ours":
                totals = [totals_of(p)[0] for p in steps]
                print("         bytes written a micro-batch:", [t["written_bytes"] for t in totals])
                print("         buckets rebuilt:", [t["rebuilt"] for t in totals])
    spark.stop()
    for name in ("rocksdb", "memory"):
        if name in speeds and "ours" in speeds:
            shares = [
                f"{held['ours'][what] / size:.2f} of its {what}" for what, size in held[name].items() if size
            ]
            print(
                f"ours / {name}: {speeds['ours'] / speeds[name]:.1f} in rows/s, "
                f"{per_second['ours'] / per_second[name]:.1f} in rows per processor second; state bytes: "
                f"{', '.join(shares)}"
            )
    if len(set(answers.values())) > 1:
        print(f"the joins disagree: {answers}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
