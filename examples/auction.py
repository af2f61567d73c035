"""Auctions, bids and closings: counts of bids per auction, each shown as soon as nothing can change it.

    python examples/auction.py [--rows N] [--seed N]

An auction is open for at most twelve hours, most close sooner. A closing is a punctuation on the bid stream:
no more bids on this item. The auction leaves the state at once, and its count is final. The second part
runs the same data without punctuations: same results, but every auction is held for the whole window.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import streamjoin as sj

SECOND = 1_000_000  # times are microseconds
WINDOW = 12 * 3600 * SECOND
STEP = 600 * SECOND  # one round of the feed: ten minutes of events
BARS = " ▁▂▃▄▅▆▇█"

AUCTION = pa.schema([("item_id", pa.int64()), ("seller", pa.string()), ("opened_at", pa.int64())])
BID = pa.schema([("item_id", pa.int64()), ("price", pa.float64()), ("placed_at", pa.int64())])

QUERY = sj.Query(
    [
        sj.Stream("auction", time="opened_at", window="12 hours", unique="item_id"),
        sj.Stream("bid", time="placed_at", window="0 s", punctuations=["item_id"]),
    ],
    on=["auction.item_id = bid.item_id"],
)


@dataclass
class Round:
    """Ten minutes of events, in time order within each kind."""

    end: int
    auctions: list[tuple[int, str, int]] = field(default_factory=list)
    bids: list[tuple[int, float, int]] = field(default_factory=list)
    closings: list[tuple[int, int]] = field(default_factory=list)


def make_rounds(bids: int, seed: int) -> list[Round]:
    """Two days of auctions that last two hours on average; each gets about twenty bids while it is open."""
    rng = random.Random(seed)
    span = 48 * 3600 * SECOND
    events: list[tuple[int, int, Any]] = []
    for item in range(max(1, bids // 20)):
        opened = rng.randrange(span)
        length = min(int(rng.expovariate(1 / (2 * 3600))) + 60, 12 * 3600 - 1) * SECOND
        events.append((opened, 0, (item, rng.choice(["ann", "bob", "cy", "dee"]), opened)))
        for _ in range(rng.randint(0, 40)):
            placed = opened + rng.randrange(length)
            events.append((placed, 1, (item, round(rng.uniform(1, 500), 2), placed)))
        events.append((opened + length, 2, (item, opened + length)))
    events.sort(key=lambda event: event[:2])
    last = max(time for time, _, _ in events)
    rounds = [Round(end) for end in range(STEP, last + STEP + 1, STEP)]
    for time, kind, event in events:
        place = rounds[time // STEP]
        (place.auctions, place.bids, place.closings)[kind].append(event)
    return rounds


def batch(rows: list[Any], schema: pa.Schema) -> pa.Table:
    """Return tuples as an Arrow table."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


@dataclass
class Run:
    """What one pass over the data showed."""

    counts: Counter[int] = field(default_factory=Counter)
    final: dict[int, int] = field(default_factory=dict)
    state_rows: list[int] = field(default_factory=list)
    state_bytes: list[int] = field(default_factory=list)


def feed(op: sj.Operator, now: Round) -> Iterator[sj.Output]:
    """Push one round: auctions, bids, closings, and the news that both streams have come this far."""
    yield op.push("auction", batch(now.auctions, AUCTION))
    yield op.push("bid", batch(now.bids, BID))
    for item, time in now.closings:
        yield op.punctuate("bid", {"item_id": item}, time=time)
    yield op.advance("auction", now.end - 1)
    yield op.advance("bid", now.end - 1)


def run(rounds: list[Round], variant: Any, screen: Screen | None = None) -> Run:
    """Pass over the data once; counts become final with the join's own output punctuations."""
    op = sj.Operator(QUERY, schemas={"auction": AUCTION, "bid": BID}, variant=variant)
    seen = Run()
    for number, now in enumerate(rounds):
        for out in feed(op, now):
            if out.rows.num_rows:
                seen.counts.update(out.rows["auction_item_id"].to_pylist())
            # In order with respect to the rows: no later result is about such an item.
            for item in out.punctuations["auction_item_id"].to_pylist():
                if item is not None:
                    seen.final[item] = seen.counts[item]
                    if screen:
                        screen.final(now.end, item, seen.counts[item])
        stats = op.stats()
        seen.state_rows.append(sum(stats.state_rows.values()))
        seen.state_bytes.append(stats.state_bytes + sum(stats.payload_bytes.values()))
        if screen:
            screen.progress(number + 1, len(rounds), len(seen.final), seen.state_rows[-1])
    for out in [op.finish()]:
        seen.counts.update(out.rows["auction_item_id"].to_pylist())
    return seen


