"""A driver with two executors that runs the auction query: python doomed_driver.py FOLDER.

In batch 1 an executor is killed from within a task; in batch 2 a task says that the driver may die, and
waits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from feed import SHORT_LIVED, Feed, auction_query
from pyspark.sql import SparkSession


def harm(folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import os
    import signal
    import time
    from pathlib import Path

    from pyspark import TaskContext

    context = TaskContext.get()
    number = int((context and context.getLocalProperty("streaming.sql.batchId")) or -1)
    for batch in batches:
        killed = Path(folder) / "executor_killed"
        if batch.num_rows and number == 1 and not killed.exists():
            killed.touch()
            ancestor = os.getppid()
            while b"java" not in Path(f"/proc/{ancestor}/cmdline").read_bytes().split(b"\0")[0]:
                ancestor = int(Path(f"/proc/{ancestor}/stat").read_text().rsplit(")", 1)[1].split()[1])
            os.kill(ancestor, signal.SIGKILL)
        if batch.num_rows and number == 2:
            (Path(folder) / "driver_may_die").touch()
            time.sleep(600)
        yield batch


def main() -> None:
    folder = sys.argv[1]
    here = str(Path(__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED)
        .config("spark.executor.extraJavaOptions", SHORT_LIVED)
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        # Nobody waits for what does not come back: a partition goes to the executor that is left at once.
        .config("spark.locality.wait", "0s")
        .config("spark.shuffle.io.maxRetries", "1")
        .config("spark.shuffle.io.retryWait", "100ms")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join([here, *filter(None, sys.path)]))
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    feed = Feed(spark, Path(folder), new=False)
    joined = feed.join(auction_query(), buckets=2)
    feed.run(joined.mapInArrow(lambda batches: harm(folder, batches), joined.schema))


if __name__ == "__main__":
    main()
