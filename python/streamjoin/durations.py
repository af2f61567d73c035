"""Durations as users write them, turned into whole nanoseconds.

A duration is a text such as "12 hours", "1 hour 30 min", "1.5 s" or "-250 ms", a `timedelta`, or an integer
number of microseconds. Nanoseconds are Python integers and never overflow; who needs 64 bits clamps later.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from operator import index
from typing import NoReturn, TypeAlias

from streamjoin.errors import QueryError

Duration: TypeAlias = str | timedelta | int

_NANOSECONDS = {
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "min": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}

_SPELLINGS = {
    "week": "w week weeks",
    "day": "d day days",
    "hour": "h hr hrs hour hours",
    "min": "m min mins minute minutes",
    "s": "s sec secs second seconds",
    "ms": "ms msec msecs millisecond milliseconds",
    "us": "us µs μs usec usecs microsecond microseconds",
    "ns": "ns nsec nsecs nanosecond nanoseconds",
}
_UNIT = {
    spelling: 7 * _NANOSECONDS["day"] if unit == "week" else _NANOSECONDS[unit]
    for unit, spellings in _SPELLINGS.items()
    for spelling in spellings.split()
}
_PART = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-zµμ]+)\s*")
_EXPECTED = "a duration such as '12 hours', '250 ms' or '1 hour 30 min', a timedelta, or integer microseconds"


def nanoseconds(duration: Duration, *, what: str) -> int:
    """Return `duration` in nanoseconds; `what` names it in the error if it is none.

    A sign stands in front and holds for the whole text. Units go from large to small, each at most once.

    >>> nanoseconds("1 hour 30 min", what="window") == nanoseconds(timedelta(minutes=90), what="window")
    True
    >>> nanoseconds("-1.5 us", what="lower"), nanoseconds(2, what="lower")
    (-1500, 2000)
    """
    if isinstance(duration, str):
        return _parse(duration, what)
    if isinstance(duration, timedelta):
        microseconds = (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds
        # pandas.Timedelta is a timedelta that also counts single nanoseconds.
        return microseconds * 1_000 + int(getattr(duration, "nanoseconds", 0))
    if not isinstance(duration, bool):
        try:
            return index(duration) * 1_000
        except TypeError:
            pass
    _refuse(duration, what)


def format_duration(ns: int) -> str:
    """Write nanoseconds as a text that `nanoseconds` reads back exactly.

    >>> format_duration(5_400_000_000_000), format_duration(-250_000_000), format_duration(0)
    ('1 hour 30 min', '-250 ms', '0 s')
    """
    parts, rest = [], abs(ns)
    for unit, size in _NANOSECONDS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}s" if unit in ("day", "hour") and count > 1 else f"{count} {unit}")
    return ("-" if ns < 0 else "") + (" ".join(parts) or "0 s")


def _parse(text: str, what: str) -> int:
    body = text.strip().lower()
    sign = -1 if body.startswith("-") else 1
    body = body[1:] if body[:1] in ("-", "+") else body
    total, position, last_unit = Fraction(0), 0, None
    while part := _PART.match(body, position):
        unit = _UNIT.get(part[2])
        if unit is None or (last_unit is not None and unit >= last_unit):
            _refuse(text, what)
        total += Fraction(part[1]) * unit
        position, last_unit = part.end(), unit
    if last_unit is None or position != len(body):
        _refuse(text, what)
    if total.denominator != 1:
        raise QueryError(f"{what}: nothing is finer than a nanosecond, got {text!r}")
    return sign * int(total)


def _refuse(duration: object, what: str) -> NoReturn:
    raise QueryError(f"{what}: expected {_EXPECTED}, got {duration!r}")
