"""Draw the papers' figures from the series that the programs of this folder wrote.

    python bench/paper/draw_figures.py FOLDER [--save]

Reads FOLDER/PAPER.csv, writes FOLDER/PAPER-figure-N.png. With --save also into docs/pictures/, and the
findings with machine and commit into bench/results/. One command for all of it: ci/figures
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import record  # noqa: E402

# PWJoin: a series is "join-window", the window in seconds its colour, the join its style.
COLOURS = {"1": "tab:green", "5": "tab:blue", "15": "tab:red"}
STYLES = {"PWJoin": "-", "WJoin": "--", "PJoin": "--", "equation (1)": ":"}
# W-join: a series is "join" or "join; variant", the join its colour, the variant its style.
JOINS = {
    "NLW-join": "tab:red",
    "MW-join": "tab:blue",
    "HW-join": "tab:green",
    "ripple join": "tab:gray",
    "XJoin": "tab:gray",
    "GCA": "tab:orange",
    "LCA": "tab:blue",
}
VARIANTS = ("-", "--", ":")
Points = tuple[list[float], list[float]]


class Figure(NamedTuple):
    """What a figure shows and how its axes are named."""

    title: str
    x: str
    y: str
    log: bool = False


FIGURES = {
    "pwjoin": {
        "8": Figure("rows in state; both streams punct-asc-100-40", "event time, s", "rows"),
        "9": Figure("rows out; both streams punct-asc-100-40", "processor time, ms", "rows out"),
        "10": Figure("irrelevant punctuations, one to 30 rows; window 5 s", "processor time, ms", "rows out"),
        "11": Figure("punctuations out; asc-30-40 with random-30-40; 1 s", "event time, s", "punctuations"),
        "12": Figure("punctuations out; only one stream has them; 5 s", "event time, s", "punctuations"),
    },
    "wjoin": {
        "7": Figure("service time, 2000 rows in a window", "thousands of rows", "us a row", log=True),
        "8": Figure("service time, 2000 rows in a window", "thousands of rows", "us a row"),
        "9a": Figure("service time, rates from 100 to 1000 rows a second", "streams", "us a row", log=True),
        "9b": Figure("service time, 1000 rows a second each", "streams", "us a row", log=True),
        "9c": Figure("service time, one of four streams slow", "thousands of rows", "us a row", log=True),
        "13": Figure("service time, one window wider than the others", "thousands of rows", "us a row"),
        "14": Figure("service time along a path of four streams", "thousands of rows", "us a row", log=True),
    },
}  # fmt: skip


def read_series(path: Path) -> dict[str, dict[str, Points]]:
    """Read figure, series, x, y; a series may have commas in its name."""
    figures: dict[str, dict[str, Points]] = defaultdict(lambda: defaultdict(lambda: ([], [])))
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        figure, _, rest = line.partition(",")
        name, x, y = rest.rsplit(",", 2)
        xs, ys = figures[figure][name.strip('"')]
        xs.append(float(x))
        ys.append(float(y))
    return figures


def by_number(figure: str) -> tuple[int, str]:
    """Sort 9a behind 8 and before 13."""
    return int(figure.rstrip("abc")), figure


def draw(number: str, about: Figure, series: dict[str, Points], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    variants = list(dict.fromkeys(name.partition("; ")[2] for name in series))
    for name, (xs, ys) in series.items():
        join, _, variant = name.partition("; ")
        if join in JOINS:
            style = "o-" if about.x == "streams" else VARIANTS[variants.index(variant)]
            label, colour = name.replace("; ", ", "), JOINS[join]
        else:
            join, _, window = name.rpartition("-") if "-" in name else (name, "", "")
            style = STYLES[join]
            label, colour = (f"{join}, {window} s" if window else name), COLOURS.get(window)
        axes.plot(xs, ys, style, label=label, color=colour, linewidth=1.6)
    axes.set(title=f"Figure {number}: {about.title}", xlabel=about.x, ylabel=about.y)
    if about.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if about.x == "streams":
        axes.set_xticks(range(2, 7))
    else:
        axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    ncols = 3 if max(map(len, series)) < 24 else 2
    figure.legend(loc="outside lower center", frameon=False, ncols=min(len(series), ncols))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def save(folder: Path, paper: str) -> None:
    """Copy what documents show and quote to where they find it."""
    with (folder / f"{paper}_findings.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: by_number(row["figure"]))
    record.save(record.RESULTS / f"{paper}_findings.csv", rows)
    for picture in sorted(folder.glob(f"{paper}-figure-*.png")):
        shutil.copy(picture, ROOT / "docs" / "pictures")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--save", action="store_true", help="also for the documents")
    options = parser.parse_args()
    for paper, figures in FIGURES.items():
        if not (options.folder / f"{paper}.csv").exists():
            print(f"{paper}: no series in {options.folder}, nothing drawn")
            continue
        every = read_series(options.folder / f"{paper}.csv")
        for number, series in sorted(every.items(), key=lambda item: by_number(item[0])):
            path = options.folder / f"{paper}-figure-{number}.png"
            draw(number, figures[number], series, path)
            print(path)
        if options.save:
            save(options.folder, paper)


if __name__ == "__main__":
    main()
