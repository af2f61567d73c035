"""Windows: how far apart in time rows of two streams may lie.

Every way to declare a window sets entries of one matrix of upper bounds,

    time(j) - time(i) <= upper(i, j)          the lower bound is its mirror: lower(i, j) = -upper(j, i)

in whole nanoseconds, both ends inclusive, `None` where open. Bounds add up along paths, so the tightest ones
that the declarations imply are shortest paths (Floyd-Warshall, n^3 for n streams); a cycle of negative length
is a contradiction.

    a -- 5 s --> b -- 8 s --> c      implies      a -- 13 s --> c
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import TypeAlias, overload

from streamjoin.durations import Duration, format_duration, nanoseconds
from streamjoin.errors import QueryError


@dataclass(frozen=True, repr=False)
class AllPairs:
    """At most `width` nanoseconds between any two rows of a result."""

    width: int

    def bounds(self, names: Sequence[str]) -> Iterator[Between]:
        """Yield the bound of every pair of the query's streams."""
        for position, left in enumerate(names):
            for right in names[position + 1 :]:
                yield Between(left, right, -self.width, self.width)

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

    def bounds(self, names: Sequence[str]) -> Iterator[Between]:
        """Yield this bound itself."""
        yield self

    def __repr__(self) -> str:
        """Return the call that declares it, whichever short form was used."""
        lower, upper = (None if end is None else format_duration(end) for end in (self.lower, self.upper))
        return f"between({self.left!r}, {self.right!r}, lower={lower!r}, upper={upper!r})"


@dataclass(frozen=True, repr=False)
class Path:
    """Each stream follows the one before it, step k within `widths[k]` nanoseconds."""

    streams: tuple[str, ...]
    widths: tuple[int, ...]

    def bounds(self, names: Sequence[str]) -> Iterator[Between]:
        """Yield the bound of every step."""
        for (left, right), width in zip(pairwise(self.streams), self.widths, strict=True):
            yield Between(left, right, 0, width)

    def __repr__(self) -> str:
        """Return the call that declares it."""
        widths = [format_duration(width) for width in self.widths]
        return f"path({', '.join(map(repr, self.streams))}, within={widths})"


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

    >>> path("a", "b", "c", within=["5 s", "8 s"])
    path('a', 'b', 'c', within=['5 s', '8 s'])
    """
    what = f"path {', '.join(map(str, streams))}"
    if both_directions:
        raise QueryError(f"{what}: both_directions=True is not supported yet")
    if len(streams) < 2 or len(set(streams)) < len(streams):
        raise QueryError(f"{what}: expected two or more different streams, got {streams!r}")
    if isinstance(within, str) or not isinstance(within, Sequence) or len(within) != len(streams) - 1:
        raise QueryError(f"{what}: within must list {len(streams) - 1} durations, one a step, got {within!r}")
    widths = tuple(_width(width, f"{what}, step {step}") for step, width in enumerate(within, start=1))
    return Path(tuple(_stream(stream, what) for stream in streams), widths)


@dataclass(frozen=True)
class WindowMatrix:
    """The tightest bounds that all windows of a query imply together.

    >>> matrix = WindowMatrix.close(["a", "b", "c"], [None] * 3, [path("a", "b", "c", within=["5 s", "8 s"])])
    >>> matrix.lower(0, 2), matrix.upper(0, 2), matrix.is_inferred(0, 2), matrix.is_inferred(0, 1)
    (0, 13000000000, True, False)
    >>> print(matrix.text())
           a     b       c
    a      .   5 s   13 s*
    b    0 s     .     8 s
    c   0 s*   0 s       .
    time(column) - time(row) is at most the entry; * inferred from the others
    """

    names: tuple[str, ...]
    uppers: tuple[tuple[int | None, ...], ...]
    inferred: frozenset[tuple[int, int]]

    @classmethod
    def close(
        cls,
        names: Sequence[str],
        stream_windows: Sequence[int | None],
        declarations: Sequence[WindowDeclaration],
    ) -> WindowMatrix:
        """Intersect the streams' own windows with all declarations and close the result under addition."""
        n, place = len(names), {name: i for i, name in enumerate(names)}
        declared: list[list[int | None]] = [
            [0 if i == j else window for j in range(n)] for i, window in enumerate(stream_windows)
        ]
        empty = False
        for declaration in declarations:
            for bound in declaration.bounds(names):
                for name in (bound.left, bound.right):
                    if name not in place:
                        raise QueryError(
                            f"{declaration}: expected one of the streams {list(names)}, got {name!r}"
                        )
                i, j = place[bound.left], place[bound.right]
                declared[i][j] = _tighter(declared[i][j], bound.upper)
                declared[j][i] = _tighter(declared[j][i], None if bound.lower is None else -bound.lower)
                empty |= bound.lower is not None and bound.upper is not None and bound.lower > bound.upper
        # An interval written with lower above upper is legal for two streams: it matches nothing. There is
        # nothing to infer between two streams either, so the bounds stay as written.
        closed = declared if n == 2 and empty else _shortest_paths(names, declared)
        pairs = permutations(range(n), 2)
        inferred = frozenset((i, j) for i, j in pairs if closed[i][j] != declared[i][j])
        return cls(tuple(names), tuple(map(tuple, closed)), inferred)

    def upper(self, i: int, j: int) -> int | None:
        """Return the largest time(j) - time(i) in nanoseconds, None if open."""
        return self.uppers[i][j]

    def lower(self, i: int, j: int) -> int | None:
        """Return the smallest time(j) - time(i) in nanoseconds, None if open."""
        mirrored = self.uppers[j][i]
        return None if mirrored is None else -mirrored

    def is_inferred(self, i: int, j: int) -> bool:
        """Tell whether upper(i, j) is tighter than what was declared for the pair itself."""
        return (i, j) in self.inferred

    def is_bounded(self, i: int, j: int) -> bool:
        """Tell whether the time difference of i and j is bounded on both sides."""
        return self.uppers[i][j] is not None and self.uppers[j][i] is not None

    def text(self) -> str:
        """Return the matrix as an aligned table."""
        streams = range(len(self.names))
        rows = [["", *self.names]]
        rows += [[self.names[i], *(self._entry(i, j) for j in streams)] for i in streams]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "   ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        ]
        mark = "; * inferred from the others" if self.inferred else ""
        return "\n".join([*lines, f"time(column) - time(row) is at most the entry{mark}"])

    def _entry(self, i: int, j: int) -> str:
        bound = self.uppers[i][j]
        if i == j:
            return "."
        if bound is None:
            return "open"
        return format_duration(bound) + ("*" if (i, j) in self.inferred else "")


