"""Growth: does a state that should stay bounded grow all the same, because its punctuations never come?

    rows that came      0 .. 256 .. 512 .. 1024 .. 2048 .. 4096      periods, each as long as all before
    live rows                         max ^^^^^            ^^^^ min of the last two

`check()` proves that punctuations *can* bound a state; whether they come, only the run shows. A stream grows
if its state was never as small, during the last whole period and since, as a quarter above the largest it was
up to three periods ago. Linear growth is seen after some thousand rows; a state that swings is not taken for
growth. Streams that windows alone bound are left out: they fill their windows and stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

FIRST_PERIOD = 256
MARGIN = 1.25


class Growth(NamedTuple):
    """A state of `rows` rows is `more` rows larger than it ever was before its stream's time `since`."""

    rows: int
    more: int
    since: int | None

    def __str__(self) -> str:
        """Return it as part of a sentence."""
        return f"{self.rows:,} rows, {self.more:,} more than at time {self.since}"


@dataclass
class _Period:
    until: int  # rows that came
    smallest: int
    largest: int
    ends_at: int | None = None


@dataclass
class GrowthWatch:
    """Watches the live rows of the streams that punctuations must bound."""

    watched: Sequence[bool]
    _came: list[int] = field(init=False)
    _time: list[int | None] = field(init=False)
    _periods: list[list[_Period]] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing seen."""
        self._came = [0] * len(self.watched)
        self._time = [None] * len(self.watched)
        self._periods = [[] for _ in self.watched]

    def came(self, stream: int, rows: int, time: int | None) -> None:
        """Note that rows of a stream came, the newest at `time`."""
        self._came[stream] += rows
        if time is not None:
            self._time[stream] = time

    def saw(self, stream: int, live: int) -> None:
        """Note how many rows a stream stores after a call."""
        periods = self._periods[stream]
        if not periods:
            periods.append(_Period(FIRST_PERIOD, live, live))
        while self._came[stream] >= periods[-1].until:
            periods[-1].ends_at = self._time[stream]
            periods.append(_Period(2 * periods[-1].until, live, live))
        last = periods[-1]
        last.smallest, last.largest = min(last.smallest, live), max(last.largest, live)

    def growing(self, stream: int, live: int) -> Growth | None:
        """Say how much a stream grows; None if it does not."""
        periods = self._periods[stream]
        if not self.watched[stream] or len(periods) < 4:
            return None
        before = max(period.largest for period in periods[:-3])
        if min(live, *(period.smallest for period in periods[-2:])) <= MARGIN * before:
            return None
        return Growth(live, live - before, periods[-4].ends_at)
