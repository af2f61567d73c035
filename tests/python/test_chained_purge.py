"""Chained purge of `sj.Operator` against the judge that tries everything, on random queries and streams."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from purge_judge import Beat, Op, Punctuate, PurgeJudge, Push, matches
from random_punctuated import COLUMNS, PunctuatedCase, declare, make_case

CASES = int(os.environ.get("STREAMJOIN_PURGE_CASES", "200"))
KINDS = {"int64": pa.int64(), "string": pa.string()}


def schema_of(case: PunctuatedCase) -> pa.Schema:
    keys = [(column, KINDS[case.kind]) for column in COLUMNS]
    return pa.schema([("id", pa.int64()), ("t", pa.int64()), *keys])


def perform(operator: sj.Operator, case: PunctuatedCase, op: Op) -> sj.Output:
    name = case.names[op.stream]
    match op:
        case Push(_, rows):
            records = [{"id": row.id, "t": row.time, **row.values} for row in rows]
            return operator.push(name, pa.Table.from_pylist(records, schema=schema_of(case)))
        case Punctuate(_, pattern, time):
            return operator.punctuate(name, pattern, time=time)
        case Beat(_, time):
            return operator.advance(name, time)


def live_ids(operator: sj.Operator, place: int) -> list[int]:
    operator._running.compact(place)
    return sorted(operator._running.stores[place].only_batch().column("id").to_pylist())


def results_of(case: PunctuatedCase, out: sj.Output) -> Counter[tuple[int, ...]]:
    columns = [out.rows.column(f"{name}_id").to_pylist() for name in case.names]
    return Counter(zip(*columns, strict=True))


class Promised:
    """The output punctuations so far: no later result matches one, and none that could be said is missing."""

    def __init__(self, case: PunctuatedCase, judge: PurgeJudge) -> None:
        self.case, self.judge = case, judge
        self.said: list[dict[str, Any]] = []

    def check_rows(self, out: sj.Output) -> None:
        for row in out.rows.to_pylist():
            for pattern in self.said:
                assert not all(matches(p, row[column]) for column, p in pattern.items()), (
                    f"result {row} after the punctuation {pattern}"
                )

    def add(self, out: sj.Output) -> None:
        for row in out.punctuations.to_pylist():
            said = {k: v for k, v in row.items() if v is not None and k.split("_")[0] in self.case.names}
            pattern = {k: v for k, v in said.items() if not k.endswith(("_low", "_high"))}
            for column in {k.rsplit("_", 1)[0] for k in said.keys() - pattern.keys()}:
                pattern[column] = sj.Range(said.get(f"{column}_low"), said.get(f"{column}_high"))
            self.said.append(pattern)

    def check_complete(self) -> None:
        """A constant that a stream has promised, and of which it stores no row, has been said."""
        for s, promises in enumerate(self.judge.promises):
            for promise in promises:
                if any(isinstance(p, (list, sj.Range)) for p in promise.pattern.values()):
                    continue
                values = [
                    {value for column, value in promise.pattern.items() if (s, column) in members}
                    for members in self.judge.same.values()
                ]
                if any(len(equal) > 1 for equal in values):  # matches no row that could join
                    continue
                if any(self.judge._speaks_of(promise, row) for row in self.judge.live[s]):
                    continue
                assert any(self._covers(said, s, promise.pattern) for said in self.said), (s, promise)

    def _covers(self, said: dict[str, Any], s: int, pattern: dict[str, Any]) -> bool:
        known = {
            f"{self.case.names[r]}_{other}": value
            for column, value in pattern.items()
            for r, other in self.judge.same[s, column]
        }
        return all(column in known and matches(p, known[column]) for column, p in said.items())


def judge_case(case: PunctuatedCase, *, purge: str = "eager", algorithm: str = "auto") -> None:
    query = declare(case, purge=purge, algorithm=algorithm)
    if query.chosen_algorithm.binary:  # has a judge of its own
        return
    operator = sj.Operator(query, schemas=dict.fromkeys(case.names, schema_of(case)), plan="single")
    judge = PurgeJudge(case.rules)
    promised = Promised(case, judge)
    restore_at = random.Random(case.seed).randrange(2 * len(case.script))
    for number, op in enumerate(case.script):
        try:
            if number == restore_at:
                operator = sj.Operator.restore(query, operator.snapshot())
            expected = judge.run(op)
            out = perform(operator, case, op)
            operator.validate()
            assert results_of(case, out) == expected.results
            if case.rules.on_violation == "drop":
                streams = out.violations.column("stream").to_pylist()
                rows = zip(streams, out.violations.to_pylist(), strict=True)
                assert [row[f"{stream}_id"] for stream, row in rows] == expected.violations
            if case.rules.monotone:
                promised.check_rows(out)
            promised.add(out)
            for place in range(case.rules.streams):
                stored = live_ids(operator, place)
                needed = sorted(row.id for row in judge.live[place])
                if purge == "eager":
                    assert stored == needed, f"stream {case.names[place]}"
                else:
                    assert set(stored) >= set(needed), f"stream {case.names[place]}"
            if case.rules.monotone and purge == "eager":
                promised.check_complete()
        except Exception as error:
            error.add_note(f"operation {number}, {purge}, {algorithm}, restored at {restore_at}, of\n{case}")
            raise
    operator.finish()
    stats = operator.stats()
    assert sum(stats.state_rows.values()) == stats.dictionary_entries == 0


@pytest.mark.parametrize("start", range(0, CASES, 50))
def test_exactly_the_rows_are_stored_that_may_still_be_needed(start: int) -> None:
    for seed in range(start, start + 50):
        judge_case(make_case(seed))


@pytest.mark.parametrize("start", range(0, CASES, 100))
def test_lazy_purge_gives_the_same_results_and_stores_no_less(start: int) -> None:
    for seed in range(start, start + 50):
        judge_case(make_case(seed), purge="lazy")


@pytest.mark.parametrize("start", range(0, CASES, 100))
def test_promises_that_end_and_promises_that_are_broken(start: int) -> None:
    for seed in range(start, start + 50):
        judge_case(make_case(seed, harsh=True))


@pytest.mark.parametrize(
    "algorithm", ["hash", "merge_gca", "merge_lca", "nested_loop", "nested_loop_pipeline"]
)
def test_every_algorithm_purges_alike(algorithm: str) -> None:
    for seed in range(5000, 5000 + CASES // 10):
        try:
            judge_case(make_case(seed), algorithm=algorithm)
        except sj.QueryError:  # a merge needs windows
            assert algorithm.startswith("merge")


def test_lazy_purge_bounds_the_state_however_few_the_promises_are() -> None:
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64())])
    streams = [sj.Stream(name, time="t", punctuations=["k"]) for name in "abc"]
    query = sj.Query(streams, ["a.k = b.k", "b.k = c.k"], purge="lazy")
    operator = sj.Operator(query, schemas=dict.fromkeys("abc", schema))
    most = 0
    for epoch in range(60):  # 150 rows and 30 promises each; 9,000 rows in all
        keys = [10 * epoch + i % 10 for i in range(100)]
        for name in "abc":
            operator.push(name, pa.table({"k": keys[:50], "t": [epoch] * 50}, schema=schema))
        for name in "abc":
            operator.punctuate(name, {"k": keys[:10]})
        most = max(most, sum(operator.live_rows().values()))
    assert most < 4500
