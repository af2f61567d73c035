"""The oracle itself: hand-worked scripts, and the rules of forgetting against the definition of the join."""

from __future__ import annotations

from collections import Counter

import pytest
from oracle import Oracle, Rules, Step, result_by_definition
from random_scripts import interleave, make_case
from script import (
    LEFT,
    RIGHT,
    Advance,
    Anything,
    Between,
    Const,
    Finish,
    OneOf,
    Op,
    Punctuate,
    Push,
    Row,
)

ONE_INT = {"domain": ((0, 1, 2, 3),), "null_safe": (False,)}


def left(id_: int, key: int | None, time: int, p: int | None = None) -> Push:
    return Push(LEFT, (Row(id_, (key,), time, p),))


def right(id_: int, key: int | None, time: int, p: int | None = None) -> Push:
    return Push(RIGHT, (Row(id_, (key,), time, p),))


def closes(stream: int, *keys: int, time: int = 0) -> Punctuate:
    return Punctuate(stream, (OneOf(keys),), time)


def play(rules: Rules, *ops: Op) -> list[Step]:
    oracle = Oracle(rules)
    return [oracle.run(op) for op in ops]


def test_both_ends_of_the_window_belong_to_it() -> None:
    steps = play(
        Rules(lower=-2, upper=3, **ONE_INT),
        left(1, 0, 10),
        right(11, 0, 7),
        right(12, 0, 8),
        right(13, 0, 13),
        right(14, 0, 14),
    )
    assert [step.rows for step in steps] == [[], [], [(1, 12)], [(1, 13)], []]


def test_an_unmatched_left_row_comes_when_the_right_clock_passes_its_reach() -> None:
    steps = play(
        Rules(upper=5, how="left", **ONE_INT), left(1, 0, 10), Advance(RIGHT, 14), Advance(RIGHT, 15)
    )
    assert [step.rows for step in steps] == [[], [], [(1, None)]]


def test_a_punctuation_purges_the_other_side_and_is_early_once_its_own_rows_are_gone() -> None:
    oracle = Oracle(Rules(lower=-5, upper=5, how="inner", **ONE_INT))
    for op in (left(1, 0, 0), right(11, 0, 1), right(12, 1, 1)):
        oracle.run(op)
    step = oracle.run(closes(RIGHT, 0, 2))
    assert oracle.state_rows(LEFT) == 0  # row 1 purged
    assert oracle.state_rows(RIGHT) == 2  # right rows stay: left may still send key 0
    assert step.propagated == [((2,), "immediate")]  # nobody holds 2; 0 still has row 11
    assert oracle.run(left(2, 0, 3)).rows == [(2, 11)]
    assert oracle.counters["discarded_on_the_fly", LEFT] == 1
    assert oracle.run(Advance(LEFT, 5)).propagated == []  # row 11 reaches 6
    assert oracle.run(Advance(LEFT, 6)).propagated == [((0,), "early")]
    assert oracle.run(left(3, 0, 7)).rows == []
    assert oracle.counters["dropped_after_propagation", LEFT] == 1


@pytest.mark.parametrize(
    ("how", "left_first", "right_first"),
    [
        ("inner", ["immediate", None], ["immediate", None]),
        ("left", ["immediate", None], [None, "regular"]),
        ("right", [None, "regular"], ["immediate", None]),
        ("full", [None, "regular"], [None, "regular"]),
        ("left_semi", ["immediate", None], ["immediate", None]),
        ("left_anti", ["immediate", None], [None, "regular"]),
    ],
)
def test_who_may_close_a_value(how: str, left_first: list[str | None], right_first: list[str | None]) -> None:
    for order, kinds in (((LEFT, RIGHT), left_first), ((RIGHT, LEFT), right_first)):
        steps = play(Rules(how=how, **ONE_INT), *(closes(s, 1) for s in order))
        assert [step.propagated for step in steps] == [[((1,), kind)] if kind else [] for kind in kinds]


def test_a_value_promised_by_both_is_forgotten_and_may_be_used_again() -> None:
    oracle = Oracle(Rules(**ONE_INT))
    for op in (closes(LEFT, 1), closes(RIGHT, 1), left(1, 1, 0), right(11, 1, 0)):
        step = oracle.run(op)
    assert step.rows == [(1, 11)]
    assert oracle.counters["violations", LEFT] == 0
    assert oracle.broken == {(1,)}


