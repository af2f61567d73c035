"""Checks who may know whom: C++ includes by folder, Python imports by module.

    python ci/check_layers.py [ROOT]

Data goes one way (docs/architecture.md), so a part may use only what stands before it in the tables below.
Prints each breach as ``file:line: why`` and exits with 1 if there is one. Only direct edges are read: every
edge is checked where it starts, so a forbidden chain has a forbidden link. Standard library only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Part of cpp/streamjoin -> the other parts it may include. `disorder` and `state` meet in `engine` alone.
CPP_MAY_USE: dict[str, set[str]] = {
    "base": set(),
    "memory": {"base"},
    "punctuation": {"base", "memory"},
    "disorder": {"base", "memory"},
    "state": {"base", "memory", "punctuation"},
    "join": {"base", "punctuation", "state"},
    "engine": {"base", "memory", "punctuation", "disorder", "state", "join"},
}
BINDINGS_MAY_USE = {"engine", "base"}

# Modules that only declare: they work where the native module is not built, and know of each other only.
PURE_MODULES = {
    "stream",
    "query",
    "windows",
    "window_matrix",
    "attribute_classes",
    "conjuncts",
    "algorithms",
    "explanation",
    "safety",
    "plan",
    "query_file",
    "durations",
    "patterns",
    "expressions",
    "predicates",
    "errors",
    "disorder",
    "aggregates",
}
NATIVE_MODULE = "_core"

INCLUDE = re.compile(r"""^\s*#\s*include\s*[<"]([^>"]+)[>"]""")


def breaches(root: Path) -> Iterator[str]:
    """Yields each breach of the rules in the tree at ``root``, in file order."""
    for path in _files(root, "cpp/streamjoin", ".h", ".cc"):
        yield from _core_breaches(root, path)
    for path in _files(root, "cpp/bindings", ".h", ".cc"):
        yield from _bindings_breaches(root, path)
    for folder in ("tests", "bench"):
        for path in _files(root, folder, ".h", ".cc"):
            yield from _python_in_cpp(root, path)
    for path in _files(root, "python/streamjoin", ".py", ".pyi"):
        yield from _import_breaches(root, path)


def _files(root: Path, folder: str, *suffixes: str) -> list[Path]:
    return sorted(path for path in (root / folder).rglob("*") if path.suffix in suffixes)


# C++


def _includes(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def _names_python(include: str) -> bool:
    return include.startswith("pybind11/") or include == "Python.h"


def _python_in_cpp(root: Path, path: Path) -> Iterator[str]:
    for number, include in _includes(path):
        if _names_python(include):
            yield f"{path.relative_to(root)}:{number}: {include} belongs in cpp/bindings alone"


def _core_breaches(root: Path, path: Path) -> Iterator[str]:
    part = path.relative_to(root / "cpp/streamjoin").parts[0]
    where = path.relative_to(root)
    if part not in CPP_MAY_USE:
        yield f"{where}:1: {part} is no part of cpp/streamjoin that the layer table knows"
        return
    yield from _python_in_cpp(root, path)
    for number, include in _includes(path):
        if include.startswith("streamjoin/"):
            other = include.split("/")[1]
            if other != part and other not in CPP_MAY_USE[part]:
                allowed = ", ".join(sorted(CPP_MAY_USE[part])) or "nothing"
                yield f"{where}:{number}: {part} may not use {other} (only {allowed})"
        elif (path.parent / include).exists():
            yield f"{where}:{number}: include {include} by its full path, streamjoin/{part}/..."
        elif include.startswith(("bindings/", "../")):
            yield f"{where}:{number}: {part} may not include {include}"


def _bindings_breaches(root: Path, path: Path) -> Iterator[str]:
    where = path.relative_to(root)
    for number, include in _includes(path):
        if not include.startswith("streamjoin/"):
            continue
        other = include.split("/")[1]
        if other not in BINDINGS_MAY_USE:
            allowed = ", ".join(sorted(BINDINGS_MAY_USE))
            yield f"{where}:{number}: bindings may not use {other} (only {allowed})"


# Python


def _imports(tree: ast.AST, package: list[str], siblings: Path) -> Iterator[tuple[int, str]]:
    """Yields line and full dotted name of every module that the file imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module != "streamjoin":
                yield node.lineno, module
                continue
            for alias in node.names:  # a submodule, or else a name that only the whole package has
                is_module = alias.name == NATIVE_MODULE or _is_module(siblings, alias.name)
                yield node.lineno, f"streamjoin.{alias.name}" if is_module else "streamjoin"
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = (
                node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            )
            name = node.args[0].value
            if function in {"import_module", "__import__"} and isinstance(name, str):
                yield node.lineno, name if not name.startswith(".") else f"streamjoin{name}"


def _is_module(siblings: Path, name: str) -> bool:
    return (siblings / f"{name}.py").exists() or (siblings / name).is_dir()


def _import_breaches(root: Path, path: Path) -> Iterator[str]:
    where = path.relative_to(root)
    siblings = root / "python/streamjoin"
    inside = path.relative_to(siblings).with_suffix("").parts
    in_spark = inside[0] == "spark"
    pure = inside[0] in PURE_MODULES
    package = ["streamjoin", *inside[:-1]]
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for number, name in sorted(_imports(tree, package, siblings)):
        top, _, rest = name.partition(".")
        part = rest.partition(".")[0]
        if top == "pyspark" and not in_spark:
            yield f"{where}:{number}: pyspark belongs in python/streamjoin/spark alone"
        elif top != "streamjoin":
            continue
        elif part == NATIVE_MODULE and in_spark:
            yield f"{where}:{number}: spark uses the public package, not {NATIVE_MODULE}"
        elif pure and not part:
            yield f"{where}:{number}: {inside[0]} declares only; it may not import the whole package"
        elif pure and part not in PURE_MODULES:
            yield f"{where}:{number}: {inside[0]} declares only; it may not import {part}"


def main(arguments: list[str]) -> int:
    """Prints the breaches of one tree; returns the exit code."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not (root / "cpp/streamjoin").is_dir() or not (root / "python/streamjoin").is_dir():
        print(f"check_layers: no cpp/streamjoin and python/streamjoin in {root}", file=sys.stderr)
        return 2
    found = list(breaches(root))
    for breach in found:
        print(breach)
    print(
        f"check_layers: {len(found)} breach(es)" if found else "check_layers: every part knows only its place"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
