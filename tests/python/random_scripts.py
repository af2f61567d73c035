"""Seeded random queries and scripts for the operator and its oracle.

A `Case` is one query and one script of operations. Everything is small (six keys, times around zero) so that
ties, duplicates, late rows, broken promises, empty windows and long runs of matches all happen within a few
operations. The same seed always gives the same case.

    make_case(seed)               anything may happen
    make_case(seed, clean=True)   no late row, no broken promise, no lifespan: the rows alone fix the result
"""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, replace
from typing import Any

from oracle import Rules
from script import (
    LEFT,
    RIGHT,
    Advance,
    Anything,
    Between,
    Const,
    Finish,
    Nothing,
    OneOf,
    Op,
    Pattern,
    Punctuate,
    Push,
    Row,
    Value,
    canonical,
    covers,
)

JOIN_TYPES = ("inner", "left", "right", "full", "left_semi", "left_anti")

# What rows hold, by kind of key. Ranges are tried on the kinds in RANGES; integer ranges may end outside.
KEYS: dict[str, tuple[Any, ...]] = {
    "int64": (0, 1, 2, 3, 4, 5),
    "int32": (-2, -1, 0, 1, 2, 3),
    "string": ("", "a", "ab", "b", "ü", "zz"),
    "float64": (0.0, -0.0, 1.5, -2.5, math.nan, math.inf),
    "date32": tuple(dt.date(1969, 12, 30) + dt.timedelta(days=d) for d in range(5)),
    "timestamp": tuple(dt.datetime(1969, 12, 31, 23, 59, 59, us) for us in (0, 1, 2, 999_999)),
    "bool": (False, True),
}
RANGES = ("int64", "int32", "string", "date32", "timestamp")
INTEGERS = ("int64", "int32")
BEYOND = {"int64": (-1, 6), "int32": (-3, 4)}  # values that no row has but a range may cover

SHAPES: tuple[tuple[tuple[str, ...], int], ...] = (
    (("int64",), 10),
    (("int32",), 1),
    (("string",), 3),
    (("float64",), 2),
    (("date32",), 1),
    (("timestamp",), 1),
    (("bool",), 1),
    (("int64", "int64"), 3),
    (("int64", "string"), 2),
    (("string", "date32"), 1),
    ((), 2),
)

# Residual predicates: text for the query, the same thing for the oracle. A null operand makes them not true.
RESIDUALS: dict[str, Any] = {
    "l.p < r.p + 3": lambda a, b: a.p is not None and b.p is not None and a.p < b.p + 3,
    "l.p >= r.p": lambda a, b: a.p is not None and b.p is not None and a.p >= b.p,
}

# A value that both streams have punctuated is forgotten and may be used again, even if a wider pattern (a
# range of strings, a partial pattern) still covers its neighbours. False keeps rows off such values there.
PATTERNS_FORGET_SINGLE_VALUES = False

TIME_SCALE = {"int64": 1, "timestamp[us]": 1, "timestamp[ms]": 1000}  # microseconds of one step of time


@dataclass(frozen=True, kw_only=True)
class Case:
    seed: int
    kinds: tuple[str, ...]  # of the join attributes, see KEYS
    rules: Rules
    where: str | None
    time_type: str  # see TIME_SCALE
    windows_on_streams: bool  # declare the bound as a window per stream instead of `between`
    script: tuple[Op, ...]
    null_keys: bool  # a null-safe attribute meets nulls: an output punctuation cannot tell null from `*`

    def with_script(self, script: list[Op] | tuple[Op, ...]) -> Case:
        return replace(self, script=tuple(script))

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.rules.how} on {self.kinds}, where {self.where}, time {self.time_type}"
        ]
        lines.append(f"  {self.rules}")
        return "\n".join(lines + [f"  {i}: {op}" for i, op in enumerate(self.script)])


