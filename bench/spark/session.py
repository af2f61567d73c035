"""The Spark on which every benchmark runs: two threads, two partitions, 4 GB for the JVM, nothing logged.

What a benchmark measures of it is read from the processes below this one: Java and the Python workers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

sys.path.append(str(Path(__file__).resolve().parents[1]))
from process_tree import largest_peak, usage

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state."
ROCKSDB = f"{_STATE}RocksDBStateStoreProvider"
IN_MEMORY = f"{_STATE}HDFSBackedStateStoreProvider"


def start_spark(provider: str = ROCKSDB) -> SparkSession:
    """Return a session whose streaming queries keep their state in this store."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config(PROVIDER, provider)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def run_to_end(streaming: DataFrame, checkpoint: Path) -> list[Any]:
    """Run a streaming query on all its input, throw its rows away; return the progress by micro-batch."""
    writer = streaming.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress for progress in query.recentProgress if progress.numInputRows]


def processor_seconds() -> float:
    """Return the processor time of Spark and its Python workers so far, and of this process."""
    return usage(os.getpid()).seconds


def largest_worker() -> int:
    """Return the peak resident bytes of the largest Python worker."""
    return largest_peak(os.getpid(), "pyspark", "daemon")
