"""The adaptive window of delays against river's ADWIN, value by value."""

from __future__ import annotations

import random
from math import isclose

import pytest
from river.drift import ADWIN
from streamjoin._core import AdaptiveWindow


def values(rng: random.Random) -> list[float]:
    """Draw stretches of different means: of delays most are zero, and how many are not changes."""
    drawn: list[float] = [0.0] * 500 + [rng.random() for _ in range(300)]  # one cut for certain
    while len(drawn) < 4000:
        share, size = rng.choice([0.0, 0.02, 0.3, 1.0]), rng.choice([1 / 64, 0.25, 1.0])
        for _ in range(rng.choice([7, 100, 1500])):
            drawn.append(rng.random() * size if rng.random() < share else 0.0)
    return drawn


@pytest.mark.parametrize("delta", [0.002, 0.05])
@pytest.mark.parametrize("seed", range(10))
def test_adaptive_window_is_river_s_after_every_value(seed: int, delta: float) -> None:
    # River's detector starts anew after a cut; the window inside it does not.
    ours, theirs = AdaptiveWindow(delta), ADWIN(delta=delta)._helper
    cuts = 0
    for number, value in enumerate(values(random.Random(seed))):
        cut = ours.add(value)
        theirs.update(value)
        told = (seed, number)
        assert ours.width() == theirs.get_width(), told
        assert isclose(ours.mean(), theirs.get_total() / theirs.get_width(), abs_tol=1e-12), told
        # River calls the sum of squares its variance.
        assert isclose(ours.variance() * ours.width(), theirs.get_variance(), abs_tol=1e-9), told
        cuts += cut
    assert cuts == theirs.get_n_detections()
    assert cuts > 0
