"""Patterns: what one attribute of a punctuation covers.

| pattern            | covers                                             |
| ------------------ | -------------------------------------------------- |
| `ANY`              | every value                                        |
| a value            | that value                                         |
| a list of values   | each of them; the empty list is `EMPTY`            |
| `Range(low, high)` | everything from low to high, both ends included    |
| `EMPTY`            | nothing                                            |
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final

from streamjoin.errors import QueryError


class Pattern(enum.Enum):
    """The two patterns without a value. An enumeration, so that copies and pickles stay the same object."""

    ANY = "*"
    EMPTY = "empty"

    def __repr__(self) -> str:
        """Return the name users write."""
        return self.name


ANY: Final = Pattern.ANY
EMPTY: Final = Pattern.EMPTY


@dataclass(frozen=True)
class Range:
    """Every value from `low` to `high`, both included; `None` leaves an end open.

    >>> Range(10, 20)
    Range(low=10, high=20)
    >>> Range(high="m").low is None
    True
    """

    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        """Refuse ends that do not compare or are the wrong way round."""
        for end in (self.low, self.high):
            if end is not None and end != end:
                raise QueryError("Range: an end must be a value or None, got NaN")
        if self.low is None or self.high is None:
            return
        try:
            backwards = bool(self.low > self.high)
        except TypeError:
            raise QueryError(
                f"Range: low and high must be of comparable types, got {self.low!r} and {self.high!r}"
            ) from None
        if backwards:
            raise QueryError(f"Range: low must not be above high, got {self.low!r} and {self.high!r}")
