"""Windows: how far apart in time rows of two streams may lie, as users declare it.

Every declaration sets bounds on pairs of streams, in whole nanoseconds, both ends inclusive, `None` where
open; what they imply together is in `window_matrix`. A path in both directions holds one way or the other, so
it offers two alternatives; all others offer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TypeAlias, overload

from streamjoin.durations import Duration, format_duration, nanoseconds
from streamjoin.errors import QueryError


@dataclass(frozen=True, repr=False)
class AllPairs:
    """At most `width` nanoseconds between any two rows of a result."""

    width: int

    def alternatives(self, names: Sequence[str]) -> tuple[tuple[Between, ...], ...]:
        """Return the bound of every pair of the query's streams."""
        return (tuple(Between(*pair, -self.width, self.width) for pair in combinations(names, 2)),)

    def __repr__(self) -> str:
        """Return the call that declares it."""
        return f"within({format_duration(self.width)!r})"


@dataclass(frozen=True, repr=False)
class Between:
    """`lower <= time(right) - time(left) <= upper` in nanoseconds, `None` = open."""

    left: str
    right: str
    lower: int | None
    upper: int | None

    def __post_init__(self) -> None:
        """Refuse a pair of one stream with itself."""
        if self.left == self.right:
            raise QueryError(f"window: expected two different streams, got {self.left!r} twice")

    def alternatives(self, names: Sequence[str]) -> tuple[tuple[Between, ...], ...]:
        """Return this bound itself."""
        return ((self,),)

    def __repr__(self) -> str:
        """Return the call that declares it, whichever short form was used."""
        lower, upper = (None if end is None else format_duration(end) for end in (self.lower, self.upper))
        return f"between({self.left!r}, {self.right!r}, lower={lower!r}, upper={upper!r})"


@dataclass(frozen=True, repr=False)
class Path:
    """Each stream follows the one before it, step k within `widths[k]` nanoseconds; or all backwards."""

    streams: tuple[str, ...]
    widths: tuple[int, ...]
    both_directions: bool = False

    def alternatives(self, names: Sequence[str]) -> tuple[tuple[Between, ...], ...]:
        """Return the bounds of the steps forwards, and if both directions will do, those backwards."""
        steps = list(zip(pairwise(self.streams), self.widths, strict=True))
        forwards = tuple(Between(*pair, 0, width) for pair, width in steps)
        backwards = tuple(Between(*pair, -width, 0) for pair, width in steps)
        return (forwards, backwards) if self.both_directions else (forwards,)

    def __repr__(self) -> str:
        """Return the call that declares it."""
        widths = [format_duration(width) for width in self.widths]
        both = ", both_directions=True" if self.both_directions else ""
        return f"path({', '.join(map(repr, self.streams))}, within={widths}{both})"


WindowDeclaration: TypeAlias = AllPairs | Between | Path


@overload
def within(duration: Duration, /) -> AllPairs: ...
@overload
def within(left: str, right: str, duration: Duration, /) -> Between: ...
def within(*arguments: Duration) -> AllPairs | Between:
    """Symmetric window, for all pairs of streams or for one pair.

    >>> within("5 s")
    within('5 s')
    >>> within("a", "b", "5 s")
    between('a', 'b', lower='-5 s', upper='5 s')
    """
    match arguments:
        case (duration,):
            return AllPairs(_width(duration, "within"))
        case (str(left), str(right), duration):
            width = _width(duration, f"within {left}, {right}")
            return Between(left, right, -width, width)
    raise QueryError(f"within: expected a duration, or two streams and a duration, got {arguments!r}")


def between(
    left: str, right: str, *, lower: Duration | None = None, upper: Duration | None = None
) -> Between:
    """Bounds on time(right) - time(left), both inclusive, `None` = open; lower above upper matches nothing.

    >>> between("a", "b", lower="-5 s", upper="10 s")
    between('a', 'b', lower='-5 s', upper='10 s')
    """
    what = f"between {left}, {right}"
    if lower is None and upper is None:
        raise QueryError(f"{what}: expected lower, upper or both, got neither")
    return Between(
        _stream(left, what),
        _stream(right, what),
        None if lower is None else nanoseconds(lower, what=f"{what}, lower"),
        None if upper is None else nanoseconds(upper, what=f"{what}, upper"),
    )


def follows(first: str, then: str, *, within: Duration) -> Between:
    """Directed window: a row of `then` lies at or after its partner of `first`, by at most `within`.

    >>> follows("click", "order", within="30 min")
    between('click', 'order', lower='0 s', upper='30 min')
    """
    what = f"follows {first}, {then}"
    return Between(_stream(first, what), _stream(then, what), 0, _width(within, what))


def path(*streams: str, within: Sequence[Duration], both_directions: bool = False) -> Path:
    """Directed windows along a path of streams, one duration for each step.

    `both_directions`: forwards all the way or backwards all the way; rows that satisfy both count once.

    >>> path("a", "b", "c", within=["5 s", "8 s"])
    path('a', 'b', 'c', within=['5 s', '8 s'])
    >>> path("a", "b", within=["5 s"], both_directions=True)
    path('a', 'b', within=['5 s'], both_directions=True)
    """
    what = f"path {', '.join(map(str, streams))}"
    if not isinstance(both_directions, bool):
        raise QueryError(f"{what}: both_directions must be True or False, got {both_directions!r}")
    if len(streams) < 2 or len(set(streams)) < len(streams):
        raise QueryError(f"{what}: expected two or more different streams, got {streams!r}")
    if isinstance(within, str) or not isinstance(within, Sequence) or len(within) != len(streams) - 1:
        raise QueryError(f"{what}: within must list {len(streams) - 1} durations, one a step, got {within!r}")
    widths = tuple(_width(width, f"{what}, step {step}") for step, width in enumerate(within, start=1))
    return Path(tuple(_stream(stream, what) for stream in streams), widths, both_directions)


def _width(duration: Duration, what: str) -> int:
    width = nanoseconds(duration, what=what)
    if width < 0:
        raise QueryError(f"{what}: a window must not be negative, got {duration!r}")
    return width


def _stream(name: str, what: str) -> str:
    if not isinstance(name, str):
        raise QueryError(f"{what}: expected the name of a stream, got {name!r}")
    return name
