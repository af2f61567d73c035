"""The verdict on a query: safe or not, which state grows and why, and what would help.

    JoinGraph --deciders--> reached sets --> SafetyReport --> text, dot, SVG, PNG, HTML

The verdict is made at once; reasons, remedies and pictures only when they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from os import PathLike
from typing import TYPE_CHECKING

from streamjoin.safety.deciders import reached_sets
from streamjoin.safety.drawing import draw
from streamjoin.safety.graph_text import graph_dot, graph_text
from streamjoin.safety.graphs import JoinGraph, members
from streamjoin.safety.picture import save_picture, svg_text
from streamjoin.safety.promises import PromiseBound, promise_bounds
from streamjoin.safety.remedies import Remedy, find_remedies

if TYPE_CHECKING:
    from streamjoin.query import Query

SHOWN_REMEDIES = 6
SHOWN_MISSING = 4


@dataclass(frozen=True, eq=False)
class SafetyReport:
    """The verdict on a query, made by `Query.check()`; prints as text and shows as a picture in notebooks.

    `purgeable` says of each stream whether its state stays bounded.

    >>> import streamjoin as sj
    >>> a, b = sj.Stream("a", time="t", window="5 s"), sj.Stream("b", time="t")
    >>> report = sj.Query([a, b], on=["a.x = b.x"], require_safe=False).check()
    >>> report.safe, report.purgeable
    (False, {'a': True, 'b': False})
    >>> print(report.remedies[0])
    punctuations=['x'] on stream 'a'
    """

    safe: bool
    purgeable: dict[str, bool]
    graph: JoinGraph = field(repr=False)
    reached: tuple[int, ...] = field(repr=False)

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why the other states would grow, one reason each."""
        return tuple(
            _reason(self.graph, i, reached)
            for i, reached in enumerate(self.reached)
            if reached != self.graph.everything
        )

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """The smallest sets of schemes or windows that would make the query safe."""
        return find_remedies(self.graph)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Which declared schemes can never help."""
        return tuple(_useless_schemes(self.graph))

    @cached_property
    def promises(self) -> tuple[PromiseBound, ...]:
        """What bounds the punctuations themselves; see `PromiseBound.piles_up`."""
        return promise_bounds(self.graph)

    def __str__(self) -> str:
        """Return the verdict, one line a stream, then reasons, remedies and notes."""
        width = max(map(len, self.purgeable))
        lines = ["safe: every state stays bounded" if self.safe else "NOT safe: some state can grow for ever"]
        for name, bounded in self.purgeable.items():
            lines.append(f"  {name.ljust(width)}  {'bounded' if bounded else 'grows'}")
        lines += [f"reason: {reason}" for reason in self.reasons]
        lines += [f"remedy: {remedy}" for remedy in self.remedies[:SHOWN_REMEDIES]]
        if (more := len(self.remedies) - SHOWN_REMEDIES) > 0:
            lines.append(f"remedy: or one of {more} others as small, see .remedies")
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"note: {promise}" for promise in self.promises if promise.piles_up]
        return "\n".join(lines)

    def graph_text(self) -> str:
        """Return the punctuation graph as text, an edge a line."""
        return graph_text(self.graph)

    def to_dot(self) -> str:
        """Return the punctuation graph in the dot language of Graphviz."""
        return graph_dot(self.graph, self.reached)

    def to_svg(self) -> str:
        """Return the picture as an SVG document. Needs nothing but this package."""
        return svg_text(draw(self.graph, self.reached))

    def plot(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file: `.svg` needs nothing, `.png` needs matplotlib (the extra `plot`)."""
        save_picture(draw(self.graph, self.reached), path)

    def _repr_html_(self) -> str:
        return f"{self.to_svg()}<pre>{escape(str(self))}</pre>"


def check_safety(query: Query) -> SafetyReport:
    """Decide for every stream of `query` whether its state stays bounded."""
    graph = JoinGraph.of(query)
    reached = reached_sets(graph)
    purgeable = {name: reached[i] == graph.everything for i, name in enumerate(graph.names)}
    return SafetyReport(all(purgeable.values()), purgeable, graph, reached)


def _reason(graph: JoinGraph, stream: int, reached: int) -> str:
    missing = list(members(graph.everything & ~reached))
    whys = [_why_not(graph, reached, other) for other in missing[:SHOWN_MISSING]]
    if len(missing) > SHOWN_MISSING:
        whys.append(f"the same holds for {len(missing) - SHOWN_MISSING} more")
    return f"the state of stream {graph.names[stream]!r} would grow: {'; '.join(whys)}"


def _why_not(graph: JoinGraph, reached: int, other: int) -> str:
    known, name = graph.shown(reached), graph.names[other]
    why = f"no window bounds how late rows of {name!r} may join those of {known}"
    schemes = graph.schemes_of(other)
    if not schemes:
        return f"{why}, and {name!r} declares no punctuations"
    for scheme in schemes:
        loose = ", ".join(scheme.uncovered_by(reached))
        why += f", and the scheme {scheme} of {name!r} does not help, as {loose} joins none of {known}"
    return why


def _useless_schemes(graph: JoinGraph) -> Iterator[str]:
    for scheme in graph.schemes:
        for column in scheme.uncovered_by(graph.everything):
            yield (
                f"scheme {scheme} of stream {graph.names[scheme.stream]!r} can purge nothing: "
                f"column {column!r} joins no other stream"
            )
