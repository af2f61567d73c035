"""Joins of three and more streams as users write them: declarations, refusals, results worked out by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import streamjoin as sj

SCHEMA = pa.schema([("k", pa.int64()), ("l", pa.string()), ("x", pa.float64()), ("t", pa.int64())])
NAMES = ("a", "b", "c")
ON = ("a.k = b.k", "b.l = c.l")
ALGORITHMS = ("auto", "hash", "merge", "merge_gca", "merge_lca", "nested_loop", "nested_loop_pipeline")


def query_of(names: tuple[str, ...] = NAMES, on: tuple[str, ...] = ON, **options: Any) -> sj.Query:
    options = {"within": sj.within(10), **options}
    return sj.Query([sj.Stream(name, time="t") for name in names], on, **options)


def operator_of(query: sj.Query) -> sj.Operator:
    return sj.Operator(query, schemas=dict.fromkeys(query.stream_names, SCHEMA))


def table(*rows: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def times_of(out: sj.Output, names: tuple[str, ...] = NAMES) -> list[tuple[int, ...]]:
    return sorted(zip(*(out.rows.column(f"{name}_t").to_pylist() for name in names), strict=True))


# Declarations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: query_of(on=("a.k = d.k",)), "expected one of the streams .*, got 'd'"),
        (lambda: query_of(on=("a.k = a.l",)), "expected columns of two streams, got 'a' twice"),
        (lambda: query_of(within=sj.within("a", "d", 3)), "got 'd'"),
        (lambda: query_of(within=sj.within("a", "a", 3)), "expected two different streams, got 'a' twice"),
        (lambda: query_of(within=[], on=("a.k = b.k",)), "nothing ties stream 'a' to 'c'"),
        *(
            (lambda how=how: query_of(how=how), f"a join of 3 streams must be 'inner', got '{how}'")
            for how in ("left", "right", "full", "left_semi", "left_anti")
        ),
        (lambda: query_of(within=sj.follows("b", "b", within=3)), "expected two different streams, got 'b'"),
        (lambda: query_of(within=sj.between("c", "c", lower=0)), "expected two different streams, got 'c'"),
        (lambda: query_of(algorithm="sort_merge"), "algorithm: expected one of .*, got 'sort_merge'"),
        (lambda: query_of(where="a.x < d.x"), "expected one of the streams .*, got 'd'"),
        (lambda: query_of(where=sj.band("a.x", "d.x", 1)), "d.x is of none of the streams"),
        (
            lambda: query_of(within=[sj.within(3), sj.between("a", "c", lower=5)]),
            r"contradict .*time\(a\) - time\(c\) <= -5 us, time\(c\) - time\(a\) <= 3 us",
        ),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_by_name(declare: Any, message: str) -> None:
    with pytest.raises(sj.QueryError, match=f"(?s){message}"):
        declare()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": ("a.z = b.k", "b.k = c.k")}, "stream 'a': expected a column 'z'"),
        ({"where": "a.z < b.k"}, "expected a column a.z"),
        ({"where": "a.k < b.k and c.l < b.k"}, "does not fit its columns"),
        ({"where": sj.band("a.l", "c.x", 1)}, "column a.l must hold numbers, got string"),
        ({"on": ("a.k = b.k", "b.k = c.l")}, "a.k = b.k = c.l: expected columns whose values can be equal"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_by_name(options: Any, message: str) -> None:
    with pytest.raises(sj.QueryError, match=message):
        operator_of(query_of(**options))


def test_streams_without_a_bound_are_named() -> None:
    open_end = [sj.within("a", "b", 3), sj.between("b", "c", lower=0)]
    with pytest.raises(
        sj.UnsafeQueryError, match=r"(?s)'a' would grow.*no window bounds how late rows of 'c'"
    ):
        operator_of(query_of(within=open_end))
    explained = query_of(within=open_end).explain()
    assert "nothing says how long after a row of a one of c may come" in explained
    assert "nothing says how long after a row of c one of a may come" not in explained


def test_schemes_bound_the_state_without_any_window() -> None:
    streams = [sj.Stream(name, time="t", punctuations=["k"]) for name in NAMES]
    op = operator_of(sj.Query(streams, ["a.k = b.k", "b.k = c.k"]))
    for name in NAMES:
        op.push(name, table((1, "", 0, 0), (2, "", 0, 0)))
    op.punctuate("b", {"k": [1, 2]})
    assert op.stats().state_rows == {"a": 2, "b": 2, "c": 2}  # c may still come, for a and for b
    closed = op.punctuate("c", {"k": 1})
    assert op.stats().state_rows == {"a": 1, "b": 2, "c": 2}  # b and c wait for a
    assert closed.punctuations.num_rows == 0
    assert op.push("a", table((1, "", 0, 1))).rows.num_rows == 1
    assert op.stats().discarded_on_the_fly == {"a": 1, "b": 0, "c": 0}
    closed = op.punctuate("a", {"k": 1}, time=1)
    assert op.stats().state_rows == {"a": 1, "b": 1, "c": 1}
    assert op.stats().purged == {"a": 1, "b": 1, "c": 1}
    assert [row["b_k"] for row in closed.punctuations.to_pylist()] == [1]


def test_rows_that_imply_promises_purge_in_joins_of_three() -> None:
    streams = [sj.Stream(name, time="t", unique="k") for name in NAMES]
    op = operator_of(sj.Query(streams, ["a.k = b.k", "b.k = c.k"]))
    op.push("a", table((1, "", 0, 0)))
    op.push("b", table((1, "", 0, 0)))
    assert op.stats().state_rows == {"a": 1, "b": 1, "c": 0}
    assert op.push("c", table((1, "", 0, 0))).rows.num_rows == 1
    assert op.stats().state_rows == {"a": 0, "b": 0, "c": 0}
    assert op.push("c", table((1, "", 0, 0))).violations.num_rows == 1


def test_a_batch_that_breaks_a_promise_is_refused_as_a_whole() -> None:
    streams = [sj.Stream(name, time="t", punctuations=["k"]) for name in NAMES]
    op = operator_of(sj.Query(streams, ["a.k = b.k", "b.k = c.k"], on_violation="error"))
    op.punctuate("a", {"k": sj.Range(5, 9)})
    with pytest.raises(
        sj.PunctuationViolation, match=r"stream 'a', columns \['k'\]: .* got {'k': 7} in row 1"
    ):
        op.push("a", table((1, "", 0, 0), (7, "", 0, 0)))
    assert op.stats().state_rows["a"] == op.stats().rows_in["a"] == 0


def test_punctuations_without_windows_are_for_two_streams_joined_on_values() -> None:
    with pytest.raises(
        sj.QueryError, match=r"variant: expected 'pwjoin' or 'wjoin' for hash of 3 .*, got 'pjoin'"
    ):
        sj.Operator(query_of(), schemas=dict.fromkeys(NAMES, SCHEMA), variant="pjoin")


# Choice of algorithm ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "name", "binary"),
    [
        ({}, "hash", False),
        ({"names": ("a", "b"), "on": ("a.k = b.k",)}, "hash", True),
        ({"names": ("a", "b"), "on": ("a.k = b.k",), "algorithm": "hash"}, "hash", True),
        ({"names": ("a", "b"), "on": ("a.k = b.k",), "algorithm": "merge"}, "merge_gca", False),
        ({"names": ("a", "b"), "on": ("a.k = b.k",), "algorithm": "nested_loop"}, "nested_loop", False),
        ({"algorithm": "nested_loop_pipeline"}, "nested_loop_pipeline", False),
        ({"names": ("a", "b"), "on": ("a.k = b.k",), "how": "left"}, "hash", True),
        ({"names": ("a", "b"), "on": (), "where": sj.band("a.x", "b.x", 1)}, "merge_gca", False),
        ({"on": ()}, "merge_gca", False),
        ({"on": (), "within": [sj.within("a", "b", 1), sj.within("b", "c", 9)]}, "merge_lca", False),
        ({"on": (), "algorithm": "merge_gca", "within": sj.path(*NAMES, within=[1, 9])}, "merge_gca", False),
    ],
)
def test_the_algorithm_follows_predicates_and_windows(options: Any, name: str, binary: bool) -> None:
    query = query_of(**options)
    assert (query.chosen_algorithm.name, query.chosen_algorithm.binary) == (name, binary)
    assert f"algorithm {name} (" in query.explain().splitlines()[0]


def rated(rates: list[float | None], **options: Any) -> sj.Query:
    streams = [sj.Stream(name, time="t", rate=rate) for name, rate in zip(NAMES, rates, strict=True)]
    return sj.Query(streams, **{"on": ON, "within": sj.within("10 ms"), **options})


@pytest.mark.parametrize(
    ("rates", "options", "name"),
    [
        ([100, 100, 200], {}, "merge_gca"),  # 200 rows a second in 20 ms: 4 rows
        ([100, 100, 210], {}, "hash"),
        ([100, 100, None], {}, "hash"),
        ([5, 5, 5], {"within": sj.follows("a", "b", within="10 ms")}, "hash"),  # c is bounded by nothing
        ([5, 5, 5], {"algorithm": "hash"}, "hash"),
        ([100, 500, 1000], {"on": ()}, "merge_gca"),
    ],
)
def test_declared_rates_choose_between_indexes_and_the_sweep(
    rates: list[float | None], options: Any, name: str
) -> None:
    query = rated(rates, **options)
    assert query.chosen_algorithm.name == name
    assert f"algorithm {name} (" in query.explain().splitlines()[0]


def test_explain_says_what_the_rates_had_to_do_with_it() -> None:
    assert "at most 4 rows of a stream lie in a row's period" in rated([200, 200, 200]).explain()
    assert "rates of 100 to 1000 rows a second" in rated([100, 500, 1000], on=()).explain()
    assert "a: time t, punctuations none, about 500 rows a second" in rated([500, 500, 500]).explain()


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), "fast", True])
def test_a_rate_is_a_positive_number(rate: Any) -> None:
    with pytest.raises(sj.QueryError, match="stream 'a', rate: expected a positive number, got "):
        sj.Stream("a", time="t", rate=rate)


def test_plans_know_the_declared_rates() -> None:
    declared = rated([500, 400, 300]).plans()
    given = query_of(within=sj.within("10 ms")).plans(rates={"a": 500, "b": 400, "c": 300})
    assert [plan.cost for plan in declared] == [plan.cost for plan in given]


def test_explain_prints_both_directions_and_when_each_condition_is_checked() -> None:
    both = sj.path(*NAMES, within=[5, 8], both_directions=True)
    text = query_of(within=both, where="a.x < b.x and a.x + b.x > c.x").explain()
    for line in (
        "  a.k = b.k",
        "  b.l = c.l",
        "  a.x < b.x  (residual, checked when a, b are bound)",
        "  (a.x + b.x) > c.x  (residual, checked when a, b, c are bound)",
        "  alternative 1 of 2; a result satisfies at least one",
        "  a      .   5 us   13 us*",
        "  alternative 2 of 2; a result satisfies at least one",
        "  c   13 us*   8 us      .",
    ):
        assert line in text.splitlines(), text


# Running ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_predicates_on_different_attributes_per_pair(algorithm: str) -> None:
    op = operator_of(query_of(algorithm=algorithm, result_time="at"))
    op.push("c", table((9, "u", 0, 1), (9, "v", 0, 2)))
    op.push("a", table((1, "-", 0, 3), (2, "-", 0, 4)))
    out = op.push("b", table((1, "u", 0, 5), (2, "u", 0, 11), (2, "v", 0, 13)))
    # (a at 4, c at 1, b at 11) has all keys equal, and 11 - 1 = 10 is just inside; 13 - 2 = 11 is not.
    assert times_of(out) == [(3, 5, 1), (4, 11, 1)]
    assert sorted(out.rows.column("at").to_pylist()) == [5, 11]
    assert out.rows.column_names == [f"{n}_{f}" for n in NAMES for f in SCHEMA.names] + ["at"]
    rest = op.finish()
    assert rest.rows.num_rows == 0
    assert rest.punctuations.select(["a_k", "b_k", "b_l", "c_l"]).to_pylist()[-1] == {
        "a_k": None,
        "b_k": None,
        "b_l": None,
        "c_l": None,
    }
    assert sum(op.stats().state_rows.values()) == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rows_that_satisfy_both_directions_count_once(algorithm: str) -> None:
    both = sj.path(*NAMES, within=[5, 5], both_directions=True)
    op = operator_of(query_of(on=(), within=both, algorithm=algorithm))
    op.push("a", table((1, "", 0, 0), (1, "", 0, 8)))
    op.push("b", table((1, "", 0, 0), (1, "", 0, 4)))
    out = op.push("c", table((1, "", 0, 0), (1, "", 0, 4)))
    # Forwards a <= b <= c: (0,0,0) (0,0,4) (0,4,4). Backwards c <= b <= a: (0,0,0) (8,4,0) (8,4,4).
    # (0,4,0) goes neither way, (8,0,0) takes a step of 8.
    assert times_of(out) == [(0, 0, 0), (0, 0, 4), (0, 4, 4), (8, 4, 0), (8, 4, 4)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_self_join_is_one_input_under_two_names(algorithm: str) -> None:
    names = ("a", "b")
    query = query_of(names, on=("a.k = b.k",), within=sj.follows("a", "b", within=5), algorithm=algorithm)
    op = operator_of(query)
    found = []
    for batch in (table((1, "", 0, 0), (1, "", 0, 3)), table((1, "", 0, 3), (2, "", 0, 4), (1, "", 0, 9))):
        found += [times_of(op.push(name, batch), names) for name in names]
    pairs = sorted(pair for step in found for pair in step)
    # Key 1 at 0, 3, 3, 9: every ordered pair at most 5 apart, a row with itself included; key 2 with itself.
    assert pairs == [(0, 0), (0, 3), (0, 3), (3, 3), (3, 3), (3, 3), (3, 3), (4, 4), (9, 9)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_ten_streams_give_every_combination_that_fits(algorithm: str) -> None:
    names = tuple("abcdefghij")
    on = tuple(f"{left}.k = {right}.k" for left, right in pairwise(names))
    op = operator_of(query_of(names, on=on, algorithm=algorithm))
    for name in names[:-1]:
        assert op.push(name, table((1, "", 0, 0), (2, "", 0, 0))).rows.num_rows == 0
    op.push("c", table((1, "", 0, 4)))  # key 1 twice in c
    op = sj.Operator.restore(op.query, op.snapshot())
    op.push("h", table((1, "", 0, 9)))  # and twice in h, where 9 is too late for 0 if j comes at 12
    assert times_of(op.push("j", table((1, "", 0, 10))), ("c", "h", "j")) == [
        (0, 0, 10), (0, 9, 10), (4, 0, 10), (4, 9, 10)
    ]  # fmt: skip
    assert op.push("j", table((2, "", 0, 10), (2, "", 0, 11))).rows.num_rows == 1  # 11 is past 0 + 10


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_input_under_three_names(algorithm: str) -> None:
    query = query_of(
        on=("a.k = b.k", "b.k = c.k"), within=sj.path(*NAMES, within=[3, 3]), algorithm=algorithm
    )
    op = operator_of(query)
    batch = table((1, "", 0, 0), (1, "", 0, 2), (2, "", 0, 3), (1, "", 0, 5))
    found = sorted(row for name in NAMES for row in times_of(op.push(name, batch)))
    times = (0, 2, 5)
    assert found == sorted(
        [(x, y, z) for x in times for y in times for z in times if 0 <= y - x <= 3 and 0 <= z - y <= 3]
        + [(3, 3, 3)]
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_function_gets_all_columns_of_all_streams(algorithm: str) -> None:
    seen: set[str] = set()

    def where(columns: dict[str, Any]) -> Any:
        seen.update(columns)
        return np.asarray(columns["a.k"] + columns["c.k"] == 3)

    op = operator_of(query_of(on=(), where=where, algorithm=algorithm))
    op.push("a", table((1, "", 0, 0), (2, "", 0, 0)))
    op.push("b", table((0, "", 0, 0)))
    out = op.push("c", table((1, "", 0, 0), (5, "", 0, 0)))
    assert out.rows.select(["a_k", "c_k"]).to_pylist() == [{"a_k": 2, "c_k": 1}]
    assert seen == {f"{name}.{column}" for name in NAMES for column in SCHEMA.names}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_failing_condition_leaves_the_operator_as_it_was(algorithm: str) -> None:
    op = operator_of(query_of(on=(), where="a.k + b.k < c.k", algorithm=algorithm))
    op.push("a", table((2**62, "", 0, 0)))
    op.push("c", table((2**62, "", 0, 0)))
    with pytest.raises(sj.DataError, match="cannot be computed on these rows"):
        op.push("b", table((1, "", 0, 0), (2**62, "", 0, 7)))
    op.validate()
    assert op.stats().rows_in["b"] == 0
    assert op.push("b", table((-1, "", 0, 5))).rows.num_rows == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_late_rows_are_refused_with_the_stream_and_the_clock(algorithm: str) -> None:
    op = operator_of(query_of(late="error", algorithm=algorithm))
    op.advance("b", 4)
    with pytest.raises(sj.LateRowError, match=r"stream 'b', time column 't': .*clock 5 .*got 4 .*in row 1"):
        op.push("b", table((1, "u", 0, 5), (1, "u", 0, 4)))
    assert op.stats().state_rows["b"] == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_late_row_is_handed_back_with_its_stream(algorithm: str) -> None:
    op = operator_of(query_of(algorithm=algorithm))
    op.push("c", table((1, "u", 0.5, 9)))
    out = op.push("c", table((2, "v", 1.5, 7)))
    assert out.late.select(["stream", "late_by", "a_k", "c_k", "c_l"]).to_pylist() == [
        {"stream": "c", "late_by": 2, "a_k": None, "c_k": 2, "c_l": "v"}
    ]


def test_without_declared_schemes_only_the_end_of_a_stream_can_be_promised() -> None:
    op = operator_of(query_of())
    op.push("a", table((1, "", 0, 0)))
    with pytest.raises(sj.DataError, match=r"stream 'b', punctuation of column 'k': .* expected ANY.* got 1"):
        op.punctuate("b", {"k": 1}, time=0)
    with pytest.raises(sj.DataError, match=r"expected patterns of the join attributes \['k', 'l'\], got 'x'"):
        op.punctuate("b", {"x": sj.ANY}, time=0)
    op.push("b", table((1, "u", 0, 0)))
    op.punctuate("a", {"k": sj.ANY}, time=0)
    op.punctuate("b", {"k": sj.ANY, "l": sj.ANY}, time=0)
    assert op.stats().state_rows == {"a": 1, "b": 1, "c": 0}
    assert op.push("c", table((9, "u", 0, 10))).rows.num_rows == 1
    closed = op.push("c", table((9, "u", 0, 11)))
    assert (closed.rows.num_rows, closed.punctuations.column("kind").to_pylist()) == (0, ["early"])
    assert op.stats().state_rows == {"a": 0, "b": 0, "c": 0}


def test_an_ended_stream_without_rows_closes_the_output() -> None:
    op = operator_of(query_of())
    op.push("a", table((1, "", 0, 0)))
    assert op.punctuate("b", {}, time=3).punctuations.to_pylist() == [
        {"a_k": None, "b_k": None, "b_l": None, "c_l": None, "time": 3, "kind": "early"}
    ]
    op.push("a", table((1, "", 0, 1)))
    assert op.stats().state_rows["a"] == 0
    assert op.finish().punctuations.num_rows == 0


def test_a_snapshot_belongs_to_its_algorithm() -> None:
    blob = operator_of(query_of(algorithm="merge")).snapshot()
    with pytest.raises(sj.SnapshotError, match="expected a snapshot of this query"):
        sj.Operator.restore(query_of(algorithm="hash"), blob)


def test_strings_nested_columns_and_times_of_every_kind_come_back() -> None:
    schema = pa.schema(
        [("k", pa.dictionary(pa.int8(), pa.string())), ("n", pa.list_(pa.int32())), ("t", pa.timestamp("ns"))]
    )
    query = query_of(on=("a.k = b.k", "b.k = c.k"), within=sj.within("1 s"))
    op = sj.Operator(query, schemas=dict.fromkeys(NAMES, schema))
    columns = [pa.array(["x", "y"]).dictionary_encode().cast(schema.field("k").type)]
    columns += [pa.array([[1], None], schema.field("n").type), pa.array([1, 2], schema.field("t").type)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    op.push("a", batch)
    op.push("b", batch)
    rows = op.push("c", batch).rows.sort_by("a_t")
    assert rows.column("b_k").to_pylist() == ["x", "y"]
    assert rows.column("c_n").to_pylist() == [[1], None]
