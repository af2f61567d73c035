"""`JoinProcessor`: a bucket inside `transformWithStateInPandas`.

    worker memory   resident bucket, with the token of the micro-batch that made it (residents.py)
    state store     head:   token, layout, which parts count, statistics
                    parts:  segments  [frames of batch n] [frames of batch n+1] ...      from 0 upwards
                            pieces    of a snapshot, perhaps the first of the next one   from -1 downwards

Spark's checkpoint is the only truth. A resident bucket is used if its token is the committed one; after a
failed attempt it is not, and the bucket is rebuilt: the snapshot restored, the segments since replayed,
results thrown away.

What a micro-batch writes: its own frames as a segment, and at times a few pieces of a new snapshot, about
twice as much. When the last piece is there, the old snapshot and the segments before the new one go. So
no micro-batch writes more than three times its frames (but at least `min_log_bytes`), however large the
state, and a rebuild goes through at most about twice what is alive.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

import streamjoin as sj
from streamjoin.spark import frames, residents
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout
from streamjoin.spark.residents import Answer, Order

FORMAT = 3
# Every task makes an encoder of every column of every state, which costs more than the bytes: so few columns.
HEAD = StructType([StructField("head", StringType())])
NUMBER = StructType([StructField("number", LongType())])
DATA = StructType([StructField("data", BinaryType())])
SIZES = ("state_rows", "state_bytes", "payload_bytes", "buffered")
COUNTERS = ("rows_in", "rows_out", "purged", "invalidated", "late", "violations")
# What each bucket reports of a micro-batch: sizes now, counters since the query began and in this micro-batch
# alone, what it wrote to the store, whether it had to be rebuilt from it, and its slack.
TOTALS = (
    *SIZES, *COUNTERS, *(f"new_{name}" for name in COUNTERS), "written_bytes", "rebuilt", "slack",
)  # fmt: skip
OBSERVED = "streamjoin"  # begins the name of the metrics of each join of a streaming query
OUTPUT = "blob binary, totals string"  # one line for all totals: Spark takes its time for every column


@dataclass(frozen=True)
class Head:
    """What is committed of a bucket, without segments and pieces.

    Segments `first_segment` up to `next_segment` follow the snapshot in `pieces` pieces from
    `first_piece` on (none: the bucket began empty). A snapshot under way has `next_pieces` pieces behind
    those; the segments from `next_snapshot_segment` on will follow it. `written_bytes`: what the last
    micro-batch wrote.
    """

    format: int
    token: str
    layout: str
    buckets: int
    first_segment: int = 0
    next_segment: int = 0
    first_piece: int = 0
    pieces: int = 0
    next_snapshot_segment: int = 0
    next_pieces: int = 0
    snapshot_bytes: int = 0
    snapshot_live: int = 0
    next_bytes: int = 0
    log_bytes: int = 0
    next_log_bytes: int = 0
    written_bytes: int = 0
    stats: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Return it as it is stored."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Head:
        """Undo `text`; SnapshotError if another version of this package has written it."""
        stored = json.loads(text)
        if stored["format"] != FORMAT:
            raise sj.SnapshotError(
                f"checkpoint: expected format {FORMAT}, got {stored['format']}: made by another streamjoin"
            )
        return cls(**stored)


class JoinProcessor(StatefulProcessor):
    """Runs the buckets of one task. `min_log_bytes`: below this the segments are left to grow."""

    def __init__(self, layout: Layout, *, min_log_bytes: int) -> None:
        """Take the layout along to the worker."""
        self._layout = layout
        self._min_log_bytes = min_log_bytes

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._head = handle.getValueState("head", HEAD)
        self._parts = handle.getMapState("parts", NUMBER, DATA)
        self._fingerprint = self._layout.fingerprint
        context = TaskContext.get()
        self._query = (context and context.getLocalProperty("sql.streaming.queryId")) or ""

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Join one micro-batch of one bucket."""
        data = [bytes(frame) for part in rows for frame in part["frame"]]
        data.sort(key=lambda frame: frame[:10])  # attempts of a batch agree as far as they can
        head = self._committed()
        name, order = f"{self._query}-{self._fingerprint[:8]}-{key[0]}", self._order(head, data)
        found = residents.ask(name, order) if head.token else None
        answer = residents.hold(name, self._rebuilt(head), order) if found is None else found
        written = self._write(data, head, order.token, answer)
        totals = _totals(answer.stats, head.stats, written, rebuilt=found is None and head.token != "")
        blobs = [*answer.blobs, None]  # totals stand behind the blobs, in a line of their own
        lines = [*[None] * len(answer.blobs), " ".join(map(str, totals))]
        yield pd.DataFrame({"blob": blobs, "totals": lines}, dtype=object)

    def close(self) -> None:
        """Nothing to close: what stays resident is meant to."""

    def _committed(self) -> Head:
        committed = self._head.get()
        if committed is None:
            return Head(FORMAT, "", self._fingerprint, self._layout.buckets)
        head = Head.of(committed[0])
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
        return head

    def _order(self, head: Head, data: list[bytes]) -> Order:
        return Order(
            committed=head.token,
            token=uuid.uuid4().hex,
            data=data,
            log_bytes=head.log_bytes,
            snapshot_bytes=head.snapshot_bytes,
            snapshot_live=head.snapshot_live,
            min_log_bytes=self._min_log_bytes,
            pieces=head.next_pieces,
        )

    def _rebuilt(self, head: Head) -> Bucket:
        pieces = [self._parts.getValue((key,)) for key in _pieces(head.first_piece, head.pieces)]
        numbers = range(head.first_segment, head.next_segment)
        segments = [self._parts.getValue((number,)) for number in numbers]
        if any(part is None for part in (*pieces, *segments)):
            raise sj.SnapshotError(
                f"the checkpoint is damaged: expected {len(pieces)} pieces of a snapshot and {len(segments)} "
                "segments"
            )
        snapshot = b"".join(piece[0] for piece in pieces)  # type: ignore[index]
        bucket = Bucket.restore(self._layout, snapshot) if pieces else Bucket(self._layout)
        for segment in segments:
            bucket.replay(frames.split_frames(bytes(segment[0])))  # type: ignore[index]
        return bucket

    def _write(self, data: list[bytes], head: Head, token: str, answer: Answer) -> int:
        """Write what this micro-batch changed; returns how many bytes that were."""
        segment = frames.join_frames(data)
        self._parts.updateValue((head.next_segment,), (segment,))
        new = replace(
            head,
            token=token,
            next_segment=head.next_segment + 1,
            log_bytes=head.log_bytes + len(segment),
            next_log_bytes=head.next_log_bytes + len(segment),
            written_bytes=len(segment),
            stats=asdict(answer.stats),
        )
        if answer.pieces is None and head.next_pieces:  # its worker is gone, and the rest of it too
            self._remove(_pieces(head.first_piece + head.pieces, head.next_pieces))
            new = replace(new, next_pieces=0)
        elif answer.pieces is not None:
            new = self._with_pieces(new, answer)
        self._head.update((new.text(),))
        return new.written_bytes

    def _with_pieces(self, head: Head, answer: Answer) -> Head:
        """Write pieces of a snapshot; with the last one it takes the place of all before it."""
        assert answer.pieces is not None
        if answer.starts and head.next_pieces:
            self._remove(_pieces(head.first_piece + head.pieces, head.next_pieces))
        if answer.starts:
            head = replace(
                head, next_snapshot_segment=head.next_segment, next_pieces=0, next_bytes=0, next_log_bytes=0
            )
        at = head.first_piece + head.pieces + head.next_pieces
        for key, piece in zip(_pieces(at, len(answer.pieces)), answer.pieces, strict=True):
            self._parts.updateValue((key,), (piece,))
        size = sum(map(len, answer.pieces))
        head = replace(
            head,
            next_pieces=head.next_pieces + len(answer.pieces),
            next_bytes=head.next_bytes + size,
            written_bytes=head.written_bytes + size,
        )
        if not answer.complete:
            return head
        self._remove(range(head.first_segment, head.next_snapshot_segment))
        self._remove(_pieces(head.first_piece, head.pieces))
        return replace(
            head,
            first_segment=head.next_snapshot_segment,
            first_piece=head.first_piece + head.pieces,
            pieces=head.next_pieces,
            next_pieces=0,
            snapshot_bytes=head.next_bytes,
            snapshot_live=answer.snapshot_live,
            log_bytes=head.next_log_bytes,
        )

    def _remove(self, keys: Iterable[int]) -> None:
        for key in keys:
            self._parts.removeKey((key,))


def _pieces(first: int, count: int) -> range:
    """Return the keys of so many pieces in the store, from the `first` on."""
    return range(-1 - first, -1 - first - count, -1)


def _totals(stats: sj.Stats, before: dict[str, Any], written: int, *, rebuilt: bool) -> list[int]:
    """Return TOTALS of a bucket, all streams together."""
    now = asdict(stats)
    sizes = [_sum(now[name]) for name in SIZES]
    counters = [_sum(now[name]) for name in COUNTERS]
    fresh = [n - _sum(before.get(name, 0)) for name, n in zip(COUNTERS, counters, strict=True)]
    return [*sizes, *counters, *fresh, written, int(rebuilt), stats.slack or 0]


def _sum(value: int | dict[str, int]) -> int:
    return sum(value.values()) if isinstance(value, dict) else value
