"""The slow, obvious judge of the m-way join: docs/semantics.md, "Three and more streams", over plain lists.

    operation -> MultiOracle.run(op) -> MultiStep: results that must come out, results that may, late rows

It holds every row it ever admitted and knows no closure: windows are checked as declared, equalities
one by one. A result is formed by nested loops when the last of its rows arrives.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from script import canonical


@dataclass(frozen=True)
class MultiRow:
    id: int
    time: int
    values: dict[str, Any]  # by column, as they stand in the batch


@dataclass(frozen=True)
class PushRows:
    stream: int
    rows: tuple[MultiRow, ...]


@dataclass(frozen=True)
class Heartbeat:
    stream: int
    time: int


@dataclass(frozen=True)
class EndStream:
    stream: int


@dataclass(frozen=True)
class EndAll:
    pass


MultiOp = PushRows | Heartbeat | EndStream | EndAll
Result = tuple[int, ...]  # the ids of its rows, streams in declared order


@dataclass(frozen=True)
class Equal:
    left: tuple[int, str]
    right: tuple[int, str]
    null_safe: bool


@dataclass(frozen=True)
class Bound:
    """`lower <= time(right) - time(left) <= upper`; None is open."""

    left: int
    right: int
    lower: int | None
    upper: int | None

    def holds(self, rows: Sequence[MultiRow | None]) -> bool:
        left, right = rows[self.left], rows[self.right]
        if left is None or right is None:
            return True
        difference = right.time - left.time
        return (self.lower is None or difference >= self.lower) and (
            self.upper is None or difference <= self.upper
        )


@dataclass(frozen=True)
class Condition:
    streams: tuple[int, ...]
    holds: Callable[..., bool]  # of the rows of these streams


@dataclass(frozen=True, kw_only=True)
class MultiRules:
    streams: int
    windows: tuple[
        tuple[tuple[Bound, ...], ...], ...
    ]  # per declaration its alternatives, each all of its bounds
    equalities: tuple[Equal, ...] = ()
    conditions: tuple[Condition, ...] = ()
    late: str = "drop"

    def allows(self, rows: Sequence[MultiRow | None]) -> bool:
        """Whether nothing that is known already excludes these rows; None is not bound yet."""
        return (
            all(any(all(b.holds(rows) for b in way) for way in ways) for ways in self.windows)
            and all(self._equal(equality, rows) for equality in self.equalities)
            and all(
                condition.holds(*(rows[s] for s in condition.streams))
                for condition in self.conditions
                if all(rows[s] is not None for s in condition.streams)
            )
        )

    def _equal(self, equality: Equal, rows: Sequence[MultiRow | None]) -> bool:
        left, right = rows[equality.left[0]], rows[equality.right[0]]
        if left is None or right is None:
            return True
        x, y = canonical(left.values[equality.left[1]]), canonical(right.values[equality.right[1]])
        if x is None or y is None:
            return equality.null_safe and x is None and y is None
        return bool(x == y)


@dataclass
class MultiStep:
    required: Counter[Result] = field(default_factory=Counter)  # in time, all of them
    with_late_rows: Counter[Result] = field(default_factory=Counter)  # completed in time, with a late row
    by_late_rows: Counter[Result] = field(default_factory=Counter)  # completed by a late row
    late: list[int] = field(default_factory=list)


class MultiOracle:
    def __init__(self, rules: MultiRules) -> None:
        self.rules = rules
        self.clock: list[float] = [-math.inf] * rules.streams
        self.history: list[list[MultiRow]] = [[] for _ in range(rules.streams)]
        self.late_ids: set[int] = set()

    def run(self, op: MultiOp) -> MultiStep:
        step = MultiStep()
        match op:
            case PushRows(stream, rows):
                for row in rows:
                    self._arrive(stream, row, step)
            case Heartbeat(stream, time):
                self.clock[stream] = max(self.clock[stream], time + 1)
            case EndStream(stream):
                self.clock[stream] = math.inf
            case EndAll():
                self.clock = [math.inf] * self.rules.streams
        return step

    def _arrive(self, s: int, row: MultiRow, step: MultiStep) -> None:
        is_late = row.time < self.clock[s]
        if is_late:
            step.late.append(row.id)
            if self.rules.late == "drop":
                return
            self.late_ids.add(row.id)
        else:
            self.clock[s] = row.time
        self.history[s].append(row)
        for result in self.results_with(s, row):
            if is_late:
                step.by_late_rows[result] += 1
            elif self.late_ids.isdisjoint(result):
                step.required[result] += 1
            else:
                step.with_late_rows[result] += 1

    def results_with(self, s: int, row: MultiRow) -> Iterator[Result]:
        """All results of a row with rows of the other streams that came before it."""
        rows: list[MultiRow | None] = [None] * self.rules.streams
        rows[s] = row
        others = [i for i in range(self.rules.streams) if i != s]
        if self.rules.allows(rows):
            yield from self._extend(rows, others)

    def _extend(self, rows: list[MultiRow | None], others: list[int]) -> Iterator[Result]:
        if not others:
            yield tuple(row.id for row in rows if row is not None)
            return
        for candidate in self.history[others[0]]:
            rows[others[0]] = candidate
            if self.rules.allows(rows):
                yield from self._extend(rows, others[1:])
        rows[others[0]] = None
