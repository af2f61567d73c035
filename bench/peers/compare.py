"""How do other engines do on the same interval join, and how does their cost grow with the stream?

    ci/peers                                   installs the peers, then this
    python bench/peers/compare.py [--rows 100000 1000000 8000000] [--peers NAME ...] [--limit 180] [--save]

Each peer runs in its own process with its own Python environment (build/peers/NAME, or $PEERS/NAME). Its
answer (number of rows and checksum) must be that of the workload. Time is taken from opening the files to
the answer, without imports and the start of a session: processor time of all its processes, which other
work on the machine disturbs little, and wall time. Memory is the largest resident size of its processes
together.

A run that takes longer than the limit is ended, its row says so, and the peer is not given larger sizes.
The largest size is for one thread of ours and for the batch engines; the others would run for an hour. Batch
engines hold the whole input: their cost a row grows with it, since they join on the key first. A peer that
fails or answers wrongly gets no row; the others go on, and the program ends with code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENTS = Path(os.environ.get("PEERS") or ROOT / "build" / "peers")
sys.path[:0] = [str(HERE), str(HERE.parent)]
import record  # noqa: E402
import workload  # noqa: E402
from watched_run import Failure, WatchedRun  # noqa: E402


class Peer(NamedTuple):
    """How a peer is shown, its environment (None: the package's own), its script, the most rows a side."""

    shown: str
    kind: str
    environment: str | None
    script: str
    most_rows: int = 1_000_000

    @property
    def python(self) -> Path:
        """Return the interpreter that runs it."""
        folder = ENVIRONMENTS / self.environment if self.environment else ROOT / ".venv"
        return folder / "bin" / "python"


SIZES = (100_000, 1_000_000, 8_000_000)
PEERS = {
    "streamjoin": Peer("streamjoin, one thread", "stream", None, "run_streamjoin.py", SIZES[-1]),
    "duckdb": Peer("DuckDB, two threads", "batch", "duckdb", "run_duckdb.py", SIZES[-1]),
    "polars": Peer("Polars, two threads", "batch", "polars", "run_polars.py", SIZES[-1]),
    "streamjoin_spark": Peer("streamjoin on Spark", "stream", None, "run_spark.py streamjoin"),
    "spark_memory": Peer("Spark, in-memory state", "stream", None, "run_spark.py memory"),
    "spark_rocksdb": Peer("Spark, RocksDB state", "stream", None, "run_spark.py rocksdb"),
    "flink": Peer("Flink SQL interval join", "stream", "flink", "run_flink.py"),
    "pathway": Peer("Pathway interval_join", "stream", "pathway", "run_pathway.py"),
}
OVER = "over the limit"


def run(peer: Peer, folder: Path, size: int, limit: float) -> dict[str, object]:
    """Run one peer to its end or to the limit; return its row of the results file."""
    expected = workload.write(folder, size, csv=peer.script == "run_flink.py")
    script, *options = peer.script.split()
    settings = [str(workload.WINDOW_US), str(workload.MODULUS), *options]
    answer: dict[str, object] = {"version": "", "results": "", "checksum": ""}
    rates: tuple[object, object] = (OVER, OVER)
    with WatchedRun([peer.python, HERE / script, folder, *settings], limit=limit) as running:
        ready = running.line("ready")
        if ready is not None:
            answer["version"] = ready.split()[1]
            before, began = running.usage(), time.monotonic()
            running.go_on()
            words = running.line("{")
            if words is not None:
                after, ended = running.usage(), time.monotonic()
                answer |= json.loads(words)
                cpu = max(after.seconds - before.seconds, 0.01)
                rates = (round(2 * size / cpu), round(2 * size / (ended - began)))
    found = {part: answer[part] for part in expected}
    if rates[0] != OVER and found != expected:
        raise Failure(f"expected {expected}, got {found}")
    return {
        "join": peer.shown,
        "kind": peer.kind,
        "version": answer["version"],
        "rows_a_side": size,
        "rows_a_cpu_second": rates[0],
        "rows_a_second": rates[1],
        "peak_MB": round(running.most_bytes / 1e6),
        "results": answer["results"],
        "checksum": answer["checksum"],
    }


def installed(names: list[str]) -> list[str]:
    """Say which peers are not there; return the others."""
    for name in names:
        if not PEERS[name].python.exists():
            print(f"{PEERS[name].shown}: skipped, not installed (ci/peers installs it)", flush=True)
    return [name for name in names if PEERS[name].python.exists()]


def compare(
    names: list[str], sizes: list[int], work: Path, limit: float, failures: list[str]
) -> Iterator[dict[str, object]]:
    """Run every peer at every size it can take; put what failed into `failures`."""
    runs = [(size, name) for size in sizes for name in names if size <= PEERS[name].most_rows]
    given_up: set[str] = set()
    for number, (size, name) in enumerate(runs, 1):
        peer = PEERS[name]
        print(f"[{number:>2}/{len(runs)}] {peer.shown:24} {size:>9,} rows a side ", end="", flush=True)
        if name in given_up:
            print("not tried: the smaller size was too much")
            continue
        try:
            row = run(peer, work / str(size), size, limit)
        except Failure as failure:
            given_up.add(name)
            failures.append(f"{peer.shown}, {size:,} rows a side: {failure}")
            print("failed")
            continue
        yield row
        if row["rows_a_second"] == OVER:
            given_up.add(name)
            print(f"{OVER} of {limit:.0f} s")
            continue
        cpu, wall = row["rows_a_cpu_second"], row["rows_a_second"]
        print(f"{cpu:>10,} rows/cpu s {wall:>10,} rows/s {row['peak_MB']:>6,} MB", flush=True)


def rate(row: Mapping[str, object]) -> int:
    """Return what is drawn; 0 where the limit came first."""
    shown = str(row["rows_a_cpu_second"])
    return 0 if shown == OVER else int(shown)


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Bars of the rates at the two sizes that all of them are given, and rates by size."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "streamjoin"
    import matplotlib.pyplot as plt

    by_join: dict[str, dict[int, int]] = {}
    for row in rows:
        by_join.setdefault(row["join"], {})[int(row["rows_a_side"])] = rate(row)
    joins = sorted(by_join, key=lambda join: max(by_join[join].get(size, 0) for size in SIZES[:2]))
    figure, (bars, lines) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=[3, 2])
    smallest = min(found for sizes in by_join.values() for found in sizes.values() if found)
    for place, join in enumerate(joins):
        dark, light = ("#2e8b57", "#a9d8bd") if "streamjoin" in join else ("#757575", "#c8c8c8")
        for size, offset, colour in ((SIZES[0], -0.2, light), (SIZES[1], 0.2, dark)):
            found = by_join[join].get(size)
            if found:
                bars.barh(place + offset, found, height=0.38, color=colour)
            elif found == 0:
                bars.text(smallest / 2, place + offset, f" {OVER}", va="center", fontsize=8)
    bars.set_yticks(range(len(joins)), joins)
    bars.set(xscale="log", xlim=(smallest / 2, None), xlabel="rows of both sides a processor second")
    bars.set_title(f"{SIZES[0]:,} rows a side (light), {SIZES[1]:,} (dark)", fontsize=10)
    curves = {
        join: sorted((size, found) for size, found in sizes.items() if found)
        for join, sizes in by_join.items()
    }
    longest = max(map(len, curves.values()))
    for join, points in curves.items():
        if len(points) == longest:
            lines.plot(*zip(*points, strict=True), "o-", label=join)
    lines.set(xscale="log", xlabel="rows a side")
    lines.set_title("as the stream grows", fontsize=10)
    lines.set_ylim(bottom=0)
    lines.legend(frameon=False, fontsize=8)
    for axes in (bars, lines):
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def save(rows: list[dict[str, object]]) -> None:
    """Renew these rows of the results file, and the picture of all of them."""
    renewed = {(row["join"], str(row["rows_a_side"])) for row in rows}
    every = record.save(
        record.RESULTS / "peers.csv",
        rows,
        keep=lambda row: (row["join"], row["rows_a_side"]) not in renewed,
        order=lambda row: (int(row["rows_a_side"]), -rate(row)),
    )
    draw(every, ROOT / "docs" / "pictures" / "peers.svg")


def main() -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES, help="rows a side")
    parser.add_argument("--peers", nargs="+", default=[*PEERS], choices=[*PEERS])
    parser.add_argument("--limit", type=float, default=180, help="seconds a run may take (default: 180)")
    parser.add_argument(
        "--save", action="store_true", help="for the documents: renews these rows of bench/results"
    )
    options = parser.parse_args()
    failures: list[str] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        names = installed(options.peers)
        rows = [*compare(names, sorted(options.rows), Path(work), options.limit, failures)]
    if options.save and rows:
        save(rows)
    print(f"{len(rows)} runs in {(time.monotonic() - began) / 60:.0f} minutes")
    for failure in failures:
        print(f"compare: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