def test_a_promise_is_forgotten_after_its_lifespan() -> None:
    oracle = Oracle(Rules(lifespan=(None, 4), **ONE_INT))
    oracle.run(closes(RIGHT, 1, time=10))
    assert oracle.run(right(11, 1, 14)).violations == [11]
    assert oracle.run(right(12, 1, 15)).violations == []
    assert oracle.run(left(1, 1, 15)).rows == [(1, 12)]


def test_semi_emits_a_left_row_once_and_anti_only_the_lonely() -> None:
    script = (left(1, 0, 0), left(2, 1, 0), right(11, 0, 0), right(12, 0, 0), left(3, 0, 0), Finish())
    assert [s.rows for s in play(Rules(how="left_semi", **ONE_INT), *script)] == [
        [],
        [],
        [(1, None)],
        [],
        [(3, None)],
        [],
    ]
    assert [s.rows for s in play(Rules(how="left_anti", **ONE_INT), *script)] == [
        [],
        [],
        [],
        [],
        [],
        [(2, None)],
    ]


def test_unique_and_clustered_streams_promise_by_themselves() -> None:
    unique = Oracle(Rules(unique=(True, False), **ONE_INT))
    unique.run(left(1, 0, 0))
    assert unique.run(left(2, 0, 0)).violations == [2]
    clustered = Oracle(Rules(clustered=(True, False), **ONE_INT))
    for op in (left(1, 0, 0), left(2, 0, 0), left(3, 1, 0)):
        assert clustered.run(op).violations == []
    assert clustered.run(left(4, 0, 0)).violations == [4]


def test_a_late_row_is_dropped_or_joins_what_is_still_held() -> None:
    script = (left(1, 0, 5), right(11, 0, 6), left(2, 0, 4))
    assert [s.rows for s in play(Rules(lower=-9, upper=9, **ONE_INT), *script)] == [[], [(1, 11)], []]
    inserted = play(Rules(lower=-9, upper=9, late="insert", **ONE_INT), *script)
    assert [s.rows for s in inserted] == [[], [(1, 11)], [(2, 11)]]
    assert inserted[2].late == [2]


def test_partial_patterns_cover_every_value_of_the_free_attribute() -> None:
    oracle = Oracle(Rules(domain=((0, 1), (0, 1)), null_safe=(False, False)))
    step = oracle.run(Punctuate(LEFT, (Const(1), Anything()), 0))
    assert {value for value, _ in step.propagated} == {(1, 0), (1, 1)}
    step = oracle.run(Punctuate(RIGHT, (Between(None, 1), Const(0)), 0))
    assert step.propagated == [((0, 0), "immediate")]  # (1, 0) was out already


def test_null_equals_null_only_when_asked() -> None:
    for safe, expected in ((False, []), (True, [(1, 11)])):
        rules = Rules(domain=((0, None),), null_safe=(safe,))
        assert play(rules, left(1, None, 0), right(11, None, 0))[1].rows == expected


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_forgetting_never_changes_the_result_nor_does_the_interleaving(first: int) -> None:
    for seed in range(first, first + 100):
        case = make_case(seed, clean=True)
        expected = result_by_definition(case.rules, list(case.script))
        for version in (case, interleave(case, 1), interleave(case, 2)):
            oracle = Oracle(version.rules)
            seen = Counter(row for op in version.script for row in oracle.run(op).rows)
            assert seen == expected, f"{version}"
            assert not oracle.broken, f"{version}"
            assert oracle.state_rows(LEFT) == oracle.state_rows(RIGHT) == 0


def test_random_scripts_reach_every_corner() -> None:
    reached: Counter[str] = Counter()
    for seed in range(1500):
        case = make_case(seed)
        oracle = Oracle(case.rules)
        for op in case.script:
            step = oracle.run(op)
            reached.update(f"{case.rules.how} row" for _ in step.rows)
            reached.update(f"{case.rules.how} {kind}" for _, kind in step.propagated)
        reached.update(name for name, _ in oracle.counters)
    corners = [f"{how} row" for how in ("inner", "left", "right", "full", "left_semi", "left_anti")]
    corners += [
        f"{how} {kind}"
        for how in ("inner", "left", "right", "left_semi", "left_anti")
        for kind in ("regular", "early", "immediate")
    ]
    corners += [
        "full regular",
        "late",
        "violations",
        "purged",
        "invalidated",
        "discarded_on_the_fly",
        "dropped_after_propagation",
    ]
    assert {corner: reached[corner] for corner in corners if reached[corner] < 30} == {}
