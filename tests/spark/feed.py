"""Files as streams: one Parquet file a stream and micro-batch, a file sink, and a judge with nested loops."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import streamjoin as sj
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from streamjoin import spark as sjs
from streamjoin.spark.watch import totals_of

AUCTION = pa.schema([("item", pa.int64()), ("seller", pa.string()), ("opened", pa.timestamp("us", "UTC"))])
BID = pa.schema([("item", pa.int64()), ("price", pa.int64()), ("placed", pa.timestamp("us", "UTC"))])
CLOSING = pa.schema([("item", pa.int64()), ("placed", pa.timestamp("us", "UTC"))])
SCHEMAS = {"auction": AUCTION, "bid": BID, "closing": CLOSING}
WINDOW = 40  # seconds
SECOND = 1_000_000
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # of a JVM for a few small queries

Batch = dict[str, list[tuple[Any, ...]]]


def auction_query(window: int = WINDOW, **options: Any) -> sj.Query:
    return sj.Query(
        [
            sj.Stream("auction", time="opened", window=f"{window} s"),
            sj.Stream("bid", time="placed", window="0 s", punctuations=["item"]),
        ],
        on=["auction.item = bid.item"],
        **options,
    )


def auction_batches(seed: int, batches: int = 5, rows: int = 40) -> list[Batch]:
    """Auctions and bids in time order over the batches, in any order within one; most auctions close."""
    rng = random.Random(seed)
    found: list[Batch] = []
    closed: set[int] = set()
    for number in range(batches):
        low, high = number * 30, number * 30 + 29
        batch: Batch = {"auction": [], "bid": [], "closing": []}
        for _ in range(rows):
            item = rng.randrange(30)
            batch["auction"].append((item, rng.choice("xyz"), rng.randint(low, high) * SECOND))
            item = rng.randrange(30)
            if item not in closed:
                batch["bid"].append((item, rng.randrange(100), rng.randint(low, high) * SECOND))
        for item in rng.sample(range(30), 3):
            if item not in closed:
                closed.add(item)
                batch["closing"].append((item, high * SECOND))
        found.append(batch)
    return found


def nested_loops(batches: list[Batch], how: str = "inner") -> Counter[tuple[Any, ...]]:
    """The join of everything that was ever sent; an unmatched auction has nulls for a bid."""
    assert how in ("inner", "left"), how
    auctions = [row for batch in batches for row in batch["auction"]]
    bids = [row for batch in batches for row in batch["bid"]]
    found: Counter[tuple[Any, ...]] = Counter()
    for a in auctions:
        matches = [b for b in bids if a[0] == b[0] and 0 <= b[2] - a[2] <= WINDOW * SECOND]
        found.update((*a, *b) for b in matches)
        if how == "left" and not matches:
            found[(*a, None, None, None)] += 1
    return found


class Feed:
    """A folder of input files, a checkpoint and an output folder."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        schemas: Mapping[str, pa.Schema] = SCHEMAS,
        *,
        new: bool = True,
    ) -> None:
        self.spark, self.folder, self.schemas = spark, folder, schemas
        self._sent = 0
        for name in schemas:
            (folder / name).mkdir(parents=True, exist_ok=not new)

    def send(self, batch: Batch) -> None:
        """Put one file a stream, newer than all before: the next micro-batch."""
        self._sent += 1
        self.resend(batch)

    def resend(self, batch: Batch) -> None:
        """Write the files of the last micro-batch anew: a repair."""
        for name, schema in self.schemas.items():
            columns = list(zip(*batch.get(name, []), strict=True)) or [[] for _ in schema]
            table = pa.table(
                [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
            )
            path = self.folder / name / f"{self._sent:05}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + self._sent,) * 2)

    def stream(self, name: str) -> DataFrame:
        reader = self.spark.readStream.schema(self.spark_schema(name)).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder / name))

    def spark_schema(self, name: str) -> StructType:
        return from_arrow_schema(self.schemas[name], prefer_timestamp_ntz=True)

    def static(self, name: str) -> DataFrame:
        return self.spark.read.schema(self.spark_schema(name)).parquet(str(self.folder / name))

    def join(self, query: sj.Query, *, streaming: bool = True, **options: Any) -> DataFrame:
        frame = self.stream if streaming else self.static
        if "punctuations" not in options:
            options["punctuations"] = {"bid": frame("closing")}
        return sjs.join(query, {name: frame(name) for name in query.stream_names}, **options)

    def run(self, joined: DataFrame, checkpoint: str = "checkpoint") -> list[dict[str, int]]:
        """Process all files that are there, one a micro-batch, then stop; returns the totals of each."""
        query = (
            joined.writeStream.format("parquet")
            .option("path", str(self.folder / f"out_{checkpoint}"))
            .option("checkpointLocation", str(self.folder / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [totals for progress in query.recentProgress for totals in totals_of(progress)]

    def results(self, checkpoint: str = "checkpoint") -> Counter[tuple[Any, ...]]:
        return rows_of(self.spark.read.parquet(str(self.folder / f"out_{checkpoint}")))


def rows_of(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    """Count the rows of a DataFrame; times as microseconds."""
    table = frame.toArrow()
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))
