"""What the run time needs for chained purge, as plain data: in which order a row's partners are ruled out.

A row t of stream s goes when it is known of every other stream that nothing more comes from it for t. Step by
step along a spanning tree rooted at s:

    scheme step   target promised every combination of values that the joinable rows of the sources give
    window step   the clock of target is more than `width` past the time of every joinable row of the source

"Joinable" are the rows in the states of the streams reached before that are connected to t (for s: t itself).
A step uses only s and targets of earlier steps as sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from streamjoin.durations import format_duration
from streamjoin.expressions import ColumnRef
from streamjoin.safety.graphs import JoinGraph, Scheme, members

if TYPE_CHECKING:
    from streamjoin.query import Query


class SchemeStep(NamedTuple):
    """Punctuations of `target` on `columns`; the value of each column comes from the source beside it."""

    target: str
    columns: tuple[str, ...]
    sources: tuple[ColumnRef, ...]

    def __str__(self) -> str:
        """Return the step as part of a sentence."""
        return f"by punctuations on ({', '.join(self.columns)})"


class WindowStep(NamedTuple):
    """The clock of `target`, once it is more than `width` nanoseconds past the rows of `source`."""

    target: str
    source: str
    width: int

    def __str__(self) -> str:
        """Return the step as part of a sentence."""
        return f"by time, {format_duration(self.width)} after the row of {self.source}"


PurgeStep: TypeAlias = SchemeStep | WindowStep


@dataclass(frozen=True)
class PurgeChain:
    """How the rows of `stream` leave.

    `steps` is one spanning tree: each other stream once, in an order in which it can be checked. `ways` are
    all the steps there are, the tree's among them, in the order in which their targets are reached: a run
    time that takes whichever is fulfilled first keeps no row longer than it must. If not `complete`, the
    state of the stream grows, and `steps` go as far as anything reaches.
    """

    stream: str
    steps: tuple[PurgeStep, ...]
    ways: tuple[PurgeStep, ...]
    complete: bool


def purge_plan(query: Query) -> dict[str, PurgeChain]:
    """Return for each stream how its rows leave.

    >>> from streamjoin.query import Query
    >>> from streamjoin.stream import Stream
    >>> a, b = Stream("a", time="t", window="5 s"), Stream("b", time="t")
    >>> c = Stream("c", time="t", punctuations=["y"])
    >>> query = Query([a, b, c], on=["a.x = b.x", "b.y = c.y"], require_safe=False)
    >>> purge_plan(query)["a"].steps[0]
    WindowStep(target='b', source='a', width=5000000000)
    >>> purge_plan(query)["b"].steps
    (SchemeStep(target='c', columns=('y',), sources=(ColumnRef(stream='b', column='y'),)),)
    """
    graph = JoinGraph.of(query)
    return {name: purge_chain(graph, i) for i, name in enumerate(graph.names)}


def purge_chain(graph: JoinGraph, stream: int) -> PurgeChain:
    """Return how the rows of one stream leave. The nearest streams come first: the tree is shallow."""
    reached, steps, ways = 1 << stream, list[PurgeStep](), list[PurgeStep]()
    frontier = True
    while frontier:
        known, frontier = reached, False
        for target in members(graph.everything & ~known):
            found = _ways(graph, known, target)
            if found:
                steps.append(found[0])
                reached |= 1 << target
                frontier = True
    for step in steps:
        others = graph.everything & ~(1 << graph.names.index(step.target))
        every = _ways(graph, reached & others, graph.names.index(step.target))
        ways += [step, *(way for way in every if way != step)]
    return PurgeChain(graph.names[stream], tuple(steps), tuple(ways), reached == graph.everything)


def _ways(graph: JoinGraph, known: int, target: int) -> list[PurgeStep]:
    """Return the steps from `known` to `target`: windows by width, then schemes with the fewest columns."""
    name = graph.names[target]
    sources = [i for i in members(known) if graph.window_targets[i] >> target & 1]
    windows = [WindowStep(name, graph.names[i], graph.uppers[i][target] or 0) for i in sources]
    schemes = [scheme for scheme in graph.schemes_of(target) if scheme.covered_by(known)]
    schemes.sort(key=lambda scheme: len(scheme.columns))
    return [
        *sorted(windows, key=lambda step: step.width),
        *(_scheme_step(graph, scheme, known) for scheme in schemes),
    ]


def _scheme_step(graph: JoinGraph, scheme: Scheme, known: int) -> SchemeStep:
    name, sources = graph.names[scheme.stream], []
    for column, partners in zip(scheme.columns, scheme.partners, strict=True):
        source = next(members(partners & known))
        sources.append(graph.equal_column(ColumnRef(name, column), source))
    return SchemeStep(name, scheme.columns, tuple(sources))
