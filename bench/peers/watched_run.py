"""One peer's process: what it says and uses, and an end to it when its time is over.

    with WatchedRun(command, limit=180) as run:
        run.line("ready")          None: the limit came first
        run.go_on()
        run.line("{")              Failure: the process ended without the word

The limit counts from the start, and anew from each go_on(). Leaving the block ends the process and all that
it started, however it was left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

sys.path.append(str(Path(__file__).resolve().parents[1]))
from process_tree import Usage, processes, usage


class Failure(Exception):
    """A peer that did not run, or not right."""


class WatchedRun:
    """A process that is watched ten times a second."""

    def __init__(self, command: Sequence[str | Path], *, limit: float) -> None:
        self.most_bytes = 0
        self.out_of_time = False
        self._limit, self._began = limit, time.monotonic()
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed on leaving)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def __enter__(self) -> WatchedRun:
        return self

    def usage(self) -> Usage:
        """Return what it uses now, with everything it started."""
        now = usage(self._process.pid)
        self.most_bytes = max(self.most_bytes, now.bytes)
        return now

    def go_on(self) -> None:
        """Let a process that waits for a line go on."""
        self._began = time.monotonic()
        self._say("\n")

    def line(self, start: str) -> str | None:
        """Return its next line with this start; None if it was out of time."""
        for line in self._process.stdout or ():
            if line.startswith(start):  # engines have words of their own to say
                return line
        code = self._process.wait()
        if self.out_of_time:
            return None
        self._errors.seek(0)
        raise Failure(f"ended with code {code}:\n{self._errors.read()[-2000:]}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join()
        if kind is None and not self.out_of_time:  # it has said all: the session may close by itself
            self._say("\n")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
        self._kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _say(self, words: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; line() says how
            self._process.stdin.write(words)
            self._process.stdin.flush()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.usage()
            if time.monotonic() - self._began > self._limit:
                self.out_of_time = True
                self._kill()
                return

    def _kill(self) -> None:
        # Spark's workers leave the process group, so the tree is asked for.
        if self._process.poll() is not None:
            return
        for number in processes(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
