"""`Operator`: a query running on Arrow batches.

    batch -> checked -> times, keys -> native join -> row references -> gathered columns -> Output

Everything that can be refused is refused before the native state changes, so a failed call leaves the
operator as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin import _core, snapshot
from streamjoin.batches import to_batch, to_schema
from streamjoin.errors import (
    DataError,
    LateRowError,
    PunctuationViolation,
    QueryError,
    SnapshotError,
    UnsafeQueryError,
)
from streamjoin.keys import KeyAttribute
from streamjoin.output import Output, Stats
from streamjoin.patterns import ANY, EMPTY, Range
from streamjoin.query import Query
from streamjoin.results import ResultTables
from streamjoin.rows import RowRefs, RowStore
from streamjoin.times import TimeUnit

Variant = Literal["pwjoin", "wjoin", "pjoin"]
NativePattern = list[tuple[Any, ...] | None]


class Operator:
    """A two-stream query running on Arrow batches.

    >>> import pyarrow as pa
    >>> import streamjoin as sj
    >>> query = sj.Query(
    ...     [sj.Stream("click", time="t"), sj.Stream("view", time="t")],
    ...     on=["click.ad = view.ad"],
    ...     within=sj.within("5 s"),
    ... )
    >>> schema = pa.schema([("ad", pa.string()), ("t", pa.timestamp("ms"))])
    >>> op = sj.Operator(query, schemas={"click": schema, "view": schema})
    >>> op.push("view", pa.table({"ad": ["x"], "t": [1000]}, schema=schema))
    Output(rows=0, punctuations=0, late=0, violations=0)
    >>> out = op.push("click", pa.table({"ad": ["x"], "t": [3000]}, schema=schema))
    >>> out.rows.column("view_ad").to_pylist()
    ['x']

    `variant`: "pwjoin" uses windows and punctuations, "wjoin" windows only, "pjoin" punctuations only
    (windows are still checked, but forget nothing). The rows of an inner join are the same; what differs is
    the state, and so the cost.
    """

    def __init__(self, query: Query, *, schemas: Mapping[str, Any], variant: Variant = "pwjoin") -> None:
        """Check the query against the schemas and start empty. UnsafeQueryError if its state could grow."""
        if len(query.streams) != 2:
            raise QueryError(
                f"expected a query of two streams, got {len(query.streams)}: {', '.join(query.stream_names)}"
            )
        if variant not in ("pwjoin", "wjoin", "pjoin"):
            raise QueryError(f"variant: expected 'pwjoin', 'wjoin' or 'pjoin', got {variant!r}")
        report = query.check()
        if query.require_safe and not report.safe:
            raise UnsafeQueryError(f"{report}\n(require_safe=False runs it all the same)")
        self.query = query
        self._variant = variant
        self._names = query.stream_names
        self._schemas = self._checked_schemas(schemas)
        self._time_columns = [
            schema.get_field_index(s.time) for s, schema in zip(query.streams, self._schemas, strict=True)
        ]
        time_types = {
            f"{s.name}.{s.time}": schema.field(s.time).type
            for s, schema in zip(query.streams, self._schemas, strict=True)
        }
        self._unit = TimeUnit.of(time_types)
        self._attributes = [
            KeyAttribute.of(
                *(self._field(ref.stream, ref.column).type for ref in (e.left, e.right)), what=str(e)
            )
            for e in query.equalities
        ]
        self._key_columns = [[(e.left, e.right)[side].column for e in query.equalities] for side in (0, 1)]
        self._stores = [RowStore(schema, side) for side, schema in enumerate(self._schemas)]
        self._tables = ResultTables(
            query,
            self._schemas,
            self._stores,
            self._attributes,
            self._unit,
            self._unit.column_type(time_types),
        )
        self._predicate = self._bound_predicate()
        self._core = self._new_core()
        self._finished = False

    # ---- the four calls ------------------------------------------------------------------------------------

    def push(self, stream: str, batch: Any) -> Output:
        """Join the rows of a batch: anything with the Arrow PyCapsule interface, or a pandas DataFrame.

        Rows come in time order; one behind the stream's clock is late and treated by the query's policy.
        """
        side = self._side(stream, "push")
        rows = to_batch(batch, self._schemas[side], what=f"stream {stream!r}")
        times = self._unit.integers(rows.column(self._time_columns[side]), what=self._time_name(side))
        keys = [
            attribute.native(rows.column(column), what=f"stream {stream!r}, column {column!r}")
            for attribute, column in zip(self._attributes, self._key_columns[side], strict=True)
        ]
        number = self._stores[side].put(rows)
        try:
            native = self._core.push(side, number, times, keys, self._predicate)
        except BaseException as error:
            self._stores[side].drop(number)
            if isinstance(error, _core.RefusedBatch):
                raise self._refusal(side, rows, times, *error.args) from None
            raise
        output = self._tables.output(native)
        if self._core.rows_of_batch(side, number) == 0:
            self._stores[side].drop(number)
        self._release_payload()
        return output

    def punctuate(self, stream: str, pattern: Mapping[str, Any], *, time: Any = None) -> Output:
        """Promise that no row of the stream that matches `pattern` comes any more.

        `pattern` gives a value, a list, a `Range`, `ANY` or `EMPTY` per join attribute; others are `ANY`. All
        `ANY`, or an empty dict, is the end of the stream. Without `time` it stands at the stream's clock.
        """
        side = self._side(stream, "punctuate")
        patterns = self._native_patterns(side, pattern)
        at = None if time is None else self._unit.integer(time, what=f"stream {stream!r}, punctuation time")
        return self._finish_call(self._core.punctuate(side, patterns, at))

    def advance(self, stream: str, time: Any) -> Output:
        """Promise that no row of the stream at or before `time` comes any more (a heartbeat)."""
        side = self._side(stream, "advance")
        return self._finish_call(
            self._core.advance(side, self._unit.integer(time, what=f"stream {stream!r}, heartbeat"))
        )

    def finish(self) -> Output:
        """End every stream: the rest of the results. The operator takes no further calls."""
        self._check_running("finish")
        output = self._finish_call(self._core.finish())
        self._finished = True
        return output

    # ---- what it holds -------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Return counters and sizes. Dead rows are freed first, so sizes are those of live ones."""
        native = self._core.stats()
        per_stream = {
            name: dict(zip(self._names, value, strict=True))
            for name, value in native.items()
            if isinstance(value, (tuple, list)) and name not in ("punctuations_out", "promises_held")
        }
        return Stats(
            **per_stream,
            rows_out=native["rows_out"],
            state_bytes=native["state_bytes"],
            payload_bytes={name: store.nbytes for name, store in zip(self._names, self._stores, strict=True)},
            stored_rows={
                name: store.stored_rows for name, store in zip(self._names, self._stores, strict=True)
            },
            dictionary_entries=native["dictionary_entries"],
            punctuations_out=dict(
                zip(("regular", "early", "immediate"), native["punctuations_out"], strict=True)
            ),
            punctuations_held=dict(zip(self._names, native["promises_held"], strict=True)),
        )

    def validate(self) -> None:
        """Check every invariant of the native state; AssertionError names the first broken one. Slow."""
        broken = self._core.validate()
        if broken:
            raise AssertionError(broken)

    def snapshot(self) -> bytes:
        """Return the whole state as bytes: `Operator.restore(query, blob)` goes on from here."""
        for side in (0, 1):
            self._compact(side)
        schemas = [schema.serialize().to_pybytes() for schema in self._schemas]
        payload = [snapshot.batch_to_bytes(store.only_batch()) for store in self._stores]
        flags = bytes([self._finished])
        return snapshot.write(
            _fingerprint_of(self.query),
            [flags, self._core.save(), *schemas, *payload, self._variant.encode()],
        )

    @classmethod
    def restore(cls, query: Query, blob: bytes) -> Operator:
        """Return the operator of a snapshot. SnapshotError if it is damaged, newer, or of another query."""
        flags, state, *rest = snapshot.read(blob, _fingerprint_of(query))
        try:
            schemas = [pa.ipc.read_schema(pa.py_buffer(part)) for part in rest[:2]]
            batches = [snapshot.batch_from_bytes(part) for part in rest[2:4]]
            variant: Any = rest[4].decode()
            operator = cls(
                query, schemas=dict(zip(query.stream_names, schemas, strict=True)), variant=variant
            )
            operator._core.load(state)
        except (pa.ArrowException, _core.DamagedArchive, IndexError) as error:
            raise SnapshotError(f"the snapshot is damaged: {error}") from error
        for store, batch in zip(operator._stores, batches, strict=True):
            if batch.num_rows:
                store.put(batch)
        operator._finished = bool(flags[0])
        return operator

    # ---- parts ---------------------------------------------------------------------------------------------

    def _new_core(self) -> _core.BinaryOperator:
        query, unit = self.query, self._unit
        return _core.BinaryOperator(
            how=query.how,
            lower=unit.smallest_at_least(query.windows.lower(0, 1)),
            upper=unit.largest_at_most(query.windows.upper(0, 1)),
            late=query.late,
            on_violation=query.on_violation,
            implies=tuple(self._implied(side) for side in (0, 1)),
            lifespans=tuple(unit.largest_at_most(stream.lifespan_ns) for stream in query.streams),
            key_types=[(attribute.kind, attribute.width) for attribute in self._attributes],
            null_safe=[equality.null_safe for equality in query.equalities],
            use_windows=self._variant != "pjoin",
            use_punctuations=self._variant != "wjoin",
        )

    def _implied(self, side: int) -> str:
        """Say which punctuations the rows imply. They must speak of the whole key, not less."""
        stream = self.query.streams[side]
        for option, columns in (("unique", stream.unique_columns), ("clustered", stream.clustered_columns)):
            if columns is None or not set(columns) <= set(self._key_columns[side]):
                continue  # of no use to this join; check() says so
            if option == "clustered" and set(columns) != set(self._key_columns[side]):
                raise QueryError(
                    f"stream {stream.name!r}, clustered: "
                    f"expected all join attributes {self._key_columns[side]}, got {list(columns)}"
                )
            return option
        return "nothing"

    def _checked_schemas(self, schemas: Mapping[str, Any]) -> list[pa.Schema]:
        for name in schemas:
            if name not in self._names:
                raise QueryError(f"schemas: expected the streams {list(self._names)}, got {name!r}")
        checked = []
        for stream in self.query.streams:
            if stream.name not in schemas:
                raise QueryError(
                    f"schemas: expected a schema of stream {stream.name!r}, got {sorted(schemas)}"
                )
            schema = to_schema(schemas[stream.name], what=f"stream {stream.name!r}")
            wanted = {stream.time, *(c for scheme in stream.schemes for c in scheme)}
            wanted |= {
                ref.column
                for e in self.query.equalities
                for ref in (e.left, e.right)
                if ref.stream == stream.name
            }
            for column in sorted(wanted - set(schema.names)):
                raise QueryError(
                    f"stream {stream.name!r}: expected a column {column!r} in its schema, got {schema.names}"
                )
            checked.append(schema)
        return checked

    def _field(self, stream: str, column: str) -> pa.Field:
        return self._schemas[self._names.index(stream)].field(column)

    def _bound_predicate(self) -> Callable[[RowRefs], npt.NDArray[np.uint8]] | None:
        if self.query.predicate is None:
            return None
        predicate = self.query.predicate.bind(dict(zip(self._names, self._schemas, strict=True)))
        predicate.check(
            {f"{n}.{f.name}": f.type for n, s in zip(self._names, self._schemas, strict=True) for f in s}
        )
        places = []
        for stream, column in predicate.columns:
            side = self._names.index(stream)
            places.append((f"{stream}.{column}", side, self._schemas[side].get_field_index(column)))

        def holds(candidates: RowRefs) -> npt.NDArray[np.uint8]:
            arrays = {name: self._stores[side].gather(candidates, column) for name, side, column in places}
            return predicate.mask(arrays).view(np.uint8)

        return holds

    def _side(self, stream: str, call: str) -> int:
        self._check_running(call)
        return self.query.stream_index(stream)

    def _check_running(self, call: str) -> None:
        if self._finished:
            raise DataError(f"{call}: expected a running operator, got one after finish()")

    def _time_name(self, side: int) -> str:
        return f"stream {self._names[side]!r}, time column {self.query.streams[side].time!r}"

    def _native_patterns(self, side: int, pattern: Mapping[str, Any]) -> list[NativePattern]:
        """One native pattern per combination of listed values."""
        columns = self._key_columns[side]
        for name in pattern:
            if name not in columns:
                raise DataError(
                    f"stream {self._names[side]!r}, punctuation: "
                    f"expected patterns of the join attributes {columns}, got {name!r}"
                )
        choices: list[list[tuple[Any, ...] | None]] = []
        for attribute, column in zip(self._attributes, columns, strict=True):
            given = pattern.get(column, ANY)
            type_ = self._field(self._names[side], column).type
            what = f"stream {self._names[side]!r}, punctuation of column {column!r}"
            values = given if isinstance(given, (list, tuple, set, frozenset)) else [given]
            patterns = [
                _native_pattern(attribute, value, type_, what) for value in values if value is not EMPTY
            ]
            choices.append(
                list({repr(p): p for p in patterns}.values())
            )  # a list names each value once; NaN is one value
        return [list(combination) for combination in product(*choices)]

    def _refusal(
        self, side: int, rows: pa.RecordBatch, times: npt.NDArray[np.int64], why: str, row: int, clock: int
    ) -> DataError:
        value = rows.column(self._time_columns[side])[row].as_py()
        if why == "late":
            behind = f"a time not behind the stream's clock {clock} ({self._unit.name})"
            return LateRowError(
                f"{self._time_name(side)}: expected {behind}, got {value} ({int(times[row])}) in row {row}"
            )
        key = {column: rows.column(column)[row].as_py() for column in self._key_columns[side]}
        return PunctuationViolation(
            f"stream {self._names[side]!r}, columns {self._key_columns[side]}: "
            f"expected no more rows of a key that was punctuated, got {key} in row {row}"
        )

    def _finish_call(self, native: _core.Output) -> Output:
        output = self._tables.output(native)
        self._release_payload()
        return output

    def _release_payload(self) -> None:
        for side, store in enumerate(self._stores):
            for number in self._core.take_empty_batches(side):
                store.drop(number)
            if store.is_mostly_dead(self._core.live_rows(side)):
                self._compact(side)

    def _compact(self, side: int) -> None:
        """Copy the live rows of a stream together into one batch."""
        store = self._stores[side]
        number = store.next_number()
        refs = self._core.move_rows_to(side, number)
        store.replace_all(store.batch_of(refs))


def _fingerprint_of(query: Query) -> str:
    """What a snapshot must agree on with the query that goes on from it."""
    return repr(query)


def _native_pattern(
    attribute: KeyAttribute, value: Any, type_: pa.DataType, what: str
) -> tuple[Any, ...] | None:
    if value is ANY:
        return None
    if not isinstance(value, Range):
        return (attribute.native_scalar(value, type_, what=what),)
    ends = (value.low, value.high)
    return tuple(None if end is None else attribute.native_scalar(end, type_, what=what) for end in ends)
