"""Every example in a docstring of `streamjoin.spark` runs; `spark` in it is the session of the tests."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import streamjoin.spark
from pyspark.sql import SparkSession

MODULES = ["streamjoin.spark"] + [
    module.name for module in pkgutil.walk_packages(streamjoin.spark.__path__, prefix="streamjoin.spark.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_run(name: str, spark: SparkSession) -> None:
    outcome = doctest.testmod(importlib.import_module(name), extraglobs={"spark": spark})
    assert outcome.failed == 0
