"""Groups against a dictionary: each leaves once, complete, by whatever punctuation; no Spark in it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import streamjoin as sj
from streamjoin.spark import groups as module
from streamjoin.spark.groups import Groups

ROWS = pa.schema(
    [
        ("a_x", pa.int64()),
        ("a_y", pa.string()),
        ("b_x", pa.int64()),
        ("b_y", pa.string()),
        ("b_v", pa.int64()),
    ]
)
PROMISES = pa.schema(
    [(n, ROWS.field(n).type) for n in ("a_x", "b_x", "a_y", "b_y")]
    + [("a_x_low", pa.int64()), ("a_x_high", pa.int64())]
)
BY = ("a_x", "a_y")


def new_groups() -> Groups:
    streams = [sj.Stream("a", time="t"), sj.Stream("b", time="t")]
    query = sj.Query(streams, on=["a.x = b.x", "a.y = b.y"], within=sj.within("5 s"))
    aggregates = (sj.count(by=BY), sj.sum("b_v", by=BY), sj.max("b_v", by=BY), sj.avg("b_v", by=BY))
    return Groups(query, aggregates, ROWS)


def random_promise(rng: random.Random, x: int) -> dict[str, Any]:
    """On x alone, x and y, y alone, a range of x with or without y, or all."""
    y = rng.choice("pq")
    kind = rng.choice(["x", "x", "xy", "xy", "y", "range", "from", "range and y", "all"])
    promise: dict[str, Any] = {}
    if kind in ("x", "xy"):
        promise |= {rng.choice(["a_x", "b_x"]): x}
    if kind in ("xy", "y", "range and y"):
        promise |= {"a_y": y, "b_y": y}
    if kind.startswith("range"):
        promise |= {"a_x_low": x, "a_x_high": x + 2}
    if kind == "from":
        promise |= {"a_x_low": x}
    return promise


def covers(promise: dict[str, Any], key: tuple[int, str]) -> bool:
    x = promise.get("a_x", promise.get("b_x"))
    return (
        x in (None, key[0])
        and promise.get("a_y") in (None, key[1])
        and promise.get("a_x_low", key[0]) <= key[0] <= promise.get("a_x_high", key[0])
    )


def described(key: tuple[int, str], values: list[int]) -> tuple[Any, ...]:
    return (*key, len(values), sum(values), max(values), sum(values) / len(values))


@pytest.mark.parametrize("seed", range(15))
def test_groups_leave_once_and_complete(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(module, "SLACK_ROWS", rng.choice([0, 5, 1024]))
    groups, held = new_groups(), dict[tuple[int, str], list[int]]()
    for _ in range(30):
        rows = [(rng.randrange(9), rng.choice("pq"), rng.randrange(100)) for _ in range(rng.randrange(12))]
        groups.add(
            pa.Table.from_pylist(
                [dict(zip(("a_x", "a_y", "b_v"), row, strict=True)) for row in rows], schema=ROWS
            )
        )
        for x, y, v in rows:
            held.setdefault((x, y), []).append(v)
        promises = [random_promise(rng, rng.randrange(9)) for _ in range(rng.randrange(3))]
        found = groups.complete(pa.Table.from_pylist(promises, schema=PROMISES))
        done = [key for key in held if any(covers(promise, key) for promise in promises)]
        expected = sorted(described(key, held.pop(key)) for key in done)
        assert sorted(tuple(row.values()) for row in found.to_pylist()) == expected
        if rng.random() < 0.2:
            saved, groups = groups.save(), new_groups()
            groups.load(saved)
    rest = sorted(tuple(row.values()) for row in groups.rest().to_pylist())
    assert rest == sorted(described(key, values) for key, values in held.items())


def test_a_punctuation_looks_at_the_groups_it_completes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by what is read from runs: with a hundred times the groups, as much."""
    taken = []
    original = Groups._taken
    monkeypatch.setattr(
        Groups, "_taken", lambda self, places: taken.append(len(places)) or original(self, places)
    )
    monkeypatch.setattr(Groups, "_within", lambda *_: pytest.fail("a constant needs no look at all groups"))
    for size in (100, 10_000):
        groups = new_groups()
        x = np.arange(size)
        groups.add(pa.table([x, ["p"] * size, x, ["p"] * size, x], schema=ROWS))
        for key in range(50):
            promise = pa.Table.from_pylist([{"a_x": key}], schema=PROMISES)
            assert groups.complete(promise).column("a_x").to_pylist() == [key]
    assert taken == [1] * 100