class Screen:
    """The last final counts above a progress bar on a terminal; elsewhere a line now and then."""

    KEEP = 8

    def __init__(self) -> None:
        """Look what kind of output this is."""
        self.live = sys.stdout.isatty()
        self.recent: deque[str] = deque(maxlen=self.KEEP)
        self.drawn = 0

    def final(self, time: int, item: int, count: int) -> None:
        """Remember a count that is final."""
        hours, minutes = divmod(time // (60 * SECOND), 60)
        self.recent.append(f"  {hours:3d}:{minutes:02d}   auction {item:>7}   {count:>3} bids   final")

    def progress(self, done: int, of: int, final: int, state: int) -> None:
        """Show how far it is: redrawn on a terminal, every tenth part of the way elsewhere."""
        summary = f"{100 * done // of:3d}%  {final:,} counts final, {state:,} rows held"
        if self.live:
            width = max(10, min(40, shutil.get_terminal_size().columns - len(summary) - 6))
            filled = width * done // of
            lines = [*self.recent, f"  {'█' * filled}{'░' * (width - filled)} {summary}"]
            back = f"\x1b[{self.drawn}F" if self.drawn else ""
            sys.stdout.write(back + "".join(f"\x1b[K{line}\n" for line in lines))
            sys.stdout.flush()
            self.drawn = len(lines)
        elif 10 * done // of != 10 * (done - 1) // of:
            print(f"{self.recent[-1] if self.recent else '':<48}{summary}")


def brute_force(rounds: list[Round]) -> Counter[int]:
    """Count the bids of each auction without any join: a dict of openings, and the window by hand."""
    opened = {item: at for now in rounds for item, _, at in now.auctions}
    bids = ((item, at) for now in rounds for item, _, at in now.bids)
    return Counter(item for item, at in bids if 0 <= at - opened[item] <= WINDOW)


def sparkline(values: list[int], largest: int, width: int = 56) -> str:
    """Return values over time as one line of bars; both lines of a comparison share `largest`."""
    width = min(width, len(values))
    cells = [values[i * len(values) // width : (i + 1) * len(values) // width] for i in range(width)]
    heights = (sum(cell) / len(cell) / max(1, largest) for cell in cells)
    return "".join(BARS[min(len(BARS) - 1, round(height * (len(BARS) - 1)))] for height in heights)


def compare(with_: Run, without: Run) -> None:
    """Print state size over time with and without punctuations."""
    print("\nState over time, on one scale:\n")
    largest = max(without.state_rows)
    for name, seen in (("with punctuations", with_), ("windows only", without)):
        print(f"  {name:<18} {sparkline(seen.state_rows, largest)}")
    print(f"\n  {'':<18}{'peak rows':>12}{'average rows':>14}{'peak MB':>10}{'average MB':>12}")
    sizes = []
    for name, seen in (("with punctuations", with_), ("windows only", without)):
        means = [sum(values) / len(values) for values in (seen.state_rows, seen.state_bytes)]
        sizes.append((max(seen.state_rows), means[0], max(seen.state_bytes) / 1e6, means[1] / 1e6))
        peak, mean, peak_mb, mean_mb = sizes[-1]
        print(f"  {name:<18}{peak:>12,}{mean:>14,.0f}{peak_mb:>10.2f}{mean_mb:>12.2f}")
    ratios = [more / max(less, 1e-9) for less, more in zip(*sizes, strict=True)]
    shown = [f"{ratio:.1f} x" for ratio in ratios]
    print(f"  {'ratio':<18}{shown[0]:>12}{shown[1]:>14}{shown[2]:>10}{shown[3]:>12}")


def main() -> int:
    """Run both parts; exit code 1 if a count differs from the brute force."""
    parser = argparse.ArgumentParser(description="Bids per auction, final as soon as the auction is closed.")
    parser.add_argument("--rows", type=int, default=100_000, help="number of bids, about (default 100000)")
    parser.add_argument("--seed", type=int, default=7, help="of the synthetic data (default 7)")
    options = parser.parse_args()
    rounds = make_rounds(max(20, options.rows), options.seed)
    auctions, bids = (sum(len(getattr(now, kind)) for now in rounds) for kind in ("auctions", "bids"))
    print(
        f"{auctions:,} auctions, {bids:,} bids, {auctions:,} closings; window 12 hours; seed {options.seed}\n"
    )
    with_ = run(rounds, "pwjoin", Screen())
    without = run(rounds, "wjoin")
    expected = brute_force(rounds)
    everyone = {item: expected[item] for now in rounds for item, _, _ in now.auctions}
    wrong = with_.counts != expected or without.counts != expected or with_.final != everyone
    compare(with_, without)
    verdict = "DIFFER from" if wrong else "agree with"
    print(f"\nCounts, and what they were when they became final, {verdict} a brute force over {bids:,} bids.")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
