"""A plan that is a tree of joins gives the rows of the single join, and keeps its promises."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
import streamjoin as sj
from purge_judge import PurgeJudge
from random_punctuated import declare, make_case
from test_chained_purge import Promised, perform, results_of, schema_of

CASES = int(os.environ.get("STREAMJOIN_PURGE_CASES", "200"))
SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("t", pa.int64())])


def chain() -> sj.Query:
    streams = [
        sj.Stream("a", time="t", punctuations=["x"]),
        sj.Stream("b", time="t", punctuations=["x", "y"]),
        sj.Stream("c", time="t", punctuations=["y"]),
    ]
    return sj.Query(streams, ["a.x = b.x", "b.y = c.y"])


def tree_of(query: sj.Query, shape: str) -> sj.PlanOperator:
    plan = next(plan for plan in query.plans() if str(plan.root) == shape)
    return sj.PlanOperator(query, plan, schemas=dict.fromkeys(query.stream_names, SCHEMA))


def row(x: int, y: int, t: int) -> pa.Table:
    return pa.table({"x": [x], "y": [y], "t": [t]}, schema=SCHEMA)


@pytest.mark.parametrize("shape", ["((a b) c)", "(a (b c))", "(a b c)"])
def test_rows_and_promises_go_up_the_tree(shape: str) -> None:
    query = chain()
    op = tree_of(query, shape)
    op.push("a", row(1, 0, 5))
    op.push("c", row(0, 2, 3))
    out = op.push("b", row(1, 2, 1))
    assert [list(r.values()) for r in out.rows.to_pylist()] == [[1, 0, 5, 1, 2, 1, 0, 2, 3]]
    op.punctuate("a", {"x": 1})
    op.punctuate("b", {"x": 1})
    said = op.punctuate("c", {"y": 2}).punctuations.to_pylist()
    said += op.punctuate("b", {"y": 2}).punctuations.to_pylist()
    assert {(r["a_x"], r["b_y"]) for r in said} >= {(None, 2)}
    assert sum(op.live_rows().values()) == 0
    assert op.push("b", row(1, 2, 9)).violations.column("b_t").to_pylist() == [9]
    assert op.finish().punctuations.column("kind").to_pylist() == ["regular"]


def test_random_queries_give_the_same_rows_by_every_plan() -> None:
    trees = 0
    for seed in range(10_000, 10_000 + CASES):
        case = make_case(seed)
        query = declare(case, require_safe=True)
        equal = PurgeJudge(case.rules).same.values()
        twice = any(len({s for s, _ in columns}) < len(columns) for columns in equal)
        plans = [] if case.rules.bounds or twice else list(query.plans(limit=6))
        for plan in plans:
            op = sj.PlanOperator(query, plan, schemas=dict.fromkeys(case.names, schema_of(case)))
            judge = PurgeJudge(case.rules)
            promised = Promised(case, judge)
            trees += not plan.is_single_join
            for number, each in enumerate(case.script):
                expected = judge.run(each)
                try:
                    out = perform(op, case, each)
                    assert results_of(case, out) == expected.results
                    promised.check_rows(out)
                    promised.add(out)
                except Exception as error:
                    error.add_note(f"operation {number} by {plan.root} of\n{case}")
                    raise
            for name in case.names:
                op.punctuate(name, {})
            assert sum(op.live_rows().values()) == 0
    assert trees > 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"within": sj.within(5)}, "expected no window"),
        ({"where": "a.x < c.y"}, "expected no where"),
    ],
)
def test_what_a_tree_cannot_run_is_refused_by_name(options: dict[str, object], message: str) -> None:
    query = chain()
    plan = query.plans()[0]
    other = sj.Query(query.streams, query.on, **options)
    with pytest.raises(sj.QueryError, match=message):
        sj.PlanOperator(other, plan, schemas=dict.fromkeys(query.stream_names, SCHEMA))
