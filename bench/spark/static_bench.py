"""How fast is a join of static DataFrames, next to Spark's own with the same interval condition, and how much
memory does it need where one key has a million rows?

    python bench/spark/static_bench.py [--rows N] [--rows-a-key N] [--sample N] [--hot-rows N] [--skip WHAT]

Two DataFrames with N rows together, uniform keys and times, a window with about one match a row. Spark's join
sorts by key and tries all pairs of a key; ours sorts by time and holds the window. Number and checksum of the
results must agree. At 10M rows Spark's takes a quarter of an hour of processor time: with `--sample 10` it
gets files with every tenth key only, its time counts tenfold, and the results of these keys must agree.

In other data a third of all rows have one key: Spark's join would try 10^11 pairs, so the judge is the kernel
`window_join` over the whole data in one process. The ratio is of processor time, of all processes.

Expected: ours at least 2 times Spark's at 10M rows with 1,000 rows a key; with the hot key a worker's largest
resident memory is far below that of all rows (and does not grow with them).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import streamjoin as sj
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from session import largest_worker, processor_seconds, start_spark
from streamjoin import spark as sjs

DAY = 86_400_000_000  # microseconds
FILES = 4  # a side: as many tasks read
CHECKSUM = "sum(pmod(xxhash64(left_id, right_id), 1000003))"


@dataclass(frozen=True)
class Answer:
    rows: int
    checksum: int


def write_side(folder: Path, rows: int, keys: int, hot_rows: int, seed: int) -> None:
    """Key 0 has `hot_rows` rows on top of its share."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    key = np.concatenate([rng.integers(0, keys, rows - hot_rows), np.zeros(hot_rows, dtype=np.int64)])
    rng.shuffle(key)
    table = pa.table(
        {
            "id": np.arange(rows),
            "k": key,
            "v": rng.random(rows),
            "t": pa.array(rng.integers(0, DAY, rows)).cast(pa.timestamp("us", "UTC")),
        }
    )
    step = -(-rows // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * step, step), folder / f"{number}.parquet")


def sides(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    return {side: spark.read.parquet(str(folder / side)) for side in ("left", "right")}


def built_in(frames: dict[str, DataFrame], window: int) -> DataFrame:
    left, right = (f.select([F.col(c).alias(f"{s}_{c}") for c in f.columns]) for s, f in frames.items())
    width = f"INTERVAL {window / 1e6:f} SECONDS"
    near = f"right_t BETWEEN left_t - {width} AND left_t + {width}"
    return left.join(right, F.expr(f"left_k = right_k AND {near}"))


def ours(frames: dict[str, DataFrame], window: int) -> DataFrame:
    query = sj.Query(
        [sj.Stream("left", time="t"), sj.Stream("right", time="t")],
        on=["left.k = right.k"],
        within=sj.within(window),
    )
    return sjs.join(query, frames)


def answer(joined: DataFrame, sample: int = 1) -> Answer:
    """Return what is in the join of every so many keys; the rest is computed and not looked at."""
    chosen = f"FILTER (WHERE left_k % {sample} = 0)" if sample > 1 else ""
    row = joined.agg(F.expr(f"count(1) {chosen}"), F.expr(f"{CHECKSUM} {chosen}")).first()
    assert row is not None
    return Answer(row[0], row[1] or 0)


def judged(spark: SparkSession, folder: Path, window: int) -> Answer:
    """The same by the kernel, over all rows at once; the checksum by Spark, which knows its own hash."""
    data = [pq.read_table(folder / side, columns=["id", "k", "t"]) for side in ("left", "right")]
    columns = [[np.asarray(t[c].cast(pa.int64())) for c in ("id", "k", "t")] for t in data]
    (left_id, left_k, left_t), (right_id, right_k, right_t) = columns
    i, j = sj.kernels.window_join(left_k, left_t, right_k, right_t, lower=-window, upper=window)
    pairs = pa.table({"left_id": left_id[i], "right_id": right_id[j]})
    pq.write_table(pairs, folder / "pairs.parquet")
    return answer(spark.read.parquet(str(folder / "pairs.parquet")))


def compare(
    spark: SparkSession, folder: Path, rows: int, rows_a_key: int, skip: list[str], sample: int
) -> bool:
    window = DAY // rows_a_key  # a row has rows_a_key / 2 partners a day, two windows of them near enough
    for seed, side in enumerate(("left", "right")):
        write_side(folder / side, rows // 2, rows // rows_a_key, 0, seed)
    answers, seconds = {}, {}
    for name, make in (("built_in", built_in), ("ours", ours)):
        if name in skip:
            continue
        answer(make({s: f.limit(20_000) for s, f in sides(spark, folder).items()}, window))  # warm up
        data, share = sides(spark, folder), 1
        if name == "built_in" and sample > 1:
            for side, frame in data.items():
                chosen = frame.where(f"k % {sample} = 0").coalesce(FILES)
                chosen.write.parquet(str(folder / "sample" / side))
            data, share = sides(spark, folder / "sample"), sample
        used, began = processor_seconds(), time.monotonic()
        answers[name] = answer(make(data, window), sample)
        seconds[name] = share * (processor_seconds() - used)
        print(
            f"{name:8} {rows:,} rows, {rows_a_key:,} a key: {seconds[name]:7.1f} s of processor time"
            f"{f' ({share} times that of every {share}th key)' if share > 1 else ''}, "
            f"{time.monotonic() - began:6.1f} s, {answers[name].rows:,} results compared",
            flush=True,
        )
    if len(seconds) == 2:
        print(f"built_in / ours: {seconds['built_in'] / seconds['ours']:.1f}")
    return len(set(answers.values())) == 1


def hot_key(spark: SparkSession, folder: Path, hot_rows: int) -> bool:
    rows, window = 3 * hot_rows, DAY // hot_rows
    for seed, side in enumerate(("left", "right")):
        write_side(folder / side, rows // 2, rows // 1000, hot_rows // 2, seed)
    before = largest_worker()
    found = answer(ours(sides(spark, folder), window))
    peak = largest_worker()
    print(
        f"one key with {hot_rows:,} of {rows:,} rows: {found.rows:,} results, "
        f"largest worker {peak / 1e6:,.0f} MB (before: {before / 1e6:,.0f} MB)",
        flush=True,
    )
    return found == judged(spark, folder, window)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rows-a-key", type=int, default=1000)
    parser.add_argument("--hot-rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--skip", nargs="*", default=[], choices=["built_in", "ours", "hot"])
    options = parser.parse_args()
    spark = start_spark()
    right = True
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for hot_rows in options.hot_rows if "hot" not in options.skip else []:
            right &= hot_key(spark, folder / f"hot_{hot_rows}", hot_rows)
        right &= compare(
            spark, folder / "uniform", options.rows, options.rows_a_key, options.skip, options.sample
        )
    spark.stop()
    if not right:
        print("the joins disagree", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
