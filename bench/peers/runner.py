"""What the runners share: arguments, and a word with compare.py before and after the join.

The runner says "ready" and its version when imports and sessions are done and waits for a line; then it
joins, says the answer as JSON and waits again, so that compare.py can read processor time and memory of all
its processes at both moments.

By hand: python bench/peers/run_duckdb.py FOLDER WINDOW_US MODULUS, and press Enter twice.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

FOLDER, WINDOW_US, MODULUS = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def run(version: str, join: Callable[[], tuple[int, int]]) -> None:
    """Join between two words with compare.py. `join` returns the number of results and the checksum."""
    print("ready", version, flush=True)
    sys.stdin.readline()
    results, checksum = join()
    print(json.dumps({"results": results, "checksum": checksum}), flush=True)
    sys.stdin.readline()
