"""The one workload that every peer runs: two streams, an interval of 50 s either way, about one match a
row.

    python bench/peers/workload.py FOLDER ROWS      writes streams and expected.json

Columns: id (0, 1, ...), k (the key, drawn evenly), t (a row every millisecond, in order), v (payload).
A file has at most 50,000 rows, so that a streaming engine gets them batch by batch. What comes out is
judged by the number of result rows and a checksum over both ids; both are worked out here by sorting,
without any join.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

STEP_US = 1_000
WINDOW_US = 50_000_000
KEYS = 100_000
FILE_ROWS = 50_000
MODULUS = 1_000_003
START_US = 1_700_000_000_000_000


def expected(keys: list[npt.NDArray[np.int64]]) -> dict[str, int]:
    """Count the pairs and add up (left id * right id) mod MODULUS, left rows in slices."""
    left, right = keys
    rows, reach = len(left), WINDOW_US // STEP_US
    span = rows + 2 * reach + 2
    ids = np.arange(rows, dtype=np.int64)
    order = np.argsort(right * span + ids, kind="stable")
    placed = (right * span + ids)[order]
    first = np.searchsorted(placed, left * span + np.maximum(ids - reach, 0), side="left")
    last = np.searchsorted(placed, left * span + np.minimum(ids + reach, rows), side="right")
    total = 0
    for begin in range(0, rows, 1_000_000):
        part = slice(begin, begin + 1_000_000)
        counts = (last - first)[part]
        starts = np.repeat(first[part], counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        total += int((np.repeat(ids[part], counts) * order[starts + within] % MODULUS).sum())
    return {"results": int((last - first).sum()), "checksum": total}


def write(folder: Path, rows: int, *, csv: bool = False) -> dict[str, int]:
    """Write both streams and what must come out; files that are there already are kept."""
    answer_file = folder / "expected.json"
    if not answer_file.exists():
        keys = [np.random.default_rng(seed).integers(0, KEYS, rows) for seed in (1, 2)]
        for side, own in zip(("left", "right"), keys, strict=True):
            (folder / side).mkdir(parents=True, exist_ok=True)
            for begin in range(0, rows, FILE_ROWS):
                ids = np.arange(begin, min(rows, begin + FILE_ROWS), dtype=np.int64)
                times = pa.array(START_US + ids * STEP_US).cast(pa.timestamp("us"))
                table = pa.table({"id": ids, "k": own[ids], "t": times, "v": ids * 0.5})
                pa.parquet.write_table(table, folder / side / f"{begin // FILE_ROWS:05}.parquet")
        answer_file.write_text(json.dumps(expected(keys)), encoding="utf-8")
    if csv and not (folder / "left.csv").exists():
        options = pa.csv.WriteOptions(include_header=False)
        for side in ("left", "right"):
            table = pa.parquet.read_table(folder / side).select(["id", "k", "t", "v"])
            pa.csv.write_csv(table, folder / f"{side}.csv", options)
    answer: dict[str, int] = json.loads(answer_file.read_text(encoding="utf-8"))
    return answer


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), int(sys.argv[2])))