def make_case(seed: int, *, clean: bool = False, how: str | None = None) -> Case:
    rng = random.Random(f"{seed}/{clean}")
    shapes, weights = zip(*SHAPES, strict=True)
    kinds = rng.choices(shapes, weights)[0]
    time_type = rng.choices(tuple(TIME_SCALE), (6, 2, 2))[0]
    step = TIME_SCALE[time_type]
    null_safe = tuple(rng.random() < 0.2 for _ in kinds)
    null_keys = any(null_safe) and rng.random() < 0.5
    windows_on_streams, lower, upper = _window(rng, step, must_bound=not kinds)
    where = rng.choice(tuple(RESIDUALS)) if rng.random() < 0.3 else None
    marks = [rng.choices(("", "unique", "clustered"), (6, 1, 1))[0] if kinds else "" for _ in (LEFT, RIGHT)]
    late = "drop" if clean else rng.choice(("drop", "drop", "insert"))
    lifespans: list[int | None] = [None, None]
    if not clean and late == "drop" and rng.random() < 0.2:
        # Only the text of a clustered stream's own punctuation leaves its time open, so keep the two apart.
        lifespans = [
            rng.randint(0, 6) * step if rng.random() < 0.7 and m != "clustered" else None for m in marks
        ]
    rules = Rules(
        domain=tuple(
            _domain(kind, null=safe and null_keys) for kind, safe in zip(kinds, null_safe, strict=True)
        ),
        null_safe=null_safe,
        lower=lower,
        upper=upper,
        how=how or rng.choice(JOIN_TYPES),
        residual=RESIDUALS[where] if where else None,
        late=late,
        on_violation=rng.choice(("drop", "keep")),
        unique=(marks[LEFT] == "unique", marks[RIGHT] == "unique"),
        clustered=(marks[LEFT] == "clustered", marks[RIGHT] == "clustered"),
        lifespan=(lifespans[LEFT], lifespans[RIGHT]),
    )
    script = _ScriptWriter(rng, kinds, rules, step, clean=clean, null_keys=null_keys).write(
        rng.randint(4, 22)
    )
    return Case(
        seed=seed,
        kinds=kinds,
        rules=rules,
        where=where,
        time_type=time_type,
        windows_on_streams=windows_on_streams,
        script=tuple(script),
        null_keys=null_keys,
    )


def cut_pushes(case: Case, seed: int) -> Case:
    """The same script with each push cut at random places."""
    rng = random.Random(f"cut {seed}")
    script: list[Op] = []
    for op in case.script:
        if not isinstance(op, Push):
            script.append(op)
            continue
        rows = op.rows
        while rows:
            size = rng.randint(1, len(rows))
            script.append(Push(op.stream, rows[:size]))
            rows = rows[size:]
    return case.with_script(script)


def interleave(case: Case, seed: int) -> Case:
    """The same two streams, each in its own order, merged in another way and row by row."""
    rng = random.Random(f"interleave {seed}")
    queues: list[list[Op]] = [[], []]
    for op in cut_pushes(case, seed).script:
        if not isinstance(op, Finish):
            queues[op.stream].append(op)
    bias = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
    script: list[Op] = []
    while queues[LEFT] or queues[RIGHT]:
        side = LEFT if (rng.random() < bias and queues[LEFT]) or not queues[RIGHT] else RIGHT
        script.append(queues[side].pop(0))
    return case.with_script([*script, Finish()])


def _window(rng: random.Random, step: int, *, must_bound: bool) -> tuple[bool, int | None, int | None]:
    if rng.random() < 0.3:  # a window per stream: a left row reaches `window` forward, a right row likewise
        lower = -rng.randint(0, 6) * step if must_bound or rng.random() < 0.8 else None
        upper = rng.randint(0, 6) * step if must_bound or rng.random() < 0.8 else None
        return True, lower, upper
    first, second = rng.randint(-6, 6), rng.randint(-6, 6)
    if rng.random() < 0.85:
        first, second = min(first, second), max(first, second)
    lower = first * step if must_bound or rng.random() < 0.8 else None
    upper = second * step if must_bound or rng.random() < 0.8 else None
    return False, lower, upper


def _domain(kind: str, *, null: bool) -> tuple[Any, ...]:
    values = dict.fromkeys(canonical(v) for v in KEYS[kind] + BEYOND.get(kind, ()))
    return (*values, None) if null else tuple(values)


