"""Chained purge against the judge that asks what a legal future could still join: exactly that is stored."""

from __future__ import annotations

import os

import pytest
from futures import Script

CASES = int(os.environ.get("STREAMJOIN_PURGE_CASES", "200")) // 8


@pytest.mark.parametrize("purge", ["eager", "lazy"])
def test_exactly_the_rows_are_stored_that_a_legal_future_may_join(purge: str) -> None:
    for seed in range(CASES if purge == "eager" else CASES // 2):
        Script(seed, purge=purge).play(45)


@pytest.mark.parametrize("purge", ["eager", "lazy"])
def test_promises_that_end_purge_while_they_last(purge: str) -> None:
    for seed in range(CASES // 2):
        Script(seed, purge=purge, lifespans=True).play(45)
