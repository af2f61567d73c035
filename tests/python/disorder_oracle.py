"""Algorithms 1 and 2 as they are written, one row at a time: K-slack, synchronizer, join under disorder.

Slow and plain on purpose. It judges `Operator` under `Slack`; with a slack of zero it is No-K-slack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

NEVER = float("-inf")


@dataclass(frozen=True, order=True)
class Row:
    """A row of a stream: its time, its key, and a number that names it."""

    stream: int
    time: int
    key: int
    number: int


@dataclass
class DisorderOracle:
    """`upper[i][j]` is the largest time(j) - time(i); None is open.

    `slack` None: the largest delay seen; a list: one for each stream.
    """

    upper: list[list[int | None]]
    slack: int | list[int] | None
    results: list[tuple[Row, ...]] = field(default_factory=list)
    late: list[tuple[Row, int]] = field(default_factory=list)
    joined: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        streams = range(len(self.upper))
        self.local: list[float] = [NEVER for _ in streams]
        self.waiting: list[list[Row]] = [[] for _ in streams]
        self.synced: list[list[Row]] = [[] for _ in streams]
        self.states: list[list[Row]] = [[] for _ in streams]
        self.sync_clock = self.clock = NEVER
        self.largest_delay = 0.0

    def arrive(self, row: Row) -> None:
        """Algorithm 1, with K-slack before it."""
        self.local[row.stream] = max(self.local[row.stream], row.time)
        self.largest_delay = max(self.largest_delay, self.local[row.stream] - row.time)
        of_stream = self.slack[row.stream] if isinstance(self.slack, list) else self.slack
        slack = self.largest_delay if of_stream is None else of_stream
        rows = self.waiting[row.stream]
        rows.append(row)
        rows.sort(key=lambda each: each.time)
        while rows and rows[0].time + slack <= self.local[row.stream]:
            self.synchronize(rows.pop(0))

    def synchronize(self, row: Row) -> None:
        """Let a row that is not later than the last released time pass; make others wait."""
        if row.time <= self.sync_clock:
            self.join(row)
            return
        self.synced[row.stream].append(row)
        while all(self.synced):
            self.release()

    def release(self) -> None:
        """Release all rows of the smallest waiting time, stream by stream."""
        self.sync_clock = min(row.time for rows in self.synced for row in rows)
        for rows in self.synced:
            for row in [row for row in rows if row.time == self.sync_clock]:
                rows.remove(row)
                self.join(row)

    def finish(self) -> None:
        """End every stream."""
        for rows in self.waiting:
            for row in rows:
                self.synced[row.stream].append(row) if row.time > self.sync_clock else self.join(row)
            rows.clear()
        while any(self.synced):
            self.release()

    def join(self, row: Row) -> None:
        """Algorithm 2."""
        if row.time >= self.clock:
            self.clock = row.time
            others = [[row] if i == row.stream else state for i, state in enumerate(self.states)]
            self.results += [found for found in product(*others) if self.fits(found)]
        elif all(self.is_past(row, j) for j in range(len(self.upper)) if j != row.stream):
            self.late.append((row, int(self.clock - row.time)))
            return
        self.joined.append(row)
        self.states[row.stream].append(row)

    def is_past(self, row: Row, other: int) -> bool:
        """Say whether no row of the other stream from now on can reach the row."""
        bound = self.upper[row.stream][other]
        return bound is not None and self.clock > row.time + bound

    def fits(self, rows: tuple[Row, ...]) -> bool:
        """Say whether rows, one per stream, are a result."""
        if len({row.key for row in rows}) > 1:
            return False
        return all(
            bound is None or b.time - a.time <= bound
            for a, bounds in zip(rows, self.upper, strict=True)
            for b, bound in zip(rows, bounds, strict=True)
            if a is not b
        )
