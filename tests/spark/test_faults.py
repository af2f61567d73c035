"""Nothing is lost and nothing comes twice: restarts, failed tasks, bad rows, other checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from feed import Feed, auction_batches, auction_query, nested_loops
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from streamjoin.spark.join import MIN_LOG_BYTES


def with_fault(joined: DataFrame, marker: Path, fault: str) -> DataFrame:
    """Do harm in the first task that has a result, after its bucket has joined the batch."""
    path = str(marker)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json
        import os
        import signal
        from pathlib import Path

        from pyspark import SparkFiles

        def harm() -> None:
            if fault == "task":
                raise RuntimeError("this task fails once")
            if fault == "worker":
                os.kill(os.getpid(), signal.SIGKILL)
            for file in Path(SparkFiles.getRootDirectory()).glob("streamjoin-*"):  # where buckets are held
                os.kill(json.loads(file.read_text())["pid"], signal.SIGKILL)

        for batch in batches:
            if batch.num_rows and fault and not Path(path).exists():
                Path(path).touch()
                harm()
            yield batch

    return joined.mapInArrow(run, joined.schema)


def test_restarts_failing_tasks_and_killed_workers_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    faults = ["task", "worker", "holder", "", "task"]
    batches = auction_batches(seed=2, batches=len(faults))
    feed = Feed(spark, tmp_path)
    spark.conf.set(MIN_LOG_BYTES, "0")  # snapshots and segments take turns
    try:
        joined = feed.join(auction_query(), buckets=2)
        for number, (batch, fault) in enumerate(zip(batches, faults, strict=True)):
            feed.send(batch)
            feed.run(with_fault(joined, tmp_path / f"failed_{number}", fault))
            assert (tmp_path / f"failed_{number}").exists() == bool(fault)
            if number == 3:  # the state store goes back to the batch before; what is resident is of this one
                (tmp_path / "checkpoint" / "commits" / "3").unlink()
                (tmp_path / "checkpoint" / "commits" / ".3.crc").unlink(missing_ok=True)
    finally:
        spark.conf.unset(MIN_LOG_BYTES)
    assert feed.results() == nested_loops(batches)


def test_an_executor_and_then_the_driver_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    """Two executors: one dies in batch 1, so its partitions move; the driver dies in batch 2."""
    batches = auction_batches(seed=6, batches=4)
    feed = Feed(spark, tmp_path)
    for batch in batches[:3]:
        feed.send(batch)
    program = [sys.executable, str(Path(__file__).parent / "doomed_driver.py"), str(tmp_path)]
    log = tmp_path / "driver.log"
    with log.open("w") as file:
        driver = subprocess.Popen(program, start_new_session=True, stdout=file, stderr=file)
    try:
        while not (tmp_path / "driver_may_die").exists():
            assert driver.poll() is None, log.read_text()[-3000:]
            time.sleep(0.1)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert (tmp_path / "executor_killed").exists()
    feed.send(batches[3])
    feed.run(feed.join(auction_query(), buckets=2))
    assert feed.results() == nested_loops(batches)


def test_a_bad_row_stops_the_query_which_goes_on_after_repair(spark: SparkSession, tmp_path: Path) -> None:
    batches = auction_batches(seed=3, batches=2)
    feed = Feed(spark, tmp_path)
    feed.send(batches[0])
    good = list(batches[1]["bid"])
    feed.send({**batches[1], "bid": [*good, (1, 1, None)]})
    with pytest.raises(StreamingQueryException, match="stream 'bid', time column 'placed': expected a time"):
        feed.run(feed.join(auction_query(), buckets=2))
    feed.resend({**batches[1], "bid": good})
    feed.run(feed.join(auction_query(), buckets=2))
    assert feed.results() == nested_loops(batches)
