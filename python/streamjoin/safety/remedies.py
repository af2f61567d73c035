"""Remedies: the smallest sets of schemes or windows that would make a query safe.

Two kinds of addition are enough. A scheme on one column does whatever a scheme with more columns does; a
window on a stream does whatever a window from it to one other stream does. So a smallest set of these is a
smallest set of all.

A query is unsafe iff it has a *trap*: a set of streams, not all of them, that nothing leads out of. Every
remedy must hold an addition that leads out of the trap at hand: a scheme of a stream outside on a column that
joins a member, or a window on a member. Trying just those, depth by depth, finds every smallest set and no
other.

    {a, b} | c      trap {a, b}:   scheme c.y (joins b)   or   window on a   or   window on b

The depth is the size of the remedy. Hardness grows with it (this is a hitting set), so the search stops after
a budget of steps; what is returned then is a remedy that cannot spare a part, but perhaps not a smallest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from streamjoin.expressions import ColumnRef
from streamjoin.safety.deciders import edges_between, merge_on, merge_rounds, reach
from streamjoin.safety.graphs import JoinGraph, Scheme, members

SEARCH_STEPS = 2_000


@dataclass(frozen=True)
class Remedy:
    """Additions that together make the query safe: punctuations on `schemes`, a window for each of `windows`.

    `smallest` is False if the search for a smaller one was given up.
    """

    schemes: tuple[ColumnRef, ...] = ()
    windows: tuple[str, ...] = ()
    smallest: bool = True

    def __len__(self) -> int:
        """Return the number of additions."""
        return len(self.schemes) + len(self.windows)

    def __str__(self) -> str:
        """Return what to add to which stream."""
        parts = [f"punctuations=[{ref.column!r}] on stream {ref.stream!r}" for ref in self.schemes]
        parts += [f"window=... on stream {name!r}" for name in self.windows]
        return " and ".join(parts) + ("" if self.smallest else " (perhaps not the smallest)")


Nodes: TypeAlias = tuple[int, ...]  # sets of streams that reach each other
Addition: TypeAlias = Scheme | int  # a scheme on one column, or a window on that stream


class _OutOfStepsError(Exception):
    """The budget of the search is spent."""


def find_remedies(graph: JoinGraph, *, search_steps: int = SEARCH_STEPS) -> tuple[Remedy, ...]:
    """Return all the smallest remedies, schemes before windows; none if the query is safe."""
    nodes = merge_rounds(graph)[-1]
    if len(nodes) == 1:
        return ()
    search = _Search(graph, nodes, search_steps)
    try:
        for size in range(1, len(graph.names) + 1):
            if found := search.of_size(size):
                return tuple(sorted(found, key=lambda remedy: _order(graph, remedy)))
    except _OutOfStepsError:
        pass
    return (_irreducible(graph),)


class _Search:
    """Remedies of one size, by branching on the additions that lead out of a trap.

    Streams that reach each other still do so with an addition, so each step merges on from where the one
    before ended.
    """

    def __init__(self, graph: JoinGraph, nodes: Nodes, steps: int) -> None:
        self.graph = graph
        self.nodes = nodes
        self.steps = steps

    def of_size(self, size: int) -> set[Remedy]:
        found: set[Remedy] = set()
        self._extend(self.graph, self.nodes, (), size, frozenset(), found)
        return found

    def _extend(
        self,
        graph: JoinGraph,
        nodes: Nodes,
        chosen: tuple[Addition, ...],
        left: int,
        refused: frozenset[Addition],
        found: set[Remedy],
    ) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise _OutOfStepsError
        if len(nodes) == 1:
            found.add(_remedy(graph, chosen))
            return
        if left == 0:
            return
        edges = edges_between(graph, nodes)
        for addition in ways_out(graph, _trap(graph, nodes)):
            if addition not in refused:
                extended = _with(graph, addition)
                merged = merge_on(extended, nodes, _with_edges(nodes, edges, addition))
                self._extend(extended, merged, (*chosen, addition), left - 1, refused, found)
                # Sets with this addition are done: the branches that follow do without it.
                refused |= {addition}


def ways_out(graph: JoinGraph, trap: int) -> Iterator[Addition]:
    """Yield the additions that lead out of a set of streams."""
    for scheme in graph.join_columns():
        if not trap >> scheme.stream & 1 and scheme.covered_by(trap):
            yield scheme
    yield from members(trap)


def _trap(graph: JoinGraph, nodes: Nodes) -> int:
    """Return a set that nothing leads out of: one with few members, so with few ways out."""
    traps = [reached for node in nodes if (reached := reach(graph, node)) != graph.everything]
    return min(traps, key=lambda trap: (trap.bit_count(), trap))


def _with_edges(nodes: Nodes, edges: list[int], addition: Addition) -> list[int]:
    """Return the edges between nodes, by position, and those that an addition makes."""
    everything = (1 << len(nodes)) - 1
    stream = addition.stream if isinstance(addition, Scheme) else addition
    at = next(position for position, node in enumerate(nodes) if node >> stream & 1)
    extended = list(edges)
    if isinstance(addition, Scheme):
        for position, node in enumerate(nodes):
            if position != at and addition.covered_by(node):
                extended[position] |= 1 << at
    else:
        extended[at] |= everything & ~(1 << at)
    return extended


def _with(graph: JoinGraph, addition: Addition) -> JoinGraph:
    if isinstance(addition, Scheme):
        return graph.extended(schemes=[addition])
    return graph.extended(windows=[addition])


def _irreducible(graph: JoinGraph) -> Remedy:
    """Take the first way out of each trap, then drop what turns out not to be needed."""
    chosen: list[Addition] = []
    extended = graph
    while len(nodes := merge_rounds(extended)[-1]) > 1:
        chosen.append(next(ways_out(extended, _trap(extended, nodes))))
        extended = _with(extended, chosen[-1])
    for addition in list(chosen):
        rest = [other for other in chosen if other != addition]
        without = graph
        for other in rest:
            without = _with(without, other)
        if len(merge_rounds(without)[-1]) == 1:
            chosen = rest
    return _remedy(graph, tuple(chosen), smallest=False)


def _remedy(graph: JoinGraph, chosen: tuple[Addition, ...], *, smallest: bool = True) -> Remedy:
    schemes = [addition for addition in chosen if isinstance(addition, Scheme)]
    windows = sorted(addition for addition in chosen if isinstance(addition, int))
    refs = sorted((s.stream, s.columns[0]) for s in schemes)
    return Remedy(
        tuple(ColumnRef(graph.names[stream], column) for stream, column in refs),
        tuple(graph.names[stream] for stream in windows),
        smallest,
    )


def _order(graph: JoinGraph, remedy: Remedy) -> tuple[int, list[tuple[int, str]], list[int]]:
    """Few windows first, as they change the results of the query; then declared order."""
    schemes = [(graph.names.index(ref.stream), ref.column) for ref in remedy.schemes]
    return len(remedy.windows), schemes, [graph.names.index(name) for name in remedy.windows]
