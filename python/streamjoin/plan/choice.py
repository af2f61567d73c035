"""Which plan an operator runs: the cheapest safe one that can run, and why it is that one.

    plans, cheapest first      ((a b) c)   (a b c)   (a (b c))
    can it run?                no: disorder   yes ------------> chosen

One join runs every query. A tree of joins has limits, some of the query as a whole (`no_tree_because`), some
of a join that only windows bound (`stuck_input`): results of a join below go by the time of one stream, the
anchor, so windows of the other streams below let no row above go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamjoin.disorder import InOrder
from streamjoin.plan.tree import JoinNode, Plan, StreamLeaf
from streamjoin.safety.graphs import JoinGraph, set_of

if TYPE_CHECKING:
    from streamjoin.query import Query

LOOKED_AT = 20  # of the cheapest plans
MOST_STREAMS = 8  # with more, plans take seconds to find


@dataclass(frozen=True)
class PlanChoice:
    """The plan that runs and why. Without a plan the query is not safe, and one join runs it.

    >>> import streamjoin as sj
    >>> streams = [sj.Stream(name, time="t", window="5 s") for name in "ab"]
    >>> sj.Query(streams, on=["a.x = b.x"]).chosen_plan.why
    'the only safe plan'
    """

    plan: Plan | None
    why: str

    def __str__(self) -> str:
        """Return plan and reason."""
        return f"{self.plan or 'one join of all streams, with require_safe=False'} ({self.why})"


def choose_plan(query: Query) -> PlanChoice:
    """Choose from the rates that streams declare; what is assumed elsewhere `plan.rates` says."""
    plans = query.plans(limit=LOOKED_AT if len(query.streams) <= MOST_STREAMS else 1)
    if not plans:
        return PlanChoice(None, "no plan is safe, see check()")
    cheapest = plans[0]
    total = f"{plans.total:,} safe plan{'s' if plans.total > 1 else ''}"
    if plans.total == 1:
        return PlanChoice(cheapest, "the only safe plan")
    single = query.single_join_plan()
    if len(query.streams) > MOST_STREAMS:
        return PlanChoice(single, f"of more than {MOST_STREAMS} streams only the single join is tried")
    if cheapest.is_single_join:
        return PlanChoice(cheapest, f"the cheapest of {total}")
    if because := no_tree_because(query) or changes_results_because(query):
        return PlanChoice(single, f"{cheapest.root} would be cheaper, but {because}")
    graph = JoinGraph.of(query)
    for plan in plans:
        if plan.is_single_join or can_run(graph, plan.root):
            skipped = f", of those that can run: in {cheapest.root} a join would keep rows for ever, as its "
            skipped += "results from below go by the time of one stream"
            return PlanChoice(plan, f"the cheapest of {total}{'' if plan is cheapest else skipped}")
    return PlanChoice(
        single, "in the cheaper ones a join would keep rows for ever, as results go by one time"
    )


def no_tree_because(query: Query) -> str | None:
    """Return why a query does not run as a tree of joins, None if it may."""
    if not isinstance(query.disorder, InOrder):
        return "a tree of joins needs disorder=InOrder() (rows wait for their order in front of one join)"
    if any(stream.lifespan_ns is not None for stream in query.streams):
        return (
            "a tree of joins needs streams without lifespan (what a promise that ends has purged by then "
            "differs from tree to tree, and so would the results)"
        )
    if query.algorithm not in ("auto", "hash", "nested_loop"):
        return (
            "a tree of joins needs algorithm 'auto', 'hash' or 'nested_loop' (a merge needs rows in time "
            "order, which results of a join below are not)"
        )
    return None


def changes_results_because(query: Query) -> str | None:
    """Return why a tree of joins, which could run, might give other rows than the single join."""
    if query.late == "insert":
        return "a tree of joins may have forgotten what a late row needs (late='insert')"
    if query.on_violation == "keep":
        return "a tree of joins may give other results of a row that breaks a promise (on_violation='keep')"
    if query.algorithm != "auto":
        return f"algorithm={query.algorithm!r} was asked for"
    if query.chosen_algorithm.name != "hash":
        return f"a tree of joins has no {query.chosen_algorithm.name}"
    return None


def anchor(graph: JoinGraph, streams: Collection[int], candidates: Iterable[int]) -> int:
    """Choose the stream whose time results have: the one that windows tie to most streams elsewhere."""
    elsewhere = set(range(len(graph.names))) - set(streams)

    def ties(stream: int) -> int:
        bounds = [b for j in elsewhere for b in (graph.uppers[stream][j], graph.uppers[j][stream])]
        return sum(bound is not None for bound in bounds)

    return max(candidates, key=ties)


def stuck_input(graph: JoinGraph, inputs: Sequence[tuple[Collection[int], int]]) -> int | None:
    """Return the input of a join whose rows nothing lets go, None if there is none.

    An input is its streams and its anchor.
    """
    for start in range(len(inputs)):
        reached = {start}
        while more := [each for each in range(len(inputs)) if each not in reached]:
            known = set_of(i for each in reached for i in inputs[each][0])
            found = [
                each
                for each in more
                if any(s.stream in inputs[each][0] and s.covered_by(known) for s in graph.schemes)
                or any(graph.uppers[inputs[r][1]][inputs[each][1]] is not None for r in reached)
            ]
            if not found:
                return start
            reached.update(found)
    return None


def can_run(graph: JoinGraph, root: JoinNode) -> bool:
    """Tell whether each join of a tree keeps its rows for a bounded time."""
    found: dict[JoinNode | StreamLeaf, tuple[tuple[int, ...], int]] = {}
    for node in root.nodes():
        for leaf in node.inputs:
            if isinstance(leaf, StreamLeaf):
                found[leaf] = ((graph.names.index(leaf.name),), graph.names.index(leaf.name))
        inputs = [found[each] for each in node.inputs]
        if stuck_input(graph, inputs) is not None:
            return False
        streams = tuple(i for below, _ in inputs for i in below)
        found[node] = streams, anchor(graph, streams, [each for _, each in inputs])
    return True
