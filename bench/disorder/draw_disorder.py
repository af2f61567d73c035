"""Draw figures 6 to 11 and table II of the experiments on disorder.

    python bench/disorder/draw_disorder.py FOLDER [--save]

Reads FOLDER/disorder*.csv, writes FOLDER/disorder-*.png. With --save the pictures also go to docs/pictures,
the series and what the documents quote of them to bench/results.

One command for all of it: ci/figures
"""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import record  # noqa: E402

Series = list[dict[str, str]]
SETS = ("soccer_like", "three_way", "four_way")


def chosen(rows: Series, **values: str) -> Series:
    """Return the rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def numbers(rows: Series, name: str) -> list[float]:
    """Return one column."""
    return [float(row[name]) for row in rows]


def recall_over_time(folder: Path, rows: Series) -> None:
    """Draw figure 6: the recall without a buffer."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), sharey=True, layout="constrained")
    for axis, data in zip(axes, SETS, strict=True):
        for policy, label in (
            ("slack", "no slack"),
            ("recall", "recall 0.99"),
            ("max_slack", "largest delay"),
        ):
            mine = chosen(rows, data=data, policy=policy, target="0.99")
            axis.plot(numbers(mine, "second"), numbers(mine, "recall"), label=label)
        axis.set(title=data, xlabel="event time, s")
    axes[0].set_ylabel("recall of the last minute")
    axes[0].legend()
    figure.suptitle("figure 6: without a buffer, beside the two policies")
    figure.savefig(folder / "disorder-figure-6.png", dpi=110)


def against(folder: Path, number: int, rows: Series, x: str, lines: str, what: str) -> None:
    """Draw average K and the share of measurements that reach 0.99 of the target."""
    mine = chosen(rows, figure=f"figure {number}")
    figure, axes = plt.subplots(2, 3, figsize=(12, 5.5), layout="constrained", sharex=True)
    for column, data in enumerate(SETS):
        of_set = chosen(mine, data=data)
        for label in dict.fromkeys(row[lines] for row in of_set):
            line = chosen(of_set, **{lines: label})
            for row, name in enumerate(("average_slack_s", "share_at_99")):
                axes[row][column].plot(numbers(line, x), numbers(line, name), "o-", label=f"{lines} {label}")
        axes[0][column].set(title=data)
        axes[1][column].set(xlabel=what, ylim=(0.5, 1.02))
        if x in ("granularity_ms", "every_s"):
            axes[1][column].set_xscale("log")
    axes[0][0].set_ylabel("average K, s")
    axes[1][0].set_ylabel("share at 0.99 of target")
    axes[0][0].legend()
    figure.suptitle(f"figure {number}: average slack and recall against {what}")
    figure.savefig(folder / f"disorder-figure-{number}.png", dpi=110)


def step_times(folder: Path, rows: Series) -> None:
    """Draw figure 11: the time of one adaptation."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained", sharey=True)
    for axis, data in zip(axes, SETS, strict=True):
        mine = chosen(rows, figure="figure 10", data=data)
        for target in dict.fromkeys(row["target"] for row in mine):
            line = chosen(mine, target=target)
            axis.loglog(
                numbers(line, "granularity_ms"), numbers(line, "step_us"), "o-", label=f"target {target}"
            )
        axis.set(title=data, xlabel="granularity, ms")
    axes[0].set_ylabel("processor time, us")
    axes[0].legend()
    figure.suptitle("figure 11: one adaptation")
    figure.savefig(folder / "disorder-figure-11.png", dpi=110)


def table(folder: Path, rows: Series) -> None:
    """Draw table II: the largest delay as slack."""
    mine = chosen(rows, figure="table II")
    cells = [
        [r["data"], f"{float(r['average_slack_s']):.2f}", f"{float(r['average_recall']):.5f}"] for r in mine
    ]
    figure, axis = plt.subplots(figsize=(6, 1.6), layout="constrained")
    axis.axis("off")
    axis.table(cells, colLabels=["data", "average K, s", "average recall"], loc="center")
    axis.set_title("table II: largest delay as slack")
    figure.savefig(folder / "disorder-table-2.png", dpi=110)


def findings(rows: Series) -> Series:
    """Return what the documents quote, with units."""
    return [
        {
            "data": row["data"],
            "target": f"{100 * float(row['target']):g}%",
            "periods_at_99": f"{100 * float(row['share_at_99']):.1f}%",
            "mean_recall": f"{100 * float(row['mean_recall']):.2f}%",
            "estimate_off_by": f"{100 * float(row['estimate_error']):.2f}%",
            "K": f"{float(row['K']):.3f} s",
            "below_largest_delay": f"{100 * (1 - float(row['K']) / float(row['largest_delay_K'])):.1f}%",
            "hindsight_99": f"{float(row['hindsight_K_99']):.2f} s",
            "hindsight_mean": f"{float(row['hindsight_K_mean']):.2f} s",
        }
        for row in rows
    ]


def save(folder: Path, series: Series) -> None:
    """Copy what documents show and quote to where they find it."""
    with (folder / "disorder_findings.csv").open() as file:
        record.save(record.RESULTS / "disorder_findings.csv", findings(list(csv.DictReader(file))))
    record.save(record.RESULTS / "disorder.csv", series)
    for picture in sorted(folder.glob("disorder-*.png")):
        shutil.copy(picture, ROOT / "docs" / "pictures")


def main() -> None:
    """Draw everything."""
    folder = Path(sys.argv[1])
    with (folder / "disorder.csv").open() as file:
        series = list(csv.DictReader(file))
    with (folder / "disorder_recall.csv").open() as file:
        recall_over_time(folder, list(csv.DictReader(file)))
    table(folder, series)
    against(folder, 7, series, "target", "selectivity", "target")
    against(folder, 8, series, "period_s", "target", "period P, s")
    against(folder, 9, series, "every_s", "target", "adaptation interval L, s")
    against(folder, 10, series, "granularity_ms", "target", "granularity g, ms")
    step_times(folder, series)
    if "--save" in sys.argv[2:]:
        save(folder, series)


if __name__ == "__main__":
    main()
