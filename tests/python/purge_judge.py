"""The slow judge of chained purge: the rule of docs/semantics.md, "Promises on values", by trying everything.

    op -> PurgeJudge.run(op) -> results that must come out, rows that break a promise; `live`: what is stored

After every row and every promise it asks of each row anew whether it may go, over all rows that ever came
(or, where promises end or are broken, over those that are stored). It tries every order of the streams, so it
does not rely on one closed stream being as good as another.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import streamjoin as sj

Column = tuple[int, str]  # stream, column


@dataclass(frozen=True)
class Row:
    id: int
    time: int
    values: dict[str, Any]


@dataclass(frozen=True)
class Push:
    stream: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Punctuate:
    stream: int
    pattern: dict[str, Any]
    time: int | None


@dataclass(frozen=True)
class Beat:
    stream: int
    time: int


Op = Push | Punctuate | Beat


@dataclass(frozen=True, kw_only=True)
class Rules:
    streams: int
    equal: tuple[tuple[Column, Column], ...]
    bounds: tuple[tuple[int, int, int], ...] = ()  # i, j, largest time(j) - time(i)
    implies: tuple[tuple[str, tuple[str, ...]] | None, ...]
    lifespans: tuple[int | None, ...]
    on_violation: str = "drop"

    @property
    def monotone(self) -> bool:
        """Promises last and hold: a row that may go may go for ever."""
        return self.on_violation == "drop" and not any(life is not None for life in self.lifespans)


@dataclass
class Promise:
    pattern: dict[str, Any]
    until: float


@dataclass
class Step:
    results: Counter[tuple[int, ...]] = field(default_factory=Counter)
    violations: list[int] = field(default_factory=list)


def matches(pattern: Any, value: Any) -> bool:
    if pattern is sj.ANY:
        return True
    if isinstance(pattern, sj.Range):
        return value is not None and all(
            (pattern.low is None or pattern.low <= value, pattern.high is None or value <= pattern.high)
        )
    if isinstance(pattern, list):
        return value in pattern
    return bool(pattern == value)


class PurgeJudge:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        n = rules.streams
        self.clock: list[float] = [-math.inf] * n
        self.came: list[list[Row]] = [[] for _ in range(n)]
        self.live: list[list[Row]] = [[] for _ in range(n)]
        self.promises: list[list[Promise]] = [[] for _ in range(n)]
        self.cluster: list[dict[str, Any] | None] = [None] * n
        self.uppers = [[math.inf] * n for _ in range(n)]
        for i, j, upper in rules.bounds:
            self.uppers[i][j] = min(self.uppers[i][j], upper)
        for k, i, j in product(range(n), repeat=3):
            self.uppers[i][j] = min(self.uppers[i][j], self.uppers[i][k] + self.uppers[k][j])
        self.same = {column: {column} for pair in rules.equal for column in pair}
        for left, right in rules.equal:
            merged = self.same[left] | self.same[right]
            self.same.update(dict.fromkeys(merged, merged))

    def run(self, op: Op) -> Step:
        step = Step()
        match op:
            case Push(stream, rows):
                for row in rows:
                    self._arrive(stream, row, step)
            case Punctuate(stream, pattern, time):
                self._promise(stream, pattern, self.clock[stream] if time is None else time)
            case Beat(stream, time):
                self._raise(stream, time + 1)
        return step

    def _raise(self, s: int, clock: float) -> None:
        self.clock[s] = max(self.clock[s], clock)
        self.promises[s] = [p for p in self.promises[s] if p.until >= self.clock[s]]
        self._purge()

    def _arrive(self, s: int, row: Row, step: Step) -> None:
        self._raise(s, row.time)
        if not self._can_match(s, row):
            return
        if any(self._speaks_of(p, row) for p in self.promises[s]):
            step.violations.append(row.id)
            if self.rules.on_violation == "drop":
                return
        implied = self.rules.implies[s]
        own = None if implied is None else {column: row.values[column] for column in implied[1]}
        if implied is not None and implied[0] == "clustered":
            left, self.cluster[s] = self.cluster[s], own
            if left is not None and left != own:
                self._promise(s, left, row.time)
        for result in self._results(s, row):
            step.results[result] += 1
        self.came[s].append(row)
        if not self._may_go(s, row):
            self.live[s].append(row)
        if implied is not None and implied[0] == "unique":
            self._promise(s, own, row.time)

    def _can_match(self, s: int, row: Row) -> bool:
        """No null where `=` compares, and columns of the row that must be equal are."""
        for members in self.same.values():
            own = [row.values[column] for stream, column in members if stream == s]
            if any(value is None or value != own[0] for value in own):
                return False
        return True

    def _speaks_of(self, promise: Promise, row: Row) -> bool:
        return all(matches(pattern, row.values[column]) for column, pattern in promise.pattern.items())

    def _promise(self, s: int, pattern: dict[str, Any] | None, time: float) -> None:
        life = self.rules.lifespans[s]
        until = math.inf if life is None else time + life
        if pattern is None or until < self.clock[s]:
            return
        self.promises[s].append(Promise(pattern, until))
        self._purge()

    def _purge(self) -> None:
        self.live = [
            [row for row in rows if not self._may_go(s, row)] for s, rows in enumerate(list(self.live))
        ]

    def _may_go(self, s: int, row: Row) -> bool:
        return self._dead({s: row})

    def _dead(self, rows: dict[int, Row]) -> bool:
        rest = [s for s in range(self.rules.streams) if s not in rows]
        if not rest:
            return True
        return any(
            self._closed(s, rows) and all(self._dead({**rows, s: row}) for row in self._partners(s, rows))
            for s in rest
        )

    def _closed(self, s: int, rows: dict[int, Row]) -> bool:
        if any(self.clock[s] > row.time + self.uppers[r][s] for r, row in rows.items()):
            return True
        known: dict[str, Any] = {}
        for column in {c for t, c in self.same if t == s}:
            for r, other in self.same[s, column]:
                if r in rows:
                    known[column] = rows[r].values[other]
        return any(
            all(column in known and matches(pattern, known[column]) for column, pattern in p.pattern.items())
            for p in self.promises[s]
        )

    def _partners(self, s: int, rows: dict[int, Row]) -> Iterator[Row]:
        for row in (self.came if self.rules.monotone else self.live)[s]:
            if self._joins({**rows, s: row}):
                yield row

    def _joins(self, rows: dict[int, Row]) -> bool:
        for members in self.same.values():
            if len({rows[s].values[column] for s, column in members if s in rows}) > 1:
                return False
        return all(
            rows[j].time - rows[i].time <= self.uppers[i][j] for i, j in product(rows, repeat=2) if i != j
        )

    def _results(self, s: int, row: Row) -> Iterator[tuple[int, ...]]:
        pools = self.came if self.rules.monotone else self.live
        tuples = [{s: row}]
        for other in range(self.rules.streams):
            if other != s:
                tuples = [t for rows in tuples for r in pools[other] if self._joins(t := {**rows, other: r})]
        for rows in tuples:
            yield tuple(rows[i].id for i in range(self.rules.streams))
