"""What does a micro-batch write as the state grows tenfold, and how long does a rebuild take?

    python bench/spark/state_bench.py [--rows N]

One bucket on Spark's tester of processors: the frames, segments and pieces are those of a real query, without
the JVM. Two questions:

1. N rows a side and micro-batch, a window of 2 and of 20 micro-batches: bytes written by each micro-batch
   once the window is full. Expected: the same largest and mean, though the state is ten times as large.
2. A bucket of 1M rows is rebuilt from the store when the log is longest, next to pushing the same rows
   through a fresh operator in the same micro-batches. Expected: at most 3 times.

Times are processor times of this process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import streamjoin as sj
from pyspark.sql.streaming import TwsTester
from streamjoin.spark import frames, residents
from streamjoin.spark.layout import Layout
from streamjoin.spark.processor import TOTALS, Head, JoinProcessor

SPAN = 60_000_000  # microseconds of events in one micro-batch
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("t", pa.timestamp("us", "UTC"))])


def processor(window: int) -> JoinProcessor:
    query = sj.Query(
        [sj.Stream("left", time="t"), sj.Stream("right", time="t")],
        on=["left.k = right.k"],
        within=sj.within(window * SPAN),
    )
    operator = sj.Operator(query, schemas={"left": SCHEMA, "right": SCHEMA})
    result = operator.advance("left", 0).rows.schema
    columns = (("k",), ("k",))
    layout = Layout(query, (SCHEMA, SCHEMA), 1, columns, {}, "rows", (), result)
    return JoinProcessor(layout, min_log_bytes=1 << 20)


def micro_batch(rng: np.random.Generator, rows: int, keys: int, number: int) -> list[bytes]:
    found = []
    for stream in (0, 1):
        times = np.sort(rng.integers(0, SPAN, rows)) + number * SPAN
        columns = [pa.array(rng.integers(0, keys, rows)), pa.array(rng.random(rows)), pa.array(times)]
        fitted = [column.cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        batch = pa.RecordBatch.from_arrays(fitted, schema=SCHEMA)
        found.append(frames.write_frame(frames.ROWS, stream, int(times[-1]), batch))
    return found


def head_of(tester: TwsTester) -> Head:
    value = tester.peekValueState("head", 0)
    assert value is not None
    return Head.of(value[0])


def rows_held(out: pd.DataFrame) -> int:
    return int(out["totals"].iloc[-1].split()[TOTALS.index("state_rows")])


def written(window: int, rows: int) -> tuple[list[int], int]:
    """Bytes written by each micro-batch with a full window, and the rows held in the end."""
    rng = np.random.default_rng(1)
    tester = TwsTester(processor(window))
    sizes = []
    for number in range(3 * window + 24):
        data = micro_batch(rng, rows, 4 * window * rows, number)
        out = tester.testInPandas(0, pd.DataFrame({"frame": data}))
        if number >= 2 * window:
            sizes.append(head_of(tester).written_bytes)
    return sizes, rows_held(out)


def rebuild(rows: int) -> tuple[float, float, int]:
    """Processor seconds of a rebuild and of a fresh operator, and the rows held."""
    rng = np.random.default_rng(2)
    window = max(1, 500_000 // rows)
    join = processor(window)
    tester = TwsTester(join)
    sent: list[list[bytes]] = []
    while (
        True
    ):  # until the next micro-batch would bring the last piece of a snapshot: the log is longest then
        sent.append(micro_batch(rng, rows, 4 * window * rows, len(sent)))
        out = tester.testInPandas(0, pd.DataFrame({"frame": sent[-1]}))
        head = head_of(tester)
        if (
            head.pieces
            and head.next_pieces
            and head.next_bytes + 2 * sum(map(len, sent[-1])) >= head.snapshot_bytes
        ):
            break
    stored = head.next_segment - head.first_segment
    held = rows_held(out)
    times = []
    for _ in range(3):
        start = time.process_time()
        rebuilt = join._rebuilt(head_of(tester))
        times.append(time.process_time() - start)
    if sum(rebuilt.operator.stats().state_rows.values()) != held:
        sys.exit(f"the rebuilt bucket holds {rebuilt.operator.stats().state_rows}, expected {held} rows")
    fresh = []
    schemas = dict(zip(("left", "right"), (SCHEMA, SCHEMA), strict=True))
    last = [[frames.read_frame(frame).table for frame in data] for data in sent[-held // (2 * rows) :]]
    for _ in range(3):
        operator = sj.Operator(join._layout.query, schemas=schemas)
        start = time.process_time()
        for tables in last:
            for name, table in zip(("left", "right"), tables, strict=True):
                operator.push(name, table)
        fresh.append(time.process_time() - start)
    size, log = head.snapshot_bytes / 1e6, head.log_bytes / 1e6
    print(f"rebuild: snapshot of {size:.1f} MB and {stored} segments, {log:.1f} MB")
    return statistics.median(times), statistics.median(fresh), held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    largest = {}
    for window in (2, 20):
        sizes, held = written(window, options.rows)
        largest[window] = max(sizes)
        print(
            f"window of {window:2} micro-batches: {held:,} rows held; written a micro-batch "
            f"mean {statistics.mean(sizes) / 1e6:.2f} MB, largest {max(sizes) / 1e6:.2f} MB"
        )
    print(f"largest, ten times the state: {largest[20] / largest[2]:.2f} times")
    residents.HELD.clear()
    again, fresh, held = rebuild(4 * options.rows)
    print(f"{held:,} rows: rebuild {again:.2f} s, fresh operator {fresh:.2f} s, ratio {again / fresh:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
