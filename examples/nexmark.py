"""Queries of the Nexmark benchmark on `sjs.join`: q3, q4, q8, q9, q20.

    python examples/nexmark.py [q3 q4 ...] [--events N]

Each function takes one DataFrame a stream, static or streaming, and returns a DataFrame; below its question
stands the benchmark's own query. Where that says nothing of time, a window does: a person sells for twelve
hours after registering, an auction gets bids for twelve hours. That bounds the state, and closings let most
auctions go much sooner.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping

import streamjoin as sj
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamjoin import spark as sjs

Frames = Mapping[str, DataFrame]  # person, auction, bid, closing
AUCTION = sj.Stream("auction", time="date_time", window="12 hours", unique="id")
BID = sj.Stream("bid", time="date_time", window="0 s", punctuations=["auction"])
TUMBLE = "10 seconds"


def q3(frames: Frames) -> DataFrame:
    """Who sells in category 10, and lives in one of three states?

    SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id
    WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')
    """
    query = sj.Query(
        [
            sj.Stream("person", time="date_time", window="12 hours", unique="id"),
            sj.Stream("auction", time="date_time", window="0 s"),
        ],
        on=["person.id = auction.seller"],
    )
    local = frames["person"].where("state IN ('OR', 'ID', 'CA')")
    chosen = frames["auction"].where("category = 10")
    joined = sjs.join(query, {"person": local, "auction": chosen})
    return joined.select("person_name", "person_city", "person_state", "auction_id")


def q4(frames: Frames) -> DataFrame:
    """What is the average of the highest bids, by category?

    SELECT category, AVG(final) FROM (
        SELECT MAX(B.price) AS final, A.category FROM auction A, bid B
        WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires GROUP BY A.id, A.category
    ) GROUP BY category
    """
    query = sj.Query(
        [AUCTION, BID], on=["auction.id = bid.auction"], where="bid.date_time <= auction.expires"
    )
    highest = sj.max("bid_price", by=("auction_id", "auction_category"), as_="final")
    auctions = frames["auction"].select("id", "category", "date_time", "expires")
    bids = frames["bid"].select("auction", "price", "date_time")
    final = sjs.join(
        query,
        {"auction": auctions, "bid": bids},
        punctuations={"bid": frames["closing"]},
        aggregate=highest,
    )
    return final.groupBy("auction_category").agg(F.avg("final").alias("average"))


def q8(frames: Frames) -> DataFrame:
    """Who opened an auction in the same ten seconds as he registered?

    SELECT P.id, P.name, P.window FROM person P JOIN auction A ON P.id = A.seller AND P.window = A.window,
    where `window` is the tumbling window of `date_time`; each person once
    """
    query = sj.Query(
        [sj.Stream("person", time="date_time"), sj.Stream("auction", time="date_time")],
        on=["person.id = auction.seller", "person.starts = auction.starts"],
        within=sj.within(TUMBLE),
        how="left_semi",
    )
    starts = F.window("date_time", TUMBLE).getField("start").alias("starts")
    both = {
        "person": frames["person"].select("id", "name", "date_time", starts),
        "auction": frames["auction"].select("seller", "date_time", starts),
    }
    return sjs.join(query, both).select("person_id", "person_name", "person_starts")


def q9(frames: Frames) -> DataFrame:
    """Which bid won each auction? The highest, of equal ones the first.

    SELECT * FROM (
        SELECT A.*, B.*, ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time) AS place
        FROM auction A, bid B WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
    ) WHERE place = 1
    """
    query = sj.Query(
        [AUCTION, BID], on=["auction.id = bid.auction"], where="bid.date_time <= auction.expires"
    )
    joined = sjs.join(
        query,
        {"auction": frames["auction"], "bid": frames["bid"]},
        punctuations={"bid": frames["closing"]},
    )
    # Also of a stream, with output mode "update": the winner so far.
    earliness = -F.unix_micros("bid_date_time")
    best = F.max_by(
        F.struct("bid_bidder", "bid_price", "bid_date_time"), F.struct(F.col("bid_price"), earliness)
    )
    winners = joined.groupBy("auction_id", "auction_item_name", "auction_seller").agg(best.alias("best"))
    return winners.select("auction_id", "auction_item_name", "auction_seller", "best.*")


def q20(frames: Frames) -> DataFrame:
    """All bids on auctions of category 10, with the auction.

    SELECT B.*, A.* FROM bid B JOIN auction A ON B.auction = A.id WHERE A.category = 10
    """
    query = sj.Query([AUCTION, BID], on=["auction.id = bid.auction"])
    chosen = frames["auction"].where("category = 10")
    return sjs.join(query, {"auction": chosen, "bid": frames["bid"]}, punctuations={"bid": frames["closing"]})


QUERIES: dict[str, Callable[[Frames], DataFrame]] = {"q3": q3, "q4": q4, "q8": q8, "q9": q9, "q20": q20}


def main() -> int:
    """Show the first rows of each query on static data."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "queries", nargs="*", metavar="QUERY", help=f"of {', '.join(QUERIES)}; all unless told"
    )
    parser.add_argument("--events", type=int, default=50_000)
    options = parser.parse_args()
    if unknown := set(options.queries) - QUERIES.keys():
        parser.error(f"expected queries of {', '.join(QUERIES)}, got {', '.join(sorted(unknown))}")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    sjs.register(spark)
    frames = {
        stream: spark.read.format("nexmark").option("stream", stream).option("events", options.events).load()
        for stream in ("person", "auction", "bid", "closing")
    }
    for name in options.queries or QUERIES:
        print(f"{name}: {(QUERIES[name].__doc__ or '').splitlines()[0]}", flush=True)
        QUERIES[name](frames).show(5, truncate=False)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
