"""Resident buckets: they stay in memory between micro-batches, wherever Spark sends their next one.

    worker 1  bucket 0 <---- asked by worker 2, which Spark gave the next micro-batch of bucket 0
              bucket 5

Spark gives a task to any idle Python worker of the executor, so a bucket meets its own worker by chance
only. It stays where it was made, and that worker serves it to the others: a file in Spark's folder of the
application says at which port. The worker that asks keeps to the state store; the one that is asked
touches nothing but the bucket.

A resident bucket is used if its token is the committed one. If it is not, if its worker is gone or does not
answer, the answer is None and the bucket is rebuilt from the store. Nothing here is needed for the results to
be right, only for speed. Spark ends idle workers after a minute, and their buckets with them.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from pyspark import SparkFiles, TaskContext

import streamjoin as sj
from streamjoin.spark import frames
from streamjoin.spark.bucket import Bucket

PIECE_BYTES = 64 << 20  # a value of the state store goes over a socket as a whole
# A snapshot is taken when the store holds so many times what is alive. While it is written, half of what is
# alive comes in addition: a rebuild goes through about twice what is alive at most.
STORED_PER_LIVE = 1.6
FORGET_AFTER = 600.0  # seconds after which a bucket nobody asked for is let go


@dataclass(frozen=True)
class Order:
    """A micro-batch for a bucket: its frames, the committed token it goes on from, and the token it leaves.

    `log_bytes` and `snapshot_bytes` are those of the store before it, `snapshot_live` the bucket's size when
    that snapshot was taken, `pieces` how many pieces of the next one are already there.
    """

    committed: str
    token: str
    data: list[bytes]
    log_bytes: int
    snapshot_bytes: int
    snapshot_live: int
    min_log_bytes: int
    pieces: int


@dataclass(frozen=True)
class Answer:
    """What came of an order: result blobs, statistics, and the next pieces of a snapshot.

    `pieces` is None if no snapshot is under way; `starts` and `complete` say that its first and its last
    piece are among them. `snapshot_live`: the bucket's size when it was taken.
    """

    blobs: list[bytes]
    stats: sj.Stats
    pieces: list[bytes] | None
    starts: bool
    complete: bool
    snapshot_live: int


class Resident:
    """A bucket, and the snapshot that is on its way into the store, piece by piece."""

    def __init__(self, bucket: Bucket) -> None:
        """Hold a bucket that is as committed."""
        self.token = ""
        self.used = time.monotonic()
        self._bucket = bucket
        self._left: list[bytes] = []
        self._written = 0
        self._snapshot_live = 0

    def follow(self, order: Order) -> Answer:
        """Join a micro-batch and move the snapshot on.

        A snapshot is taken when the store holds `STORED_PER_LIVE` of what is alive, and goes in pieces: with
        each micro-batch about twice its frames. So what is written follows the micro-batch, not the state.
        """
        results = self._bucket.apply(order.data)
        stats = self._bucket.operator.stats()
        brought = sum(map(len, order.data))
        if order.pieces != self._written:  # the pieces in the store are of another snapshot
            self._left, self._written = [], 0
        live = self._bucket.size(stats)
        starts = not self._left and self._is_due(order, live, sum(stats.rows_in.values()))
        if starts:
            snapshot = self._bucket.snapshot()
            size = min(max(2 * brought, order.min_log_bytes, 1), PIECE_BYTES)
            self._left = [snapshot[at : at + size] for at in range(0, len(snapshot), size)]
            self._written, self._snapshot_live = 0, live
        pieces, complete = self._next_pieces(2 * brought)
        self.token, self.used = order.token, time.monotonic()
        blobs = [blob for table in results for blob in frames.write_results(table)]
        return Answer(blobs, stats, pieces, starts, complete, self._snapshot_live)

    def _is_due(self, order: Order, live: int, rows_in: int) -> bool:
        log_bytes = order.log_bytes + sum(map(len, order.data))
        if order.snapshot_live:
            expected = order.snapshot_bytes * live / order.snapshot_live
        else:
            expected = log_bytes * min(1.0, live / max(rows_in, 1))
        return order.snapshot_bytes + log_bytes > STORED_PER_LIVE * expected + order.min_log_bytes

    def _next_pieces(self, budget: int) -> tuple[list[bytes] | None, bool]:
        if not self._left:
            return None, False
        pieces = [self._left.pop(0)]
        while self._left and sum(map(len, pieces)) + len(self._left[0]) <= budget:
            pieces.append(self._left.pop(0))
        complete = not self._left
        self._written = 0 if complete else self._written + len(pieces)
        return pieces, complete


HELD: dict[str, Resident] = {}
_door = threading.Lock()
_address: tuple[int, bytes] | None = None


def ask(name: str, order: Order) -> Answer | None:
    """Give a micro-batch to the bucket if someone has it as committed; None if nobody does."""
    answer = _follow_here(name, order)
    if answer is not None or TaskContext.get() is None:
        return answer
    found = None
    with contextlib.suppress(OSError, EOFError, ValueError, KeyError, AuthenticationError):
        known = json.loads(_file(name).read_text())
        os.kill(known["pid"], 0)  # OSError if it is gone: its port may be somebody else's by now
        if known["pid"] != os.getpid():
            with Client(("127.0.0.1", known["port"]), authkey=bytes.fromhex(known["key"])) as other:
                other.send((name, order))
                found = other.recv()
    if isinstance(found, BaseException):
        raise found
    assert found is None or isinstance(found, Answer)
    return found


def hold(name: str, bucket: Bucket, order: Order) -> Answer:
    """Give a micro-batch to a bucket and keep it for the next one."""
    resident = Resident(bucket)
    answer = resident.follow(order)
    HELD[name] = resident
    if TaskContext.get() is None or os.name != "posix":
        return answer  # outside Spark there are no other workers; elsewhere Spark does not reuse them
    with contextlib.suppress(OSError):  # nobody else finds it then: slower, but as right
        port, key = _open_door()
        text = json.dumps({"port": port, "key": key.hex(), "pid": os.getpid()})
        partial = _file(f"{name}.{os.getpid()}")
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        partial.replace(_file(name))
    return answer


def _follow_here(name: str, order: Order) -> Answer | None:
    """Use a bucket of this worker. It is gone meanwhile, and stays so if the micro-batch fails."""
    resident = HELD.pop(name, None)
    if resident is None or resident.token != order.committed:
        return None
    answer = resident.follow(order)
    HELD[name] = resident
    for other, old in list(HELD.items()):
        if old.used < resident.used - FORGET_AFTER:
            HELD.pop(other, None)
    return answer


def _file(name: str) -> Path:
    return Path(SparkFiles.getRootDirectory()) / f"streamjoin-{name}"


def _open_door() -> tuple[int, bytes]:
    """Serve the buckets of this worker from now on; return port and key."""
    global _address
    with _door:
        if _address is None:
            key = secrets.token_bytes(32)
            listener = Listener(("127.0.0.1", 0), authkey=key)
            threading.Thread(target=_serve, args=(listener,), daemon=True, name="streamjoin").start()
            _address = (listener.address[1], key)
        return _address


def _serve(listener: Listener) -> None:
    while True:
        try:
            connection = listener.accept()
        except (OSError, EOFError, AuthenticationError):
            continue  # one that did not know the key, or went away
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: Connection) -> None:
    with connection, contextlib.suppress(OSError, EOFError):
        name, order = connection.recv()
        found: Any
        try:
            found = _follow_here(name, order)
        except Exception as error:
            found = error
        connection.send(found)
