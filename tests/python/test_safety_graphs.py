"""The graphs of the VLDB'06 paper by figure, and the three deciders against each other."""

from __future__ import annotations

import os
import random

import pytest
from random_queries import random_query
from streamjoin.expressions import ColumnRef
from streamjoin.query import Query
from streamjoin.safety import JoinGraph, SchemeStep, WindowStep, purge_plan
from streamjoin.safety.deciders import (
    is_safe_by_definition,
    is_safe_by_edges,
    is_safe_by_merging,
    merge_rounds,
    reach,
    reached_sets,
)
from streamjoin.stream import Stream
from streamjoin.windows import follows

ROUNDS = int(os.environ.get("STREAMJOIN_SAFETY_ROUNDS", "3000"))
CYCLE = ["S1.B = S2.B", "S2.C = S3.C", "S3.A = S1.A"]


def three_streams(on: list[str], **schemes: list[str | tuple[str, ...]]) -> Query:
    streams = [Stream(name, time="t", punctuations=schemes.get(name, [])) for name in ("S1", "S2", "S3")]
    return Query(streams, on, require_safe=False)


def shown_edges(query: Query) -> set[tuple[str, str, str]]:
    graph = JoinGraph.of(query)
    return {(graph.shown(e.sources), graph.names[e.target], str(e.scheme)) for e in graph.edges()}


def test_figure_1_items_and_bids_are_safe_and_bids_on_bidders_are_not() -> None:
    item = Stream("item", time="t", unique="itemid")
    on = ["item.itemid = bid.itemid"]
    assert Query([item, Stream("bid", time="t", punctuations=["itemid"])], on).check().safe
    report = Query([item, Stream("bid", time="t", punctuations=["bidderid"])], on).check()
    assert report.purgeable == {"item": False, "bid": True}


def test_figure_3_chained_purge_goes_through_the_second_stream() -> None:
    query = three_streams(CYCLE[:2], S2=["B"], S3=["C"])
    chain = purge_plan(query)["S1"]
    assert chain.complete
    assert chain.steps == (
        SchemeStep("S2", ("B",), (ColumnRef("S1", "B"),)),
        SchemeStep("S3", ("C",), (ColumnRef("S2", "C"),)),
    )


def test_figure_5_three_schemes_in_a_ring_are_safe() -> None:
    query = three_streams(CYCLE, S1=["B"], S2=["C"], S3=["A"])
    assert shown_edges(query) == {("S2", "S1", "(B)"), ("S3", "S2", "(C)"), ("S1", "S3", "(A)")}
    assert query.check().safe


def test_figure_7_the_ring_has_no_safe_plan_of_binary_joins() -> None:
    plans = three_streams(CYCLE, S1=["B"], S2=["C"], S3=["A"]).plans()
    assert [str(plan.root) for plan in plans] == ["(S1 S2 S3)"]


FIGURE_8: dict[str, list[str | tuple[str, ...]]] = {"S1": ["B"], "S2": ["B", "C"], "S3": [("A", "C")]}


def test_figure_8_the_plain_graph_is_not_strongly_connected_and_the_query_is_safe() -> None:
    query = three_streams(CYCLE, **FIGURE_8)
    graph = JoinGraph.of(query)
    plain = {(graph.shown(e.sources), graph.names[e.target]) for e in graph.plain_edges()}
    assert plain == {("S2", "S1"), ("S1", "S2"), ("S3", "S2")}
    assert query.check().safe


def test_figure_9_the_generalized_edge_leads_from_the_first_two_streams_to_the_third() -> None:
    assert ("S1, S2", "S3", "(A, C)") in shown_edges(three_streams(CYCLE, **FIGURE_8))


def test_figure_10_two_streams_merge_first_and_then_the_third() -> None:
    rounds = merge_rounds(JoinGraph.of(three_streams(CYCLE, **FIGURE_8)))
    assert rounds == ((0b001, 0b010, 0b100), (0b011, 0b100), (0b111,))


def test_figure_8_without_the_predicate_of_figure_3_is_unsafe() -> None:
    assert not three_streams(CYCLE[:2], **FIGURE_8).check().safe


def test_figure_8_purges_the_third_stream_by_values_of_both_others() -> None:
    steps = purge_plan(three_streams(CYCLE, **FIGURE_8))["S1"].steps
    assert steps[-1] == SchemeStep("S3", ("A", "C"), (ColumnRef("S1", "A"), ColumnRef("S2", "C")))


@pytest.mark.parametrize("windows", [False, True])
def test_three_deciders_agree_on_random_queries(windows: bool) -> None:
    seed = 51
    rng = random.Random(seed)
    verdicts = {True: 0, False: 0}
    for round_ in range(ROUNDS):
        graph = JoinGraph.of(random_query(rng, windows=windows))
        expected = is_safe_by_definition(graph)
        assert is_safe_by_edges(graph) == expected, f"seed {seed}, round {round_}: {graph}"
        assert is_safe_by_merging(graph) == expected, f"seed {seed}, round {round_}: {graph}"
        starts = tuple(reach(graph, 1 << i) for i in range(len(graph.names)))
        assert reached_sets(graph) == starts, f"seed {seed}, round {round_}: {graph}"
        verdicts[expected] += 1
    assert min(verdicts.values()) > ROUNDS // 20, "the random queries must be of both kinds"


def test_every_step_of_a_purge_chain_stands_on_streams_reached_before() -> None:
    seed = 52
    rng = random.Random(seed)
    for round_ in range(ROUNDS // 3):
        query = random_query(rng)
        purgeable = query.check().purgeable
        equal = [set(columns) for columns in JoinGraph.of(query).classes]
        for name, chain in purge_plan(query).items():
            where = f"seed {seed}, round {round_}, {name}: {query}"
            known = {name}
            for step in chain.steps:
                assert step in chain.ways, where
                if isinstance(step, WindowStep):
                    ends = query.stream_index(step.source), query.stream_index(step.target)
                    assert step.source in known, where
                    assert query.windows.upper(*ends) == step.width, where
                else:
                    assert step.columns in query.streams[query.stream_index(step.target)].schemes, where
                    for column, source in zip(step.columns, step.sources, strict=True):
                        assert source.stream in known, where
                        pair = {ColumnRef(step.target, column), source}
                        assert any(pair <= columns for columns in equal), where
                assert step.target not in known, where
                known.add(step.target)
            assert chain.complete == purgeable[name] == (len(known) == len(query.streams)), where


def test_a_window_step_names_the_stream_whose_rows_it_starts_from() -> None:
    streams = [Stream("a", time="t"), Stream("b", time="t", punctuations=["x"]), Stream("c", time="t")]
    query = Query(
        streams, ["a.x = b.x", "b.y = c.y"], within=follows("b", "c", within="5 s"), require_safe=False
    )
    assert purge_plan(query)["a"].steps == (
        SchemeStep("b", ("x",), (ColumnRef("a", "x"),)),
        WindowStep("c", "b", 5_000_000_000),
    )
