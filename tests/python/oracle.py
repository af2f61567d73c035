"""The slow, obvious judge of the binary join: docs/semantics.md, sentence by sentence, over plain lists.

    script of operations -> Oracle.run(op) -> Step: what the operation must emit
                                |
                                +-- history[s]   every admitted row, in arrival order, with its fate
                                +-- promises[s]  value -> Promise, one per value of a small finite domain

Nothing here is clever. There is no index, no range arithmetic and no lazy deletion: a pattern is expanded
over the domain and applied value by value, and every question is answered by walking the whole history.

While no late row was inserted, no promise broken and no lifespan declared, each probe is also answered *by
definition* (all rows ever admitted, whatever the state forgot), and the two must agree: forgetting may lose
no match.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from script import LEFT, RIGHT, Advance, Finish, Op, Punctuate, Push, Row, Value, canonical, covers

END_OF_TIME = math.inf


# What the query says, and what an operation must emit. --------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The query, as far as the judge needs it. `lower <= time(right) - time(left) <= upper`; None is open."""

    domain: tuple[tuple[Any, ...], ...]  # per attribute, every value that a row or a pattern can mean
    null_safe: tuple[bool, ...] = ()
    lower: int | None = None
    upper: int | None = None
    how: str = "inner"
    residual: Callable[[Row, Row], bool] | None = None
    late: str = "drop"
    on_violation: str = "drop"
    unique: tuple[bool, bool] = (False, False)
    clustered: tuple[bool, bool] = (False, False)
    lifespan: tuple[int | None, int | None] = (None, None)

    @property
    def preserved(self) -> tuple[bool, bool]:
        return self.how in ("left", "full", "left_anti"), self.how in ("right", "full")

    def may_propagate_when_closed_on(self, stream: int) -> bool:
        closing = {"inner": (LEFT, RIGHT), "left_semi": (LEFT, RIGHT), "right": (RIGHT,), "full": ()}
        return stream in closing.get(self.how, (LEFT,))

    def all_values(self) -> Iterator[Value]:
        return itertools.product(*self.domain)

    def has_null_key(self, row: Row) -> bool:
        return any(v is None and not safe for v, safe in zip(row.values, self.null_safe, strict=True))


