"""Does the state of a safe m-way join without windows stay bounded while punctuations come? At what cost?

Streams send rows whose values belong to an epoch; some epochs later each stream promises the values of
the epoch away, by its schemes. Three queries: the ring of figure 5, figure 8 with its scheme on two columns,
and a ring of five streams. Each runs eagerly, lazily, and with purging switched off, on the same rows.

Expected: the largest number of live rows over the second half of the run is at most 1.1 times that over the
first half, eager and lazy; with purging off it grows linearly (twice as many at the end as at half time).
Lazy holds more rows and takes more rows a second. All three must give the same number of results, or the
program ends.

    python bench/chained_purge_bench.py [--epochs 300] [--out build/figures]

writes chained_purge.csv and, if matplotlib is there, chained_purge.png.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import streamjoin as sj

VALUES = 12  # of each column and epoch
ROWS = 60  # of each stream and epoch
LAG = 2  # epochs until values are promised away

Scheme = str | tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A query by its equalities and schemes."""

    name: str
    on: tuple[str, ...]
    schemes: dict[str, list[Scheme]]

    @property
    def columns(self) -> dict[str, list[str]]:
        """The join columns of each stream."""
        found: dict[str, list[str]] = {name: [] for name in self.schemes}
        for side in (side.strip() for text in self.on for side in text.split("=")):
            stream, column = side.split(".")
            if column not in found[stream]:
                found[stream].append(column)
        return found

    def query(self, purge: str) -> sj.Query:
        """Declare it, without any window."""
        streams = [sj.Stream(name, time="t", punctuations=schemes) for name, schemes in self.schemes.items()]
        return sj.Query(streams, self.on, purge=purge)


RING = ("S1.B = S2.B", "S2.C = S3.C", "S3.A = S1.A")
CASES = (
    Case("figure 5", RING, {"S1": ["B"], "S2": ["C"], "S3": ["A"]}),
    Case("figure 8", RING, {"S1": ["B"], "S2": ["B", "C"], "S3": [("A", "C")]}),
    Case(
        "five streams",
        ("S1.A = S2.A", "S2.B = S3.B", "S3.C = S4.C", "S4.D = S5.D", "S5.E = S1.E"),
        {"S1": ["A"], "S2": ["B"], "S3": ["C"], "S4": ["D"], "S5": ["E"]},
    ),
)


@dataclass
class Run:
    """What one run of a query found."""

    live: list[int]
    results: int
    rows: int
    seconds: float

    @property
    def halves(self) -> tuple[int, int]:
        """The largest state of each half of the run."""
        middle = len(self.live) // 2
        return max(self.live[:middle]), max(self.live[middle:])


def run(case: Case, mode: str, epochs: int) -> Run:
    """Feed the streams epoch by epoch; processor time of the operator alone."""
    query = case.query("eager" if mode == "off" else mode)
    schema = {
        s: pa.schema([(c, pa.int64()) for c in columns] + [("t", pa.int64())])
        for s, columns in case.columns.items()
    }
    op = sj.Operator(query, schemas=schema, variant="wjoin" if mode == "off" else "pwjoin")
    rng = np.random.default_rng(7)
    found = Run([], 0, 0, 0.0)
    for epoch in range(epochs):
        for stream, columns in case.columns.items():
            data = {c: epoch * VALUES + rng.integers(0, VALUES, ROWS) for c in columns}
            batch = pa.table({**data, "t": np.full(ROWS, epoch)}, schema=schema[stream])
            began = time.process_time()
            found.results += op.push(stream, batch).rows.num_rows
            found.seconds += time.process_time() - began
            found.rows += ROWS
            found.live.append(live_rows(op))
        if epoch < LAG:
            continue
        old = list(range((epoch - LAG) * VALUES, (epoch - LAG + 1) * VALUES))
        began = time.process_time()
        for stream, schemes in case.schemes.items():
            for scheme in schemes:
                columns = (scheme,) if isinstance(scheme, str) else scheme
                op.punctuate(stream, dict.fromkeys(columns, old))
        found.seconds += time.process_time() - began
        found.live.append(live_rows(op))
    return found


def live_rows(op: sj.Operator) -> int:
    """Return the live rows of all streams."""
    return sum(op.live_rows().values())


def judge(case: Case, runs: dict[str, Run]) -> list[str]:
    """Say what was found; SystemExit if a result is wrong."""
    if len({found.results for found in runs.values()}) != 1:
        sys.exit(f"{case.name}: {[(mode, found.results) for mode, found in runs.items()]} results")
    lines = []
    for mode, found in runs.items():
        first, second = found.halves
        lines.append(
            f"{case.name:13} {mode:6} largest state {first:7,} then {second:7,}, {second / first:5.3f}  "
            f"{found.rows / found.seconds:10,.0f} rows/s  {found.results:,} results"
        )
    eager, lazy = runs["eager"], runs["lazy"]
    lines.append(
        f"{case.name:13} lazy / eager: state {max(lazy.live) / max(eager.live):.2f}, "
        f"rate {eager.seconds / lazy.seconds:.2f}"
    )
    return lines


def main() -> None:
    """Run all and write the series."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("build/figures"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = {}
    for case in CASES:
        runs = {mode: run(case, mode, options.epochs) for mode in ("eager", "lazy", "off")}
        found[case.name] = runs
        print("\n".join(judge(case, runs)), flush=True)
    with (options.out / "chained_purge.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["query", "purge", "step", "live_rows"])
        for (name, runs), mode in product(found.items(), ("eager", "lazy", "off")):
            writer.writerows([name, mode, step, live] for step, live in enumerate(runs[mode].live))
    draw(found, options.out / "chained_purge.png")


def draw(found: dict[str, dict[str, Run]], path: Path) -> None:
    """Draw live rows over the run: all of them, and below those that purge, one column a query."""
    try:
        import matplotlib
    except ImportError:
        print("no matplotlib, no picture")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"off": "tab:green", "lazy": "tab:orange", "eager": "tab:blue"}
    figure, rows = plt.subplots(2, len(found), figsize=(5 * len(found), 6.5), layout="constrained")
    for (name, runs), column in zip(found.items(), zip(*rows, strict=True), strict=True):
        for axis, modes in zip(column, (("off", "lazy", "eager"), ("lazy", "eager")), strict=True):
            for mode in modes:
                axis.plot(runs[mode].live, label=f"purge {mode}", linewidth=1, color=colours[mode])
            axis.set(xlabel="step", ylabel="live rows", ylim=(0, None))
        column[0].legend(loc="upper left")
        column[0].set_title(name)
        column[1].set_title("the two that purge, enlarged", fontsize=10)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
