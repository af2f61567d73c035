"""A disorder policy as the native core takes it, and what the core tells of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from streamjoin import _core
from streamjoin.disorder import InOrder, MaxSlack, Recall, Slack
from streamjoin.errors import QueryError
from streamjoin.inputs import Inputs
from streamjoin.times import LARGEST, TimeUnit


def disorder_options(inputs: Inputs) -> _core.DisorderOptions | None:
    """Return the policy of the query in its unit of time; None for InOrder."""
    policy, unit = inputs.query.disorder, inputs.unit
    if isinstance(policy, InOrder):
        return None
    shared: dict[str, Any] = {
        "streams": len(inputs.names),
        "idle_after": unit.largest_at_most(policy.idle_after_ns),
        "idle_by_wall_clock": policy.idle_clock == "wall",
    }
    if isinstance(policy, Slack):
        return _core.DisorderOptions(policy="fixed", slack=_units(policy.slack_ns, unit), **shared)
    if isinstance(policy, MaxSlack):
        return _core.DisorderOptions(policy="largest_delay", **shared)
    sizes: dict[str, Any] = {}
    for option in ("period", "adapt_every", "granularity", "basic_window"):
        ns = getattr(policy, f"{option}_ns")
        if ns % unit.nanoseconds:
            raise QueryError(
                f"Recall, {option}: expected whole {unit.name} for these time columns, got {ns} ns"
            )
        sizes[option] = _units(ns, unit)
    return _core.DisorderOptions(
        policy="recall",
        target=policy.target,
        learned_selectivity=policy.selectivity == "learned",
        windows=_model_windows(inputs, policy),
        **sizes,
        **shared,
    )


def stats_of_disorder(
    state: Mapping[str, Any] | None, names: Sequence[str], unit: TimeUnit
) -> dict[str, Any]:
    """Return the fields of `Stats` that speak of disorder."""
    if state is None:
        return {"buffered": dict.fromkeys(names, 0), "behind": dict.fromkeys(names, 0)}
    return {
        "buffered": dict(zip(names, state["buffered"], strict=True)),
        "behind": dict(zip(names, state["behind"], strict=True)),
        "slack": state["slack"] * unit.nanoseconds // 1000,
        "estimated_recall": state.get("estimated_recall"),
        "requirement": state.get("requirement"),
        "slack_reason": state.get("why"),
    }


class WallClock:
    """The wall clock in the unit of the query; only differences count."""

    def __init__(self, unit: TimeUnit) -> None:
        """Start at now."""
        self._unit = unit

    def now(self) -> int:
        """Return the time that has passed since some moment."""
        return time.monotonic_ns() // self._unit.nanoseconds


def _units(ns: int, unit: TimeUnit) -> int:
    return min(ns // unit.nanoseconds, LARGEST)


def _model_windows(inputs: Inputs, policy: Recall) -> list[list[int]]:
    """How far before a row of i its partners of j may lie, as [j][i]. A window without end is as long as the
    period: what lies further back has long arrived."""
    windows, count = inputs.query.windows, len(inputs.names)
    reach = [[0] * count for _ in range(count)]
    for j in range(count):
        for i in range(count):
            if i != j:
                ns = windows.upper(j, i)
                reach[j][i] = _units(max(0, policy.period_ns if ns is None else ns), inputs.unit)
    return reach