@dataclass
class Step:
    """What one operation emits. A result is (left id, right id), None for a missing side."""

    rows: list[tuple[int | None, int | None]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    violations: list[int] = field(default_factory=list)
    propagated: list[tuple[Value, str]] = field(default_factory=list)  # value and kind


@dataclass
class Fate:
    """One row of the history: where it is now and what became of it."""

    row: Row
    key: Value
    stored: bool = False
    matched: bool = False


@dataclass
class Promise:
    time: int
    closed: bool = False  # the flag `propagated`
    output: bool = False  # the value also reached the output


class LateRow(Exception):
    pass


class Violation(Exception):
    pass


class Oracle:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._values = list(rules.all_values())
        self.clock: list[float] = [-math.inf, -math.inf]
        self.ended = [False, False]
        self.history: tuple[list[Fate], list[Fate]] = ([], [])
        self.promises: tuple[dict[Value, Promise], dict[Value, Promise]] = ({}, {})
        self.last_key: list[Value | None] = [None, None]
        self.counters: Counter[tuple[str, int]] = Counter()  # (name, stream) -> count
        self.rows_out = 0
        # Values on which a stream went back on its own word: no output promise is owed there.
        self.broken: set[Value] = set()
        self._ever_promised: tuple[set[Value], set[Value]] = (set(), set())
        self._definition_holds = rules.lifespan == (None, None)
        self._step = Step()

    # The four operations --------------------------------------------------------------------------

    def run(self, op: Op) -> Step:
        self._step = Step()
        match op:
            case Push(stream, rows):
                for row in rows:
                    self.counters["rows_in", stream] += 1
                    self._arrive(stream, row)
            case Punctuate(stream, patterns, time):
                if op.ends_stream:
                    self._end(stream, time)
                else:
                    for value in self._values:
                        if all(covers(p, v) for p, v in zip(patterns, value, strict=True)):
                            self._punctuate(stream, value, time)
            case Advance(stream, time):
                self._raise_clock(stream, time + 1)
            case Finish():
                self._end(LEFT, 0)
                self._end(RIGHT, 0)
        self.rows_out += len(self._step.rows)
        return self._step

    def state_rows(self, stream: int) -> int:
        return sum(fate.stored for fate in self.history[stream])

    # A row, steps 1 to 9 --------------------------------------------------------------------------

    def _arrive(self, s: int, row: Row) -> None:
        rules, o = self.rules, 1 - s
        if row.time < self.clock[s]:  # 1
            if rules.late == "error":
                raise LateRow(row)
            self.counters["late", s] += 1
            self._step.late.append(row.id)
            if rules.late == "drop":
                return
            self._definition_holds = False
        else:
            self._raise_clock(s, row.time)  # 2

        fate = Fate(row, tuple(canonical(v) for v in row.values))
        if rules.has_null_key(row):  # 3
            self._emit_unmatched(s, fate)
            return

        key = fate.key
        assert key in self._values, f"the domain lacks {key}"
        if self._promised(s, key):  # 4
            if rules.on_violation == "error":
                raise Violation(row)
            self.counters["violations", s] += 1
            self._step.violations.append(row.id)
            if rules.on_violation == "drop":
                return
        if key in self._ever_promised[s]:
            self.broken.add(key)
            self._definition_holds = False

        previous, self.last_key[s] = self.last_key[s], key
        if rules.clustered[s] and previous is not None and previous != key:  # 5
            self._punctuate(s, previous, row.time)

        self.history[s].append(fate)
        promise = self.promises[o].get(key)
        if promise is not None and promise.closed:  # 6
            self.counters["dropped_after_propagation", s] += 1
            self._check_definition(s, fate, [])
            self._emit_unmatched(s, fate)
        else:
            self._probe(s, fate)  # 7
            done = fate.matched and s == LEFT and rules.how in ("left_semi", "left_anti")
            if self._promised(o, key):  # 8
                self.counters["discarded_on_the_fly", s] += 1
                self._emit_unmatched(s, fate)
            elif self._reach(s, row) < self.clock[o] or self._bound_is_empty():
                self._emit_unmatched(s, fate)
            else:
                fate.stored = not done
                if fate.stored and key in self.promises[s]:  # a kept violation opens a closed value again
                    self.promises[s][key].closed = self.promises[s][key].output = False
        if rules.unique[s]:  # 9
            self._punctuate(s, key, row.time)

    def _probe(self, s: int, fate: Fate) -> None:
        o, how = 1 - s, self.rules.how
        partners = [other for other in self.history[o] if other.stored and self._pair_matches(s, fate, other)]
        self._check_definition(s, fate, partners)
        for other in partners:
            first_of_left = not (fate if s == LEFT else other).matched
            fate.matched = other.matched = True
            pair = (fate, other) if s == LEFT else (other, fate)
            if how == "left_semi":
                if first_of_left:
                    self._step.rows.append((pair[LEFT].row.id, None))
            elif how != "left_anti":
                self._step.rows.append((pair[LEFT].row.id, pair[RIGHT].row.id))
            if how in ("left_semi", "left_anti"):
                pair[LEFT].stored = False
        if s == RIGHT and partners:
            self._close_if_empty(LEFT, fate.key, "early")

    def _pair_matches(self, s: int, fate: Fate, other: Fate) -> bool:
        left, right = (fate, other) if s == LEFT else (other, fate)
        return pair_matches(self.rules, left.row, right.row)

    def _check_definition(self, s: int, fate: Fate, partners: list[Fate]) -> None:
        if not self._definition_holds:
            return
        expected = [other for other in self.history[1 - s] if self._pair_matches(s, fate, other)]
        if s == RIGHT and self.rules.how in ("left_semi", "left_anti"):
            expected = [other for other in expected if not other.matched]
        assert [id(f) for f in expected] == [id(f) for f in partners], "the rules of forgetting lost a match"

    def _emit_unmatched(self, s: int, fate: Fate) -> None:
        if self.rules.preserved[s] and not fate.matched:
            self._step.rows.append((fate.row.id, None) if s == LEFT else (None, fate.row.id))

    # Time -----------------------------------------------------------------------------------------

    def _bound_is_empty(self) -> bool:
        lower, upper = self.rules.lower, self.rules.upper
        return lower is not None and upper is not None and lower > upper

    def _reach(self, s: int, row: Row) -> float:
        if s == LEFT:
            return math.inf if self.rules.upper is None else row.time + self.rules.upper
        return math.inf if self.rules.lower is None else row.time - self.rules.lower

    def _raise_clock(self, s: int, time: float) -> None:
        if time <= self.clock[s]:
            return
        self.clock[s] = time
        o = 1 - s
        emptied = []
        for fate in self.history[o]:
            if fate.stored and self._reach(o, fate.row) < time:
                fate.stored = False
                self.counters["invalidated", o] += 1
                self._emit_unmatched(o, fate)
                emptied.append(fate.key)
        for key in emptied:
            self._close_if_empty(o, key, "early")
        lifespan = self.rules.lifespan[s]
        if lifespan is not None and not self.ended[s]:
            for value in [v for v, p in self.promises[s].items() if time > p.time + lifespan]:
                del self.promises[s][value]

    # Punctuations ---------------------------------------------------------------------------------

    def _promised(self, s: int, value: Value) -> bool:
        return self.ended[s] or value in self.promises[s]

    def _punctuate(self, s: int, value: Value, time: int) -> None:
        o = 1 - s
        self._ever_promised[s].add(value)
        for fate in self.history[o]:  # 1
            if fate.stored and fate.key == value:
                fate.stored = False
                self.counters["purged", o] += 1
                self._emit_unmatched(o, fate)
        if self._promised(o, value):  # 2
            promises = [self.promises[side].pop(value, None) for side in (LEFT, RIGHT)]
            if not any(p is not None and p.output for p in promises):
                self._step.propagated.append((value, "regular"))
            return
        promise = self.promises[s].setdefault(value, Promise(time))  # 3
        promise.time = max(promise.time, time)
        self._close_if_empty(s, value, "immediate")

    def _close_if_empty(self, s: int, value: Value, kind: str) -> None:
        promise = self.promises[s].get(value)
        if promise is None or promise.closed:
            return
        if any(fate.stored and fate.key == value for fate in self.history[s]):
            return
        promise.closed = True
        if self.rules.may_propagate_when_closed_on(s):
            promise.output = True
            self._step.propagated.append((value, kind))

    def _end(self, s: int, time: int) -> None:
        if self.ended[s]:
            return
        self.ended[s] = True
        self.clock[s] = END_OF_TIME
        for value in self._values:
            self._punctuate(s, value, time)


# The definition, without any state. ---------------------------------------------------------------


def pair_matches(rules: Rules, left: Row, right: Row) -> bool:
    if rules.has_null_key(left) or rules.has_null_key(right):
        return False
    if [canonical(v) for v in left.values] != [canonical(v) for v in right.values]:
        return False
    difference = right.time - left.time
    if rules.lower is not None and difference < rules.lower:
        return False
    if rules.upper is not None and difference > rules.upper:
        return False
    return rules.residual is None or rules.residual(left, right)


def result_by_definition(rules: Rules, script: list[Op]) -> Counter[tuple[int | None, int | None]]:
    """Results of a script without late rows, broken promises and lifespans, from its rows alone."""
    left, right = (
        [row for op in script if isinstance(op, Push) and op.stream == s for row in op.rows]
        for s in (LEFT, RIGHT)
    )
    pairs = [(a.id, b.id) for a in left for b in right if pair_matches(rules, a, b)]
    lonely_left = [(a.id, None) for a in left if a.id not in {x for x, _ in pairs}]
    lonely_right = [(None, b.id) for b in right if b.id not in {y for _, y in pairs}]
    result: list[tuple[int | None, int | None]] = []
    if rules.how == "left_semi":
        result += [(x, None) for x in {x for x, _ in pairs}]
    elif rules.how != "left_anti":
        result += pairs
    if rules.preserved[LEFT]:
        result += lonely_left
    if rules.preserved[RIGHT]:
        result += lonely_right
    return Counter(result)
