"""Draw PWJoin's figures 8 to 12 from the series that `pwjoin_figures` wrote.

    python bench/paper/draw_pwjoin.py FOLDER      reads FOLDER/pwjoin.csv, writes FOLDER/pwjoin-figure-N.png

One command for all of it: ci/figures
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {"1": "tab:green", "5": "tab:blue", "15": "tab:red"}
STYLES = {"PWJoin": "-", "WJoin": "--", "PJoin": "--", "equation (1)": ":"}
Points = tuple[list[float], list[float]]


class Figure(NamedTuple):
    """What a figure shows and how its axes are named."""

    title: str
    x: str
    y: str


FIGURES = {
    8: Figure("rows in state; both streams punct-asc-100-40", "event time, s", "rows"),
    9: Figure("rows out; both streams punct-asc-100-40", "processor time, ms", "rows out"),
    10: Figure("irrelevant punctuations, one to 30 rows; window 5 s", "processor time, ms", "rows out"),
    11: Figure("punctuations out; asc-30-40 with random-30-40; window 1 s", "event time, s", "punctuations"),
    12: Figure("punctuations out; only one stream has them; its window 5 s", "event time, s", "punctuations"),
}


def read_series(path: Path) -> dict[int, dict[str, Points]]:
    figures: dict[int, dict[str, Points]] = defaultdict(lambda: defaultdict(lambda: ([], [])))
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            xs, ys = figures[int(row["figure"])][row["series"]]
            xs.append(float(row["x"]))
            ys.append(float(row["y"]))
    return figures


def draw(number: int, series: dict[str, Points], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, (xs, ys) in series.items():
        join, _, window = name.rpartition("-") if "-" in name else (name, "", "")
        label = f"{join}, {window} s" if window else join
        axes.plot(xs, ys, STYLES[join], label=label, color=COLOURS.get(window), linewidth=1.6)
    about = FIGURES[number]
    axes.set(title=f"Figure {number}: {about.title}", xlabel=about.x, ylabel=about.y)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", frameon=False, ncols=min(len(series), 3))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: draw_pwjoin.py FOLDER")
    folder = Path(sys.argv[1])
    for number, series in sorted(read_series(folder / "pwjoin.csv").items()):
        path = folder / f"pwjoin-figure-{number}.png"
        draw(number, series, path)
        print(path)


if __name__ == "__main__":
    main()
