"""`JoinProcessor`: a bucket inside `transformWithStateInPandas`.

    worker memory   resident bucket, with the token of the batch that made it
    state store     head: token, layout, which parts of the log count, statistics
                    log:  [snapshot] [frames of batch n+1] [frames of batch n+2] ...

Spark's checkpoint is the only truth. A resident bucket is used if its token is the committed one; after a
failed attempt, or
in another worker, it is not, and the bucket is rebuilt: the snapshot restored, the frames since replayed,
results thrown away.

What a batch writes: its own frames. When the frames since the last snapshot outgrow it, a new snapshot takes
the place of all parts: amortised, a batch writes at most twice its frames, and a rebuild reads at most
twice the state.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import streamjoin as sj
from streamjoin.spark import frames
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout

FORMAT = 1
HEAD = (
    "format int, token string, layout string, buckets int, snapshot_parts long, parts long, "
    "snapshot_bytes long, log_bytes long, stats string"
)
PART_BYTES = 64 << 20  # a value of the state store goes over a socket as a whole
FORGET_AFTER = 600.0  # seconds after which a resident bucket nobody asked for is let go
WATCHED = ("state_rows", "state_bytes", "rows_in", "rows_out", "purged", "invalidated", "late", "violations")
OUTPUT = "blob binary, " + ", ".join(f"{name} long" for name in WATCHED)


@dataclass
class Resident:
    """A bucket that stays in the worker between micro-batches."""

    token: str
    bucket: Bucket
    used: float


RESIDENT: dict[tuple[str, int], Resident] = {}


@dataclass(frozen=True)
class Head:
    """What is committed of a bucket, without the log."""

    format: int
    token: str
    layout: str
    buckets: int
    snapshot_parts: int
    parts: int
    snapshot_bytes: int
    log_bytes: int
    stats: str


class JoinProcessor(StatefulProcessor):
    """Runs the buckets of one task. `min_log_bytes`: below this the log is left to grow."""

    def __init__(self, layout: Layout, *, min_log_bytes: int) -> None:
        """Take the layout along to the worker."""
        self._layout = layout
        self._min_log_bytes = min_log_bytes

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._head = handle.getValueState("head", HEAD)
        self._log = handle.getMapState("log", "part long", "data binary")
        self._fingerprint = self._layout.fingerprint
        context = TaskContext.get()
        self._query = (context and context.getLocalProperty("sql.streaming.queryId")) or ""

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Join one micro-batch of one bucket."""
        data = [bytes(frame) for part in rows for frame in part["frame"]]
        data.sort(key=lambda frame: frame[:10])  # attempts of a batch agree as far as they can
        committed = self._head.get()
        head = None if committed is None else Head(*committed)
        bucket = self._bucket(key[0], head)
        results = bucket.apply(data)
        token = uuid.uuid4().hex
        stats = bucket.operator.stats()
        self._write(data, bucket, head, token, json.dumps(asdict(stats)))
        self._keep(key[0], Resident(token, bucket, time.monotonic()))
        blobs = [blob for table in results for blob in frames.write_results(table)]
        yield pd.DataFrame({"blob": pd.Series([*blobs, None], dtype=object), **_watched(stats, len(blobs))})

    def close(self) -> None:
        """Nothing to close: what stays resident is meant to."""

    def _bucket(self, key: int, head: Head | None) -> Bucket:
        """Return the bucket as committed. It leaves the residents, in case this batch fails."""
        resident = RESIDENT.pop((self._query, key), None)
        if head is None:
            return Bucket(self._layout)
        self._check(head)
        if resident is not None and resident.token == head.token:
            return resident.bucket
        return self._rebuilt(head)

    def _rebuilt(self, head: Head) -> Bucket:
        parts = [self._log.getValue((number,)) for number in range(head.parts)]
        if any(part is None for part in parts):
            raise sj.SnapshotError(f"the checkpoint is damaged: expected {head.parts} parts of the log")
        data = [bytes(part[0]) for part in parts if part is not None]
        snapshot, segments = data[: head.snapshot_parts], data[head.snapshot_parts :]
        bucket = Bucket.restore(self._layout, b"".join(snapshot)) if snapshot else Bucket(self._layout)
        for segment in segments:
            bucket.apply(frames.split_frames(segment))
        return bucket

    def _check(self, head: Head) -> None:
        if head.format != FORMAT:
            raise sj.SnapshotError(
                f"checkpoint: expected format {FORMAT}, got {head.format}: made by another streamjoin"
            )
        if head.buckets != self._layout.buckets:
            raise sj.SnapshotError(
                f"checkpoint: it was made with buckets={head.buckets}, got buckets={self._layout.buckets}; "
                f"pass buckets={head.buckets} to join(), or start with a new checkpoint"
            )
        if head.layout != self._fingerprint:
            raise sj.SnapshotError(
                "checkpoint: it was made by another query, other schemas or other aggregates; "
                "go on with the old ones, or start with a new checkpoint"
            )

    def _write(self, data: list[bytes], bucket: Bucket, head: Head | None, token: str, stats: str) -> None:
        segment = frames.join_frames(data)
        parts = head.parts if head else 0
        snapshot_parts = head.snapshot_parts if head else 0
        snapshot_bytes = head.snapshot_bytes if head else 0
        log_bytes = (head.log_bytes if head else 0) + len(segment)
        if log_bytes > max(snapshot_bytes, self._min_log_bytes):
            snapshot = bucket.snapshot()
            pieces = [snapshot[at : at + PART_BYTES] for at in range(0, len(snapshot), PART_BYTES)]
            self._log.clear()
            snapshot_parts, snapshot_bytes = len(pieces), len(snapshot)
            parts, log_bytes = 0, 0
        else:
            pieces = [segment]
        for piece in pieces:
            self._log.updateValue((parts,), (piece,))
            parts += 1
        new = Head(
            FORMAT, token, self._fingerprint, self._layout.buckets,
            snapshot_parts, parts, snapshot_bytes, log_bytes, stats,
        )  # fmt: skip
        self._head.update(tuple(asdict(new).values()))

    def _keep(self, key: int, resident: Resident) -> None:
        old = [place for place, r in RESIDENT.items() if r.used < resident.used - FORGET_AFTER]
        for place in old:
            del RESIDENT[place]
        RESIDENT[self._query, key] = resident


def _watched(stats: sj.Stats, before: int) -> dict[str, Any]:
    """One line of totals behind the blobs of results."""
    columns = {}
    for name in WATCHED:
        value = getattr(stats, name)
        total = sum(value.values()) if isinstance(value, dict) else value
        columns[name] = pd.Series([*[None] * before, total], dtype="Int64")
    return columns
