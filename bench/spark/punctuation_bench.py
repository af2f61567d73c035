"""What do punctuations save, next to Spark's own join with its best watermark on the same files?

    python bench/spark/punctuation_bench.py [--rows N] [--batches N]

Auctions and bids within twelve hours, left outer: three hours of events and N auctions and bids a
micro-batch. An auction closes an hour after it opened; its closing is a punctuation. Spark's join gets a
watermark of zero delay. Expected: at most a fifth of the state rows; the unmatched auctions of a closing
come in its micro-batch; the same matches.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import streamjoin as sj
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from session import run_to_end, start_spark
from streamjoin import spark as sjs
from streamjoin.spark.watch import totals_of

HOUR = 3_600_000_000
SPAN = 3 * HOUR


def write_files(folder: Path, rows: int, batches: int) -> list[int]:
    """Return per micro-batch how many auctions without a bid close in it."""
    rng = np.random.default_rng(3)
    opened = np.sort(rng.integers(0, batches * SPAN, rows * batches))
    items = np.arange(len(opened))
    of = rng.integers(0, len(opened), len(opened))  # about 37% of the auctions get no bid
    placed = opened[of] + rng.integers(0, HOUR, len(of))
    order = np.argsort(placed, kind="stable")
    tables = {
        "auction": {"item": items, "at": opened},
        "bid": {"item": of[order], "at": placed[order]},
        "closing": {"item": items, "at": opened + HOUR},
    }
    for name, columns in tables.items():
        (folder / name).mkdir()
        for number in range(batches):
            here = columns["at"] // SPAN == number
            table = pa.table(
                {
                    "item": columns["item"][here],
                    "at": pa.array(columns["at"][here]).cast(pa.timestamp("us", "UTC")),
                }
            )
            path = folder / name / f"{number:05}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + number,) * 2)
    lonely = np.setdiff1d(items, of)
    closed = (opened[lonely] + HOUR) // SPAN
    return [int((closed == number).sum()) for number in range(batches)]


def source(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    reader = spark.readStream.schema("item long, at timestamp").option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / name))


def built_in(spark: SparkSession, folder: Path) -> DataFrame:
    sides = {
        name: source(spark, folder, name)
        .select(F.col("item").alias(f"{name}_item"), F.col("at").alias(f"{name}_at"))
        .withWatermark(f"{name}_at", "0 seconds")
        for name in ("auction", "bid")
    }
    near = "bid_at BETWEEN auction_at AND auction_at + INTERVAL 12 HOURS"
    return sides["auction"].join(sides["bid"], F.expr(f"auction_item = bid_item AND {near}"), "left")


def ours(spark: SparkSession, folder: Path) -> DataFrame:
    query = sj.Query(
        [
            sj.Stream("auction", time="at", window="12 hours"),
            sj.Stream("bid", time="at", window="0 s", punctuations=["item"]),
        ],
        on=["auction.item = bid.item"],
        how="left",
    )
    streams = {name: source(spark, folder, name) for name in ("auction", "bid")}
    return sjs.join(query, streams, buckets=2, punctuations={"bid": source(spark, folder, "closing")})


def run(joined: DataFrame, checkpoint: Path) -> list[Any]:
    lonely = F.sum(F.col("bid_item").isNull().cast("long"))
    counted = joined.observe("answer", F.count("bid_item").alias("matches"), lonely.alias("unmatched"))
    return run_to_end(counted, checkpoint)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--batches", type=int, default=8)
    options = parser.parse_args()
    spark = start_spark()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        closing = write_files(folder, options.rows, options.batches)
        theirs = run(built_in(spark, folder), folder / "theirs")
        our_own = run(ours(spark, folder), folder / "ours")
    spark.stop()
    rows = [p.stateOperators[0].numRowsTotal for p in theirs]
    our_rows = [totals_of(p)[0]["state_rows"] for p in our_own]
    answers = [[p.observedMetrics["answer"].asDict() for p in steps] for steps in (theirs, our_own)]
    unmatched = [[answer["unmatched"] or 0 for answer in side] for side in answers]
    print("state rows, built-in:", rows)
    print("state rows, ours:    ", our_rows)
    print(f"ours / built-in, last micro-batch: 1 / {rows[-1] / max(our_rows[-1], 1):.1f}")
    print("unmatched rows by micro-batch, built-in:", unmatched[0])
    print("unmatched rows by micro-batch, ours:    ", unmatched[1], "closings of such:", closing)
    matches = [sum(answer["matches"] for answer in side) for side in answers]
    if matches[0] != matches[1] or unmatched[1] != closing:
        print(f"wrong: matches {matches}, unmatched {unmatched[1]}, expected {closing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
