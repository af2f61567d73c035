"""However a join is spread, by key, by slabs of time, by both: the rows are those of nested loops, each once.

Many random joins go through few Spark jobs: each is a DataFrame, and their union is collected at once.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from feed import Feed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamjoin import spark as sjs

CASES = int(os.environ.get("STREAMJOIN_SPARK_CASES", "16"))
HOWS = ("inner", "inner", "left", "right", "left_semi", "left_anti", "full")
Row = tuple[int, int | None, int | None, int]  # id, x, y, time


@dataclass(frozen=True)
class Case:
    seed: int
    query: sj.Query
    rows: tuple[tuple[Row, ...], ...]
    bounds: tuple[tuple[int, int, int, int], ...]  # i, j, lower, upper on time(j) - time(i)
    equal: tuple[tuple[int, int, int, int], ...]  # i, column, j, column
    kind: str
    options: dict[str, Any]


def make_case(seed: int) -> Case:
    rng = random.Random(seed)
    n = rng.choice((2, 2, 2, 3, 3, 4))
    names = "abcd"[:n]
    shape = rng.choice(("none", "key", "key", "chain"))
    how = rng.choice(HOWS) if n == 2 and shape != "none" else "inner"
    bounds, within = [], []
    for j in range(1, n):
        lower, upper = sorted((rng.randint(-6, 6), rng.randint(-6, 6)))
        bounds.append((j - 1, j, lower, upper))
        within.append(sj.between(names[j - 1], names[j], lower=lower, upper=upper))
    joined = {
        "none": [],
        "key": [(j - 1, 1, j, 1) for j in range(1, n)],
        "chain": [(j - 1, 2 - j % 2, j, 2 - j % 2) for j in range(1, n)],  # a.x = b.x, b.y = c.y, ...
    }[shape]
    columns = ("id", "x", "y", "t")
    query = sj.Query(
        [sj.Stream(name, time="t") for name in names],
        on=[f"{names[i]}.{columns[c]} = {names[j]}.{columns[d]}" for i, c, j, d in joined],
        within=within,
        how=how,
        disorder=rng.choice((sj.InOrder(), sj.InOrder(), sj.Slack("1 s"), sj.MaxSlack())),
    )
    span = rng.choice((5, 30, 80))
    rows = tuple(
        tuple(
            (
                number,
                rng.choice((None, 1, 1, 1, 2)),
                rng.choice((None, 1, 1, 2)),
                rng.randint(-span, span),
            )
            for number in range(rng.randint(0, 14 if n < 4 else 9))
        )
        for _ in names
    )
    options: dict[str, Any] = {"buckets": rng.choice((1, 2, 3, 5))}
    if how != "full" and rng.random() < 0.7:
        options["slab"] = rng.choice((1, 2, 5, 20))
    return Case(
        seed,
        query,
        rows,
        tuple(bounds),
        tuple(joined),
        rng.choice(("long", "timestamp", "timestamp_ntz")),
        options,
    )


def nested_loops(case: Case) -> Counter[tuple[int | None, ...]]:
    def matches(rows: tuple[Row, ...]) -> bool:
        return all(low <= rows[j][3] - rows[i][3] <= high for i, j, low, high in case.bounds) and all(
            rows[i][c] is not None and rows[i][c] == rows[j][d] for i, c, j, d in case.equal
        )

    pairs = [rows for rows in itertools.product(*case.rows) if matches(rows)]
    found: Counter[tuple[int | None, ...]] = Counter(tuple(row[0] for row in rows) for rows in pairs)
    matched = [{rows[i][0] for rows in pairs} for i in range(len(case.rows))]
    alone = [[row[0] for row in side if row[0] not in matched[i]] for i, side in enumerate(case.rows)]
    how = case.query.how
    if how == "left_semi":
        return Counter((number,) for number in matched[0])
    if how == "left_anti":
        return Counter((number,) for number in alone[0])
    if how in ("left", "full"):
        found.update((number, None) for number in alone[0])
    if how in ("right", "full"):
        found.update((None, number) for number in alone[1])
    return found


def collect(cases: list[Case], spark: SparkSession) -> dict[int, Counter[tuple[int | None, ...]]]:
    """Run all cases as one job. All streams are one DataFrame, cut by case and stream."""
    data = [
        (case.seed, place, *row) for case in cases for place, side in enumerate(case.rows) for row in side
    ]
    every = spark.createDataFrame(data, "seed int, place int, id long, x long, y long, t long").coalesce(1)
    whole: DataFrame | None = None
    for case in cases:
        frames = {}
        for place, name in enumerate(case.query.stream_names):
            rows = every.where((F.col("seed") == case.seed) & (F.col("place") == place))
            time = {
                "long": F.col("t"),
                "timestamp": F.timestamp_micros("t"),
                "timestamp_ntz": F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
                + F.make_dt_interval(secs=F.col("t").cast("decimal(18, 6)") / 1_000_000),
            }[case.kind]
            frames[name] = rows.select("id", "x", "y", time.alias("t"))
        joined = sjs.join(case.query, frames, **case.options)
        ids = F.array(*[column for column in joined.columns if column.endswith("_id")])
        part = joined.select(F.lit(case.seed).alias("seed"), ids.alias("ids"))
        whole = part if whole is None else whole.union(part)
    assert whole is not None
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would plan the union anew after each shuffle
    found: dict[int, Counter[tuple[int | None, ...]]] = {case.seed: Counter() for case in cases}
    try:
        for row in whole.collect():
            found[row.seed][tuple(row.ids)] += 1
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    return found


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_static_joins_are_those_of_nested_loops(spark: SparkSession, zone: str) -> None:
    first = 1000 if zone == "UTC" else 5000
    cases = [make_case(seed) for seed in range(first, first + CASES // 2)]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = collect(cases, spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for case in cases:
        assert found[case.seed] == nested_loops(case), f"seed {case.seed}: {case}"


def test_streaming_joins_spread_by_time_are_those_of_nested_loops(
    spark: SparkSession, tmp_path: Path
) -> None:
    # No key is common to all three streams: a.x = b.x, b.y = c.y. Rows are in order from batch to batch.
    case = next(
        c
        for c in map(make_case, itertools.count())
        if len(c.rows) == 3 and len(c.equal) == 2 and c.equal[1][1] == 2
    )
    rng = random.Random(8)
    batches = []
    for number in range(3):
        low = 12 * number
        sides = [
            [
                (100 * number + i, rng.choice((None, 1, 2)), rng.choice((1, 2)), rng.randint(low, low + 11))
                for i in range(12)
            ]
            for _ in range(3)
        ]
        batches.append(dict(zip("abc", sides, strict=True)))
    schema = pa.schema([(name, pa.int64()) for name in ("id", "x", "y", "t")])
    feed = Feed(spark, tmp_path, {name: schema for name in "abc"})
    for batch in batches:
        feed.send(batch)
    query = replace(case.query, disorder=sj.InOrder())
    joined = sjs.join(query, {name: feed.stream(name) for name in "abc"}, buckets=3, slab=4)
    feed.run(joined.select("a_id", "b_id", "c_id"))
    rows = tuple(tuple(row for batch in batches for row in batch[name]) for name in "abc")
    expected = nested_loops(replace(case, rows=rows))
    assert expected
    assert feed.results() == expected


def test_explain_says_by_what_a_join_is_spread_and_why_not() -> None:
    def spread(query: sj.Query, **options: Any) -> list[str]:
        return sjs.explain(query, buckets=4, **options).splitlines()[-2:]

    def streams(**options: Any) -> list[sj.Stream]:
        return [sj.Stream(name, time="t", **options) for name in "abc"]

    near = sj.within("1 s")
    chain = sj.Query(streams(), on=["a.x = b.x", "b.y = c.y"], within=near)
    by_time = "spread over 4 buckets by slabs of 8 s led by a"
    assert spread(chain) == [f"streaming: {by_time}", f"static: {by_time}"]
    assert spread(chain, slab="3 s")[0] == "streaming: spread over 4 buckets by slabs of 3 s led by a"
    key = sj.Query(streams()[:2], on=["a.x = b.x"], within=near)
    both = "spread over 4 buckets by a.x = b.x and slabs of 3 s led by a"
    assert spread(key, slab="3 s") == [f"streaming: {both}", f"static: {both}"]
    assert spread(key)[0] == "streaming: spread over 4 buckets by a.x = b.x"

    def one_bucket(query: sj.Query, why: str, **options: Any) -> None:
        lines = spread(query, **options)
        assert all("one bucket: no attribute is common to all streams" in line for line in lines)
        assert all(f"spread it: {why}; the whole join runs in one task" in line for line in lines)
        with pytest.raises(sj.QueryError, match="slab: this join cannot be spread by time"):
            spread(query, slab="3 s", **options)

    one_bucket(chain, "groups would be spread over slabs", aggregate=sj.count(by="c_y"))
    one_bucket(chain, "emit='all' would show copies of rows", emit="all")
    one_bucket(chain, "punctuations of a speak of all times", punctuations=["a"])
    half = sj.Query(
        streams(window="1 s")[:2] + streams()[2:], on=["a.x = b.x", "b.y = c.y"], require_safe=False
    )
    one_bucket(half, "windows leave it open how long after c a row of a may come")
    slack = replace(chain, disorder=sj.Slack("1 s"))
    assert "one bucket" in spread(slack)[0]
    assert "keeps a clock of its own in every bucket" in spread(slack)[0]
    assert spread(slack)[1] == f"static: {by_time}"
    full = sj.Query(streams()[:2], on=["a.x = b.x"], within=near, how="full")
    assert spread(full)[1] == "static: spread over 4 buckets by a.x = b.x"
    right = sj.Query(streams()[:2], on=["a.x = b.x"], within=near, how="right")
    assert spread(right, slab="3 s")[1].endswith("led by b")
