"""Small benchmarks that come with the package: `streamjoin bench NAME`.

Each asks one question of the installed package on this machine, takes seconds, and checks its answer with
something dumber (sorting and binary search, or the same join without the thing in question); a wrong answer
is an error. The larger ones, with their yardsticks, are in `bench/` of the source tree: `ci/bench`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin import kernels
from streamjoin.errors import StreamJoinError
from streamjoin.operator import Operator
from streamjoin.output import Stats
from streamjoin.progress import Progress
from streamjoin.query import Query
from streamjoin.stream import Stream
from streamjoin.windows import within

STEP_US = 1_000  # a row of each stream every millisecond
BATCH_ROWS = 20_000
Integers = npt.NDArray[np.int64]


class WrongAnswer(StreamJoinError):
    """A benchmark's result is not what the dumber way says."""


@dataclass(frozen=True)
class Finding:
    """One line of a benchmark's answer."""

    what: str
    value: float
    unit: str


@dataclass(frozen=True)
class Benchmark:
    """A question, and how to answer it with `rows` rows a side."""

    question: str
    run: Callable[[int], list[Finding]]


def _keys_and_times(rows: int, keys: int, seed: int) -> tuple[Integers, Integers]:
    return np.random.default_rng(seed).integers(0, keys, rows), np.arange(rows, dtype=np.int64) * STEP_US


def _count_matches(left: tuple[Integers, Integers], right: tuple[Integers, Integers], window: int) -> int:
    """Count pairs by sorting key and time as one number: no join, no window state."""
    span = int(max(left[1][-1], right[1][-1])) + 2 * window + 2

    def place(keys: Integers, times: Integers, shift: int) -> Integers:
        return keys * span + times + shift

    ordered = np.sort(place(*right, window))
    first = np.searchsorted(ordered, place(*left, 0), side="left")
    last = np.searchsorted(ordered, place(*left, 2 * window), side="right")
    return int((last - first).sum())


def _require(found: int, expected: int, what: str) -> None:
    if found != expected:
        raise WrongAnswer(f"wrong answer: expected {expected:,} {what}, got {found:,}")


