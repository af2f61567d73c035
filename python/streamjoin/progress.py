"""A progress bar for long work: on a terminal only, on standard error, gone when the work is done."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

WIDTH = 24


class Progress:
    """Counts steps of a known number; silent where nobody watches.

    >>> with Progress("joining", 3) as progress:
    ...     for _ in range(3):
    ...         progress.step()
    """

    def __init__(self, what: str, steps: int, stream: TextIO | None = None) -> None:
        """Begin to count; `stream` is standard error unless told."""
        self._what, self._steps = what, steps
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()
        self._done, self._started = 0, time.monotonic()

    def step(self, count: int = 1) -> None:
        """Count steps that are done, and show it."""
        self._done += count
        if self._shown:
            filled = WIDTH * self._done // max(1, self._steps)
            seconds = time.monotonic() - self._started
            bar = "#" * filled + "." * (WIDTH - filled)
            self._stream.write(f"\r{self._what} [{bar}] {self._done}/{self._steps} {seconds:4.0f} s")
            self._stream.flush()

    def clear(self) -> None:
        """Wipe the bar off its line, for something else to stand there; the next step shows it again."""
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()

    def __enter__(self) -> Progress:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the line."""
        self.clear()
