"""What Spark's Python workers need to know, set before anything starts a JVM: they inherit it for good."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent / "spark"), *filter(None, [os.environ.get("PYTHONPATH")])]
)
