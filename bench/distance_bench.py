"""How much faster is a distance join when the core checks the distance itself, beside a Python function?

Expected: at least 5 times. A function is called on blocks of candidates, whose columns are gathered for it.

Workload: like the soccer query, two teams of players whose positions come 300 times a second each, in batches
of a tenth of a second; pairs at most 5 s and less than 5 m apart. Both ways run on the same rows with the
same algorithm, in one run, in turns; the number of results is checked against NumPy. Time is processor time.

    python bench/distance_bench.py [--seconds 20] [--rounds 3] [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import streamjoin as sj

RATE = 300  # rows a second and stream
BATCH_ROWS = 30
WINDOW_US = 5_000_000
RADIUS = 5.0
FIELD = (105.0, 68.0)  # metres
ALGORITHMS = ("merge", "nested_loop")


def make_team(rows: int, seed: int) -> pa.Table:
    """Eleven players who walk at random and turn back at the lines."""
    random = np.random.default_rng(seed)
    places = random.random((11, 2)) * FIELD
    positions = np.empty((rows, 2))
    for row in range(rows):
        player = row % 11
        places[player] = np.clip(places[player] + random.normal(0, 0.3, 2), 0, FIELD)
        positions[row] = places[player]
    times = np.arange(rows, dtype=np.int64) * (1_000_000 // RATE) + random.integers(0, 1000, rows)
    return pa.table({"player": np.arange(rows) % 11, "x": positions[:, 0], "y": positions[:, 1], "t": times})


def pairs_by_numpy(left: pa.Table, right: pa.Table) -> int:
    x, y, t = (right[column].to_numpy() for column in ("x", "y", "t"))
    found = 0
    for row in zip(*(left[column].to_numpy() for column in ("x", "y", "t")), strict=True):
        near = (x - row[0]) ** 2 + (y - row[1]) ** 2 < RADIUS**2
        found += int((near & (np.abs(t - row[2]) <= WINDOW_US)).sum())
    return found


def within_radius(columns: dict[str, Any]) -> Any:
    across = columns["a.x"] - columns["b.x"]
    along = columns["a.y"] - columns["b.y"]
    return across**2 + along**2 < RADIUS**2


def seconds(left: pa.Table, right: pa.Table, where: Any, algorithm: str, expected: int) -> float:
    streams = [sj.Stream("a", time="t"), sj.Stream("b", time="t")]
    query = sj.Query(streams, [], within=sj.within(WINDOW_US), where=where, algorithm=algorithm)
    operator = sj.Operator(query, schemas={"a": left.schema, "b": right.schema})
    found = 0
    start = time.process_time()
    for begin in range(0, left.num_rows, BATCH_ROWS):
        found += operator.push("a", left.slice(begin, BATCH_ROWS)).rows.num_rows
        found += operator.push("b", right.slice(begin, BATCH_ROWS)).rows.num_rows
    taken = time.process_time() - start
    if found != expected:
        sys.exit(f"distance_bench: wrong answer by {algorithm}: {found} pairs, expected {expected}")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=20, help="length of the streams in event time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="short streams, one round: shows that it runs")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 8, 1
    rows = options.seconds * RATE
    left, right = make_team(rows, 1), make_team(rows, 2)
    expected = pairs_by_numpy(left, right)
    native = sj.distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=RADIUS)
    print(f"{rows:,} rows a stream, {expected:,} pairs")
    print("algorithm     native us/row   function us/row   function / native")
    for algorithm in ALGORITHMS:
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(seconds(left, right, native, algorithm, expected))
            theirs.append(seconds(left, right, within_radius, algorithm, expected))
        ratio = statistics.median(t / o for t, o in zip(theirs, ours, strict=True))
        a_row = [statistics.median(times) * 1e6 / (2 * rows) for times in (ours, theirs)]
        print(f"{algorithm:<11}   {a_row[0]:>13.1f}   {a_row[1]:>15.1f}   {ratio:>17.1f}")


if __name__ == "__main__":
    main()
