"""Disorder policies: bad parameters, Recall, idle streams, late rows, punctuations, predicates that throw."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import streamjoin as sj
from disorder_oracle import Row
from disorder_runner import Run, make_query, random_arrivals, table


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sj.Recall(0), "Recall, target: expected a recall above 0 and at most 1, got 0"),
        (lambda: sj.Recall(1.01), "at most 1, got 1.01"),
        (lambda: sj.Recall(float("nan")), "at most 1, got nan"),
        (lambda: sj.Recall(0.9, period="1 s", adapt_every="2 s"), "adapt_every: expected at most the period"),
        (lambda: sj.Recall(0.9, granularity=0), "granularity: expected a duration above zero, got 0"),
        (lambda: sj.Recall(0.9, basic_window="-1 s"), "basic_window: expected a duration above zero"),
        (lambda: sj.Recall(0.9, selectivity="guess"), "selectivity: expected one of"),
        (lambda: sj.Slack("-1 s"), "Slack, slack: expected a duration that is not negative, got '-1 s'"),
        (lambda: sj.Slack("soon"), "Slack, slack: expected a duration"),
        (lambda: sj.MaxSlack(idle_after="-1 s"), "idle_after: expected a duration that is not negative"),
        (lambda: sj.MaxSlack(idle_clock="sun"), "idle_clock: expected one of"),
        (
            lambda: make_query(2, sj.Slack(0), windows=[1, 1], on_violation="error"),
            "on_violation: under Slack",
        ),
    ],
)
def test_bad_parameters_are_query_errors(make: Any, message: str) -> None:
    with pytest.raises(sj.QueryError, match=message):
        make()


def recall_run(seed: int, policy: Any, *, longest: int, snapshots: bool) -> Run:
    arrivals = random_arrivals(random.Random(seed), 2, 300)
    run = Run(make_query(2, policy, windows=[40, 40]))
    run.feed(arrivals, random.Random(seed + longest), longest=longest, snapshots=snapshots)
    return run


@pytest.mark.parametrize("seed", range(10))
def test_recall_depends_neither_on_the_split_nor_on_snapshots(seed: int) -> None:
    policy = sj.Recall(0.95, period=200, adapt_every=20, granularity=2, basic_window=2)
    runs = [
        recall_run(seed, policy, longest=1, snapshots=False),
        recall_run(seed, policy, longest=20, snapshots=False),
        recall_run(seed, policy, longest=20, snapshots=True),
    ]
    told = [(r.op.stats().slack, r.op.stats().requirement, r.op.stats().estimated_recall) for r in runs]
    assert told[0] == told[1] == told[2]
    assert sorted(runs[0].results) == sorted(runs[1].results) == sorted(runs[2].results)
    assert runs[0].op.stats().slack_reason


@pytest.mark.parametrize("seed", range(5))
def test_recall_that_asks_for_nothing_is_slack_zero(seed: int) -> None:
    policy = sj.Recall(1e-12, period=20, adapt_every=20, granularity=2, basic_window=2)
    runs = [recall_run(seed, each, longest=10, snapshots=False) for each in (policy, sj.Slack(0))]
    assert runs[0].results == runs[1].results
    assert runs[0].late == runs[1].late
    assert runs[0].op.stats().slack == 0


def push(run: Run, stream: int, *times: int) -> None:
    rows = [Row(stream, time, 1, 1000 * stream + time) for time in times]
    run.take(run.op.push(run.query.stream_names[stream], table(rows, False)))


def test_a_stream_is_waited_for_unless_it_is_idle() -> None:
    waits = Run(make_query(3, sj.Slack(0), windows=[50, 50, 50]))
    goes_on = Run(make_query(3, sj.Slack(0, idle_after=20), windows=[50, 50, 50]))
    for run in (waits, goes_on):
        push(run, 2, 5)
        for time in (10, 28):
            push(run, 0, time)
            push(run, 1, time)
    assert waits.results == []
    assert sorted(goes_on.results) == [(10, 1010, 2005), (10, 1028, 2005), (28, 1010, 2005), (28, 1028, 2005)]
    push(goes_on, 2, 6)  # back, behind the clock; its window is open: it meets those to come
    assert sum(goes_on.op.stats().behind.values()) == 1
    push(goes_on, 2, -40)  # and this one is late
    assert goes_on.late == [(1960, 68)]


def test_by_the_wall_clock_a_silent_stream_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0
    monkeypatch.setattr("time.monotonic_ns", lambda: now)
    run = Run(make_query(3, sj.Slack(0, idle_after="10 s", idle_clock="wall"), windows=[50, 50, 50]))
    push(run, 2, 10)
    push(run, 0, 10)
    push(run, 1, 10, 11)
    assert sorted(run.results) == [(10, 1010, 2010)]
    now = 11 * 10**9
    push(run, 0, 12)
    push(run, 1, 12)
    assert (10, 1011, 2010) in run.results


def test_a_heartbeat_of_every_stream_moves_the_clock() -> None:
    run = Run(make_query(2, sj.Slack(100), windows=[10, 10], how="left"))
    push(run, 0, 5)
    run.take(run.op.advance("a", 50))
    assert run.results == []
    run.take(run.op.advance("b", 50))
    assert run.results == [(5, None)]


def test_late_error_refuses_the_batch_and_changes_nothing() -> None:
    run = Run(make_query(2, sj.Slack(0), windows=[10, 10], late="error"))
    push(run, 0, 100)
    push(run, 1, 100)
    before = run.op.snapshot()
    with pytest.raises(sj.LateRowError, match="a"):
        push(run, 0, 101, 50)
    assert run.op.snapshot() == before
    push(run, 0, 95)  # behind, but its window is open
    push(run, 1, 101)
    push(run, 0, 101)
    assert (95, 1101) in run.results


def test_late_insert_gives_an_outer_row_out_and_reports_nothing() -> None:
    run = Run(make_query(2, sj.Slack(0), windows=[10, 10], how="left", late="insert"))
    push(run, 0, 100)
    push(run, 1, 100)
    push(run, 0, 50)
    assert (50, None) in run.results
    assert run.late == []
    assert run.op.stats().late == {"a": 1, "b": 0}


def test_a_punctuation_waits_for_the_rows_before_it_and_is_applied_at_once_behind_the_clock() -> None:
    streams = [sj.Stream("a", time="t", punctuations=["k"]), sj.Stream("b", time="t", punctuations=["k"])]
    query = sj.Query(streams, on=["a.k = b.k"], disorder=sj.Slack(20))
    run = Run(query)
    push(run, 1, 10)
    run.take(run.op.punctuate("a", {"k": 1}, time=30))
    push(run, 0, 12)  # before the punctuation in time, after it in arrival
    push(run, 1, 60)
    push(run, 0, 60)
    run.take(run.op.finish())
    assert run.results == [(12, 1010), (12, 1060)]
    assert run.op.stats().violations == {"a": 1, "b": 0}  # the row at 60 came after its promise

    late = Run(query)
    push(late, 0, 100)
    push(late, 1, 100)
    push(late, 0, 200)
    push(late, 1, 200)
    assert late.op.stats().state_rows["b"] == 1
    late.take(late.op.punctuate("a", {"k": 1}, time=50))
    assert late.op.stats().state_rows["b"] == 0


def test_rows_wait_when_a_predicate_throws_and_are_joined_by_the_next_call() -> None:
    broken = True

    def holds(columns: dict[str, Any]) -> Any:
        if broken:
            raise RuntimeError("not now")
        return np.ones(len(columns["a.n"]), dtype=np.bool_)

    run = Run(make_query(2, sj.Slack(0), windows=[50, 50], where=holds))
    push(run, 0, 10, 20)
    with pytest.raises(RuntimeError, match="not now"):
        push(run, 1, 10, 20)
    with pytest.raises(RuntimeError, match="not now"):
        push(run, 1, 30)  # refused: the rows before it come first
    broken = False
    push(run, 0, 40)
    run.finish()
    assert sorted(run.results) == [
        (10, 1010), (10, 1020), (20, 1010), (20, 1020), (40, 1010), (40, 1020)
    ]  # fmt: skip


def test_explain_and_stats_tell_of_the_policy() -> None:
    query = make_query(2, sj.Recall(0.99, idle_after="1 min"), windows=[10, 10])
    for words in ("modelled recall of K", "0.99 of the true results", "after 1 min of event time"):
        assert words in query.explain()
    run = Run(query)
    push(run, 0, 10)
    stats = run.op.stats()
    assert stats.buffered == {"a": 1, "b": 0}
    assert (stats.slack, stats.slack_reason) == (0, "no interval has ended yet")
    assert "estimated_recall" in str(stats)


def stretch(rng: random.Random, start: int, count: int, first: int, delay: int) -> list[Row]:
    """Draw rows of two streams in which every third is late by at most `delay`."""
    rows = []
    for number in range(first, first + count):
        start += rng.randrange(3)
        late = rng.randrange(delay + 1) if rng.random() < 0.3 else 0
        rows.append(Row(rng.randrange(2), start - late, rng.randrange(4), number))
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_recall_forced_to_a_slack_gives_the_rows_of_that_slack(seed: int) -> None:
    # The granularity is above every delay, so K is 0 or 50; all results are asked for, so it is 50 from the
    # first delayed row's interval on. What comes after shares no window with what came before.
    rng = random.Random(seed)
    policy = sj.Recall(1, period=40, adapt_every=20, granularity=50, basic_window=50, selectivity="equal")
    before, after = stretch(rng, 1000, 100, 0, 50), stretch(rng, 9000, 150, 1000, 50)
    runs = []
    for each in (policy, sj.Slack(50)):
        run = Run(make_query(2, each, windows=[40, 40]))
        run.feed(before, random.Random(1), longest=5)
        for time in (5000, 5100, 5200):  # in order; the intervals of what came before end
            push(run, 0, time)
            push(run, 1, time)
        del run.results[:], run.late[:]
        for row in after:
            run.feed([row], random.Random(2), longest=1)
            assert run.op.stats().slack == 50, f"seed {seed}"
        run.finish()
        runs.append(run)
    told = [[r for r in run.results if all(n is not None and 1000 <= n < 4000 for n in r)] for run in runs]
    assert told[0] == told[1], f"seed {seed}"
    assert len(told[0]) > 50
    assert runs[0].late == runs[1].late


def test_a_restored_recall_goes_on_as_if_nothing_had_happened() -> None:
    policy = sj.Recall(0.9, period=200, adapt_every=20, granularity=2, basic_window=2)
    rows = random_arrivals(random.Random(5), 2, 600)
    query = make_query(2, policy, windows=[40, 40])
    straight, restored = Run(query), Run(query)
    for at in range(0, len(rows), 20):
        for run in (straight, restored):
            run.feed(rows[at : at + 20], random.Random(at), longest=5)
        restored.op = sj.Operator.restore(query, restored.op.snapshot())
        # All but the room that rows take: a snapshot packs them.
        room = {"state_bytes": 0, "payload_bytes": {}, "stored_rows": {}}
        told = [replace(run.op.stats(), **room) for run in (straight, restored)]
        assert told[0] == told[1]
    assert straight.results == restored.results
