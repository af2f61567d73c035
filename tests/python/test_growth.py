"""`stats()` says of a safe query whose punctuations never come that it grows, and of no other."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
import streamjoin as sj

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])
ROWS = 6000


def operator_of(streams: int, **options: object) -> sj.Operator:
    names = "abc"[:streams]
    on = [f"{left}.k = {right}.k" for left, right in pairwise(names)]
    query = sj.Query([sj.Stream(name, time="t", punctuations=["k"]) for name in names], on, **options)
    return sj.Operator(query, schemas=dict.fromkeys(names, SCHEMA))


def feed(op: sj.Operator, *, punctuated: str, batch: int = 50) -> None:
    for start in range(0, ROWS, batch):
        keys = list(range(start, start + batch))
        for name in op.query.stream_names:
            op.push(name, pa.table({"k": keys, "t": keys}, schema=SCHEMA))
        for name in punctuated:
            op.punctuate(name, {"k": sj.Range(start, start + batch - 1)})


@pytest.mark.parametrize("streams", [2, 3])
def test_a_safe_query_whose_punctuations_never_come_is_reported_as_growing(streams: int) -> None:
    op = operator_of(streams)
    assert op.query.check().safe
    feed(op, punctuated="")
    stats = op.stats()
    assert set(stats.growing) == set("abc"[:streams])
    growth = stats.growing["a"]
    assert growth.rows == ROWS
    assert growth.since is not None
    # It was never larger than the rows that had come by then.
    assert ROWS - growth.more - 50 <= growth.since <= ROWS // 4
    assert "growing: a, 6,000 rows" in str(stats)


def test_only_the_stream_that_waits_is_named() -> None:
    op = operator_of(2)
    feed(op, punctuated="a")
    assert set(op.stats().growing) == {"a"}


@pytest.mark.parametrize("streams", [2, 3])
def test_a_query_whose_punctuations_come_does_not_grow(streams: int) -> None:
    op = operator_of(streams)
    feed(op, punctuated="abc"[:streams])
    assert op.stats().growing == {}


def test_a_window_that_fills_is_not_growth() -> None:
    op = operator_of(3, within=sj.within(10 * ROWS))
    feed(op, punctuated="")
    assert op.stats().state_rows["a"] == ROWS
    assert op.stats().growing == {}
