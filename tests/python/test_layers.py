"""The layer check holds on this tree, and would notice each kind of breach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "ci/check_layers.py"


def check(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHECK), str(root)], capture_output=True, text=True, check=False
    )


def tree(root: Path, files: dict[str, str]) -> Path:
    lawful = {
        "cpp/streamjoin/base/time.h": "#include <cstdint>\n",
        "cpp/streamjoin/state/rows.h": '#include "streamjoin/base/time.h"\n',
        "cpp/streamjoin/disorder/slack.h": '#include "streamjoin/base/time.h"\n',
        "cpp/streamjoin/engine/engine.h": (
            '#include "streamjoin/disorder/slack.h"\n#include "streamjoin/state/rows.h"\n'
        ),
        "cpp/bindings/module.cc": '#include <pybind11/pybind11.h>\n#include "streamjoin/engine/engine.h"\n',
        "python/streamjoin/__init__.py": "from streamjoin.operator import Operator\n",
        "python/streamjoin/errors.py": "",
        "python/streamjoin/query.py": "from . import errors\nfrom .windows import close\nimport numpy\n",
        "python/streamjoin/windows.py": "",
        "python/streamjoin/operator.py": "from . import _core, query\n",
        "python/streamjoin/spark/__init__.py": "import pyspark\nimport streamjoin\nfrom .. import query\n",
    }
    for name, text in (lawful | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_this_tree_keeps_the_rules() -> None:
    result = check(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_lawful_tree_passes(tmp_path: Path) -> None:
    result = check(tree(tmp_path, {}))
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_folder_without_the_project_is_not_called_clean(tmp_path: Path) -> None:
    assert check(tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        pytest.param(
            "cpp/streamjoin/base/clock.h", '#include "streamjoin/memory/slab.h"', 1, id="base-uses-nothing"
        ),
        pytest.param(
            "cpp/streamjoin/state/index.h",
            '\n#include "streamjoin/disorder/slack.h"',
            2,
            id="state-meets-disorder",
        ),
        pytest.param(
            "cpp/streamjoin/disorder/sync.h",
            '#include "streamjoin/state/rows.h"',
            1,
            id="disorder-meets-state",
        ),
        pytest.param(
            "cpp/streamjoin/join/join.cc", '#include "streamjoin/memory/slab.h"', 1, id="join-includes-memory"
        ),
        pytest.param(
            "cpp/streamjoin/join/join.cc",
            "#  include <streamjoin/engine/engine.h>",
            1,
            id="join-includes-engine",
        ),
        pytest.param(
            "cpp/streamjoin/engine/arrow.cc", "#include <pybind11/pybind11.h>", 1, id="pybind11-in-core"
        ),
        pytest.param("cpp/streamjoin/engine/arrow.cc", "#include <Python.h>", 1, id="python-in-core"),
        pytest.param("tests/cpp/join/join_test.cc", "#include <pybind11/embed.h>", 1, id="pybind11-in-tests"),
        pytest.param("bench/probe.cc", "#include <pybind11/embed.h>", 1, id="pybind11-in-bench"),
        pytest.param("cpp/streamjoin/state/rows.cc", '#include "rows.h"', 1, id="include-by-short-path"),
        pytest.param(
            "cpp/streamjoin/join/join.cc", '#include "bindings/docs.h"', 1, id="core-includes-bindings"
        ),
        pytest.param("cpp/streamjoin/odds/ends.h", "", 1, id="part-outside-the-table"),
        pytest.param(
            "cpp/bindings/bind_state.cc", '#include "streamjoin/state/rows.h"', 1, id="bindings-bypass-engine"
        ),
        pytest.param("python/streamjoin/query.py", "from streamjoin import _core", 1, id="pure-uses-native"),
        pytest.param(
            "python/streamjoin/query.py", "from ._core import Engine", 1, id="pure-uses-native-name"
        ),
        pytest.param(
            "python/streamjoin/query.py", "import streamjoin._core", 1, id="pure-uses-native-dotted"
        ),
        pytest.param(
            "python/streamjoin/query.py",
            "def f():\n    from . import _core",
            2,
            id="pure-uses-native-in-function",
        ),
        pytest.param(
            "python/streamjoin/query.py",
            "import importlib\nimportlib.import_module('streamjoin._core')",
            2,
            id="pure-uses-native-by-name",
        ),
        pytest.param(
            "python/streamjoin/errors.py", "from .operator import Operator", 1, id="pure-uses-operator"
        ),
        pytest.param("python/streamjoin/windows.py", "from . import kernels", 1, id="pure-uses-kernels"),
        pytest.param(
            "python/streamjoin/windows.py", "from streamjoin import Operator", 1, id="pure-uses-package"
        ),
        pytest.param("python/streamjoin/windows.py", "import streamjoin as sj", 1, id="pure-imports-package"),
        pytest.param("python/streamjoin/windows.py", "import pyspark.sql", 1, id="pure-uses-pyspark"),
        pytest.param(
            "python/streamjoin/operator.py", "from pyspark import sql", 1, id="operator-uses-pyspark"
        ),
        pytest.param("python/streamjoin/spark/state.py", "from .. import _core", 1, id="spark-uses-native"),
        pytest.param(
            "python/streamjoin/spark/state.py", "from .._core import Engine", 1, id="spark-uses-native-name"
        ),
    ],
)
def test_a_breach_is_named_with_file_and_line(tmp_path: Path, file: str, text: str, line: int) -> None:
    result = check(tree(tmp_path, {file: text + "\n"}))
    assert result.returncode == 1
    named = [output for output in result.stdout.splitlines() if output.startswith(f"{file}:{line}: ")]
    assert len(named) == 1, result.stdout + result.stderr
