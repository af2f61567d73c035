"""A second judge of chained purge, by what it is for: a row is needed iff some legal future joins it.

    needed(t)   some other streams send a row more, the rest have a stored one, all of them join with t,
                and no row to come breaks a promise, is behind its clock, or comes after its stream's end

Knows no chains, closed streams or witnesses. A class that only rows to come have takes a value that nobody
has promised, so promises must leave one: ranges of a case are open at one end only, the same for all.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import streamjoin as sj

COLUMNS = "xyz"
Key = tuple[int | None, ...]  # of a row: a value a class


KINDS: dict[str, tuple[list[pa.DataType], Callable[[int], Any]]] = {
    "int64": ([pa.int64()], int),
    "int32 and int64": ([pa.int32(), pa.int64()], int),
    "string": ([pa.string()], lambda v: f"{v:06}"),
    "float": ([pa.float64()], lambda v: v / 2 if v else -0.0),
    "decimal": ([pa.decimal128(12, 2)], lambda v: Decimal(v) / 4),
    "date": ([pa.date32()], lambda v: date(1970, 1, 1) + timedelta(v)),
}


@dataclass(frozen=True)
class Row:
    id: int
    time: int
    values: dict[str, int | None]


@dataclass(frozen=True)
class Promise:
    pattern: dict[str, Any]  # by column: a value, a list, or (low, high)
    until: float


@dataclass
class Shape:
    """What is declared."""

    n: int
    equal: list[tuple[int, str, int, str, bool]]
    uppers: list[list[float]]
    windows: list[tuple[int, int, int]]
    schemes: list[list[tuple[str, ...]]]
    implied: list[tuple[str, tuple[str, ...]] | None]
    lifespans: list[int | None]
    kind: str
    types: list[dict[str, pa.DataType]]
    classes: list[set[tuple[int, str]]]
    null_safe: list[bool]

    @property
    def names(self) -> list[str]:
        return [f"s{i}" for i in range(self.n)]

    def joined(self, s: int) -> list[str]:
        return sorted({c for columns in self.classes for t, c in columns if t == s})

    def class_of(self, s: int, column: str) -> int:
        return next(i for i, columns in enumerate(self.classes) if (s, column) in columns)

    def query(self, **options: Any) -> sj.Query:
        streams = []
        for s, name in enumerate(self.names):
            implied = self.implied[s]
            extra: dict[str, Any] = {} if implied is None else {implied[0]: implied[1]}
            streams.append(
                sj.Stream(name, time="t", punctuations=self.schemes[s], lifespan=self.lifespans[s], **extra)
            )
        on = [f"s{i}.{c} {'<=>' if safe else '='} s{j}.{d}" for i, c, j, d, safe in self.equal]
        within = [sj.between(f"s{i}", f"s{j}", upper=upper) for i, j, upper in self.windows]
        return sj.Query(streams, on, within=within, require_safe=False, **options)

    def schema(self, s: int) -> pa.Schema:
        keys = [(c, self.types[s][c]) for c in COLUMNS]
        return pa.schema([("id", pa.int64()), ("t", pa.int64()), *keys])


def draw_shape(rng: random.Random, *, lifespans: bool) -> Shape:
    n = rng.choice((3, 3, 3, 4, 4, 5))
    equal: list[tuple[int, str, int, str, bool]] = []
    safe_share = rng.choice((0.0, 0.0, 0.5, 1.0))
    few = COLUMNS[: rng.choice((1, 2, 2, 3))]
    for i in range(1, n):
        for j in [rng.randrange(i), *(k for k in range(i) if rng.random() < 0.35)]:
            for _ in range(rng.choice((1, 1, 1, 2))):  # one column may meet several of another stream
                equal.append((j, rng.choice(few), i, rng.choice(few), rng.random() < safe_share))
    classes: list[set[tuple[int, str]]] = []
    for i, c, j, d, _ in equal:
        merged = {(i, c), (j, d)}
        for other in [each for each in classes if each & merged]:
            merged |= other
            classes.remove(other)
        classes.append(merged)
    classes.sort(key=lambda columns: min(columns))
    # Of two predicates on the same columns, or in one class, one plain `=` excludes null.
    null_safe = [all(safe for i, c, *_, safe in equal if (i, c) in columns) for columns in classes]
    windows: list[tuple[int, int, int]] = []
    if rng.random() < 0.4:
        for _ in range(rng.randint(1, n)):
            i, j = rng.sample(range(n), 2)
            windows.append((i, j, rng.choice((-1, 0, 1, 2, 4, 7))))
    uppers = [[0.0 if i == j else math.inf for j in range(n)] for i in range(n)]
    for i, j, upper in windows:
        uppers[i][j] = min(uppers[i][j], upper)
    for k, i, j in product(range(n), repeat=3):
        uppers[i][j] = min(uppers[i][j], uppers[i][k] + uppers[k][j])
    joined = [sorted({c for columns in classes for t, c in columns if t == s}) for s in range(n)]

    def scheme(s: int) -> tuple[str, ...]:
        return tuple(rng.sample(joined[s], rng.randint(1, len(joined[s]))))

    schemes = [[scheme(s) for _ in range(rng.choice((0, 1, 1, 2)))] for s in range(n)]
    implied: list[tuple[str, tuple[str, ...]] | None] = [None] * n
    for s in range(n):
        if rng.random() < 0.25:
            implied[s] = (rng.choice(("unique", "clustered")), scheme(s))
    if not any(schemes) and not any(implied):
        schemes[0] = [scheme(0)]
    kind = rng.choice(list(KINDS))
    types = [{c: rng.choice(KINDS[kind][0]) for c in COLUMNS} for _ in range(n)]
    lives = [rng.choice((None, 2, 5, 9)) if lifespans else None for _ in range(n)]
    return Shape(n, equal, uppers, windows, schemes, implied, lives, kind, types, classes, null_safe)


@dataclass
class FutureJudge:
    """State of the streams as the outside sees it, and the rows that a future may still need."""

    shape: Shape
    clock: list[float] = field(init=False)
    live: list[list[tuple[Row, Key]]] = field(init=False)
    promises: list[list[Promise]] = field(init=False)
    cluster: list[dict[str, int | None] | None] = field(init=False)

    def __post_init__(self) -> None:
        n = self.shape.n
        self.clock = [-math.inf] * n
        self.live = [[] for _ in range(n)]
        self.promises = [[] for _ in range(n)]
        self.cluster = [None] * n
        self.of_class = [
            [[c for t, c in columns if t == s] for columns in self.shape.classes] for s in range(n)
        ]

    def key_of(self, s: int, row: Row) -> Key | None:
        """The row's value of each class (-1 where it has none), or None if it joins nothing."""
        key: list[int | None] = []
        for number, columns in enumerate(self.of_class[s]):
            values = {row.values[c] for c in columns}
            if len(values) > 1 or (None in values and not self.shape.null_safe[number]):
                return None
            key.append(values.pop() if values else -1)
        return tuple(key)

    def breaks(self, s: int, row: Row) -> bool:
        return any(covers(p.pattern, row.values) for p in self.promises[s])

    def raise_clock(self, s: int, clock: float) -> None:
        if clock > self.clock[s]:
            self.clock[s] = clock
            self.promises[s] = [p for p in self.promises[s] if p.until >= clock]
            self.purge()

    def promise(self, s: int, pattern: dict[str, Any], time: float) -> None:
        life = self.shape.lifespans[s]
        until = math.inf if life is None else time + life
        if until >= self.clock[s] and self.clock[s] < math.inf:
            self.promises[s].append(Promise(pattern, until))
            self.purge()

    def arrive(self, s: int, row: Row) -> list[tuple[int, ...]] | None:
        """The results of a row that breaks no promise; None if it joins nothing."""
        self.raise_clock(s, row.time)
        key = self.key_of(s, row)
        if key is None:
            return None
        implied = self.shape.implied[s]
        useful = implied is not None and set(implied[1]) <= set(self.shape.joined(s))
        own = {c: row.values[c] for c in implied[1]} if implied is not None and useful else None
        if own is not None and implied is not None and implied[0] == "clustered":
            left, self.cluster[s] = self.cluster[s], own
            if left is not None and left != own:
                self.promise(s, left, row.time)
        found = [
            tuple(rows[i].id for i in range(self.shape.n))
            for rows in self.extensions({s: (row, key)}, futures=False)
        ]
        self.live[s].append((row, key))
        if not self.needed(s, row, key):
            self.live[s].pop()
        if own is not None and implied is not None and implied[0] == "unique":
            self.promise(s, own, row.time)
        return found

    def purge(self) -> None:
        self.live = [
            [(row, key) for row, key in rows if self.needed(s, row, key)]
            for s, rows in enumerate(list(self.live))
        ]

    def needed(self, s: int, row: Row, key: Key) -> bool:
        return next(self.extensions({s: (row, key)}, futures=True), None) is not None

    def extensions(
        self, bound: dict[int, tuple[Row, Key]], *, futures: bool, coming: tuple[int, ...] = ()
    ) -> Iterator[dict[int, Row]]:
        """Ways to complete a tuple: with stored rows, or (`futures`) with at least one row to come."""
        rest = [i for i in range(self.shape.n) if i not in bound and i not in coming]
        if not rest:
            if not futures or (coming and self.possible(bound, coming)):
                yield {i: row for i, (row, _) in bound.items()}
            return
        s = rest[0]
        if futures and self.clock[s] < math.inf:
            yield from self.extensions(bound, futures=True, coming=(*coming, s))
        for row, key in self.live[s]:
            if all(self.joins(s, row, key, i, *other) for i, other in bound.items()):
                yield from self.extensions({**bound, s: (row, key)}, futures=futures, coming=coming)

    def joins(self, i: int, row: Row, key: Key, j: int, other: Row, theirs: Key) -> bool:
        uppers = self.shape.uppers
        if other.time - row.time > uppers[i][j] or row.time - other.time > uppers[j][i]:
            return False
        return all(
            key[c] == theirs[c] for c in range(len(key)) if self.of_class[i][c] and self.of_class[j][c]
        )

    def possible(self, bound: dict[int, tuple[Row, Key]], coming: tuple[int, ...]) -> bool:
        uppers = self.shape.uppers
        early = {s: self.clock[s] for s in coming}
        times = {i: row.time for i, (row, _) in bound.items()}
        for s in coming:
            for i, time in times.items():
                early[s] = max(early[s], time - uppers[s][i])
        for _ in coming:
            for s, i in product(coming, repeat=2):
                if s != i:
                    early[s] = max(early[s], early[i] - uppers[s][i])
        if any(early[s] > time + uppers[i][s] for s in coming for i, time in times.items()):
            return False
        if any(early[s] > early[i] + uppers[i][s] for s in coming for i in coming if i != s):
            return False
        known: dict[int, int | None] = {}
        for i, (_, key) in bound.items():
            known |= {c: value for c, value in enumerate(key) if self.of_class[i][c]}
        for s in coming:
            values = {
                c: known.get(number, "fresh")
                for number, columns in enumerate(self.of_class[s])
                for c in columns
            }
            if any(covers(p.pattern, values) for p in self.promises[s]):
                return False
        return True


def covers(pattern: dict[str, Any], values: dict[str, Any]) -> bool:
    return all(matches(each, values[column]) for column, each in pattern.items())


def matches(pattern: Any, value: Any) -> bool:
    if value == "fresh":
        return False
    if isinstance(pattern, tuple):
        low, high = pattern
        return value is not None and (low is None or low <= value) and (high is None or value <= high)
    if isinstance(pattern, (list, range)):
        return value in pattern
    return bool(pattern == value)
