"""Random queries for the tests of safety and plans: few columns, so that traps and plans are of all kinds."""

from __future__ import annotations

import random

from streamjoin.query import Query
from streamjoin.stream import Stream
from streamjoin.windows import between


def random_query(rng: random.Random, *, streams: tuple[int, int] = (2, 5), windows: bool = True) -> Query:
    """Draw a connected query; about half of them have no window at all."""
    n = rng.randint(*streams)
    names = "abcdef"[:n]
    on = [
        f"{names[rng.randrange(i)]}.{rng.choice('xyz')} = {names[i]}.{rng.choice('xyz')}" for i in range(1, n)
    ]
    for _ in range(rng.randint(0, 3)):
        i, j = rng.sample(range(n), 2)
        on.append(f"{names[i]}.{rng.choice('xyz')} = {names[j]}.{rng.choice('xyz')}")
    windowed = windows and rng.random() < 0.5
    declared = []
    for name in names:
        schemes = [tuple(rng.sample("xyz", rng.choice([1, 1, 2]))) for _ in range(rng.randint(0, 3))]
        window = "5 s" if windowed and rng.random() < 0.2 else None
        declared.append(Stream(name, time="t", punctuations=schemes, window=window))
    pairs = [between(*rng.sample(names, 2), upper="1 s") for _ in range(rng.randint(0, n - 1) * windowed)]
    return Query(declared, on, within=pairs, require_safe=False)
