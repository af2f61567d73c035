"""The window matrix: the tightest bounds that all windows of a query imply together.

Every way to declare a window sets entries of one matrix of upper bounds,

    time(j) - time(i) <= upper(i, j)          the lower bound is its mirror: lower(i, j) = -upper(j, i)

in whole nanoseconds, both ends inclusive, `None` where open. Bounds add up along paths, so the tightest ones
that the declarations imply are shortest paths (Floyd-Warshall, n^3 for n streams); a cycle of negative length
is a contradiction.

    a -- 5 s --> b -- 8 s --> c      implies      a -- 13 s --> c

A path in both directions makes two matrices, of which a result satisfies at least one: the *alternatives*.
Their *hull* has the larger of the entries; it says how long a row can be of use. It is closed as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import TypeAlias

from streamjoin.durations import format_duration
from streamjoin.errors import QueryError
from streamjoin.windows import Between, WindowDeclaration

_Uppers: TypeAlias = list[list[int | None]]


@dataclass(frozen=True)
class WindowMatrix:
    """The tightest bounds that all windows of a query imply together.

    >>> from streamjoin.windows import path
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
        return cls.hull(cls.alternatives(names, stream_windows, declarations))

    @classmethod
    def alternatives(
        cls,
        names: Sequence[str],
        stream_windows: Sequence[int | None],
        declarations: Sequence[WindowDeclaration],
    ) -> tuple[WindowMatrix, ...]:
        """Return the closed matrices of which a result satisfies at least one; none lies within another.

        An alternative that contradicts itself matches nothing and is left out; if all do, QueryError.
        """
        choices = [declaration.alternatives(names) for declaration in declarations]
        matrices: list[WindowMatrix] = []
        contradiction: QueryError | None = None
        for choice in product(*choices):
            try:
                matrix = cls._closed(names, stream_windows, list(zip(declarations, choice, strict=True)))
            except _Contradiction as error:
                contradiction = contradiction or QueryError(str(error))
                continue
            if not any(matrix._is_within(other) for other in matrices):
                matrices = [other for other in matrices if not other._is_within(matrix)] + [matrix]
        if contradiction and not matrices:
            raise contradiction
        # Both directions of a pair meet at zero, so between two streams the alternatives are one interval.
        return (cls.hull(matrices),) if len(names) == 2 else tuple(matrices)

    @classmethod
    def hull(cls, alternatives: Sequence[WindowMatrix]) -> WindowMatrix:
        """Return the bounds that hold whichever alternative does."""
        first, *others = alternatives
        for other in others:
            looser = tuple(
                tuple(map(_looser, *rows)) for rows in zip(first.uppers, other.uppers, strict=True)
            )
            first = cls(first.names, looser, first.inferred & other.inferred)
        return first

    @classmethod
    def _closed(
        cls,
        names: Sequence[str],
        stream_windows: Sequence[int | None],
        chosen: Sequence[tuple[WindowDeclaration, Sequence[Between]]],
    ) -> WindowMatrix:
        n, place = len(names), {name: i for i, name in enumerate(names)}
        declared: _Uppers = [
            [0 if i == j else window for j in range(n)] for i, window in enumerate(stream_windows)
        ]
        empty = False
        for declaration, bound in (
            (declaration, bound) for declaration, bounds in chosen for bound in bounds
        ):
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

    def open_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield (a, b) where nothing says how long after a row of a one of b may come."""
        for i, j in permutations(range(len(self.names)), 2):
            if self.uppers[i][j] is None:
                yield self.names[i], self.names[j]

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

    def _is_within(self, other: WindowMatrix) -> bool:
        """Tell whether whatever satisfies this one satisfies the other."""
        return all(
            theirs is None or (ours is not None and ours <= theirs)
            for rows in zip(self.uppers, other.uppers, strict=True)
            for ours, theirs in zip(*rows, strict=True)
        )

    def _entry(self, i: int, j: int) -> str:
        bound = self.uppers[i][j]
        if i == j:
            return "."
        if bound is None:
            return "open"
        return format_duration(bound) + ("*" if (i, j) in self.inferred else "")


class _Contradiction(Exception):
    """No times satisfy the bounds."""


def _shortest_paths(names: Sequence[str], declared: _Uppers) -> _Uppers:
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
                        raise _Contradiction(_contradiction(names, declared, cycle))
    return closed


def _unfold(through: dict[tuple[int, int], int], i: int, j: int) -> list[tuple[int, int]]:
    """Return the declared steps that make up the path from i to j."""
    if (i, j) not in through:
        return [(i, j)]
    k = through[i, j]
    return _unfold(through, i, k) + _unfold(through, k, j)


def _contradiction(names: Sequence[str], declared: _Uppers, cycle: list[tuple[int, int]]) -> str:
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


def _looser(bound: int | None, other: int | None) -> int | None:
    return None if bound is None or other is None else max(bound, other)
