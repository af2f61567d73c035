"""Plans: each is safe at every node by the definition, none is missing, the cheapest comes first."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import combinations

import pytest
from random_queries import random_query
from streamjoin.errors import QueryError
from streamjoin.plan import JoinNode, StreamLeaf
from streamjoin.query import Query
from streamjoin.safety import JoinGraph
from streamjoin.stream import Stream

ROUNDS = int(os.environ.get("STREAMJOIN_SAFETY_ROUNDS", "3000")) // 15

Tree = str | frozenset["Tree"]


def leaves(tree: Tree) -> frozenset[str]:
    return frozenset([tree]) if isinstance(tree, str) else frozenset().union(*map(leaves, tree))


def partitions(names: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    if not names:
        yield []
        return
    first, rest = names[0], names[1:]
    for size in range(len(rest) + 1):
        for mates in combinations(rest, size):
            for more in partitions(tuple(name for name in rest if name not in mates)):
                yield [(first, *mates), *more]


def every_tree(names: tuple[str, ...]) -> Iterator[Tree]:
    """All plans of these streams, safe or not."""
    if len(names) == 1:
        yield names[0]
        return
    for parts in partitions(names):
        if len(parts) > 1:
            yield from _combined(parts, [])


def _combined(parts: list[tuple[str, ...]], chosen: list[Tree]) -> Iterator[Tree]:
    if not parts:
        yield frozenset(chosen)
        return
    for tree in every_tree(parts[0]):
        yield from _combined(parts[1:], [*chosen, tree])


def node_is_safe(graph: JoinGraph, inputs: list[frozenset[str]]) -> bool:
    """The definition for a join of intermediate results: an input passes on the promises of its streams."""
    index = graph.names.index
    equal = [{(ref.stream, ref.column) for ref in columns} for columns in graph.classes]

    def joins(stream: str, column: str, known: set[str]) -> bool:
        return any((stream, column) in columns and {s for s, _ in columns} & known for columns in equal)

    for start in inputs:
        reached, known = [start], set(start)
        grown = True
        while grown:
            grown = False
            for part in inputs:
                if part in reached:
                    continue
                by_scheme = any(
                    graph.names[s.stream] in part
                    and all(joins(graph.names[s.stream], column, known) for column in s.columns)
                    for s in graph.schemes
                )
                by_time = any(graph.uppers[index(k)][index(s)] is not None for k in known for s in part)
                if by_scheme or by_time:
                    reached.append(part)
                    known |= part
                    grown = True
        if len(reached) < len(inputs):
            return False
    return True


def tree_is_safe(graph: JoinGraph, tree: Tree) -> bool:
    if isinstance(tree, str):
        return True
    return node_is_safe(graph, [leaves(part) for part in tree]) and all(
        tree_is_safe(graph, part) for part in tree
    )


def as_tree(node: StreamLeaf | JoinNode) -> Tree:
    return node.name if isinstance(node, StreamLeaf) else frozenset(map(as_tree, node.inputs))


@pytest.mark.parametrize("schemes", ["all", "minimal"])
def test_exactly_the_safe_plans_are_listed_cheapest_first(schemes: str) -> None:
    seed, sizes = 71, set()
    rng = random.Random(seed)
    for round_ in range(ROUNDS):
        query = random_query(rng, streams=(2, 4) if round_ % 10 else (5, 5))
        graph = JoinGraph.of(query)
        expected = {tree for tree in every_tree(query.stream_names) if tree_is_safe(graph, tree)}
        plans = query.plans(limit=None, schemes=schemes)
        where = f"seed {seed}, round {round_}: {query}"
        found = [as_tree(plan.root) for plan in plans]
        assert len(set(found)) == len(found) == plans.total, where
        assert set(found) == expected, where
        assert bool(plans) == query.check().safe, where
        totals = [plan.cost.total for plan in plans]
        assert totals == sorted(totals), where
        assert [plan.cost for plan in query.plans(limit=3, schemes=schemes)] == [
            plan.cost for plan in plans[:3]
        ], where
        sizes.add(len(found))
    assert {0, 1} < sizes


def test_the_schemes_of_a_minimal_plan_keep_each_join_safe_and_none_is_spare_in_a_single_join() -> None:
    seed = 72
    rng = random.Random(seed)
    for round_ in range(ROUNDS):
        query = random_query(rng, streams=(2, 4))
        graph = JoinGraph.of(query)
        for plan in query.plans(schemes="minimal"):
            where = f"seed {seed}, round {round_}, {plan}: {query}"
            for node in plan.root.nodes():
                inputs = [frozenset(part.streams) for part in node.inputs]
                used = [
                    i
                    for i, s in enumerate(graph.schemes)
                    if (graph.names[s.stream], s.columns) in node.schemes
                ]
                assert node_is_safe(graph.with_schemes(used), inputs), where
                if plan.is_single_join:
                    for spare in used:
                        fewer = graph.with_schemes([i for i in used if i != spare])
                        assert not node_is_safe(fewer, inputs), where


def chain(**options: object) -> Query:
    names = ("a", "b", "c")
    streams = [Stream(name, time="t", punctuations=["x", "y"]) for name in names]
    return Query(streams, ["a.x = b.x", "b.y = c.y"], **options)  # type: ignore[arg-type]


def test_joining_the_selective_pair_first_is_the_cheaper_tree() -> None:
    plans = chain().plans(selectivities={"a.x = b.x": 0.5, "b.y = c.y": 0.001})
    places = {str(plan.root): place for place, plan in enumerate(plans)}
    assert places.keys() == {"(a b c)", "((a b) c)", "(a (b c))"}
    assert plans[0].cost.total <= plans[1].cost.total


def test_faster_punctuations_mean_fewer_rows_in_state() -> None:
    keys = ["a.x", "b.x", "b.y", "c.y"]
    slow, fast = (
        chain().plans(punctuation_rates=dict.fromkeys(keys, rate))[0].cost.state_rows for rate in (0.1, 10)
    )
    assert fast < slow


def test_all_schemes_hold_no_more_rows_and_no_fewer_punctuations_than_a_minimal_set() -> None:
    seed = 73
    rng = random.Random(seed)
    for round_ in range(ROUNDS):
        query = random_query(rng, streams=(2, 4))
        if not query.check().safe:
            continue
        single = [
            next(plan.cost for plan in query.plans(schemes=schemes, limit=None) if plan.is_single_join)
            for schemes in ("all", "minimal")
        ]
        where = f"seed {seed}, round {round_}: {query}"
        assert single[0].state_rows <= single[1].state_rows * (1 + 1e-9), where
        assert single[0].punctuations >= single[1].punctuations * (1 - 1e-9), where


def test_lazy_purge_holds_more_rows_and_works_less_where_punctuations_are_many() -> None:
    rates = dict.fromkeys(["a.x", "b.x", "b.y", "c.y"], 100.0)
    eager, lazy = (chain().plans(punctuation_rates=rates, purge=purge)[0].cost for purge in ("eager", "lazy"))
    assert lazy.state_rows > eager.state_rows
    assert lazy.probes < eager.probes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rates": {"z": 1}}, "got 'z'"),
        ({"rates": {"a": 0}}, "rates, stream 'a': expected a positive number, got 0"),
        ({"selectivities": {"a.x = c.y": 0.1}}, "got 'a.x = c.y'"),
        ({"selectivities": {"a.x = b.x": 2}}, "at most 1, got 2"),
        ({"punctuation_rates": {"a.z": 1}}, "got 'a.z'"),
        ({"schemes": "few"}, "schemes: expected one of"),
        ({"purge": "never"}, "purge: expected one of"),
    ],
)
def test_nonsense_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(QueryError, match=words.replace("(", r"\(")):
        chain().plans(**options)  # type: ignore[arg-type]


def test_an_unsafe_query_has_no_plan() -> None:
    a, b = Stream("a", time="t", punctuations=["x"]), Stream("b", time="t")
    assert str(Query([a, b], ["a.x = b.x"], require_safe=False).plans()) == "no safe plan: see check()"


def test_of_very_many_streams_only_the_single_join_is_listed_and_it_says_so() -> None:
    streams = [Stream(f"s{i}", time="t", punctuations=["x"]) for i in range(12)]
    plans = Query(streams, [f"s0.x = s{i}.x" for i in range(1, 12)]).plans()
    assert len(plans) == 1
    assert not plans.complete
    assert "only the single join was tried" in str(plans)
