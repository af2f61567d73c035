"""Safety: will the state of every stream stay bounded? Decided before the query runs, by declarations alone.

A stored row of stream i may go once no future row of any other stream can join it. The set R of streams known
to have no more partners for it grows step by step from {i}:

    s joins R by a punctuation   some scheme of s has each of its columns equal to a column of a stream in R
    s joins R by a window        upper(k, s) is finite for some k in R: a late enough row of s is out of reach

The state of i is purgeable iff R becomes everything, and the query is safe iff every stream's state is. Both
kinds of step count together. Equality is transitive, so the join predicates are closed under it first.
Polynomial in the number of streams and schemes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from streamjoin.durations import format_duration
from streamjoin.expressions import ColumnRef

if TYPE_CHECKING:
    from streamjoin.query import Query


@dataclass(frozen=True)
class SafetyReport:
    """The verdict on a query.

    `purgeable` says of each stream whether its state stays bounded, `reasons` why the others would grow, and
    `notes` which declared schemes can never help.
    """

    safe: bool
    purgeable: dict[str, bool]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the verdict, one line a stream, then the reasons and notes."""
        width = max(map(len, self.purgeable))
        lines = ["safe: every state stays bounded" if self.safe else "NOT safe: some state can grow for ever"]
        for name, bounded in self.purgeable.items():
            lines.append(f"  {name.ljust(width)}  {'bounded' if bounded else 'grows'}")
        lines += [f"reason: {reason}" for reason in self.reasons]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


class PurgeStep(NamedTuple):
    """`stream` is known to have no more partners: by its `scheme`, or `width` after the rows of `source`."""

    stream: str
    scheme: tuple[str, ...] | None
    source: str | None
    width: int | None

    def __str__(self) -> str:
        """Return the step as part of a sentence."""
        if self.scheme is not None:
            return f"by punctuations on ({', '.join(self.scheme)})"
        return f"by time, {format_duration(self.width or 0)} after the row of {self.source}"


def check_safety(query: Query) -> SafetyReport:
    """Decide for every stream of `query` whether its state stays bounded."""
    joined = _JoinedColumns(query)
    purgeable: dict[str, bool] = {}
    reasons: list[str] = []
    for name in query.stream_names:
        reached = {name, *(step.stream for step in purge_steps(query, name, joined))}
        missing = [other for other in query.stream_names if other not in reached]
        purgeable[name] = not missing
        if missing:
            whys = "; ".join(_why_not(query, joined, reached, other) for other in missing)
            reasons.append(f"the state of stream {name!r} would grow: {whys}")
    notes = tuple(_useless_schemes(query, joined))
    return SafetyReport(all(purgeable.values()), purgeable, tuple(reasons), notes)


def purge_steps(query: Query, name: str, joined: _JoinedColumns | None = None) -> tuple[PurgeStep, ...]:
    """Return how it becomes known of the other streams that they have no more partners for a row of `name`.

    In the order in which they are reached; a stream that is reached in several ways has as many steps.
    """
    joined = joined or _JoinedColumns(query)
    reached, steps = [name], list[PurgeStep]()
    while ways := next(_next_ways(query, joined, reached), None):
        reached.append(ways[0].stream)
        steps += ways
    return tuple(steps)


def _next_ways(query: Query, joined: _JoinedColumns, reached: list[str]) -> Iterator[list[PurgeStep]]:
    """Yield for every stream that can be reached next all the ways to reach it."""
    for stream in query.streams:
        if stream.name in reached:
            continue
        target = query.stream_index(stream.name)
        bounds = [(query.windows.upper(query.stream_index(source), target), source) for source in reached]
        ways = [PurgeStep(stream.name, None, source, width) for width, source in bounds if width is not None]
        for scheme in stream.schemes:
            if not joined.uncovered(stream.name, scheme, reached):
                ways.append(PurgeStep(stream.name, scheme, None, None))
        if ways:
            yield ways


class _JoinedColumns:
    """The join predicates closed under transitivity: columns equal in every result share one class."""

    def __init__(self, query: Query) -> None:
        self.classes: dict[ColumnRef, set[ColumnRef]] = {}
        for equality in query.equalities:
            merged = self._of(equality.left) | self._of(equality.right)
            self.classes.update(dict.fromkeys(merged, merged))

    def _of(self, ref: ColumnRef) -> set[ColumnRef]:
        return self.classes.get(ref, {ref})

    def partners(self, stream: str, column: str) -> set[str]:
        """Return the other streams that have a column equal to this one."""
        return {ref.stream for ref in self._of(ColumnRef(stream, column))} - {stream}

    def uncovered(self, stream: str, scheme: tuple[str, ...], reached: list[str] | set[str]) -> list[str]:
        """Return the columns of the scheme that join no stream of `reached`."""
        return [column for column in scheme if self.partners(stream, column).isdisjoint(reached)]


def _why_not(query: Query, joined: _JoinedColumns, reached: set[str], name: str) -> str:
    known = ", ".join(other for other in query.stream_names if other in reached)
    stream = query.streams[query.stream_index(name)]
    why = f"no window bounds how late rows of {name!r} may join those of {known}"
    if not stream.schemes:
        return f"{why}, and {name!r} declares no punctuations"
    for scheme in stream.schemes:
        loose = ", ".join(joined.uncovered(name, scheme, reached))
        shown = ", ".join(scheme)
        why += f", and the scheme ({shown}) of {name!r} does not help, as {loose} joins none of {known}"
    return why


def _useless_schemes(query: Query, joined: _JoinedColumns) -> Iterator[str]:
    for stream in query.streams:
        for scheme in stream.schemes:
            for column in scheme:
                if not joined.partners(stream.name, column):
                    yield (
                        f"scheme ({', '.join(scheme)}) of stream {stream.name!r} can purge nothing: "
                        f"column {column!r} joins no other stream"
                    )
