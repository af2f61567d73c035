"""The example that needs no Spark runs and agrees with its brute force; tests/spark has the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_auction_example_agrees_with_its_brute_force() -> None:
    command = [sys.executable, ROOT / "examples" / "auction.py", "--rows", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "agree with a brute force" in done.stdout
