"""Random m-way queries and scripts: every algorithm against the nested-loop oracle, after every operation.

`STREAMJOIN_MULTI_SEEDS` sets the number of cases (300). A failure prints its seed, query and script; replay
it with `case = make_case(SEED); judge(case, ALGORITHM, expected_steps(case))`.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from multi_oracle import Result
from multi_runner import ALGORITHMS, expected_steps, judge, operator_for, perform, results_of
from random_multi import MultiCase, cut_pushes, interleave, make_case

SEEDS = int(os.environ.get("STREAMJOIN_MULTI_SEEDS", "300"))
CHUNK = 50


def chunks(share: float = 1.0) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("first", range(0, max(int(SEEDS * share), 1), CHUNK))


def all_results(case: MultiCase, algorithm: str) -> Counter[Result]:
    operator = operator_for(case, algorithm)
    return sum((results_of(case, perform(operator, case, op)) for op in case.script), Counter[Result]())


@chunks()
def test_every_algorithm_emits_what_the_oracle_says(first: int) -> None:
    results = 0
    for seed in range(first, first + CHUNK):
        case = make_case(seed)
        steps = expected_steps(case)
        results += sum(sum(step.required.values()) for step in steps)
        for algorithm in ALGORITHMS:
            judge(case, algorithm, steps)
    assert results > CHUNK, "the cases must have results"


@chunks(0.3)
def test_a_snapshot_anywhere_changes_nothing(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case = make_case(seed)
        rng = random.Random(seed)
        algorithm, place = rng.choice(ALGORITHMS), rng.randrange(len(case.script))
        judge(case, algorithm, expected_steps(case), restore_at=place)


@chunks(0.3)
def test_batches_and_interleaving_change_no_result(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case = make_case(seed, clean=True)
        expected = sum((step.required for step in expected_steps(case)), Counter[Result]())
        for other in (cut_pushes(case, seed), interleave(case, seed)):
            algorithm = random.Random(seed).choice(ALGORITHMS)
            assert all_results(other, algorithm) == expected, f"{algorithm}\n{other}"


def test_ten_streams() -> None:
    for seed in range(5):
        case = make_case(seed, streams=10)
        steps = expected_steps(case)
        for algorithm in ALGORITHMS:
            judge(case, algorithm, steps)