def _join(rows: int) -> list[Finding]:
    held = min(rows, 50_000)  # rows a side in the window: one match a row
    window = held * STEP_US // 2
    sides = [_keys_and_times(rows, held, seed) for seed in (1, 2)]
    tables = [pa.table({"k": keys, "t": times, "v": times * 0.5}) for keys, times in sides]
    query = Query([Stream("l", time="t"), Stream("r", time="t")], ["l.k = r.k"], within=within(window))
    operator = Operator(query, schemas={"l": tables[0].schema, "r": tables[1].schema})
    found, seconds = 0, 0.0
    with Progress("joining", -(-rows // BATCH_ROWS)) as progress:
        for begin in range(0, rows, BATCH_ROWS):
            started = time.process_time()
            for name, table in zip("lr", tables, strict=True):
                found += operator.push(name, table.slice(begin, BATCH_ROWS)).rows.num_rows
            seconds += time.process_time() - started
            progress.step()
    stats = operator.stats()
    found += operator.finish().rows.num_rows
    _require(found, _count_matches(sides[0], sides[1], window), "rows out")
    return [
        Finding("rows in a second, both streams", 2 * rows / seconds, "rows/s"),
        Finding("rows out", found, "rows"),
        Finding(
            "state for a stored row, without payload",
            stats.state_bytes / sum(stats.state_rows.values()),
            "bytes",
        ),
    ]


def _auction_run(bids: int, *, with_closings: bool) -> tuple[int, int, float]:
    """Return rows out, most rows held and processor seconds: 50 bids an auction, then its closing."""
    auctions, open_for = bids // 50, 20_000_000
    ids = np.arange(auctions, dtype=np.int64)
    opened = ids * 50 * STEP_US
    closed = opened + open_for
    bid_ids = np.repeat(ids, 50)
    bid_times = np.repeat(opened, 50) + np.random.default_rng(1).integers(0, open_for, len(bid_ids))
    order = np.argsort(bid_times, kind="stable")
    bid_ids, bid_times = bid_ids[order], bid_times[order]
    end = int(closed[-1]) + 1
    query = Query(
        [
            Stream("auction", time="t", window=end, unique="id"),  # no auction goes by time during the run
            Stream("bid", time="t", window=0, punctuations=["id"]),
        ],
        ["auction.id = bid.id"],
    )
    schema = pa.schema([("id", pa.int64()), ("t", pa.int64())])
    operator = Operator(query, schemas={"auction": schema, "bid": schema})
    found, largest, seconds, step = 0, 0, 0.0, 10_000_000
    with Progress("with closings" if with_closings else "without", -(-end // step)) as progress:
        for begin in range(0, end, step):
            own = slice(*np.searchsorted(opened, [begin, begin + step]))
            bid = slice(*np.searchsorted(bid_times, [begin, begin + step]))
            over = slice(*np.searchsorted(closed, [begin, begin + step]))
            batches = [pa.table([ids[own], opened[own]], schema=schema)]
            batches.append(pa.table([bid_ids[bid], bid_times[bid]], schema=schema))
            started = time.process_time()
            for name, batch in zip(("auction", "bid"), batches, strict=True):
                found += operator.push(name, batch).rows.num_rows
            if with_closings and len(ids[over]):
                operator.punctuate("bid", {"id": ids[over].tolist()}, time=begin + step - 1)
            seconds += time.process_time() - started
            largest = max(largest, sum(operator.stats().state_rows.values()))
            progress.step()
    return found, largest, seconds


def _punctuations(rows: int) -> list[Finding]:
    with_found, with_held, with_seconds = _auction_run(rows, with_closings=True)
    found, held, seconds = _auction_run(rows, with_closings=False)
    _require(with_found, found, "rows out with closings, as without")
    _require(found, rows // 50 * 50, "rows out: every bid joins its auction")
    return [
        Finding("most rows held, closings sent", with_held, "rows"),
        Finding("most rows held, window alone", held, "rows"),
        Finding("time with closings / without", with_seconds / seconds, ""),
    ]


def _kernel(rows: int) -> list[Finding]:
    window = min(rows, 50_000) * STEP_US // 2
    left, right = (_keys_and_times(rows, min(rows, 50_000), seed) for seed in (1, 2))
    started = time.process_time()
    found, _ = kernels.window_join(*left, *right, lower=-window, upper=window)
    seconds = time.process_time() - started
    _require(len(found), _count_matches(left, right, window), "pairs")
    return [
        Finding("rows in a second, both sides", 2 * rows / seconds, "rows/s"),
        Finding("pairs", len(found), "pairs"),
    ]


def _snapshot(rows: int) -> list[Finding]:
    keys, times = _keys_and_times(rows, rows, 1)
    table = pa.table({"k": keys, "t": times, "v": times * 0.5})
    window = rows * STEP_US
    query = Query([Stream("l", time="t"), Stream("r", time="t")], ["l.k = r.k"], within=within(window))
    operator = Operator(query, schemas={"l": table.schema, "r": table.schema})
    operator.push("l", table)
    started = time.process_time()
    blob = operator.snapshot()
    written = time.process_time()
    restored = Operator.restore(query, blob)
    read = time.process_time()
    before: Stats = operator.stats()
    _require(sum(restored.stats().state_rows.values()), sum(before.state_rows.values()), "rows restored")
    return [
        Finding("snapshot of a stored row", len(blob) / rows, "bytes"),
        Finding("rows written in a second", rows / (written - started), "rows/s"),
        Finding("rows restored in a second", rows / (read - written), "rows/s"),
    ]


BENCHMARKS = {
    "join": Benchmark("How many rows a second does Operator join on Arrow batches?", _join),
    "punctuations": Benchmark("What do punctuations save in state, and what do they cost?", _punctuations),
    "kernel": Benchmark("How many rows a second does kernels.window_join join on arrays?", _kernel),
    "snapshot": Benchmark("How large is a snapshot, how fast is it written and restored?", _snapshot),
}
