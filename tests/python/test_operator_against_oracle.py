"""Random scripts: the operator against the nested-loop oracle, after every operation.

`STREAMJOIN_SEEDS` sets the number of scripts (3000). A failure prints its seed, query and script; replay it
with `case = make_case(SEED); Trial(case, operator_for(case)).run()`.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
import streamjoin as sj
from random_scripts import Case, cut_pushes, interleave, make_case
from script import Finish
from script_runner import Trial, assert_nothing_left, declare, observe, perform

SEEDS = int(os.environ.get("STREAMJOIN_SEEDS", "3000"))
CHUNK = 100


def chunks(share: float = 1.0) -> pytest.MarkDecorator:
    """Parametrises over chunks of seeds; `share` of all seeds, at least one chunk."""
    return pytest.mark.parametrize(
        "seeds", range(0, max(int(SEEDS * share), 1), CHUNK), ids=lambda first: f"{first}"
    )


def operator_for(case: Case, **options: str) -> sj.Operator:
    query, schemas = declare(case)
    return sj.Operator(query, schemas=schemas, **options)


def run_all(case: Case, **options: str) -> tuple[list[tuple[int | None, int | None]], sj.Operator]:
    """All result rows of a script in order, without a judge."""
    operator = operator_for(case, **options)
    rows = [row for op in case.script for row in observe(case, perform(operator, case, op)).rows]
    return rows, operator


@chunks()
def test_every_operation_emits_what_the_oracle_says(seeds: int) -> None:
    for seed in range(seeds, min(seeds + CHUNK, SEEDS)):
        case = make_case(seed)
        Trial(case, operator_for(case)).run()


@chunks(0.2)
def test_clean_streams_are_judged_by_the_definition_too(seeds: int) -> None:
    for seed in range(seeds, seeds + CHUNK):
        case = make_case(seed, clean=True)
        Trial(case, operator_for(case)).run()


@chunks(0.1)
def test_cutting_batches_changes_nothing_not_even_the_order(seeds: int) -> None:
    for seed in range(seeds, seeds + CHUNK):
        case = make_case(seed)
        whole, whole_operator = run_all(case)
        pieces, pieces_operator = run_all(cut_pushes(case, seed))
        assert pieces == whole, f"{case}"
        for counter in ("rows_in", "late", "violations", "purged", "invalidated", "discarded_on_the_fly"):
            assert getattr(pieces_operator.stats(), counter) == getattr(whole_operator.stats(), counter), (
                f"{case}"
            )


@chunks(0.2)
def test_a_restored_snapshot_goes_on_as_the_original_would(seeds: int) -> None:
    for seed in range(seeds, seeds + CHUNK):
        case = make_case(seed)
        query, schemas = declare(case)
        trial = Trial(case, sj.Operator(query, schemas=schemas))
        moment = random.Random(f"snapshot {seed}").randrange(len(case.script))
        for op in case.script[:moment]:
            trial.perform(op)
        original = trial.operator
        trial.operator = sj.Operator.restore(query, original.snapshot())
        trial.operator.validate()
        for op in case.script[moment:]:
            restored = trial.perform(op)
            assert observe(case, perform(original, case, op)).rows == restored.rows, f"{case}"


@chunks(0.1)
def test_calls_repeated_without_results_lead_to_the_same_state(seeds: int) -> None:
    for seed in range(seeds, seeds + CHUNK):
        case = make_case(seed)
        loud, silent = operator_for(case), operator_for(case)
        moment = random.Random(f"repeat {seed}").randrange(len(case.script))
        for op in case.script[:moment]:
            perform(loud, case, op)
            with silent.without_results():
                out = perform(silent, case, op)
            assert not any(t.num_rows for t in (out.rows, out.punctuations, out.late, out.violations))
        assert silent.stats() == loud.stats(), f"{case}"
        silent.validate()
        for op in case.script[moment:]:
            assert observe(case, perform(silent, case, op)) == observe(case, perform(loud, case, op)), (
                f"{case}"
            )


@chunks(0.1)
def test_the_interleaving_of_the_streams_does_not_change_the_result(seeds: int) -> None:
    for seed in range(seeds, seeds + CHUNK):
        case = make_case(seed, clean=True)
        expected = Counter(run_all(case)[0])
        for other in range(3):
            rows, operator = run_all(interleave(case, other))
            assert Counter(rows) == expected, f"interleaving {other} of\n{case}"
            assert_nothing_left(operator)


@chunks(0.1)
def test_all_variants_of_the_join_give_the_same_inner_result(seeds: int) -> None:
    for seed in range(seeds, seeds + CHUNK):
        case = make_case(seed, clean=True, how="inner")
        expected = Counter(run_all(case)[0])
        for variant in ("pwjoin", "wjoin", "pjoin"):
            rows, operator = run_all(case, variant=variant)
            assert Counter(rows) == expected, f"{variant} on\n{case}"
            assert_nothing_left(operator)


def test_every_script_ends_with_finish_and_leaves_nothing() -> None:
    for seed in range(50):
        case = make_case(seed)
        assert isinstance(case.script[-1], Finish)
        assert_nothing_left(run_all(case)[1])
