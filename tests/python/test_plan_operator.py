"""A plan that is a tree of joins gives the rows of the single join, and keeps its promises."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import random_multi
import streamjoin as sj
from multi_runner import expected_steps, judge
from purge_judge import PurgeJudge, Push
from random_punctuated import PunctuatedCase, declare, make_case
from streamjoin.plan import Cost, JoinNode, StreamLeaf
from test_chained_purge import Promised, perform, results_of, schema_of

CASES = int(os.environ.get("STREAMJOIN_PURGE_CASES", "200"))
SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("t", pa.int64())])


def chain(**options: Any) -> sj.Query:
    streams = [
        sj.Stream("a", time="t", punctuations=["x"]),
        sj.Stream("b", time="t", punctuations=["x", "y"]),
        sj.Stream("c", time="t", punctuations=["y"]),
    ]
    return sj.Query(streams, ["a.x = b.x", "b.y = c.y"], **options)


def plan_of(query: sj.Query, shape: str, **options: Any) -> sj.Plan:
    return next(plan for plan in query.plans(limit=None, **options) if str(plan.root) == shape)


def tree_of(query: sj.Query, shape: str, **options: Any) -> sj.Operator:
    schemas = dict.fromkeys(query.stream_names, SCHEMA)
    return sj.Operator(query, plan=plan_of(query, shape, **options), schemas=schemas)


def row(x: int, y: int, t: int) -> pa.Table:
    return pa.table({"x": [x], "y": [y], "t": [t]}, schema=SCHEMA)


def random_tree(rng: random.Random, names: tuple[str, ...]) -> sj.Plan:
    """Any tree, safe or not, with at least two joins."""
    parts: list[Any] = [StreamLeaf(name) for name in names]
    rng.shuffle(parts)
    while len(parts) > 1:
        most = len(parts) if len(parts) < len(names) else len(parts) - 1
        taken = rng.sample(range(len(parts)), rng.randint(2, most))
        joined = JoinNode(tuple(parts[i] for i in taken))
        parts = [part for i, part in enumerate(parts) if i not in taken] + [joined]
    return sj.Plan(parts[0], Cost(0, 0, 0))


def cut(case: PunctuatedCase, seed: int) -> list[Any]:
    """The script with each push cut at random places."""
    rng, script = random.Random(seed), list[Any]()
    for each in case.script:
        rows = each.rows if isinstance(each, Push) else ()
        if not rows:
            script.append(each)
        while rows:
            size = rng.randint(1, len(rows))
            script.append(Push(each.stream, rows[:size]))
            rows = rows[size:]
    return script


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
    with pytest.raises(sj.DataError, match="got one after finish"):
        op.push("a", row(1, 1, 1))


def run_by_plan(case: PunctuatedCase, plan: sj.Plan, script: list[Any], restore_at: int) -> None:
    query = declare(case)
    op = sj.Operator(query, plan=plan, schemas=dict.fromkeys(case.names, schema_of(case)))
    judge = PurgeJudge(case.rules)
    promised = Promised(case, judge)
    for number, each in enumerate(script):
        expected = judge.run(each)
        try:
            if number == restore_at:
                op = sj.Operator.restore(query, op.snapshot())
            out = perform(op, case, each)
            op.validate()
            assert results_of(case, out) == expected.results
            streams = out.violations.column("stream").to_pylist()
            rows = zip(streams, out.violations.to_pylist(), strict=True)
            assert [r[f"{stream}_id"] for stream, r in rows] == expected.violations
            promised.check_rows(out)
            promised.add(out)
        except Exception as error:
            error.add_note(f"operation {number} by {plan.root}, restored at {restore_at}, of\n{case}")
            raise
    for name in case.names:
        op.punctuate(name, {})
    stats = op.stats()
    assert sum(stats.state_rows.values()) == stats.dictionary_entries == sum(stats.stored_rows.values()) == 0


@pytest.mark.parametrize("start", range(0, CASES, 50))
def test_random_queries_give_the_same_rows_by_every_plan_however_cut(start: int) -> None:
    trees = 0
    for seed in range(10_000 + start, 10_000 + start + 50):
        case = make_case(seed)
        rng = random.Random(seed)
        listed = [plan for plan in declare(case).plans(limit=2) if not plan.is_single_join]
        drawn = [random_tree(rng, case.names)] if case.rules.streams > 2 else []
        for plan in [*listed, *drawn]:
            script = cut(case, seed) if rng.random() < 0.5 else list(case.script)
            try:
                run_by_plan(case, plan, script, rng.randrange(2 * len(script)))
            except sj.QueryError as error:
                if plan in listed or "nothing ties stream" not in str(error):
                    raise
                continue
            trees += 1
    assert trees > 20


@pytest.mark.parametrize("start", range(0, CASES, 50))
def test_windows_conditions_nulls_and_late_rows_by_random_trees(start: int) -> None:
    trees = 0
    for seed in range(20_000 + start, 20_000 + start + 50):
        rng = random.Random(seed)
        case = random_multi.make_case(seed, streams=rng.choice((3, 3, 4, 5)))
        case = random_multi.cut_pushes(case, seed) if rng.random() < 0.5 else case
        plan = random_tree(rng, case.names)
        algorithm = rng.choice(("auto", "hash", "nested_loop"))
        steps = expected_steps(case)
        try:
            judge(case, algorithm, steps, restore_at=rng.randrange(2 * len(case.script)), plan=plan)
        except sj.QueryError as error:
            if "nothing ties stream" not in str(error):
                raise
            continue
        trees += 1
    assert trees > 20


def test_a_row_that_is_kept_although_it_breaks_a_promise_costs_no_other_row() -> None:
    broken = 0
    for seed in range(CASES // 4):
        case = make_case(30_000 + seed, harsh=True)
        n = case.rules.streams
        if n < 3:
            continue
        case = replace(case, rules=replace(case.rules, lifespans=(None,) * n, on_violation="keep"))
        query = declare(case)
        plan = random_tree(random.Random(seed), case.names)
        schemas = dict.fromkeys(case.names, schema_of(case))
        try:
            op = sj.Operator(query, plan=plan, schemas=schemas)
        except sj.QueryError:
            continue
        everything, violators = PurgeJudge(case.rules), set[int]()
        for each in case.script:
            expected = everything.run(each)
            violators |= set(expected.violations)
            seen = results_of(case, perform(op, case, each))
            op.validate()
            kept = [r for r in expected.results if violators.isdisjoint(r)]
            assert kept == [r for r in kept if seen[r] == expected.results[r]], f"seed {seed} by {plan.root}"
            assert all(not violators.isdisjoint(r) for r in seen - expected.results), f"seed {seed}"
        broken += bool(violators)
    assert broken > 10


@pytest.mark.parametrize("where", ["a.x * c.y > 0", lambda columns: 1 // (columns["a.x"] - 7) < 9])
@pytest.mark.parametrize("shape", ["((a b) c)", "(a (b c))"])
def test_a_condition_that_fails_above_leaves_every_join_as_it_was(shape: str, where: Any) -> None:
    def checked(columns: dict[str, Any]) -> Any:
        if (columns["a.x"] == 2**62).any():
            raise ZeroDivisionError("too large")
        return columns["a.x"] < columns["c.y"]

    query = chain(where=where if isinstance(where, str) else checked)
    op, twin = tree_of(query, shape), tree_of(query, shape)
    for each in (op, twin):
        each.push("c", row(0, 4, 0))
        each.push("a", row(2**62, 0, 0))
        each.push("a", row(3, 0, 0))
    before = op.live_rows()
    for _ in range(2):
        with pytest.raises((sj.DataError, ZeroDivisionError)):
            op.push("b", pa.table({"x": [3, 2**62], "y": [4, 4], "t": [1, 1]}, schema=SCHEMA))
        op.validate()
        assert op.live_rows() == before
    for each in (op, twin):
        assert each.push("b", row(3, 4, 1)).rows.num_rows == 1
    assert op.stats() == twin.stats()


def test_intermediate_results_go_by_time() -> None:
    query = chain(within=sj.within(10), late="error", result_time="newest")
    op = tree_of(query, "((a b) c)")
    most, found = 0, 0
    for t in range(200):
        for name in "abc":
            out = op.push(name, row(t % 3, t % 2, t))
            found += out.rows.num_rows
            if out.rows.num_rows:
                newest = [max(r["a_t"], r["b_t"], r["c_t"]) for r in out.rows.to_pylist()]
                assert out.rows.column("newest").to_pylist() == newest
        most = max(most, sum(op.live_rows().values()))
    single = sj.Operator(query, schemas=dict.fromkeys("abc", SCHEMA))
    assert found == sum(
        single.push(name, row(t % 3, t % 2, t)).rows.num_rows for t in range(200) for name in "abc"
    )
    assert most < 200
    assert op.stats().invalidated["(a b)"] > 300
    with pytest.raises(sj.LateRowError, match="stream 'c', time column 't'"):
        op.push("c", row(0, 0, 5))


def test_a_minimal_set_of_schemes_is_all_that_is_kept() -> None:
    a = sj.Stream("a", time="t", punctuations=["x", "y"])
    b = sj.Stream("b", time="t", punctuations=["x"], unique=("x", "y"))
    c = sj.Stream("c", time="t", punctuations=["x"])
    query = sj.Query([a, b, c], ["a.x = b.x", "b.y = a.y", "b.x = c.x"])
    for shape in ("(a b c)", "((a b) c)"):
        plan = plan_of(query, shape, schemes="minimal")
        used = {(name, columns) for node in plan.root.nodes() for name, columns in node.schemes}
        declared = [(s.name, scheme) for s in query.streams for scheme in s.schemes]
        spare = [each for each in declared if each not in used]
        assert spare
        everything, minimal = tree_of(query, shape), tree_of(query, shape, schemes="minimal")
        for op in (everything, minimal):
            for name, columns in spare:
                op.punctuate(name, dict.fromkeys(columns, 5))
            op.push("b", row(1, 1, 0))
        kept = [sum(op.stats().punctuations_held.values()) for op in (everything, minimal)]
        assert kept[0] > kept[1] == 0
        again = sj.Operator.restore(query, minimal.snapshot())
        again.punctuate(spare[0][0], dict.fromkeys(spare[0][1], 6))
        assert sum(again.stats().punctuations_held.values()) == 0
        assert again.plan == plan


def test_a_safe_tree_whose_punctuations_never_come_is_reported_as_growing() -> None:
    op = tree_of(chain(), "((a b) c)")
    for start in range(0, 3000, 20):
        values = list(range(start, start + 20))
        for name in "ab":
            op.push(name, pa.table({"x": values, "y": values, "t": values}, schema=SCHEMA))
    growing = op.stats().growing
    assert growing.keys() == {"a", "b", "(a b)"}
    assert "growing: (a b), 3,000 rows" in str(op.stats())


def test_a_column_that_equals_two_of_another_stream_joins_only_rows_that_have_them_equal() -> None:
    for punctuations in ([], ["x"]):
        streams = [sj.Stream(name, time="t", punctuations=punctuations) for name in "abc"]
        on = ["a.x = c.x", "a.y = c.x", "a.x = b.x"]
        query = sj.Query(streams, on, within=sj.within(50), require_safe=False)
        for inputs in (("a", "b"), ("a", "c"), ("b", "c")):
            rest = next(StreamLeaf(name) for name in "abc" if name not in inputs)
            below = JoinNode(tuple(map(StreamLeaf, inputs)))
            plan = sj.Plan(JoinNode((below, rest)), Cost(0, 0, 0))
            op = sj.Operator(query, plan=plan, schemas=dict.fromkeys("abc", SCHEMA))
            for name in "bc":
                op.push(name, row(1, 9, 0))
            rows = pa.table({"x": [1, 1], "y": [1, 2], "t": [1, 1]}, schema=SCHEMA)
            assert op.push("a", rows).rows.column("a_y").to_pylist() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"disorder": sj.Slack(5)}, r"a tree of joins needs disorder=InOrder\(\) \(rows wait"),
        ({"algorithm": "merge", "within": sj.within(5)}, "needs algorithm 'auto', 'hash' or 'nested_loop'"),
    ],
)
def test_what_a_tree_cannot_run_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    query = chain()
    plan = plan_of(query, "((a b) c)")
    other = sj.Query(query.streams, query.on, **options)
    with pytest.raises(sj.QueryError, match=message):
        sj.Operator(other, plan=plan, schemas=dict.fromkeys("abc", SCHEMA))


def test_lifespans_other_variants_and_other_streams_are_refused_by_name() -> None:
    query = chain()
    plan, schemas = plan_of(query, "((a b) c)"), dict.fromkeys("abcd", SCHEMA)
    streams = [sj.Stream("a", time="t", punctuations=["x"], lifespan=5), *query.streams[1:]]
    with pytest.raises(sj.QueryError, match="needs streams without lifespan"):
        sj.Operator(sj.Query(streams, query.on), plan=plan, schemas=dict.fromkeys("abc", SCHEMA))
    with pytest.raises(sj.QueryError, match="variant: expected 'pwjoin' for a tree of joins, got 'wjoin'"):
        sj.Operator(query, plan=plan, schemas=dict.fromkeys("abc", SCHEMA), variant="wjoin")
    other = sj.Query([*query.streams, sj.Stream("d", time="t", punctuations=["x"])], [*query.on, "a.x = d.x"])
    with pytest.raises(sj.QueryError, match=r"plan: expected a plan of the streams \['a', 'b', 'c', 'd'\]"):
        sj.Operator(other, plan=plan, schemas=schemas)
    with pytest.raises(sj.QueryError, match=r"plan: expected 'cheapest', 'single' or one of query\.plans"):
        sj.Operator(query, plan="((a b) c)", schemas=schemas)  # type: ignore[arg-type]


def test_a_join_that_only_windows_of_two_streams_below_could_bound_is_refused() -> None:
    """c waits for b, and a for c: one time of (a b) cannot be both."""
    streams = [sj.Stream(name, time="t", punctuations=["x"] if name != "c" else ()) for name in "abc"]
    bounds = [sj.between("a", "c", upper=5), sj.between("c", "b", upper=5)]
    query = sj.Query(streams, ["a.x = b.x", "b.y = c.y"], within=bounds)
    plan = plan_of(query, "((a b) c)")
    with pytest.raises(sj.QueryError, match=r"the join \(\(a b\) c\) would keep rows of"):
        sj.Operator(query, plan=plan, schemas=dict.fromkeys("abc", SCHEMA))