class _ScriptWriter:
    def __init__(
        self,
        rng: random.Random,
        kinds: tuple[str, ...],
        rules: Rules,
        step: int,
        *,
        clean: bool,
        null_keys: bool,
    ) -> None:
        self.rng, self.kinds, self.rules, self.step = rng, kinds, rules, step
        self.clean, self.null_keys = clean, null_keys
        self.now = [rng.randint(-12, 2), rng.randint(-12, 2)]  # in steps; a clean stream never goes below it
        self.punctuated_at = [-100, -100]
        self.promised: tuple[set[Value], set[Value]] = (set(), set())
        self.last_key: list[Value | None] = [None, None]
        self.ended = [False, False]
        self.next_id = 0
        self.rare_nulls = rng.random() < 0.5
        self.values = list(rules.all_values())

    def write(self, length: int) -> list[Op]:
        script: list[Op] = []
        for _ in range(length):
            s = self.rng.choice((LEFT, RIGHT))
            choice = self.rng.random()
            if choice < 0.62:
                script.append(self._push(s))
            elif choice < 0.86:
                script.append(self._punctuate(s))
            elif choice < 0.98:
                script.append(self._advance(s))
            else:
                script.append(self._end(s))
        if self.rng.random() < 0.1:
            script += [self._end(LEFT), self._end(RIGHT)]
        return [*script, Finish()]

    def _push(self, s: int) -> Push:
        size = self.rng.choices((0, 1, 2, 3, 5, 8), (1, 6, 6, 4, 3, 2))[0]
        return Push(s, tuple(row for _ in range(size) if (row := self._row(s)) is not None))

    def _row(self, s: int) -> Row | None:
        # After its end a stream may only be wrong in one way, by a row behind the clock.
        if self.ended[s] and (self.clean or self.rules.late == "insert"):
            return None
        values = self._values(s)
        if values is None:
            return None
        if not self.clean and self.rng.random() < 0.1:
            time = self.now[s] - self.rng.randint(1, 6)
        else:
            time = self.now[s] = self.now[s] + self.rng.choice((0, 0, 0, 1, 1, 2, 4))
        self.next_id += 1
        p = self.rng.randint(0, 6) if self.rng.random() < 0.95 else None
        return Row(self.next_id, values, time * self.step, p)

    def _values(self, s: int) -> tuple[Any, ...] | None:
        null_chance = 0.02 if self.rare_nulls else 0.15
        for attempt in range(12):
            values = tuple(
                None
                if self._nulls_allowed(i) and self.rng.random() < null_chance
                else self.rng.choice(KEYS[kind])
                for i, kind in enumerate(self.kinds)
            )
            key = tuple(canonical(v) for v in values)
            if self.rules.has_null_key(Row(0, values, 0)):
                return values
            if not PATTERNS_FORGET_SINGLE_VALUES and self._promised_by_both(key):
                continue
            if key in self.promised[s] and (self.clean or (attempt < 6 and self.rng.random() < 0.85)):
                continue
            previous, self.last_key[s] = self.last_key[s], key
            if self.rules.unique[s]:
                self.promised[s].add(key)
            if self.rules.clustered[s] and previous is not None and previous != key:
                self.promised[s].add(previous)
            return values
        return None

    def _promised_by_both(self, key: Value) -> bool:
        one_integer = len(self.kinds) == 1 and self.kinds[0] in INTEGERS and not self.rules.null_safe[0]
        return not one_integer and all(key in promised for promised in self.promised)

    def _nulls_allowed(self, attribute: int) -> bool:
        return self.null_keys or not self.rules.null_safe[attribute]

    def _punctuate(self, s: int) -> Op:
        if not self.kinds:
            return self._advance(s)
        if len(self.kinds) == 1:
            patterns: tuple[Pattern, ...] = (self._pattern(self.kinds[0]),)
        else:
            patterns = tuple(
                Anything() if self.rng.random() < 0.3 else self._pattern(kind, composite=True)
                for kind in self.kinds
            )
        op = Punctuate(s, patterns, self._punctuation_time(s))
        if op.ends_stream:
            return self._end(s)
        self.promised[s].update(
            value for value in self.values if all(covers(p, v) for p, v in zip(patterns, value, strict=True))
        )
        return op

    def _pattern(self, kind: str, *, composite: bool = False) -> Pattern:
        def value() -> Any:
            return self.rng.choice(KEYS[kind])

        choice = self.rng.random()
        if choice < (0.75 if composite else 0.5):
            return Const(value())
        if choice < 0.8 or kind not in RANGES:
            return OneOf(tuple(value() for _ in range(self.rng.randint(1, 3))))
        if choice < 0.97:
            ends = sorted(self.rng.choices(_domain(kind, null=False), k=2))
            missing = self.rng.choice((None, None, LEFT, RIGHT))
            return Between(None if missing == LEFT else ends[0], None if missing == RIGHT else ends[1])
        return Nothing()

    def _punctuation_time(self, s: int) -> int:
        low, high = (0, 2) if self.rules.lifespan[s] is not None else (-4, 2)
        time = max(self.now[s], self.punctuated_at[s]) + self.rng.randint(low, high)
        if low == 0:  # so that a value promised twice is promised longer the second time
            self.punctuated_at[s] = time
        return time * self.step

    def _advance(self, s: int) -> Advance:
        time = self.now[s] + self.rng.choice((-2, -1, 0, 1, 2, 3, 6))
        self.now[s] = max(self.now[s], time + 1)
        return Advance(s, time * self.step)

    def _end(self, s: int) -> Punctuate:
        self.ended[s] = True
        time = self._punctuation_time(s)
        return Punctuate(s, tuple(Anything() for _ in self.kinds), time)
