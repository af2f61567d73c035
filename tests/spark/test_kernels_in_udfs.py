"""The kernels inside Spark's own functions, as docs/spark.md shows them; judged by Spark's own join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from pyspark.sql import DataFrame, Row, SparkSession

RESULT = "item long, opened long, placed long"
NEAR = "a.item = b.item AND b.placed BETWEEN a.opened AND a.opened + 10"


def near(auctions: pa.Table, bids: pa.Table) -> pa.Table:
    """Bids at most ten microseconds behind their auction."""
    left, right = sj.kernels.window_join(
        auctions["item"].to_numpy(),
        auctions["opened"].to_numpy(),
        bids["item"].to_numpy(),
        bids["placed"].to_numpy(),
        lower=0,
        upper=10,
    )
    return pa.table(
        {
            "item": auctions["item"].take(left),
            "opened": auctions["opened"].take(left),
            "placed": bids["placed"].take(right),
        }
    )


def in_cogroup(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    return auctions.groupBy("item").cogroup(bids.groupBy("item")).applyInArrow(near, RESULT)


def in_group(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    tagged = auctions.selectExpr("item", "opened AS t", "0 AS side").union(
        bids.selectExpr("item", "placed AS t", "1 AS side")
    )

    def one_item(rows: pa.Table) -> pa.Table:
        sides = [rows.filter(pa.array(rows["side"].to_numpy() == side)) for side in (0, 1)]
        return near(sides[0].rename_columns({"t": "opened"}), sides[1].rename_columns({"t": "placed"}))

    return tagged.groupBy("item").applyInArrow(one_item, RESULT)


def in_map(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    few = auctions.toArrow()  # small enough to go along with every task

    def with_few(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from near(few, pa.Table.from_batches([batch])).to_batches()

    return bids.mapInArrow(with_few, RESULT)


def in_partitions(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    few = auctions.toArrow()

    def with_few(rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
        found = [row.asDict() for row in rows]
        schema = pa.schema([("item", pa.int64()), ("placed", pa.int64())])
        joined = near(few, pa.Table.from_pylist(found, schema=schema))
        return (tuple(row.values()) for row in joined.to_pylist())

    return bids.rdd.mapPartitions(with_few).toDF(RESULT)


@pytest.mark.parametrize("way", [in_cogroup, in_group, in_map, in_partitions])
def test_kernels_agree_with_sparks_join(spark: SparkSession, way: Any) -> None:
    auctions = spark.range(60).selectExpr("id % 7 AS item", "id * 3 AS opened")
    bids = spark.range(90).selectExpr("id % 5 AS item", "id * 2 AS placed")
    own = spark.sql(f"SELECT a.item, opened, placed FROM {{a}} a JOIN {{b}} b ON {NEAR}", a=auctions, b=bids)
    expected = Counter(map(tuple, own.collect()))
    assert len(expected) > 20
    assert Counter(map(tuple, way(auctions, bids).collect())) == expected
