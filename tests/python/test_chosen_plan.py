"""An operator runs the cheapest plan that can run, says which and why, and gives the rows of any other."""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from purge_judge import PurgeJudge
from random_punctuated import declare, make_case
from test_chained_purge import perform, results_of, schema_of

CASES = int(os.environ.get("STREAMJOIN_PURGE_CASES", "200")) // 2
SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("t", pa.int64())])
SLOW_PAIR = {"a": 5.0, "b": 5.0, "c": 2000.0}  # each row of c would look into b, mostly in vain


def chain(rates: dict[str, float] = SLOW_PAIR, **options: Any) -> sj.Query:
    lifespans = options.pop("lifespans", {})
    streams = [sj.Stream(n, time="t", rate=rate, lifespan=lifespans.get(n)) for n, rate in rates.items()]
    within = options.pop("within", sj.within("1 s"))
    return sj.Query(streams, ["a.x = b.x", "b.y = c.y"], within=within, **options)


def operator_of(query: sj.Query, **options: Any) -> sj.Operator:
    return sj.Operator(query, schemas=dict.fromkeys(query.stream_names, SCHEMA), **options)


def test_the_cheapest_plan_runs_and_explain_names_it() -> None:
    query = chain()
    cheapest = query.plans()[0]
    assert str(cheapest.root) == "((a b) c)"
    op = operator_of(query)
    assert op.plan == query.chosen_plan.plan == cheapest
    assert list(op.live_rows()) == ["a", "b", "c", "(a b)"]
    assert f"plan that runs\n  {cheapest} (the cheapest of 4 safe plans)" in query.explain()


def test_other_rates_choose_the_single_join() -> None:
    query = chain(dict.fromkeys("abc", 100.0))
    assert query.plans()[0].is_single_join
    assert query.chosen_plan.plan == query.plans()[0] == query.single_join_plan()
    op = operator_of(query)
    assert op.plan is None
    assert list(op.live_rows()) == ["a", "b", "c"]
    assert "plan that runs\n  (a b c): " in query.explain()


def test_a_plan_that_is_given_or_the_single_join_runs_instead() -> None:
    query = chain()
    assert list(operator_of(query, plan="single").live_rows()) == ["a", "b", "c"]
    other = next(plan for plan in query.plans() if str(plan.root) == "(a (b c))")
    assert "(b c)" in operator_of(query, plan=other).live_rows()
    assert list(operator_of(query, variant="wjoin").live_rows()) == ["a", "b", "c"]
    with pytest.raises(sj.QueryError, match=r"plan: expected 'cheapest', 'single' or one of query\.plans"):
        operator_of(query, plan="best")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"disorder": sj.Slack("1 s")}, r"\(\(a b\) c\) would be cheaper, but .*disorder=InOrder"),
        ({"lifespans": {"c": "1 s"}}, "would be cheaper, but .*without lifespan"),
        ({"late": "insert"}, "may have forgotten what a late row needs"),
        ({"on_violation": "keep"}, "a row that breaks a promise"),
        ({"algorithm": "nested_loop"}, "algorithm='nested_loop' was asked for"),
        ({"algorithm": "merge"}, "needs algorithm 'auto', 'hash' or 'nested_loop'"),
    ],
)
def test_where_a_tree_would_not_do_the_single_join_runs_and_the_reason_is_said(
    options: dict[str, Any], why: str
) -> None:
    query = chain(**options)
    assert query.chosen_plan.plan == query.single_join_plan()
    assert re.search(why, query.chosen_plan.why)
    assert query.chosen_plan.why in query.explain()
    assert list(operator_of(query).live_rows()) == ["a", "b", "c"]


def test_two_streams_and_unsafe_queries_run_as_one_join() -> None:
    streams = [sj.Stream(name, time="t", punctuations=["x"]) for name in "ab"]
    two = sj.Query(streams, ["a.x = b.x"])
    assert str(two.chosen_plan).endswith("(the only safe plan)")
    unsafe = sj.Query([*streams, sj.Stream("c", time="t")], ["a.x = b.x", "b.y = c.y"], require_safe=False)
    shown = "one join of all streams, with require_safe=False (no plan is safe, see check())"
    assert str(unsafe.chosen_plan) == shown
    assert unsafe.chosen_plan.why in unsafe.explain()
    assert operator_of(unsafe).plan is None
    with pytest.raises(sj.QueryError, match="single_join_plan: expected a query that"):
        unsafe.single_join_plan()


def test_a_tree_that_would_keep_rows_for_ever_is_not_chosen() -> None:
    """c waits for b, and a for c: one time of (a b) cannot be both."""
    rates = {"a": 1.0, "b": 1.0, "c": 5000.0}
    streams = [
        sj.Stream(n, time="t", rate=r, punctuations=["x"] if n != "c" else ()) for n, r in rates.items()
    ]
    bounds = [sj.between("a", "c", upper="5 s"), sj.between("c", "b", upper="5 s")]
    query = sj.Query(streams, ["a.x = b.x", "b.y = c.y"], within=bounds)
    assert str(query.plans()[0].root) == "((a b) c)"
    assert "in ((a b) c) a join would keep rows for ever" in query.chosen_plan.why
    operator_of(query)


def test_a_snapshot_goes_on_by_the_plan_that_ran() -> None:
    query = chain()
    for plan in ("cheapest", "single"):
        op = operator_of(query, plan=plan)
        op.push("b", pa.table({"x": [1], "y": [2], "t": [5]}, schema=SCHEMA))
        again = sj.Operator.restore(query, op.snapshot())
        assert again.plan == op.plan
        assert again.live_rows() == op.live_rows()


def test_random_queries_with_rates_run_by_their_cheapest_plan_and_give_the_same_rows() -> None:
    trees = singles = 0
    for seed in range(40_000, 40_000 + CASES):
        case = make_case(seed)
        rng = random.Random(seed)
        query = declare(case)
        streams = [replace(stream, rate=rng.choice((0.01, 1.0, 1000.0))) for stream in query.streams]
        query = replace(query, streams=streams)
        if len(streams) < 3 or not query.check().safe:
            continue
        op = sj.Operator(query, schemas=dict.fromkeys(case.names, schema_of(case)))
        cheapest = query.plans(limit=1)[0]
        chosen = query.chosen_plan.plan
        assert chosen is not None
        assert op.plan == (None if chosen.is_single_join else chosen)
        assert chosen == cheapest or "would keep rows for ever" in query.chosen_plan.why
        trees += op.plan is not None
        singles += op.plan is None
        judge = PurgeJudge(case.rules)
        for number, each in enumerate(case.script):
            if number == len(case.script) // 2:
                op = sj.Operator.restore(query, op.snapshot())
            expected = judge.run(each)
            found = results_of(case, perform(op, case, each))
            assert found == expected.results, f"operation {number} by {query.chosen_plan} of\n{case}"
            op.validate()
    assert trees > CASES // 20
    assert singles > CASES // 20
