"""Every safe plan, the cheapest first.

A plan is safe iff each of its joins is, taken by itself. A join of inputs that are safe is safe iff the
streams below it, taken as one join, are: merging streams that reach each other changes nothing in who reaches
whom. So a plan is safe iff **the streams below each join reach each other without help from outside**, and
the plans of a set of streams are its partitions into smaller safe sets, each with its own plans. The best
ones are drawn lazily (a heap a set), so the first hundred of half a million plans cost little.

    {a b c d} = {a b} {c d} | {a b c} {d} | {a} {b} {c} {d} | ...      only where {a b}, {c d}, .. are safe

Cost: safe sets 2^n, partitions B(n + 1) (Bell number) for n streams at worst.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, overload

from streamjoin.errors import QueryError
from streamjoin.plan.costs import CostModel
from streamjoin.plan.rates import resolve_rates
from streamjoin.plan.tree import COST_WORDS, Cost, JoinNode, Plan, PlanNode, StreamLeaf
from streamjoin.safety.deciders import is_safe_by_definition
from streamjoin.safety.graphs import JoinGraph, members, set_of

if TYPE_CHECKING:
    from streamjoin.query import Query

MOST_STREAMS, SHOWN = 9, 10


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """Safe plans, cheapest first. `total` counts all; `complete` is False if only some were tried.

    >>> import streamjoin as sj
    >>> streams = [sj.Stream(name, time="t", window="5 s") for name in "ab"]
    >>> plans = sj.Query(streams, on=["a.x = b.x"]).plans()
    >>> len(plans), plans.total, plans.complete
    (1, 1, True)
    """

    listed: tuple[Plan, ...]
    total: int
    complete: bool

    @overload
    def __getitem__(self, index: int) -> Plan: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Plan, ...]: ...
    def __getitem__(self, index: int | slice) -> Plan | tuple[Plan, ...]:
        """Return one plan, or a tuple of them."""
        return self.listed[index]

    def __len__(self) -> int:
        """Return how many are listed."""
        return len(self.listed)

    def __str__(self) -> str:
        """Return the cheapest as a table."""
        if not self.listed:
            return "no safe plan: see check()"
        rows: list[tuple[str, ...]] = [("", *COST_WORDS, "plan")]
        for number, plan in enumerate(self.listed[:SHOWN], start=1):
            rows.append((str(number), *(f"{value:,.4g}" for value in plan.cost), str(plan.root)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join([*map(str.rjust, row[:-1], widths), row[-1]]) for row in rows]
        some = "" if self.complete else f" (more than {MOST_STREAMS} streams: only the single join was tried)"
        return "\n".join([*lines, f"{min(SHOWN, len(self.listed))} of {self.total:,} safe plans{some}"])


def safe_plans(
    query: Query,
    *,
    rates: Mapping[str, float],
    selectivities: Mapping[str, float],
    punctuation_rates: Mapping[str, float],
    schemes: str,
    purge: str,
    limit: int | None,
) -> Plans:
    """Return the safe plans of a query; `Query.plans` tells what the options mean."""
    graph, model = _model(query, rates, selectivities, punctuation_rates, schemes, purge)
    complete = len(graph.names) <= MOST_STREAMS
    search = _Search(graph, model, only_single=not complete)
    if not search.is_safe(graph.everything):
        return Plans((), 0, complete=True)
    found: list[Plan] = []
    while (limit is None or len(found) < limit) and (ranked := search.ranked(graph.everything, len(found))):
        root = search.tree(ranked)
        assert isinstance(root, JoinNode)
        found.append(Plan(root, ranked.cost, purge, schemes))
    return Plans(tuple(found), search.count(graph.everything), complete)


def plan_of(query: Query, root: JoinNode, *, schemes: str = "all", purge: str = "eager") -> Plan:
    """Return a tree as a plan, with its cost at the rates that the streams declare."""
    graph, model = _model(query, query.declared_rates, {}, {}, schemes, purge)
    cost = Cost(0.0, 0.0, 0.0)

    def made(node: JoinNode) -> JoinNode:
        nonlocal cost
        sets = tuple(set_of(map(graph.names.index, each.streams)) for each in node.inputs)
        inputs = tuple(made(each) if isinstance(each, JoinNode) else each for each in node.inputs)
        cost = cost.plus(model.node(sets))
        return JoinNode(inputs, model.schemes_across(sets))

    return Plan(made(root), cost, purge, schemes)


def _model(
    query: Query,
    rates: Mapping[str, float],
    selectivities: Mapping[str, float],
    punctuation_rates: Mapping[str, float],
    schemes: str,
    purge: str,
) -> tuple[JoinGraph, CostModel]:
    for option, value, choices in (
        ("schemes", schemes, ("minimal", "all")),
        ("purge", purge, ("eager", "lazy")),
    ):
        if value not in choices:
            raise QueryError(f"{option}: expected one of {list(choices)}, got {value!r}")
    graph = JoinGraph.of(query)
    known = resolve_rates(query, graph, rates, selectivities, punctuation_rates)
    return graph, CostModel(graph, known, schemes=schemes, purge=purge)


class _Ranked(NamedTuple):
    """A plan of a set of streams: its inputs, and which of each input's ranked plans is used."""

    cost: Cost
    inputs: tuple[int, ...]
    ranks: tuple[int, ...] = ()


