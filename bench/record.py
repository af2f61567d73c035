"""Where a number comes from: machine and commit, in a CSV file that documents quote (bench/tables.py)."""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """Name the processor, the number of cores and the memory."""
    model = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (OSError, StopIteration, ValueError):
        return f"{model}, {os.cpu_count()} cores"
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB"


def commit() -> str:
    """Name the commit that is measured; "-dirty" if more than results and documents has changed since."""
    root = Path(__file__).parent.parent
    try:
        head = _git(root, "rev-parse", "--short", "HEAD")
        changes = _git(root, "status", "--porcelain", "--", ":!bench/results", ":!docs", ":!*.md")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("-dirty" if changes else "")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def save(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    keep: Callable[[dict[str, str]], bool] | None = None,
    order: Callable[[dict[str, str]], Any] | None = None,
) -> list[dict[str, str]]:
    """Write rows with machine and commit in the last two columns; return all that the file has now.

    `keep` picks the rows of the file there is that stay, each with its own machine and commit; `order` sorts
    them all.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    origin = {"machine": machine(), "commit": commit()}
    kept = []
    if keep is not None and path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            kept = [row for row in csv.DictReader(file) if keep(row)]
    written = [*kept, *({name: str(value) for name, value in {**row, **origin}.items()} for row in rows)]
    if order is not None:
        written.sort(key=order)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*rows[0], *origin], lineterminator="\n")
        writer.writeheader()
        writer.writerows(written)
    return written
