"""`Bucket`: one operator, and the groups of its aggregates, driven by the frames of a micro-batch.

All rows of a micro-batch have arrived at once, so: stream by stream its rows in time order and the heartbeat
behind them, then the punctuations. A bucket so does with its keys what a single bucket would do with them.
The same frames in the same order give the same outcome, so a bucket can be rebuilt from a snapshot and the
frames since.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import streamjoin as sj
from streamjoin.spark import frames
from streamjoin.spark.groups import Groups
from streamjoin.spark.layout import KIND, LATE_BY, STREAM, TIME, Layout
from streamjoin.spark.packing import fitted, microseconds

_LENGTH = struct.Struct("<Q")


class Bucket:
    """The state of one bucket and what it does with a micro-batch."""

    def __init__(self, layout: Layout, operator: sj.Operator | None = None) -> None:
        """Start empty, or go on with an operator."""
        self._layout = layout
        self._streams = layout.query.streams
        self.operator = operator or layout.operator()
        rows = pa.schema([]) if not layout.aggregates else rows_schema(self.operator, layout.query)
        self._groups = Groups(layout.query, layout.aggregates, rows) if layout.aggregates else None

    def apply(self, data: Iterable[bytes]) -> list[pa.Table]:
        """Join a micro-batch; returns tables with the layout's result columns."""
        batch = [frames.read_frame(frame) for frame in data]
        outputs = []
        for place in range(len(self._streams)):
            tables = [f.table for f in batch if f.kind == frames.ROWS and f.stream == place]
            outputs += self._push(place, [table for table in tables if table is not None])
            seen = [f.seen for f in batch if f.stream == place and f.seen is not None]
            outputs += [self.advance(place, max(seen))] if seen else []
        for place in range(len(self._streams)):
            tables = [f.table for f in batch if f.kind == frames.PUNCTUATIONS and f.stream == place]
            outputs += self.punctuate(place, [table for table in tables if table is not None])
        return self.results(outputs)

    def replay(self, data: Iterable[bytes]) -> None:
        """Repeat a micro-batch whose results were given out before; only groups need its rows again."""
        with contextlib.nullcontext() if self._groups is not None else self.operator.without_results():
            self.apply(data)

    def advance(self, place: int, seen: int) -> sj.Output:
        """Raise a clock by a time that was seen: rows of just this time, less the delay, may come."""
        return self.operator.advance(self._streams[place].name, seen - 1 - (self._layout.delay or 0))

    def results(self, outputs: Iterable[sj.Output]) -> list[pa.Table]:
        """Return what of these outputs the caller asked for."""
        found = []
        for output in outputs:
            if self._groups is not None:
                self._groups.add(output.rows)
                if output.punctuations.num_rows:
                    found.append(self._groups.complete(self._true_of_all(output.punctuations)))
            else:
                found += self._shown(output)
        return [table for table in found if table.num_rows]

    def finish(self) -> list[pa.Table]:
        """End every stream: the rest of the results."""
        found = self.results([self.operator.finish()])
        return [*found, self._groups.rest()] if self._groups is not None else found

    def size(self, stats: sj.Stats) -> int:
        """Return how many rows, punctuations and groups are held; a snapshot grows with it."""
        groups = len(self._groups) if self._groups is not None else 0
        return sum(stats.state_rows.values()) + sum(stats.punctuations_held.values()) + groups

    def snapshot(self) -> bytes:
        """Return the whole state, compressed."""
        groups = self._groups.save() if self._groups is not None else None
        extra = b"" if groups is None else frames.write_table(groups)
        plain = _LENGTH.pack(len(extra)) + extra + self.operator.snapshot()
        packed: bytes = pa.Codec("zstd").compress(plain, asbytes=True)
        return _LENGTH.pack(len(plain)) + packed

    @classmethod
    def restore(cls, layout: Layout, blob: bytes) -> Bucket:
        """Return the bucket of a snapshot."""
        (size,) = _LENGTH.unpack_from(blob)
        plain = memoryview(pa.Codec("zstd").decompress(pa.py_buffer(blob)[_LENGTH.size :], size))
        (length,) = _LENGTH.unpack_from(plain)
        end = _LENGTH.size + length
        bucket = cls(layout, sj.Operator.restore(layout.query, plain[end:]))
        if bucket._groups is not None and length:
            bucket._groups.load(frames.read_table(bytes(plain[_LENGTH.size : end])))
        return bucket

    def _push(self, place: int, tables: list[pa.Table]) -> list[sj.Output]:
        if not tables:
            return []
        stream = self._streams[place]
        table = tables[0]
        if len(tables) > 1:
            table = pa.concat_tables(tables).combine_chunks()
            times = microseconds(table.column(stream.time), what=f"stream {stream.name!r}")
            if not (times[1:] >= times[:-1]).all():
                table = table.take(pa.array(np.argsort(times, kind="stable")))
        return [self.operator.push(stream.name, fitted(table, self._layout.schemas[place]))]

    def punctuate(self, place: int, tables: list[pa.Table]) -> list[sj.Output]:
        """Apply punctuations in time order; all at once, or at least values of one time together."""
        if not tables:
            return []
        stream = self._streams[place]
        columns = self._layout.punctuation_columns[stream.name]
        table = pa.concat_tables(tables)
        if self._takes_tables(place, columns):
            none = self._layout.schemas[place].empty_table()
            return [self.operator.push(stream.name, none, punctuations=table)]
        if stream.time in table.schema.names:
            table = table.take(pc.sort_indices(table.column(stream.time)))
            times = table.column(stream.time)
        else:
            times = pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])
        if len(columns) > 1:
            patterns = table.select(columns).to_pylist()
            return [
                self.operator.punctuate(stream.name, pattern, time=time if time.is_valid else None)
                for pattern, time in zip(patterns, times, strict=True)
            ]
        outputs = []
        values = table.column(columns[0]).to_pylist()
        starts = np.flatnonzero(pc.fill_null(pc.not_equal(times[1:], times[:-1]), False).to_numpy()) + 1
        for start, stop in zip([0, *starts], [*starts, len(values)], strict=True):
            time = times[int(start)]
            outputs.append(
                self.operator.punctuate(
                    stream.name,
                    {columns[0]: values[int(start) : int(stop)]},
                    time=time if time.is_valid else None,
                )
            )
        return outputs

    def _takes_tables(self, place: int, columns: tuple[str, ...]) -> bool:
        """Say whether punctuations may come as a table: they name whole keys of two streams."""
        query = self._layout.query
        in_order = isinstance(query.disorder, sj.InOrder) and query.chosen_algorithm.binary
        name = self._streams[place].name
        keys = {ref.column for e in query.equalities for ref in (e.left, e.right) if ref.stream == name}
        return in_order and keys == set(columns)

    def _true_of_all(self, punctuations: pa.Table) -> pa.Table:
        """Keep the punctuations that hold for the whole join: of a key that is in this bucket."""
        if self._layout.buckets == 1:
            return punctuations
        keep = np.ones(punctuations.num_rows, dtype=np.bool_)
        names = [stream.name for stream in self._streams]
        for columns in zip(*self._layout.bucket_columns, strict=True):
            shown = [f"{name}_{column}" for name, column in zip(names, columns, strict=True)]
            known = [pc.is_valid(punctuations.column(n)) for n in shown if n in punctuations.schema.names]
            keep &= np.logical_or.reduce([valid.to_numpy() for valid in known])
        return punctuations.filter(pa.array(keep))

    def _shown(self, output: sj.Output) -> list[pa.Table]:
        if self._layout.emit == "rows":
            return [output.rows]
        found = [
            self._marked("row", output.rows),
            self._marked("punctuation", self._true_of_all(output.punctuations)),
        ]
        if self._layout.emit == "all":
            found += [self._marked("late", output.late), self._marked("violation", output.violations)]
        return found

    def _marked(self, kind: str, table: pa.Table) -> pa.Table:
        """Lay a table of an output into the result columns; what it does not have is null."""
        aliases = {TIME: "time"} if kind == "punctuation" else {STREAM: "stream", LATE_BY: "late_by"}
        columns = []
        for field in self._layout.result:
            source = aliases.get(field.name, field.name)
            if field.name == KIND:
                columns.append(pa.repeat(pa.scalar(kind, pa.string()), table.num_rows))
            elif source in table.schema.names and (kind != "row" or field.name not in aliases):
                columns.append(table.column(source))
            else:
                columns.append(pa.nulls(table.num_rows, field.type))
        return pa.Table.from_arrays(columns, schema=self._layout.result)


def rows_schema(operator: sj.Operator, query: sj.Query) -> pa.Schema:
    """Return the columns of an operator's results. A heartbeat at the beginning of time changes nothing."""
    return operator.advance(query.stream_names[0], -(2**62)).rows.schema