class _Ranking:
    """The plans of one set of streams, drawn from a heap as far as anyone has asked.

    A split enters the heap with a bound that is quick to tell, and again with its cost when its turn comes.
    Most never have a turn.
    """

    def __init__(self) -> None:
        self.drawn: list[_Ranked] = []
        self.heap: list[tuple[float, int, _Ranked, Cost | None]] = []
        self.seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        self.pushed = 0

    def push(self, total: float, ranked: _Ranked, own: Cost | None) -> None:
        self.pushed += 1
        heapq.heappush(self.heap, (total, self.pushed, ranked, own))


class _Search:
    def __init__(self, graph: JoinGraph, model: CostModel, *, only_single: bool) -> None:
        self.graph = graph
        self.model = model
        self.only_single = only_single
        self.safe: dict[int, bool] = {}
        self.rankings: dict[int, _Ranking] = {}
        self.counts: dict[int, int] = {}
        self.partitions: dict[int, list[tuple[int, ...]]] = {}

    def is_safe(self, streams: int) -> bool:
        if streams not in self.safe:
            self.safe[streams] = is_safe_by_definition(self.graph, streams)
        return self.safe[streams]

    def inputs_of(self, streams: int) -> list[tuple[int, ...]]:
        """Return the ways to split a safe set into two or more inputs, each a stream or a safe set."""
        if streams not in self.partitions:
            if self.only_single:
                self.partitions[streams] = [tuple(1 << i for i in members(streams))]
            else:
                self.partitions[streams] = [p for p in self._split(streams) if len(p) > 1]
        return self.partitions[streams]

    def _split(self, streams: int) -> Iterator[tuple[int, ...]]:
        if not streams:
            yield ()
            return
        first = streams & -streams
        rest = streams ^ first
        chosen = rest
        while True:  # every subset of the rest, together with the first stream
            if self.is_safe(first | chosen):
                for more in self._split(rest & ~chosen):
                    yield (first | chosen, *more)
            if not chosen:
                return
            chosen = (chosen - 1) & rest

    def count(self, streams: int) -> int:
        """Return the number of safe plans of a set."""
        if streams & (streams - 1) == 0:
            return 1
        if streams not in self.counts:
            total = 0
            for inputs in self.inputs_of(streams):
                product = 1
                for part in inputs:
                    product *= self.count(part)
                total += product
            self.counts[streams] = total
        return self.counts[streams]

    def ranked(self, streams: int, rank: int) -> _Ranked | None:
        """Return the plan of a set with this place in the order of cost, None if there are fewer."""
        if streams & (streams - 1) == 0:
            return _Ranked(Cost(0, 0, 0), ()) if rank == 0 else None
        ranking = self.rankings.get(streams)
        if ranking is None:
            ranking = self.rankings[streams] = _Ranking()
            for inputs in self.inputs_of(streams):
                below = self._below(inputs, (0,) * len(inputs))
                assert below is not None
                bound = below.total + self.model.least(inputs)
                ranking.push(bound, _Ranked(below, inputs, (0,) * len(inputs)), None)
        while len(ranking.drawn) <= rank and ranking.heap:
            _, _, best, own = heapq.heappop(ranking.heap)
            if own is None:
                own = self.model.node(best.inputs)
                cost = best.cost.plus(own)
                ranking.push(cost.total, _Ranked(cost, best.inputs, best.ranks), own)
                continue
            ranking.drawn.append(best)
            for position in range(len(best.inputs)):
                ranks = list(best.ranks)
                ranks[position] += 1
                self._offer(ranking, best.inputs, tuple(ranks), own)
        return ranking.drawn[rank] if rank < len(ranking.drawn) else None

    def _offer(self, ranking: _Ranking, inputs: tuple[int, ...], ranks: tuple[int, ...], own: Cost) -> None:
        """Enter a split with other plans of its inputs, unless it was entered or there are none."""
        if (inputs, ranks) not in ranking.seen:
            ranking.seen.add((inputs, ranks))
            if (below := self._below(inputs, ranks)) is not None:
                cost = below.plus(own)
                ranking.push(cost.total, _Ranked(cost, inputs, ranks), own)

    def _below(self, inputs: tuple[int, ...], ranks: tuple[int, ...]) -> Cost | None:
        """Return what the inputs' own plans cost, None if one of them has fewer plans."""
        cost = Cost(0.0, 0.0, 0.0)
        for part, rank in zip(inputs, ranks, strict=True):
            if rank == 0 and part & (part - 1) == 0:
                continue  # a stream costs nothing by itself
            ranked = self.ranked(part, rank)
            if ranked is None:
                return None
            cost = cost.plus(ranked.cost)
        return cost

    def tree(self, ranked: _Ranked) -> PlanNode:
        """Return the plan as a tree of streams and joins."""
        inputs: list[PlanNode] = []
        for part, rank in zip(ranked.inputs, ranked.ranks, strict=True):
            below = self.ranked(part, rank)
            assert below is not None
            single = part & (part - 1) == 0
            inputs.append(StreamLeaf(self.graph.names[part.bit_length() - 1]) if single else self.tree(below))
        return JoinNode(tuple(inputs), self.model.schemes_across(ranked.inputs))
