"""What does `Operator` cost a row on Arrow batches, beside DuckDB on one thread, as the stream grows?

Expected: not slower than DuckDB at 1M rows a side, at least 3 times faster at 8M; our time a row at 8M
within 1.3 of that at 1M. DuckDB joins on the key first and filters times after, so its cost a row grows as
keys come again; a window join's must not.

Workload: 3-column batches of 50,000 rows, one match a row, a window of 50,000 rows a side. The same rows go
through both, in one run, in turns; result counts are checked. Then, for `Operator` alone: batch size and
payload width.

    python bench/operator_bench.py [--rows 1000000 8000000] [--rounds 3] [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import streamjoin as sj

WINDOW_ROWS = 50_000
BATCH_ROWS = 50_000
STEP_US = 1_000  # one row a millisecond


def make_streams(rows: int, *, payload_columns: int = 1, seed: int = 1) -> tuple[pa.Table, pa.Table]:
    """Draw keys evenly from as many values as the window holds rows: one match a row on average."""
    random = np.random.default_rng(seed)
    times = np.arange(rows, dtype=np.int64) * STEP_US
    sides = []
    for _ in range(2):
        keys = random.integers(0, 2 * WINDOW_ROWS, rows).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        columns = {"k": keys.view(np.int64), "t": pa.array(times).cast(pa.timestamp("us"))}
        columns |= {f"p{i}": random.random(rows) for i in range(payload_columns)}
        sides.append(pa.table(columns))
    return sides[0], sides[1]


def run_operator(left: pa.Table, right: pa.Table, *, batch_rows: int = BATCH_ROWS) -> int:
    window = WINDOW_ROWS * STEP_US
    streams = [sj.Stream("l", time="t"), sj.Stream("r", time="t")]
    query = sj.Query(streams, ["l.k = r.k"], within=sj.within(window))
    operator = sj.Operator(query, schemas={"l": left.schema, "r": right.schema})
    found = 0
    for begin in range(0, left.num_rows, batch_rows):
        found += operator.push("l", left.slice(begin, batch_rows)).rows.num_rows
        found += operator.push("r", right.slice(begin, batch_rows)).rows.num_rows
    return found + operator.finish().rows.num_rows


def run_duckdb(left: pa.Table, right: pa.Table) -> int:
    import duckdb

    window = WINDOW_ROWS * STEP_US
    connection = duckdb.connect(config={"threads": 1})
    connection.register("l", left)
    connection.register("r", right)
    result = connection.sql(
        "select l.k, l.t, l.p0, r.k as k2, r.t as t2, r.p0 as p2 from l join r on l.k = r.k "
        f"and epoch_us(r.t) - epoch_us(l.t) between {-window} and {window}"
    )
    return int(result.to_arrow_table().num_rows)


def seconds(
    join: Callable[..., int], left: pa.Table, right: pa.Table, expected: int, **options: int
) -> float:
    start = time.perf_counter()
    found = join(left, right, **options)
    taken = time.perf_counter() - start
    if found != expected:
        sys.exit(f"operator_bench: wrong answer: {found} rows, expected {expected}")
    return taken


def against_duckdb(sizes: list[int], rounds: int) -> None:
    print("rows a side   operator ns/row   duckdb ns/row   duckdb / operator")
    by_size = {}
    for rows in sizes:
        left, right = make_streams(rows)
        expected = run_duckdb(left, right)
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(seconds(run_operator, left, right, expected))
            theirs.append(seconds(run_duckdb, left, right, expected))
        ratio = statistics.median(t / o for t, o in zip(theirs, ours, strict=True))
        by_size[rows] = statistics.median(ours) * 1e9 / (2 * rows)
        duckdb_ns = statistics.median(theirs) * 1e9 / (2 * rows)
        print(f"{rows:>11,}   {by_size[rows]:>15.0f}   {duckdb_ns:>13.0f}   {ratio:>17.2f}")
    growth = by_size[sizes[-1]] / by_size[sizes[0]]
    print(f"operator, time a row at {sizes[-1]:,} against {sizes[0]:,}: {growth:.2f}\n")


def by_batch_size(rows: int) -> None:
    print("batch rows   ns/row   against 50,000")
    whole_left, whole_right = make_streams(rows)
    base = seconds(run_operator, whole_left, whole_right, run_duckdb(whole_left, whole_right)) / rows
    for batch_rows in (100, 1_000, 10_000, 50_000, 200_000):
        part = min(rows, batch_rows * 2_000)
        left, right = whole_left.slice(0, part), whole_right.slice(0, part)
        expected = run_duckdb(left, right)
        a_row = seconds(run_operator, left, right, expected, batch_rows=batch_rows) / part
        print(f"{batch_rows:>10,}   {a_row * 5e8:>6.0f}   {a_row / base:>14.2f}")
    print()


def by_payload_width(rows: int) -> None:
    print("payload columns a side   ns/row   against 1")
    base = None
    for columns in (1, 4, 16):
        left, right = make_streams(rows, payload_columns=columns)
        taken = seconds(run_operator, left, right, run_duckdb(left, right))
        base = base or taken
        print(f"{columns:>22}   {taken * 5e8 / rows:>6.0f}   {taken / base:>9.2f}")


def payload_after_purge(rows: int) -> None:
    """Purge nine keys of ten at random: stored payload bytes against those of the live rows."""
    left, right = make_streams(rows, payload_columns=4)
    streams = [sj.Stream("l", time="t"), sj.Stream("r", time="t")]
    query = sj.Query(streams, ["l.k = r.k"], within=sj.within(rows * STEP_US))
    operator = sj.Operator(query, schemas={"l": left.schema, "r": right.schema})
    for begin in range(0, rows, BATCH_ROWS):
        operator.push("l", left.slice(begin, BATCH_ROWS))
    keys = np.random.default_rng(3).permutation(np.unique(left["k"].to_numpy()))
    operator.punctuate("r", {"k": keys[: len(keys) * 9 // 10].tolist()})
    stats = operator.stats()
    live_bytes = stats.state_rows["l"] * left.nbytes / rows
    ratio = stats.payload_bytes["l"] / live_bytes
    print(f"\npayload after 90% of {rows:,} rows were purged at random: {ratio:.2f} times the live payload")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 8_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: shows that it runs")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.rounds = [200_000], 1
    against_duckdb(options.rows, options.rounds)
    by_batch_size(min(options.rows))
    by_payload_width(min(options.rows))
    payload_after_purge(min(options.rows))


if __name__ == "__main__":
    main()
