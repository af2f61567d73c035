"""How many rows does the auction join hold, with closings as punctuations and by its window alone?

Expected: by the window alone the auctions of the last twelve hours, with closings only those that are open.

One simulated day, fixed seed: an auction opens about every 20 s and closes after an hour on average (two days
at most); bids come about once a second. Both runs must give the same results. What is counted does not
depend on the machine.

    python bench/state_over_time_bench.py [--save]      --save: bench/results/ and docs/pictures/
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import record
import streamjoin as sj

SECOND = 1_000_000
HOUR = 3600 * SECOND
STEP = HOUR // 4
SCHEMA = pa.schema([("item", pa.int64()), ("t", pa.int64())])
PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "state_over_time.svg"

QUERY = sj.Query(
    [
        sj.Stream("auction", time="t", window="12 hours", unique="item"),
        sj.Stream("bid", time="t", window="0 s", punctuations=["item"]),
    ],
    on=["auction.item = bid.item"],
)


def simulate(hours: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return when auctions open and close, and time and item of each bid, in time order."""
    random = np.random.default_rng(1)
    count = hours * 180
    opened = np.sort(random.integers(0, hours * HOUR, count))
    closed = opened + np.minimum(random.exponential(HOUR, count), 48 * HOUR).astype(np.int64)
    bids = random.poisson(20, count)
    items = np.repeat(np.arange(count), bids)
    times = opened[items] + (random.random(len(items)) * (closed - opened)[items]).astype(np.int64)
    order = np.argsort(times, kind="stable")
    return opened, closed, times[order], items[order]


def run(hours: int, *, with_closings: bool) -> tuple[list[int], int]:
    """Return the rows held after each quarter of an hour, and the number of results."""
    opened, closed, times, items = simulate(hours)
    closing_order = np.argsort(closed, kind="stable")
    operator = sj.Operator(QUERY, schemas={"auction": SCHEMA, "bid": SCHEMA})
    held, results = [], 0
    for begin in range(0, hours * HOUR, STEP):
        own = slice(*np.searchsorted(opened, [begin, begin + STEP]))
        bid = slice(*np.searchsorted(times, [begin, begin + STEP]))
        over = closing_order[slice(*np.searchsorted(closed[closing_order], [begin, begin + STEP]))]
        operator.push("auction", pa.table([np.arange(len(opened))[own], opened[own]], schema=SCHEMA))
        results += operator.push("bid", pa.table([items[bid], times[bid]], schema=SCHEMA)).rows.num_rows
        if with_closings and len(over):
            operator.punctuate("bid", {"item": over.tolist()}, time=begin + STEP - 1)
        operator.advance("bid", begin + STEP - 1)
        held.append(sum(operator.stats().state_rows.values()))
    return held, results


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw both curves; the same bytes each time."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "streamjoin"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    hours = [row["hour"] for row in rows]
    for name, colour in (("window_alone", "#c23b22"), ("window_and_punctuations", "#2e8b57")):
        axes.plot(hours, [row[name] for row in rows], label=name.replace("_", " "), color=colour, linewidth=2)
    axes.set(title="Auctions held by the join of auctions and bids", xlabel="hour", ylabel="rows held")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, hours[-1])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main() -> None:
    runs = {
        "window_alone": run(24, with_closings=False),
        "window_and_punctuations": run(24, with_closings=True),
    }
    if len({results for _, results in runs.values()}) != 1:
        sys.exit(f"state_over_time_bench: results differ: {[results for _, results in runs.values()]}")
    rows = [
        {"hour": (number + 1) / 4, **{name: held[number] for name, (held, _) in runs.items()}}
        for number in range(24 * 4)
    ]
    for row in rows[3::12]:
        print("hour {hour:4.0f}: {window_alone:6,} rows by the window alone, "
              "{window_and_punctuations:4,} with punctuations".format(**row))  # fmt: skip
    if "--save" in sys.argv[1:]:
        record.save(record.RESULTS / "state_over_time.csv", rows)
        draw(rows, PICTURE)
        print(f"wrote {record.RESULTS / 'state_over_time.csv'} and {PICTURE}")


if __name__ == "__main__":
    main()
