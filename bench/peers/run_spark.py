"""A streaming interval join on Spark: its own with RocksDB or in-memory state, or ours.

    python bench/peers/run_spark.py FOLDER WINDOW_US MODULUS rocksdb | memory | streamjoin

local[2], two partitions, one file a side and micro-batch. The first micro-batches, in which the JVM warms
up, are counted; the start of the session is not.
"""

import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from runner import FOLDER, MODULUS, WINDOW_US, run

sys.path.append(str(Path(__file__).resolve().parents[1] / "spark"))
from session import IN_MEMORY, ROCKSDB, run_to_end, start_spark

KIND = sys.argv[4]
SPARK = start_spark(IN_MEMORY if KIND == "memory" else ROCKSDB)


def built_in(streams: dict[str, DataFrame]) -> DataFrame:
    """Spark's own stream-stream join."""
    sides = {
        side: frame.select([F.col(c).alias(f"{side}_{c}") for c in frame.columns]).withWatermark(
            f"{side}_t", "0 seconds"
        )
        for side, frame in streams.items()
    }
    reach = f"INTERVAL {WINDOW_US // 1_000_000} SECONDS"
    near = f"right_t BETWEEN left_t - {reach} AND left_t + {reach}"
    return sides["left"].join(sides["right"], F.expr(f"left_k = right_k AND {near}"))


def ours(streams: dict[str, DataFrame]) -> DataFrame:
    """The same by streamjoin."""
    import streamjoin as sj
    from streamjoin import spark as sjs

    query = sj.Query(
        [sj.Stream("left", time="t"), sj.Stream("right", time="t")],
        on=["left.k = right.k"],
        within=sj.within(WINDOW_US),
    )
    return sjs.join(query, streams, buckets=2)


def join() -> tuple[int, int]:
    streams = {
        side: SPARK.readStream.schema("id long, k long, t timestamp, v double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(FOLDER / side))
        for side in ("left", "right")
    }
    joined = ours(streams) if KIND == "streamjoin" else built_in(streams)
    product = F.expr(f"left_id * right_id % {MODULUS}")
    counted = joined.observe("answer", F.count(F.lit(1)).alias("results"), F.sum(product).alias("checksum"))
    with tempfile.TemporaryDirectory() as checkpoint:
        done = run_to_end(counted, Path(checkpoint))
    steps = [each.observedMetrics["answer"].asDict() for each in done if each.observedMetrics]
    return sum(step["results"] or 0 for step in steps), sum(step["checksum"] or 0 for step in steps)


run(pyspark.__version__, join)
SPARK.stop()
