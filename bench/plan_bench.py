"""Is the plan that the model finds cheapest the one that runs fastest: one join of three streams, or a tree?

A chain a - b - c inside a window of ten seconds, at rates that favour the one or the other. Each plan runs
on the same rows; a wrong number of results ends the program.

Expected: where all streams come as often, the single join, by far; where two come seldom and match seldom,
and the third comes often, the tree of the two below. The cheaper one by the model is the faster one.

    python bench/plan_bench.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import streamjoin as sj

SECOND = 1_000_000
SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("t", pa.int64())])


@dataclass(frozen=True)
class Case:
    """Rates of a, b and c, the numbers of values of x and y, and how many seconds are fed."""

    name: str
    rates: tuple[int, int, int]
    values: tuple[int, int]
    seconds: int


CASES = (
    Case("all as often", (400, 400, 400), (400, 4_000), 12),
    Case("c often, a and b rarely match", (200, 200, 4_000), (1_000_000, 100), 12),
    Case("c often, a and b match", (50, 50, 2_000), (100, 1_000), 12),
)


def draw(case: Case) -> dict[str, pa.Table]:
    """Return the rows of each stream."""
    rng = np.random.default_rng(1)
    found = {}
    for name, rate in zip("abc", case.rates, strict=True):
        n = rate * case.seconds
        x, y = rng.integers(0, case.values[0], n), rng.integers(0, case.values[1], n)
        times = np.sort(rng.integers(0, case.seconds * SECOND, n))
        found[name] = pa.table({"x": x, "y": y, "t": times}, schema=SCHEMA)
    return found


def run(query: sj.Query, plan: sj.Plan, rows: dict[str, pa.Table], seconds: int) -> tuple[float, int]:
    """Return processor time and the number of results; a call takes the rows of a second."""
    op = sj.Operator(query, plan=plan, schemas=dict.fromkeys("abc", SCHEMA))
    ends = {
        name: np.searchsorted(table["t"].to_numpy(), np.arange(seconds + 1) * SECOND)
        for name, table in rows.items()
    }
    began, results = time.process_time(), 0
    for second in range(seconds):
        for name, table in rows.items():
            first, last = ends[name][second], ends[name][second + 1]
            results += op.push(name, table.slice(first, last - first)).rows.num_rows
    return time.process_time() - began, results


def main() -> None:
    """Run every plan of every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    for case in CASES:
        streams = [sj.Stream(n, time="t", rate=rate) for n, rate in zip("abc", case.rates, strict=True)]
        query = sj.Query(streams, ["a.x = b.x", "b.y = c.y"], within=sj.within("10 s"))
        shares = {"a.x = b.x": 1 / case.values[0], "b.y = c.y": 1 / case.values[1]}
        plans = [p for p in query.plans(selectivities=shares) if str(p.root) in ("(a b c)", "((a b) c)")]
        rows = draw(case)
        counts = set()
        print(f"{case.name}: rates {case.rates}, values {case.values}")
        for plan in plans:
            times = []
            for _ in range(rounds):
                seconds, results = run(query, plan, rows, case.seconds)
                times.append(seconds)
                counts.add(results)
            took = f"{1e3 * min(times):7.1f} ms  {results:,} results"
            print(f"  {plan.root!s:10} model {plan.cost.total:10,.0f}  {took}")
        if len(counts) != 1:
            sys.exit(f"{case.name}: {sorted(counts)} results")


if __name__ == "__main__":
    main()
