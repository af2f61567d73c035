"""How do other engines do on the same interval join, and how does their cost grow with the stream?

    ci/peers                                   installs the peers, then this
    python bench/peers/compare.py [--rows 100000 1000000 8000000] [--peers NAME ...] [--save]

Each peer runs in its own process with its own Python environment (build/peers/NAME). Its answer (number
of rows and checksum) must be that of the workload. Time is taken from opening the files to the answer,
without imports and the start of a session: processor time of all its processes, which other work on the
machine disturbs little, and wall time. Memory is the largest resident size of its processes together.

Streaming engines other than ours take the smallest size only: at the larger ones they would run for an
hour on two cores. Batch engines hold the whole input: their cost a row grows with it, since they join
on the key first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]
import record  # noqa: E402
import workload  # noqa: E402
from process_tree import usage  # noqa: E402


class Peer(NamedTuple):
    """How a peer is shown, its environment, its script, and the most rows a side it is given."""

    shown: str
    kind: str
    environment: str
    script: str
    most_rows: int | None = None


SMALL = 100_000
PEERS = {
    "streamjoin": Peer("streamjoin, one thread", "stream", ".venv", "run_streamjoin.py"),
    "streamjoin_spark": Peer("streamjoin on Spark", "stream", ".venv", "run_spark.py streamjoin", SMALL),
    "spark_memory": Peer("Spark, in-memory state", "stream", ".venv", "run_spark.py memory", SMALL),
    "spark_rocksdb": Peer("Spark, RocksDB state", "stream", ".venv", "run_spark.py rocksdb", SMALL),
    "flink": Peer("Flink SQL interval join", "stream", "build/peers/flink", "run_flink.py", SMALL),
    "pathway": Peer("Pathway interval_join", "stream", "build/peers/pathway", "run_pathway.py", SMALL),
    "duckdb": Peer("DuckDB, two threads", "batch", "build/peers/duckdb", "run_duckdb.py"),
    "polars": Peer("Polars, two threads", "batch", "build/peers/polars", "run_polars.py"),
}


def run(peer: Peer, folder: Path) -> dict[str, float]:
    """Run one peer to its end; return its answer, processor and wall seconds, and the largest memory seen."""
    script, *options = peer.script.split()
    command = [ROOT / peer.environment / "bin" / "python", HERE / script, folder]
    command += [str(workload.WINDOW_US), str(workload.MODULUS), *options]
    with tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        largest, over = 0, threading.Event()

        def watch() -> None:
            nonlocal largest
            while not over.wait(0.1):
                largest = max(largest, usage(process.pid).bytes)

        def next_line(start: str) -> str:
            for line in process.stdout or ():
                if line.startswith(start):  # engines have words of their own to say
                    return line
            process.wait()
            over.set()
            err.seek(0)
            sys.exit(f"compare: {peer.shown} failed with code {process.returncode}:\n{err.read()[-2000:]}")

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        next_line("ready")
        before, began = usage(process.pid), time.monotonic()
        process.stdin.write("\n")
        process.stdin.flush()
        answer: dict[str, float] = json.loads(next_line("{"))
        after, ended = usage(process.pid), time.monotonic()
        over.set()
        watcher.join()
        process.communicate("\n")
    largest = max(largest, after.bytes)
    return answer | {"cpu": after.seconds - before.seconds, "wall": ended - began, "bytes": largest}


def compare(names: list[str], sizes: list[int], work: Path) -> list[dict[str, object]]:
    """Run every peer at every size it can take; a wrong answer ends the program."""
    rows = []
    for size in sizes:
        folder = work / str(size)
        for name in names:
            peer = PEERS[name]
            if not (ROOT / peer.environment / "bin" / "python").exists():
                print(f"{peer.shown}: skipped, not installed (ci/peers installs it)", flush=True)
                continue
            if peer.most_rows is not None and size > peer.most_rows:
                continue
            expected = workload.write(folder, size, csv=name == "flink")
            answer = run(peer, folder)
            found = {part: answer[part] for part in ("results", "checksum")}
            if found != expected:
                sys.exit(f"compare: {peer.shown}, {size:,} rows: expected {expected}, got {found}")
            row = {
                "join": peer.shown,
                "kind": peer.kind,
                "version": answer["version"],
                "rows_a_side": size,
                "rows_a_cpu_second": round(2 * size / max(answer["cpu"], 0.01)),
                "rows_a_second": round(2 * size / answer["wall"]),
                "peak_MB": round(answer["bytes"] / 1e6),
                "results": answer["results"],
                "checksum": answer["checksum"],
            }
            rows.append(row)
            print(
                f"{peer.shown:26}{size:>10,} rows a side {row['rows_a_cpu_second']:>12,} rows/cpu s "
                f"{row['rows_a_second']:>12,} rows/s {row['peak_MB']:>7,} MB",
                flush=True,
            )
    return rows


def rate(row: dict[str, str]) -> int:
    """Return what is drawn."""
    return int(row["rows_a_cpu_second"])


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Bars of the rates at the size that all of them run, and rates by size."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "streamjoin"
    import matplotlib.pyplot as plt

    smallest = min(int(row["rows_a_side"]) for row in rows)
    common = [row for row in rows if int(row["rows_a_side"]) == smallest]
    common.sort(key=rate)
    figure, (bars, lines) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=[3, 2])
    colours = ["#2e8b57" if "streamjoin" in row["join"] else "#8a8a8a" for row in common]
    bars.barh([row["join"] for row in common], [rate(row) for row in common], color=colours)
    bars.set(xscale="log", xlabel="rows of both sides a processor second", title=f"{smallest:,} rows a side")
    for join in dict.fromkeys(row["join"] for row in rows):
        own = [row for row in rows if row["join"] == join]
        if len(own) > 1:
            own.sort(key=lambda row: int(row["rows_a_side"]))
            points = [int(row["rows_a_side"]) for row in own], [rate(row) for row in own]
            lines.plot(*points, "o-", label=join)
    lines.set(xscale="log", xlabel="rows a side", title="as the stream grows")
    lines.set_ylim(bottom=0)
    lines.legend(frameon=False, fontsize=8)
    for axes in (bars, lines):
        axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[SMALL, 1_000_000, 8_000_000])
    parser.add_argument("--peers", nargs="+", default=[*PEERS], choices=[*PEERS])
    parser.add_argument(
        "--save", action="store_true", help="for the documents: renews these rows of bench/results"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        rows = compare(options.peers, sorted(options.rows), Path(work))
    if options.save and rows:
        renewed = {(str(row["join"]), str(row["rows_a_side"])) for row in rows}
        file = record.RESULTS / "peers.csv"
        every = record.save(
            file,
            rows,
            keep=lambda row: (row["join"], row["rows_a_side"]) not in renewed,
            order=lambda row: (int(row["rows_a_side"]), -rate(row)),
        )
        draw(every, ROOT / "docs" / "pictures" / "peers.svg")


if __name__ == "__main__":
    main()
