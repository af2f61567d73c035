"""Seeded random m-way queries and scripts. Everything is small, so that ties, duplicates and late rows meet.

make_case(seed)               anything may happen
make_case(seed, clean=True)   no late row: the rows alone fix the results, whatever the interleaving
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import streamjoin as sj
from multi_oracle import (
    Bound,
    Condition,
    EndAll,
    EndStream,
    Equal,
    Heartbeat,
    MultiOp,
    MultiRow,
    MultiRules,
    PushRows,
)

NAMES = "abcdefghij"
KEYS: dict[str, tuple[Any, ...]] = {
    "int64": (0, 1, 2),
    "int32": (-1, 0, 1),
    "string": ("", "a", "ü"),
    "float64": (0.0, -0.0, 1.5, float("nan")),
    "decimal": (0, 1, 2),
}


@dataclass(frozen=True, kw_only=True)
class MultiCase:
    seed: int
    rules: MultiRules
    kinds: tuple[str, ...]  # of the key columns, per stream
    on: tuple[str, ...]
    within: tuple[Any, ...]
    own_windows: tuple[int | None, ...]
    where: Any
    script: tuple[MultiOp, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(NAMES[: self.rules.streams])

    def with_script(self, script: list[MultiOp]) -> MultiCase:
        return replace(self, script=tuple(script))

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.rules.streams} streams, keys {self.kinds}, late {self.rules.late}"]
        lines.append(f"  on {self.on}, within {self.within}, windows {self.own_windows}, where {self.where}")
        return "\n".join(lines + [f"  {i}: {op}" for i, op in enumerate(self.script)])


def make_case(seed: int, *, clean: bool = False, streams: int | None = None) -> MultiCase:
    rng = random.Random(f"multi {seed}/{clean}")
    n = streams or rng.choice((2, 3, 3, 3, 4, 4, 5))
    while True:
        own, within, windows = _windows(rng, n)
        on, equalities = _equalities(rng, n)
        where, conditions = _where(rng, n)
        kinds = _kinds(rng, n)
        try:
            sj.Query(
                [sj.Stream(NAMES[i], time="t", window=own[i]) for i in range(n)],
                on,
                within=within,
                where=where,
            )
        except sj.QueryError:  # contradicting windows, or nothing ties the streams together: think again
            continue
        break
    late = "drop" if clean else rng.choice(("drop", "drop", "insert"))
    rules = MultiRules(streams=n, windows=windows, equalities=equalities, conditions=conditions, late=late)
    script = _Writer(rng, rules, kinds, clean=clean).write(rng.randint(3, 26 - 2 * n))
    return MultiCase(
        seed=seed,
        rules=rules,
        kinds=kinds,
        on=tuple(on),
        within=tuple(within),
        own_windows=own,
        where=where,
        script=tuple(script),
    )


def cut_pushes(case: MultiCase, seed: int) -> MultiCase:
    """The same script with each push cut at random places."""
    rng = random.Random(f"cut {seed}")
    script: list[MultiOp] = []
    for op in case.script:
        if not isinstance(op, PushRows):
            script.append(op)
            continue
        rows = op.rows
        while rows:
            size = rng.randint(1, len(rows))
            script.append(PushRows(op.stream, rows[:size]))
            rows = rows[size:]
    return case.with_script(script)


def interleave(case: MultiCase, seed: int) -> MultiCase:
    """The same streams, each in its own order, merged in another way."""
    rng = random.Random(f"interleave {seed}")
    queues: list[list[MultiOp]] = [[] for _ in range(case.rules.streams)]
    for op in cut_pushes(case, seed).script:
        if not isinstance(op, EndAll):
            queues[op.stream].append(op)
    weights = [rng.choice((0.01, 1.0, 1.0, 5.0)) for _ in queues]
    script: list[MultiOp] = []
    while any(queues):
        stream = rng.choices(
            range(len(queues)), [w if q else 0.0 for w, q in zip(weights, queues, strict=True)]
        )[0]
        script.append(queues[stream].pop(0))
    return case.with_script([*script, EndAll()])


# Windows: every form, mixed freely. ---------------------------------------------------------------

Windows = tuple[tuple[tuple[Bound, ...], ...], ...]


def _windows(rng: random.Random, n: int) -> tuple[tuple[int | None, ...], list[Any], Windows]:
    own = tuple(rng.randint(0, 6) if rng.random() < 0.2 else None for _ in range(n))
    ways: list[tuple[tuple[Bound, ...], ...]] = [
        (tuple(Bound(i, j, None, own[i]) for j in range(n) if j != i),)
        for i in range(n)
        if own[i] is not None
    ]
    declarations: list[Any] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3)) if n > 2 else 1):
        declaration, bounds = rng.choice((_all_pairs, _all_pairs, _tree, _path, _path, _pair))(rng, n)
        declarations += declaration
        ways += bounds
    return own, declarations, tuple(ways)


def _all_pairs(rng: random.Random, n: int) -> tuple[list[Any], list[Any]]:
    w = rng.randint(0, 6)
    bounds = tuple(Bound(i, j, -w, w) for i in range(n) for j in range(i + 1, n))
    return [sj.within(w)], [(bounds,)]


def _tree(rng: random.Random, n: int) -> tuple[list[Any], list[Any]]:
    """A window per pair along a random tree: the other pairs are inferred."""
    declarations, ways = [], []
    for j in range(1, n):
        i = rng.randrange(j)
        if rng.random() < 0.6:
            w = rng.randint(0, 5)
            declarations.append(sj.within(NAMES[i], NAMES[j], w))
            ways.append(((Bound(i, j, -w, w),),))
        else:
            lower = rng.randint(-4, 3)
            upper = lower + rng.randint(0, 5)
            declarations.append(sj.between(NAMES[i], NAMES[j], lower=lower, upper=upper))
            ways.append(((Bound(i, j, lower, upper),),))
    return declarations, ways


def _pair(rng: random.Random, n: int) -> tuple[list[Any], list[Any]]:
    i, j = rng.sample(range(n), 2)
    if rng.random() < 0.5:
        w = rng.randint(0, 6)
        return [sj.follows(NAMES[i], NAMES[j], within=w)], [((Bound(i, j, 0, w),),)]
    lower, upper = sorted((rng.randint(-5, 5), rng.randint(-5, 5)))
    open_end = rng.choice(("lower", "upper", None))
    low, high = (None if open_end == "lower" else lower), (None if open_end == "upper" else upper)
    return [sj.between(NAMES[i], NAMES[j], lower=low, upper=high)], [((Bound(i, j, low, high),),)]


def _path(rng: random.Random, n: int) -> tuple[list[Any], list[Any]]:
    along = rng.sample(range(n), rng.randint(2, n))
    widths = [rng.randint(0, 5) for _ in along[1:]]
    both = rng.random() < 0.6
    steps = list(zip(along, along[1:], widths, strict=False))
    forwards = tuple(Bound(i, j, 0, w) for i, j, w in steps)
    backwards = tuple(Bound(i, j, -w, 0) for i, j, w in steps)
    declaration = sj.path(*(NAMES[i] for i in along), within=widths, both_directions=both)
    return [declaration], [(forwards, backwards) if both else (forwards,)]


# Equalities and conditions. -----------------------------------------------------------------------


def _kinds(rng: random.Random, n: int) -> tuple[str, ...]:
    kind = rng.choice(("int64", "int64", "string", "float64", "numbers"))
    return tuple(rng.choice(("int64", "int32", "decimal")) if kind == "numbers" else kind for _ in range(n))


def _equalities(rng: random.Random, n: int) -> tuple[list[str], tuple[Equal, ...]]:
    shape = rng.choice(("none", "one key", "one key", "chain", "random"))
    pairs: list[tuple[tuple[int, str], tuple[int, str]]] = []
    if shape == "one key":
        pairs = [((rng.randrange(j), "k"), (j, "k")) for j in range(1, n)]
    elif shape == "chain":  # a.k = b.k, b.l = c.k, ...
        pairs = [((j - 1, "l" if j > 1 else "k"), (j, "k")) for j in range(1, n)]
    elif shape == "random":
        for _ in range(rng.randint(1, n)):
            i, j = rng.sample(range(n), 2)
            pairs.append(((i, rng.choice("kl")), (j, rng.choice("kl"))))
    equalities, texts = [], []
    for left, right in pairs:
        null_safe = rng.random() < 0.25
        equalities.append(Equal(left, right, null_safe))
        x, y = (f"{NAMES[s]}.{column}" for s, column in (left, right))
        texts.append(f"{x} {'<=>' if null_safe else '='} {y}")
    return texts, tuple(equalities)


def known(*columns: str) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    """A condition on these columns, one of each row in turn, that is false where one of them is null."""

    def wrap(condition: Callable[..., bool]) -> Callable[..., bool]:
        def holds(*rows: MultiRow) -> bool:
            values = [row.values[column] for row, column in zip(rows, columns, strict=True)]
            return None not in values and condition(*values)

        return holds

    return wrap


# Text with the streams' places, and the same for the oracle.
CONDITIONS: tuple[tuple[str, int, Callable[..., bool]], ...] = (
    ("{0}.p < {1}.p + 3", 2, known("p", "p")(lambda x, y: x < y + 3)),
    ("{0}.q - 1 <= {1}.q", 2, known("q", "q")(lambda x, y: x - 1 <= y)),
    ("{0}.q != {1}.q", 2, known("q", "q")(lambda x, y: x != y)),
    ("2 + {0}.x > {1}.x", 2, known("x", "x")(lambda x, y: 2 + x > y)),
    ("{0}.x >= {1}.q - 0.5", 2, known("x", "q")(lambda x, y: x >= y - 0.5)),
    ("not {0}.p = {1}.p", 2, known("p", "p")(lambda x, y: x != y)),
    ("({0}.p < {1}.p or {0}.p > 3)", 2, known("p", "p")(lambda x, y: x < y or x > 3)),
    ("{0}.p >= 1", 1, known("p")(lambda x: x >= 1)),
    ("{0}.p + {1}.p < {2}.p + 5", 3, known("p", "p", "p")(lambda x, y, z: x + y < z + 5)),
)


def _where(rng: random.Random, n: int) -> tuple[Any, tuple[Condition, ...]]:
    i, j = rng.sample(range(n), 2)
    a, b = NAMES[i], NAMES[j]
    choice = rng.random()
    if choice < 0.45:
        return None, ()
    if choice < 0.75:
        texts, conditions = [], []
        for _ in range(rng.randint(1, 3)):
            text, count, holds = rng.choice([c for c in CONDITIONS if c[1] <= n])
            places = tuple(rng.sample(range(n), count))
            # `or` is not false where only one side is null: keep nulls off it by asking for both.
            texts.append(text.format(*(NAMES[s] for s in places)))
            if " or " in text:
                texts += [f"{NAMES[s]}.p is not null" for s in places]
            conditions.append(Condition(places, holds))
        return " and ".join(texts), tuple(conditions)
    if choice < 0.83:
        column, width = rng.choice((("p", 2), ("q", 1), ("x", 1.5)))
        near = known(column, column)(lambda x, y: abs(x - y) <= width)
        return sj.band(f"{a}.{column}", f"{b}.{column}", width), (Condition((i, j), near),)
    if choice < 0.92:
        radius = rng.choice((1, 2.5))

        def is_near(left: MultiRow, right: MultiRow) -> bool:
            points = [row.values[c] for row in (left, right) for c in ("x", "q")]
            if None in points:
                return False
            x1, y1, x2, y2 = points
            return bool((x1 - x2) ** 2 + (y1 - y2) ** 2 < radius**2)

        points = ((f"{a}.x", f"{a}.q"), (f"{b}.x", f"{b}.q"))
        return sj.distance(*points, less_than=radius), (Condition((i, j), is_near),)
    first, last = NAMES[0], NAMES[n - 1]
    return (
        lambda columns: (columns[f"{first}.id"] + columns[f"{last}.id"]) % 3 != 0,
        (Condition((0, n - 1), lambda x, y: (x.id + y.id) % 3 != 0),),
    )


# Scripts. -----------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, rng: random.Random, rules: MultiRules, kinds: tuple[str, ...], *, clean: bool) -> None:
        n = rules.streams
        self.rng, self.n, self.kinds, self.clean = rng, n, kinds, clean
        # After its end a stream may only be wrong in one way, by a late row that is dropped.
        self.silent_after_end = clean or rules.late == "insert"
        self.now = [rng.randint(-6, 0) for _ in range(n)]
        self.ended = [False] * n
        self.silent = rng.randrange(n) if rng.random() < 0.1 else None  # a stream without a row
        self.null_chance = rng.choice((0.0, 0.05, 0.2))
        self.next_id = 0

    def write(self, length: int) -> list[MultiOp]:
        script: list[MultiOp] = []
        for _ in range(length):
            s, choice = self.rng.randrange(self.n), self.rng.random()
            if choice < 0.85:
                size = self.rng.choices((0, 1, 2, 3, 5), (1, 6, 6, 4, 2))[0]
                script.append(PushRows(s, tuple(r for _ in range(size) if (r := self._row(s)) is not None)))
            elif choice < 0.98:
                time = self.now[s] + self.rng.choice((-2, -1, 0, 1, 2))
                self.now[s] = max(self.now[s], time + 1)
                script.append(Heartbeat(s, time))
            else:
                self.ended[s] = True
                script.append(EndStream(s))
        return [*script, EndAll()]

    def _row(self, s: int) -> MultiRow | None:
        if s == self.silent or (self.ended[s] and self.silent_after_end):
            return None
        if not self.clean and self.rng.random() < 0.08:
            time = self.now[s] - self.rng.randint(1, 5)
        else:
            time = self.now[s] = self.now[s] + self.rng.choice((0, 0, 0, 1, 1, 2, 4))
        self.next_id += 1
        values = {
            "k": self._maybe_null(self.rng.choice(KEYS[self.kinds[s]])),
            "l": self._maybe_null(self.rng.choice(KEYS[self.kinds[s]])),
            "p": self._maybe_null(self.rng.randint(0, 5)),
            "q": self._maybe_null(self.rng.randint(-2, 2)),
            "x": self._maybe_null(self.rng.choice((-1.5, 0.0, 0.5, 1.0, 2.25))),
        }
        return MultiRow(self.next_id, time, values)

    def _maybe_null(self, value: Any) -> Any:
        return None if self.rng.random() < self.null_chance else value
