"""Random arrivals out of order, and an operator fed with them in random batches."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import streamjoin as sj
from disorder_oracle import Row

NAMES = "abcd"


def random_arrivals(
    rng: random.Random, streams: int, count: int, *, keys: int = 4, largest_delay: int = 60
) -> list[Row]:
    """Draw rows of several streams; some are delayed, in bursts or not, and streams may lag behind."""
    now = [rng.randrange(200) if rng.random() < 0.5 else 100 for _ in range(streams)]
    share = rng.choice([0.0, 0.1, 0.5, 1.0])
    speed = [rng.choice([1, 4, 10]) for _ in range(streams)]
    rows: list[Row] = []
    stream = 0
    for number in range(count):
        if rng.random() < rng.choice([0.2, 0.9]):
            stream = rng.randrange(streams)
        now[stream] += rng.randrange(speed[stream] + 1)
        delay = rng.randrange(largest_delay + 1) if rng.random() < share else 0
        rows.append(Row(stream, now[stream] - delay, rng.randrange(keys), number))
    return rows


def make_query(
    streams: int, disorder: Any, *, windows: list[Any], text_keys: bool = False, **options: Any
) -> sj.Query:
    """Return a join of all streams on their key."""
    declared = [
        sj.Stream(name, time="t", window=window) for name, window in zip(NAMES, windows, strict=False)
    ]
    on = [f"a.k = {NAMES[i]}.k" for i in range(1, streams)]
    return sj.Query(declared[:streams], on=on, disorder=disorder, require_safe=False, **options)


def schema(text_keys: bool) -> pa.Schema:
    """Return the schema of every stream."""
    return pa.schema([("k", pa.string() if text_keys else pa.int64()), ("t", pa.int64()), ("n", pa.int64())])


def table(rows: list[Row], text_keys: bool) -> pa.Table:
    """Return rows of one stream as a batch."""
    keys: list[Any] = [f"key {row.key}" if text_keys else row.key for row in rows]
    columns = [keys, [row.time for row in rows], [row.number for row in rows]]
    return pa.table(
        [pa.array(c, field.type) for c, field in zip(columns, schema(text_keys), strict=True)],
        schema=schema(text_keys),
    )


class Run:
    """An operator with everything that came out of it."""

    def __init__(self, query: sj.Query, *, text_keys: bool = False) -> None:
        """Start the operator."""
        self.query, self.text_keys = query, text_keys
        self.op = sj.Operator(query, schemas=dict.fromkeys(query.stream_names, schema(text_keys)))
        self.results: list[tuple[int | None, ...]] = []
        self.late: list[tuple[int, int]] = []

    def feed(self, rows: list[Row], rng: random.Random, *, longest: int, snapshots: bool = False) -> None:
        """Push the rows in runs of one stream, cut at random."""
        at = 0
        while at < len(rows):
            size = rng.randint(1, longest)
            run = [rows[at]]
            while (
                len(run) < size and at + len(run) < len(rows) and rows[at + len(run)].stream == run[0].stream
            ):
                run.append(rows[at + len(run)])
            at += len(run)
            self.take(self.op.push(self.query.stream_names[run[0].stream], table(run, self.text_keys)))
            if snapshots and rng.random() < 0.1:
                self.op = sj.Operator.restore(self.query, self.op.snapshot())
            if rng.random() < 0.1:
                self.op.validate()

    def take(self, out: sj.Output) -> None:
        """Keep what a call gave."""
        shown = [name for name in self.query.stream_names if f"{name}_n" in out.rows.column_names]
        self.results += list(zip(*(out.rows.column(f"{name}_n").to_pylist() for name in shown), strict=True))
        for row in out.late.to_pylist():
            self.late.append((row[f"{row['stream']}_n"], row["late_by"]))

    def finish(self) -> None:
        """End every stream."""
        self.take(self.op.finish())
        self.op.validate()
