"""The queries of examples/nexmark.py give what Spark SQL gives for the benchmark's own text."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from feed import rows_of
from pyspark.sql import DataFrame, SparkSession
from streamjoin import spark as sjs

ANSWERS = {
    "q3": """SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id
        WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')""",
    "q4": """SELECT category, AVG(final) FROM (
            SELECT MAX(B.price) AS final, A.category FROM auction A, bid B
            WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
            GROUP BY A.id, A.category
        ) GROUP BY category""",
    "q8": """SELECT DISTINCT P.id, P.name, P.w.start
        FROM (SELECT *, window(date_time, '10 seconds') AS w FROM person) P
        JOIN (SELECT *, window(date_time, '10 seconds') AS w FROM auction) A
        ON P.id = A.seller AND P.w = A.w""",
    "q9": """SELECT id, item_name, seller, bidder, price, placed FROM (
            SELECT A.*, B.bidder, B.price, B.date_time AS placed,
                ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time) AS place
            FROM auction A, bid B WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
        ) WHERE place = 1""",
    "q20": "SELECT A.*, B.* FROM bid B JOIN auction A ON B.auction = A.id WHERE A.category = 10",
}


@pytest.fixture(scope="module")
def site(spark: SparkSession) -> dict[str, DataFrame]:
    sjs.register(spark)
    options = {"events": 3000, "seed": 9, "open_rounds": 10}
    frames = {}
    for stream in ("person", "auction", "bid", "closing"):
        frame = spark.read.format("nexmark").option("stream", stream).options(**options).load()
        frames[stream] = spark.createDataFrame(frame.toArrow()).coalesce(1)
        frames[stream].createOrReplaceTempView(stream)
    return frames


@pytest.fixture(scope="module")
def examples() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "nexmark.py"
    spec = importlib.util.spec_from_file_location("nexmark_examples", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ANSWERS)
def test_the_example_gives_what_spark_sql_gives(
    spark: SparkSession, site: dict[str, DataFrame], examples: ModuleType, name: str
) -> None:
    assert examples.QUERIES.keys() == ANSWERS.keys()
    found = rows_of(examples.QUERIES[name](site))
    expected = rows_of(spark.sql(ANSWERS[name]))
    assert expected
    assert found == expected
