"""How long do the verdict on a large query and the plans of a query with eight streams take?

Expected: the verdict on 60 streams, 200 predicates and 300 schemes in under 100 ms, safe or not; the plans of
8 streams in under 2 s, even where every set of streams is safe and there are 660,032 of them. Answers are
checked: the verdict by the definition (reachability from each stream), the number of plans by the known count
of such trees.

    python bench/safety_bench.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from streamjoin.query import Query
from streamjoin.safety import JoinGraph
from streamjoin.safety.deciders import is_safe_by_definition
from streamjoin.stream import Stream

STREAMS, PREDICATES, SCHEMES = 60, 200, 300
# Trees with labelled leaves whose inner nodes have two or more inputs, by number of leaves (OEIS A000311).
TREES = {4: 26, 5: 236, 6: 2_752, 7: 39_208, 8: 660_032}

Result = TypeVar("Result")


def large_query(seed: int, *, safe: bool) -> Query:
    """Draw a connected query: schemes along a spanning tree make it safe, a stream without any unsafe."""
    rng = random.Random(seed)
    columns = [f"c{i}" for i in range(12)]
    on: set[str] = set()
    schemes: dict[int, set[tuple[str, ...]]] = {i: set() for i in range(STREAMS)}
    for i in range(1, STREAMS):
        j, left, right = rng.randrange(i), rng.choice(columns), rng.choice(columns)
        on.add(f"s{j}.{left} = s{i}.{right}")
        schemes[j].add((left,))
        schemes[i].add((right,))
    while len(on) < PREDICATES:
        i, j = rng.sample(range(STREAMS), 2)
        on.add(f"s{i}.{rng.choice(columns)} = s{j}.{rng.choice(columns)}")
    speaking = range(STREAMS if safe else STREAMS - 1)
    schemes = {i: schemes[i] if i in speaking else set() for i in schemes}
    while sum(map(len, schemes.values())) < SCHEMES:
        schemes[rng.choice(speaking)].add(tuple(rng.sample(columns, rng.choice([1, 2, 3]))))
    streams = [Stream(f"s{i}", time="t", punctuations=sorted(found)) for i, found in schemes.items()]
    return Query(streams, sorted(on), require_safe=False)


def ring(n: int) -> Query:
    """Streams that all share one punctuated key: every set of them is safe."""
    streams = [Stream(f"s{i}", time="t", punctuations=["x"]) for i in range(n)]
    return Query(streams, [f"s0.x = s{i}.x" for i in range(1, n)])


def fastest(work: Callable[[], Result], rounds: int) -> tuple[float, Result]:
    """Return the shortest processor time of several rounds in seconds, and the last result."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def demand(found: object, expected: object, what: str) -> None:
    if found != expected:
        sys.exit(f"safety_bench: wrong answer: {what}: {found}, expected {expected}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"{STREAMS} streams, {PREDICATES} predicates, {SCHEMES} schemes")
    for safe in (True, False):
        query = large_query(1, safe=safe)
        seconds, report = fastest(query.check, rounds)
        demand(report.safe, is_safe_by_definition(JoinGraph.of(query)), "verdict")
        demand(report.safe, safe, "kind of query")
        made, _ = fastest(lambda safe=safe: large_query(1, safe=safe), 1)
        kind = "safe" if safe else "unsafe"
        print(f"  {kind:7} verdict {1e3 * seconds:7.1f} ms  (declaring it {1e3 * made:.0f} ms)")
        if not safe:
            seconds, text = fastest(lambda query=query: str(query.check()), 1)
            demand(text.startswith("NOT safe"), True, "report")
            print(f"          whole report with reasons and remedies {1e3 * seconds:.0f} ms")
    print("plans, every set of streams safe")
    for n, expected in TREES.items():
        seconds, plans = fastest(lambda n=n: ring(n).plans(), min(rounds, 3))
        demand(plans.total, expected, f"plans of {n} streams")
        print(f"  {n} streams {seconds:7.3f} s  for {plans.total:,} plans")


if __name__ == "__main__":
    main()
