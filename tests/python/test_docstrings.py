"""Every example in a docstring of the package runs and shows what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import streamjoin

MODULES = ["streamjoin"] + [
    module.name
    for module in pkgutil.walk_packages(streamjoin.__path__, prefix="streamjoin.")
    if module.name != "streamjoin._core"
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_run(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0


def test_the_operator_and_the_package_have_examples() -> None:
    for name in ("streamjoin", "streamjoin.operator", "streamjoin.query", "streamjoin.kernels"):
        assert doctest.testmod(importlib.import_module(name)).attempted > 0
