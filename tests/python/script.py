"""The words of a test script: patterns, rows and operations, as plain data. Nothing of streamjoin is here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

LEFT, RIGHT = 0, 1

NAN = ("NaN",)  # equal to itself, unlike the float

Value = tuple[Any, ...]  # one canonical entry per join attribute


# Patterns: one per attribute. ---------------------------------------------------------------------


@dataclass(frozen=True)
class Const:
    value: Any


@dataclass(frozen=True)
class OneOf:
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Between:
    """Both ends belong to it; None is an open end. Null is in no range."""

    low: Any
    high: Any


@dataclass(frozen=True)
class Anything:
    pass


@dataclass(frozen=True)
class Nothing:
    pass


Pattern = Const | OneOf | Between | Anything | Nothing


def canonical(value: Any) -> Any:
    """NaN equals NaN and -0.0 equals 0.0, so give each pair one representative."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    return value


def covers(pattern: Pattern, value: Any) -> bool:
    match pattern:
        case Anything():
            return True
        case Nothing():
            return False
        case Const(constant):
            return bool(canonical(constant) == value)
        case OneOf(values):
            return any(canonical(v) == value for v in values)
        case Between(low, high):
            return value is not None and (low is None or low <= value) and (high is None or value <= high)


# Operations. --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    id: int
    values: tuple[Any, ...]  # join attributes as they stand in the batch: None, NaN and -0.0 included
    time: int
    p: int | None = None  # what the residual predicate looks at


@dataclass(frozen=True)
class Push:
    stream: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Punctuate:
    stream: int
    patterns: tuple[Pattern, ...]
    time: int

    @property
    def ends_stream(self) -> bool:
        return all(isinstance(p, Anything) for p in self.patterns)


@dataclass(frozen=True)
class Advance:
    stream: int
    time: int


@dataclass(frozen=True)
class Finish:
    pass


Op = Push | Punctuate | Advance | Finish
