"""What does a disorder policy cost a row where nothing is out of order?

Expected: `Slack("0 s")` at most 15% fewer rows a second than `InOrder`, `Recall` at most 30% fewer.

Workload: that of operator_bench.py, one match a row, batches of 50,000 rows, the two streams in turns. The
policies take turns in one run; processor time of the fastest round; result counts are checked.

    python bench/disorder/throughput_bench.py [--rows 1048576] [--rounds 3]
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import streamjoin as sj

WINDOW_ROWS = 50_000
STEP_US = 1_000


def stream(rows: int, seed: int) -> pa.Table:
    """Draw keys evenly from twice as many values as the window holds rows: one match a row on average."""
    random = np.random.default_rng(seed)
    keys = random.integers(0, 2 * WINDOW_ROWS, rows)
    times = pa.array(np.arange(rows, dtype=np.int64) * STEP_US).cast(pa.timestamp("us"))
    return pa.table({"k": keys, "t": times, "p": random.random(rows)})


def run(policy: Any, left: pa.Table, right: pa.Table, batch_rows: int = 50_000) -> tuple[float, int]:
    """Return processor seconds and the number of results."""
    streams = [sj.Stream("l", time="t"), sj.Stream("r", time="t")]
    within = sj.within(WINDOW_ROWS * STEP_US)
    query = sj.Query(streams, ["l.k = r.k"], within=within, disorder=policy)
    operator = sj.Operator(query, schemas={"l": left.schema, "r": right.schema})
    start, found = time.process_time(), 0
    for begin in range(0, left.num_rows, batch_rows):
        found += operator.push("l", left.slice(begin, batch_rows)).rows.num_rows
        found += operator.push("r", right.slice(begin, batch_rows)).rows.num_rows
    found += operator.finish().rows.num_rows
    return time.process_time() - start, found


def main() -> None:
    """Time the policies in turns and print the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1 << 20)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    left, right = stream(given.rows, 1), stream(given.rows, 2)
    policies = [sj.InOrder(), sj.Slack("0 s"), sj.Slack("1 s"), sj.Recall(0.99)]
    fastest: dict[str, float] = {}
    answers = set()
    for _ in range(given.rounds):
        for policy in policies:
            taken, found = run(policy, left, right)
            answers.add(found)
            fastest[repr(policy)] = min(taken, fastest.get(repr(policy), taken))
    if len(answers) > 1:
        sys.exit(f"throughput_bench: the policies disagree: {answers}")
    base = fastest["InOrder()"]
    for name, taken in fastest.items():
        per_row = taken / (2 * given.rows) * 1e9
        print(f"{name:16} {per_row:6.0f} ns a row, {100 * (1 - base / taken):5.1f}% fewer rows a second")


if __name__ == "__main__":
    main()
