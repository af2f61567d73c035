"""Every example in a docstring of the package runs and shows what it says; everything public has one.

Those of `streamjoin.spark` need a session: tests/spark/test_docstrings.py.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest
import streamjoin
import streamjoin.spark

MODULES = ["streamjoin"] + [
    module.name
    for module in pkgutil.walk_packages(streamjoin.__path__, prefix="streamjoin.")
    if module.name != "streamjoin._core" and not module.name.startswith("streamjoin.spark")
]
PUBLIC = [
    (package.__name__, name)
    for package in (streamjoin, streamjoin.spark)
    for name in package.__all__
    if callable(getattr(package, name)) and not hasattr(streamjoin.errors, name)
]
# What an operator is, its own example shows whole; these say only what they are.
OF_THE_OPERATOR = {"push", "advance", "finish", "stats", "live_rows", "snapshot", "restore"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_run(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0


@pytest.mark.parametrize(("package", "name"), PUBLIC, ids=".".join)
def test_everything_public_has_an_example(package: str, name: str) -> None:
    documented = inspect.getdoc(getattr(importlib.import_module(package), name)) or ""
    assert ">>> " in documented


def test_the_example_of_the_operator_makes_every_call() -> None:
    documented = inspect.getdoc(streamjoin.Operator) or ""
    assert {call for call in OF_THE_OPERATOR if f".{call}(" not in documented} == set()
    assert ">>> " in (inspect.getdoc(streamjoin.Operator.punctuate) or "")


@pytest.mark.parametrize("name", ["window_join", "window_semi_join", "window_anti_join"])
def test_every_kernel_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(streamjoin.kernels, name)) or "")
