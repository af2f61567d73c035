"""A safe m-way join that runs for long holds no more at the end than it did at half time: rows and all else.

Figure 8 and a ring of five streams, on integers and on strings, eagerly and lazily. State bytes are all that
the native join holds: nodes, indexes, witnesses, promises, dictionaries, key orders.
STREAMJOIN_SOAK_ROWS=1000000 makes a soak of it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import streamjoin as sj

ROWS = int(os.environ.get("STREAMJOIN_SOAK_ROWS", "24000"))
PER_EPOCH, VALUES, LAG = 40, 8, 2
Schemes = dict[str, list[str | tuple[str, ...]]]

FIGURE_8: Schemes = {"S1": ["B"], "S2": ["B", "C"], "S3": [("A", "C")]}
RING = ["S1.B = S2.B", "S2.C = S3.C", "S3.A = S1.A"]
FIVE: Schemes = {"S1": ["A"], "S2": ["B"], "S3": ["C"], "S4": ["D"], "S5": ["E"]}
RING_OF_FIVE = ["S1.A = S2.A", "S2.B = S3.B", "S3.C = S4.C", "S4.D = S5.D", "S5.E = S1.E"]


class Held:
    """What a run holds, sampled after each epoch."""

    def __init__(self) -> None:
        self.series: dict[str, list[int]] = {}

    def note(self, op: sj.Operator) -> None:
        stats = op.stats()
        for name, value in {
            "rows": sum(stats.state_rows.values()),
            "state bytes": stats.state_bytes,
            "dictionary entries": stats.dictionary_entries,
            "payload bytes": sum(stats.payload_bytes.values()),
        }.items():
            self.series.setdefault(name, []).append(value)

    def halves(self, name: str) -> tuple[int, int]:
        middle = len(self.series[name]) // 2
        return max(self.series[name][:middle]), max(self.series[name][middle:])


def run(schemes: Schemes, on: list[str], kind: str, purge: str, **options: Any) -> tuple[Held, sj.Stats]:
    columns: dict[str, list[str]] = {name: [] for name in schemes}
    for side in (side.strip().split(".") for text in on for side in text.split("=")):
        columns[side[0]].append(side[1])
    streams = [
        sj.Stream(n, time="t", punctuations=found, lifespan=options.get("lifespan"))
        for n, found in schemes.items()
    ]
    query = sj.Query(streams, on, purge=purge)
    type_ = pa.int64() if kind == "integers" else pa.string()
    schema = {n: pa.schema([(c, type_) for c in names] + [("t", pa.int64())]) for n, names in columns.items()}
    op = sj.Operator(query, schemas=schema, plan="single")
    rng, held = np.random.default_rng(3), Held()

    def value(number: int) -> Any:
        return int(number) if kind == "integers" else f"key {number:09}"

    for epoch in range(ROWS // (PER_EPOCH * len(schemes))):
        for name, names in columns.items():
            drawn = {c: epoch * VALUES + rng.integers(0, VALUES, PER_EPOCH) for c in names}
            data = {c: [value(v) for v in found] for c, found in drawn.items()}
            op.push(name, pa.table({**data, "t": [epoch] * PER_EPOCH}, schema=schema[name]))
        if epoch >= LAG:
            old = [value(v) for v in range((epoch - LAG) * VALUES, (epoch - LAG + 1) * VALUES)]
            for name, found in schemes.items():
                for scheme in found:
                    columns_of = (scheme,) if isinstance(scheme, str) else scheme
                    op.punctuate(name, dict.fromkeys(columns_of, old))
        held.note(op)
        if epoch % 97 == 0:
            op.validate()
    op.validate()
    return held, op.stats()


@pytest.mark.parametrize("purge", ["eager", "lazy"])
@pytest.mark.parametrize("kind", ["integers", "strings"])
@pytest.mark.parametrize(
    ("schemes", "on"), [(FIGURE_8, RING), (FIVE, RING_OF_FIVE)], ids=["figure 8", "five"]
)
def test_the_state_does_not_grow(schemes: Schemes, on: list[str], kind: str, purge: str) -> None:
    """Promises are answered by nobody in these rings: a lifespan bounds them, as check() says."""
    held, stats = run(schemes, on, kind, purge, lifespan=6)
    for name in held.series:
        first, second = held.halves(name)
        assert second <= 1.1 * first, f"{name}: at most {first} in the first half, {second} in the second"
    assert not stats.growing


def test_promises_that_are_answered_do_not_pile_up() -> None:
    """Both partners of a column promise it: no lifespan is needed."""
    schemes: Schemes = {"S1": ["B", "A"], "S2": ["B", "C"], "S3": ["A", "C"]}
    held, stats = run(schemes, RING, "strings", "eager")
    assert not any(
        promise.piles_up
        for promise in sj.Query(
            [sj.Stream(n, time="t", punctuations=found) for n, found in schemes.items()], RING
        )
        .check()
        .promises
    )
    for name in held.series:
        first, second = held.halves(name)
        assert second <= 1.1 * first, f"{name}: at most {first} in the first half, {second} in the second"
    assert sum(stats.punctuations_held.values()) < 2000
