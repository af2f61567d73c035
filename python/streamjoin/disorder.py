"""Disorder policies: what a query does about rows that come out of time order. Plain, frozen data.

    rows -> wait K per stream -> wait for the other streams -> join

`InOrder` waits for nothing. The others wait for K, the slack: given, the largest delay seen, or the smallest
that reaches a recall target. Results then come in time order.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from functools import partial
from typing import Any, TypeAlias

from streamjoin.durations import Duration, format_duration, nanoseconds
from streamjoin.errors import QueryError

IDLE_CLOCKS = ("event", "wall")
SELECTIVITIES = ("learned", "equal")


@dataclass(frozen=True, repr=False)
class _Policy:
    """What all policies share: when a stream that brings nothing is no longer waited for.

    `idle_after`: once the others are that far ahead of it in event time, or, with `idle_clock="wall"`, once
    it has brought nothing for that long by the wall clock, which is looked at in each call. Without it, a
    stream is waited for.
    """

    _: KW_ONLY
    idle_after: Duration | None = field(default=None, compare=False)
    idle_clock: str = "event"
    idle_after_ns: int | None = field(init=False)

    def __post_init__(self) -> None:
        """Refuse nonsense and derive the plain data."""
        if self.idle_clock not in IDLE_CLOCKS:
            raise QueryError(self._expected("idle_clock", f"one of {list(IDLE_CLOCKS)}", self.idle_clock))
        idle = None if self.idle_after is None else self._nanoseconds("idle_after", at_least=0)
        object.__setattr__(self, "idle_after_ns", idle)

    def _nanoseconds(self, option: str, *, at_least: int) -> int:
        given = getattr(self, option)
        ns = nanoseconds(given, what=f"{type(self).__name__}, {option}")
        if ns < at_least:
            bound = "a duration that is not negative" if at_least == 0 else "a duration above zero"
            raise QueryError(self._expected(option, bound, given))
        return ns

    def _expected(self, option: str, expected: str, got: Any) -> str:
        return f"{type(self).__name__}, {option}: expected {expected}, got {got!r}"

    def __repr__(self) -> str:
        """Return the call that declares it."""
        shown: list[str] = []
        for option in fields(self):
            value = getattr(self, option.name)
            if not option.init or value == option.default:
                continue
            text = repr(value)
            if (ns := getattr(self, f"{option.name}_ns", None)) is not None:
                text = repr(format_duration(ns))
            if option.default is MISSING:
                shown.insert(0, text)
            else:
                shown.append(f"{option.name}={text}")
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class InOrder(_Policy):
    """Each stream comes in its own time order. No buffer, nobody waits; results come as rows arrive.

    >>> InOrder()
    InOrder()
    """


@dataclass(frozen=True, repr=False)
class Slack(_Policy):
    """Every row waits until its stream is `slack` past it; then rows join in time order.

    A row that comes later than that still meets the rows that follow it, as long as its window is open.
    `Slack("0 s")` only brings the streams together.

    >>> Slack("5 s", idle_after="1 min")
    Slack('5 s', idle_after='1 min')
    """

    slack: Duration = field(compare=False, kw_only=False)
    slack_ns: int = field(init=False)

    def __post_init__(self) -> None:
        """Refuse nonsense and derive the plain data."""
        super().__post_init__()
        object.__setattr__(self, "slack_ns", self._nanoseconds("slack", at_least=0))


@dataclass(frozen=True, repr=False)
class MaxSlack(_Policy):
    """Like `Slack`, with the largest delay seen so far: the most results, and the longest wait.

    >>> MaxSlack()
    MaxSlack()
    """


@dataclass(frozen=True, repr=False)
class Recall(_Policy):
    """Like `Slack`, with the smallest slack whose modelled recall reaches `target` over each `period`.

    The slack is chosen anew every `adapt_every`, in steps of `granularity`, from the delays seen lately and
    what rows of each delay yield. `basic_window` is the step at which the model looks into windows;
    `selectivity="equal"` takes rows of every delay as equally productive, "learned" watches them.

    >>> Recall(0.99, period="30 s")
    Recall(0.99, period='30 s')
    """

    target: float = field(kw_only=False)
    period: Duration = field(default="1 min", compare=False)
    adapt_every: Duration = field(default="1 s", compare=False)
    granularity: Duration = field(default="10 ms", compare=False)
    basic_window: Duration = field(default="10 ms", compare=False)
    selectivity: str = "learned"
    period_ns: int = field(init=False)
    adapt_every_ns: int = field(init=False)
    granularity_ns: int = field(init=False)
    basic_window_ns: int = field(init=False)

    def __post_init__(self) -> None:
        """Refuse nonsense and derive the plain data."""
        super().__post_init__()
        derive = partial(object.__setattr__, self)
        number = isinstance(self.target, (int, float)) and not isinstance(self.target, bool)
        if not number or not 0 < self.target <= 1:
            raise QueryError(self._expected("target", "a recall above 0 and at most 1", self.target))
        if self.selectivity not in SELECTIVITIES:
            raise QueryError(self._expected("selectivity", f"one of {list(SELECTIVITIES)}", self.selectivity))
        for option in ("period", "adapt_every", "granularity", "basic_window"):
            derive(f"{option}_ns", self._nanoseconds(option, at_least=1))
        if self.adapt_every_ns > self.period_ns:
            expected = f"at most the period, {format_duration(self.period_ns)}"
            raise QueryError(self._expected("adapt_every", expected, self.adapt_every))


DisorderPolicy: TypeAlias = InOrder | Slack | MaxSlack | Recall


def in_words(policy: DisorderPolicy) -> list[str]:
    """Tell what the policy does, for `Query.explain()`."""
    if isinstance(policy, InOrder):
        return ["each stream comes in its own time order; nothing waits, results come as rows arrive"]
    lines = [
        "a row waits until its stream is K past it, then until no stream can bring an earlier one;",
        "one that comes later than that meets those after it while its window is open, else it is late;",
        "results come in time order",
    ]
    if isinstance(policy, Slack):
        lines.append(f"K is {format_duration(policy.slack_ns)}")
    elif isinstance(policy, MaxSlack):
        lines.append("K is the largest delay seen so far: no row is behind twice by the same delay")
    else:
        lines += _model_in_words(policy)
    if policy.idle_after_ns is None:
        lines.append("a stream that brings nothing is waited for")
    else:
        clock = (
            "of silence by the wall clock" if policy.idle_clock == "wall" else "of event time of the others"
        )
        lines.append(
            f"a stream is no longer waited for after {format_duration(policy.idle_after_ns)} {clock}"
        )
    return lines


def _model_in_words(policy: Recall) -> list[str]:
    every, period = format_duration(policy.adapt_every_ns), format_duration(policy.period_ns)
    step, basic = format_duration(policy.granularity_ns), format_duration(policy.basic_window_ns)
    yields = (
        "rows of every delay are taken as equally productive"
        if policy.selectivity == "equal"
        else "what rows of each delay yield is learned from the results of the last interval"
    )
    return [
        f"K is chosen every {every}: the smallest multiple of {step} whose modelled recall is enough for",
        f"{policy.target:g} of the true results over the last {period}, by what came of it so far;",
        "modelled recall of K: the share of rows of each stream that are in order after waiting K, times the",
        f"share of the other streams' windows that is there when they join, in steps of {basic};",
        "delays are those of an adaptive window per stream, which shrinks when they change;",
        yields + ";",
        "what the model gives up for lost is corrected by what was lost in the last period;",
        "a quarter of the loss that the target allows is kept in reserve, and what a period has lost is made",
        "good over a quarter of it",
    ]