def _shortest_paths(names: Sequence[str], declared: list[list[int | None]]) -> list[list[int | None]]:
    streams = range(len(names))
    closed = [list(row) for row in declared]
    through: dict[tuple[int, int], int] = {}
    for k in streams:
        for i in streams:
            for j in streams:
                first, second = closed[i][k], closed[k][j]
                if first is None or second is None:
                    continue
                bound, known = first + second, closed[i][j]
                if known is None or bound < known:
                    closed[i][j] = bound
                    through[i, j] = k
                    if i == j:  # the first negative cycle: the entries it is made of are still sound paths
                        cycle = _unfold(through, i, k) + _unfold(through, k, i)
                        raise QueryError(_contradiction(names, declared, cycle))
    return closed


def _unfold(through: dict[tuple[int, int], int], i: int, j: int) -> list[tuple[int, int]]:
    """Return the declared steps that make up the path from i to j."""
    if (i, j) not in through:
        return [(i, j)]
    k = through[i, j]
    return _unfold(through, i, k) + _unfold(through, k, j)


def _contradiction(
    names: Sequence[str], declared: list[list[int | None]], cycle: list[tuple[int, int]]
) -> str:
    widths = [declared[i][j] or 0 for i, j in cycle]
    steps = [
        f"time({names[j]}) - time({names[i]}) <= {format_duration(width)}"
        for (i, j), width in zip(cycle, widths, strict=True)
    ]
    route = " -> ".join(names[i] for i, _ in [*cycle, cycle[0]])
    return (
        f"windows contradict each other, no rows satisfy them all: around the cycle {route} the differences "
        f"must add up to zero, but {', '.join(steps)} add up to at most {format_duration(sum(widths))}"
    )


def _tighter(bound: int | None, other: int | None) -> int | None:
    return min((end for end in (bound, other) if end is not None), default=None)


def _width(duration: Duration, what: str) -> int:
    width = nanoseconds(duration, what=what)
    if width < 0:
        raise QueryError(f"{what}: a window must not be negative, got {duration!r}")
    return width


def _stream(name: str, what: str) -> str:
    if not isinstance(name, str):
        raise QueryError(f"{what}: expected the name of a stream, got {name!r}")
    return name
