"""The graphs behind the check, as plain data: join graph, punctuation graph, its generalized form.

    on:  s1.B = s2.B    schemes: s2 (B), s3 (A, C)         s1 --(B)--> s2      plain edge: one source
         s2.C = s3.C                                       {s1, s2} --(A, C)--> s3   generalized edge
         s3.A = s1.A    window: s3 within 5 s of s2        s2 ==5 s==> s3      window edge

An edge {sources} -> target says: once nothing more comes for the rows at hand of all sources, nothing more
comes from the target either - its punctuations (or the time) can say so. Columns that are equal in every
result form a class; edges follow classes, so the join predicates are closed under transitivity from the
start.

Sets of streams are integers, bit i standing for stream i: the check visits many of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from streamjoin.expressions import ColumnRef

if TYPE_CHECKING:
    from streamjoin.query import Query


def members(streams: int) -> Iterator[int]:
    """Yield the streams of a set, in declared order."""
    while streams:
        lowest = streams & -streams
        yield lowest.bit_length() - 1
        streams ^= lowest


def set_of(streams: Iterable[int]) -> int:
    """Return the set of these streams."""
    found = 0
    for stream in streams:
        found |= 1 << stream
    return found


class Scheme(NamedTuple):
    """A scheme of `stream`; `partners`: for each column the set of other streams with an equal column."""

    stream: int
    columns: tuple[str, ...]
    partners: tuple[int, ...]

    def covered_by(self, streams: int) -> bool:
        """Tell whether every column joins a member of the set: then its punctuations can be waited for."""
        return all([partners & streams for partners in self.partners])

    def uncovered_by(self, streams: int) -> tuple[str, ...]:
        """Return the columns that join no member of the set."""
        pairs = zip(self.columns, self.partners, strict=True)
        return tuple(column for column, partners in pairs if not partners & streams)

    def __str__(self) -> str:
        """Return the columns as they are shown to users."""
        return f"({', '.join(self.columns)})"


class Edge(NamedTuple):
    """An edge of the generalized punctuation graph: by a scheme of `target`, or by a window of `width` ns."""

    sources: int
    target: int
    scheme: Scheme | None = None
    width: int | None = None

    @property
    def is_plain(self) -> bool:
        """Tell whether one stream alone is the source."""
        return self.sources & (self.sources - 1) == 0


@dataclass(frozen=True)
class JoinGraph:
    """What the check needs to know of a query.

    `classes` are the columns equal in every result, `uppers[i][j]` the largest time(j) - time(i) in ns.
    """

    names: tuple[str, ...]
    classes: tuple[tuple[ColumnRef, ...], ...]
    schemes: tuple[Scheme, ...]
    uppers: tuple[tuple[int | None, ...], ...]
    window_targets: tuple[int, ...]
    lifespans: tuple[int | None, ...]

    @classmethod
    def of(cls, query: Query) -> JoinGraph:
        """Close the join predicates of `query` under transitivity and resolve its schemes."""
        names = query.stream_names
        classes = _classes(query)
        partners = _partners(names, classes)
        schemes = []
        for i, stream in enumerate(query.streams):
            for columns in stream.schemes:
                found = tuple(partners.get(ColumnRef(stream.name, column), 0) for column in columns)
                schemes.append(Scheme(i, columns, found))
        uppers = query.windows.uppers
        targets = tuple(
            set_of(j for j, width in enumerate(row) if width is not None and j != i)
            for i, row in enumerate(uppers)
        )
        lifespans = tuple(stream.lifespan_ns for stream in query.streams)
        return cls(names, classes, tuple(schemes), uppers, targets, lifespans)

    @property
    def everything(self) -> int:
        """The set of all streams."""
        return (1 << len(self.names)) - 1

    def shown(self, streams: int) -> str:
        """Return the names of a set of streams."""
        return ", ".join(self.names[i] for i in members(streams))

    def schemes_of(self, stream: int) -> tuple[Scheme, ...]:
        """Return the schemes of one stream."""
        return tuple(scheme for scheme in self.schemes if scheme.stream == stream)

    def join_columns(self) -> tuple[Scheme, ...]:
        """Return for every column that joins another stream the scheme it would make."""
        found = []
        for ref, partners in _partners(self.names, self.classes).items():
            if partners:
                found.append(Scheme(self.names.index(ref.stream), (ref.column,), (partners,)))
        return tuple(sorted(found, key=lambda scheme: scheme.stream))

    def equal_column(self, scheme_column: ColumnRef, stream: int) -> ColumnRef:
        """Return the first column of `stream` that equals `scheme_column` in every result."""
        for columns in self.classes:
            if scheme_column in columns:
                return next(ref for ref in columns if ref.stream == self.names[stream])
        raise ValueError(f"{scheme_column} joins no column of {self.names[stream]}")

    def extended(self, schemes: Iterable[Scheme] = (), windows: Iterable[int] = ()) -> JoinGraph:
        """Return the graph with further schemes, and with a window of their own for some streams."""
        targets = list(self.window_targets)
        for stream in windows:
            targets[stream] = self.everything & ~(1 << stream)
        return replace(self, schemes=(*self.schemes, *schemes), window_targets=tuple(targets))

    def with_schemes(self, numbers: Iterable[int]) -> JoinGraph:
        """Return the graph with some of its schemes only, by their places."""
        return replace(self, schemes=tuple(self.schemes[i] for i in numbers))

    def join_edges(self) -> tuple[tuple[ColumnRef, ColumnRef], ...]:
        """Return the join graph: every pair of columns of different streams that are equal in all results."""
        return tuple(
            (left, right)
            for columns in self.classes
            for position, left in enumerate(columns)
            for right in columns[position + 1 :]
            if left.stream != right.stream
        )

    def plain_edges(self) -> tuple[Edge, ...]:
        """Return the punctuation graph: the edges with one source, windows included.

        A scheme whose columns all join one stream gives a plain edge, however many columns it has.
        """
        return tuple(edge for edge in self.edges() if edge.is_plain)

    def edges(self) -> tuple[Edge, ...]:
        """Return the generalized punctuation graph.

        A column that joins several streams gives an edge for each choice among them; choices that need more
        sources than another one are left out. A scheme with a column that joins nothing gives no edge.
        """
        found = []
        for scheme in self.schemes:
            choices = {set_of(choice) for choice in product(*map(tuple, map(members, scheme.partners)))}
            smallest = [s for s in choices if not any(o != s and o & s == o for o in choices)]
            found += [Edge(sources, scheme.stream, scheme) for sources in sorted(smallest)]
        for i, targets in enumerate(self.window_targets):
            found += [Edge(1 << i, j, None, self.uppers[i][j]) for j in members(targets)]
        return tuple(found)


def _classes(query: Query) -> tuple[tuple[ColumnRef, ...], ...]:
    classes: dict[ColumnRef, list[ColumnRef]] = {}
    for equality in query.equalities:
        left, right = (classes.setdefault(ref, [ref]) for ref in (equality.left, equality.right))
        if left is not right:
            left += right
            classes.update(dict.fromkeys(right, left))
    unique = {id(columns): columns for columns in classes.values()}
    return tuple(tuple(columns) for columns in unique.values())


def _partners(names: tuple[str, ...], classes: tuple[tuple[ColumnRef, ...], ...]) -> dict[ColumnRef, int]:
    place = {name: 1 << i for i, name in enumerate(names)}
    found = {}
    for columns in classes:
        streams = set_of(place[ref.stream].bit_length() - 1 for ref in columns)
        found.update({ref: streams & ~place[ref.stream] for ref in columns})
    return found
