"""Punctuations on values under disorder policies, three streams and more: no result is lost, none is wrong.

A source promises a key after the last row of it has come, at a time from that of the newest such row on. Rows
and punctuations then wait for their order, are released, or come behind. By any policy the results are those
of the algorithms row by row, which know no punctuations, and every output punctuation holds.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any, NamedTuple

import pytest
import streamjoin as sj
from disorder_oracle import Row
from disorder_runner import NAMES, Run, random_arrivals, table
from test_disorder_against_oracle import check_time_order, judged

ROUNDS = int(os.environ.get("STREAMJOIN_DISORDER_ROUNDS", "8")) * 2


class Promise(NamedTuple):
    """No row of the stream with one of these keys comes any more, in time order, after `time`."""

    stream: int
    keys: list[int]
    time: int


def with_promises(rng: random.Random, rows: list[Row], streams: int) -> list[Row | Promise]:
    """Put promises between the rows, each after the last arrival of its keys."""
    script: list[Row | Promise] = list(rows)
    for stream in range(streams):
        keys = sorted({row.key for row in rows if row.stream == stream})
        while keys:
            chosen = [keys.pop() for _ in range(min(len(keys), rng.choice((1, 1, 2))))]
            if rng.random() < 0.2:
                continue
            of_keys = [r for r in rows if r.stream == stream and r.key in chosen]
            newest = max(row.time for row in of_keys)
            after = 1 + max(script.index(row) for row in of_keys)
            at = rng.choice((after, rng.randint(after, len(script))))
            script.insert(at, Promise(stream, chosen, newest + rng.choice((0, 0, 3, 30))))
    return script


def query_of(rng: random.Random, streams: int, policy: Any, **options: Any) -> sj.Query:
    windows = [rng.choice((None, None, 20, 60)) for _ in range(streams)]
    declared = [sj.Stream(NAMES[i], time="t", window=windows[i], punctuations=["k"]) for i in range(streams)]
    on = [f"a.k = {NAMES[i]}.k" for i in range(1, streams)]
    return sj.Query(declared, on, disorder=policy, require_safe=False, **options)


class PromisedRun(Run):
    """A run that also sends promises, and holds every result against those of the output."""

    said: list[dict[str, Any]]
    promised = 0

    def perform(self, script: list[Row | Promise], rng: random.Random, *, longest: int) -> None:
        self.said = []
        rows: list[Row] = []
        for each in [*script, None]:
            if isinstance(each, Row):
                rows.append(each)
                continue
            self.feed(rows, rng, longest=longest, snapshots=True)
            rows = []
            if each is not None:
                name = self.query.stream_names[each.stream]
                keys = [f"key {key}" if self.text_keys else key for key in each.keys]
                self.take(self.op.punctuate(name, {"k": keys}, time=each.time))
                self.promised += 1

    def take(self, out: sj.Output) -> None:
        super().take(out)
        assert out.violations.num_rows == 0
        for row in out.rows.to_pylist():
            assert all(row["a_k"] != said["a_k"] for said in self.said), f"{row} after a punctuation of it"
        for said in out.punctuations.to_pylist():
            if said["a_k"] is not None:
                self.said.append(said)


def arrivals_of(rng: random.Random, streams: int) -> list[Row]:
    count = {3: 70, 4: 40}[streams]
    return [
        Row(r.stream, r.time, r.key + 4 * (i // 20), r.number)
        for i, r in enumerate(random_arrivals(rng, streams, count))
    ]


@pytest.mark.parametrize("streams", [3, 4])
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_promises_change_no_result_by_any_slack(streams: int, round_: int) -> None:
    seed = 7000 * streams + round_
    rng = random.Random(seed)
    arrivals = arrivals_of(rng, streams)
    script = with_promises(rng, arrivals, streams)
    slack = rng.choice([0, 5, 20, 60, None])
    policy = sj.MaxSlack() if slack is None else sj.Slack(slack)
    query = query_of(rng, streams, policy, purge=rng.choice(("eager", "lazy")))
    run = PromisedRun(query, text_keys=rng.random() < 0.3)
    run.perform(script, rng, longest=rng.choice([1, 5, 50]))
    run.finish()
    oracle = judged(arrivals, query, slack)
    told = f"seed {seed}, {query}"
    assert Counter(run.results) == Counter(tuple(r.number for r in f) for f in oracle.results), told
    assert sum(run.op.stats().violations.values()) == 0, told
    assert run.promised > 0
    check_time_order(run, arrivals)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_promises_change_no_result_under_a_recall_target(round_: int) -> None:
    rng = random.Random(round_)
    arrivals = arrivals_of(rng, 3)
    script = with_promises(rng, arrivals, 3)
    options: dict[str, Any] = {"period": "50 us", "adapt_every": "10 us", "granularity": 1, "basic_window": 1}
    seed = rng.random()
    found = []
    for sent in (script, list[Any](arrivals)):
        own = random.Random(seed)
        windows = [own.choice((20, 60)) for _ in range(3)]
        declared = [sj.Stream(NAMES[i], time="t", window=windows[i], punctuations=["k"]) for i in range(3)]
        query = sj.Query(
            declared, ["a.k = b.k", "a.k = c.k"], disorder=sj.Recall(own.choice((0.5, 0.9, 0.99)), **options)
        )
        run = PromisedRun(query)
        run.perform(sent, own, longest=1)
        run.finish()
        found.append(Counter(run.results))
    assert found[0] == found[1], f"seed {round_}"
    whole = judged(arrivals, query, 10_000)
    assert found[0] <= Counter(tuple(r.number for r in f) for f in whole.results), f"seed {round_}"


def test_a_promise_waits_for_the_rows_that_come_before_it_in_time() -> None:
    query = query_of(random.Random(1), 3, sj.Slack(10))
    run = PromisedRun(query)
    run.said = []
    for stream, key in ((0, 1), (1, 1)):
        run.take(run.op.push(NAMES[stream], table([Row(stream, 5, key, stream)], False)))
    run.take(run.op.punctuate("c", {"k": 1}, time=8))
    run.take(run.op.push("c", table([Row(2, 7, 1, 2)], False)))  # in time order it is before the promise
    run.finish()
    assert run.results == [(0, 1, 2)]
