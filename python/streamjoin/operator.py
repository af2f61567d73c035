"""`Operator`: a query running on Arrow batches.

    batch -> checked -> times, keys -> native join -> row references -> gathered columns -> Output

Everything that can be refused is refused before the native state changes, so a failed call leaves the
operator as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa

from streamjoin import _core, snapshot
from streamjoin.binary_side import BinarySide
from streamjoin.disorder_options import WallClock, stats_of_disorder
from streamjoin.errors import DataError, QueryError, SnapshotError, UnsafeQueryError
from streamjoin.growth import GrowthWatch
from streamjoin.inputs import Inputs
from streamjoin.multi_side import MultiSide
from streamjoin.output import Output, Stats
from streamjoin.query import Query
from streamjoin.results import ResultTables
from streamjoin.rows import RowStore

Variant = Literal["pwjoin", "wjoin", "pjoin"]
COUNTERS = (
    "rows_in",
    "punctuations_in",
    "purged",
    "invalidated",
    "discarded_on_the_fly",
    "dropped_after_propagation",
    "violations",
    "late",
)


class Operator:
    """A query running on Arrow batches.

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
    the state, and so the cost. "pjoin" is for two streams joined on values.
    """

    def __init__(self, query: Query, *, schemas: Mapping[str, Any], variant: Variant = "pwjoin") -> None:
        """Check the query against the schemas and start empty. UnsafeQueryError if its state could grow."""
        if variant not in ("pwjoin", "wjoin", "pjoin"):
            raise QueryError(f"variant: expected 'pwjoin', 'wjoin' or 'pjoin', got {variant!r}")
        report = query.check()
        if query.require_safe and not report.safe:
            raise UnsafeQueryError(f"{report}\n(require_safe=False runs it all the same)")
        self.query = query
        self._variant = variant
        self._names = query.stream_names
        self._inputs = Inputs(query, schemas)
        streams = len(self._names)
        self._stores = [RowStore(schema, i, streams) for i, schema in enumerate(self._inputs.schemas)]
        self._side = self._native_side()
        self._core = self._side.core
        self._tables = ResultTables(self._inputs, self._stores, self._side.output_attributes)
        open_pairs = {left for left, _ in query.windows.open_pairs()}
        self._growth = GrowthWatch([name in open_pairs for name in self._names])
        self._finished = False
        by_wall = query.disorder.idle_clock == "wall" and query.disorder.idle_after is not None
        self._wall_clock = WallClock(self._inputs.unit) if by_wall else None

    # ---- the four calls ------------------------------------------------------------------------------------

    def push(self, stream: str, batch: Any) -> Output:
        """Join the rows of a batch: anything with the Arrow PyCapsule interface, or a pandas DataFrame.

        Rows come in time order; one behind the stream's clock is late and treated by the query's policy.
        """
        place = self._place(stream, "push")
        rows = self._inputs.batch(place, batch)
        times = self._inputs.times(place, rows)
        store = self._stores[place]
        number = store.put(rows)
        try:
            self._look_at_clock()
            native = self._side.push(place, number, rows, times)
        except BaseException as error:
            if not self._core.took_batch():
                store.drop(number)
            if isinstance(error, _core.RefusedBatch):
                columns = self._side.key_columns[place]
                raise self._inputs.refusal(place, rows, times, columns, error.args) from None
            raise
        output = self._tables.output(native)
        empty = set(self._core.take_empty_batches(place))
        if self._core.rows_of_batch(place, number) == 0:
            empty.add(number)  # if none of its rows was ever stored, the core did not see it become empty
        for batch_number in empty:
            store.drop(batch_number)
        self._growth.came(place, len(times), int(times[-1]) if len(times) else None)
        self._release_payload()
        return output

    def punctuate(self, stream: str, pattern: Mapping[str, Any], *, time: Any = None) -> Output:
        """Promise that no row of the stream that matches `pattern` comes any more.

        `pattern` gives a value, a list, a `Range`, `ANY` or `EMPTY` per join attribute; others are `ANY`. All
        `ANY`, or an empty dict, is the end of the stream. Without `time` it stands at the stream's clock.
        Three and more streams take values only if some stream of the query declares punctuations.
        """
        place = self._place(stream, "punctuate")
        patterns = self._side.native_patterns(place, pattern)
        at = (
            self._inputs.unit.integer(time, what=f"stream {stream!r}, punctuation time")
            if time is not None
            else None
        )
        self._look_at_clock()
        return self._finish_call(self._core.punctuate(place, patterns, at))

    def advance(self, stream: str, time: Any) -> Output:
        """Promise that no row of the stream at or before `time` comes any more (a heartbeat)."""
        place = self._place(stream, "advance")
        at = self._inputs.unit.integer(time, what=f"stream {stream!r}, heartbeat")
        self._look_at_clock()
        return self._finish_call(self._core.advance(place, at))

    def finish(self) -> Output:
        """End every stream: the rest of the results. The operator takes no further calls."""
        self._check_running("finish")
        output = self._finish_call(self._core.finish())
        self._finished = True
        return output

    # ---- what it holds -------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Return counters and sizes. Dead rows are freed first, so sizes are those of live ones."""
        native: Mapping[str, Any] = self._core.stats()
        per_stream: dict[str, Any] = {
            name: dict(zip(self._names, native[name], strict=True))
            for name in (*COUNTERS, "state_rows", "state_keys")
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
            growing={
                name: growth
                for place, name in enumerate(self._names)
                if (growth := self._growth.growing(place, native["state_rows"][place])) is not None
            },
            **stats_of_disorder(self._core.disorder(), self._names, self._inputs.unit),
        )

    def live_rows(self) -> dict[str, int]:
        """Return the stored rows of each stream; cheaper than `stats()`."""
        return {name: self._core.live_rows(place) for place, name in enumerate(self._names)}

    def validate(self) -> None:
        """Check every invariant of the native state; AssertionError names the first broken one. Slow."""
        broken = self._core.validate()
        if broken:
            raise AssertionError(broken)

    def snapshot(self) -> bytes:
        """Return the whole state as bytes: `Operator.restore(query, blob)` goes on from here."""
        for place in range(len(self._names)):
            self._compact(place)
        schemas = [schema.serialize().to_pybytes() for schema in self._inputs.schemas]
        payload = [snapshot.batch_to_bytes(store.only_batch()) for store in self._stores]
        flags = bytes([self._finished])
        return snapshot.write(
            _fingerprint_of(self.query),
            [flags, self._core.save(), *schemas, *payload, self._variant.encode()],
        )

    @classmethod
    def restore(cls, query: Query, blob: bytes) -> Operator:
        """Return the operator of a snapshot. SnapshotError if it is damaged, newer, or of another query."""
        parts = snapshot.read(blob, _fingerprint_of(query))
        try:
            streams = len(query.streams)
            flags, state, *rest = parts
            schemas = [pa.ipc.read_schema(pa.py_buffer(part)) for part in rest[:streams]]
            batches = [snapshot.batches_from_bytes(part) for part in rest[streams : 2 * streams]]
            variant: Any = rest[2 * streams].decode()
            operator = cls(
                query, schemas=dict(zip(query.stream_names, schemas, strict=True)), variant=variant
            )
            operator._core.load(state)
            for place, (store, pieces) in enumerate(zip(operator._stores, batches, strict=True)):
                store.put_again(pieces, rows=operator._core.live_rows(place))
            operator._finished = bool(flags[0])
        except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
            raise SnapshotError(f"the snapshot is damaged: {error}") from error
        return operator

    # ---- parts ---------------------------------------------------------------------------------------------

    def _native_side(self) -> BinarySide | MultiSide:
        two_on_request = (
            len(self._names) == 2 and self.query.algorithm == "auto" and self._variant != "pwjoin"
        )
        if self.query.chosen_algorithm.binary or two_on_request:
            return BinarySide(self._inputs, self._stores, self._variant)
        if self._variant == "pjoin":
            raise QueryError(
                f"variant: expected 'pwjoin' or 'wjoin' for {self.query.chosen_algorithm.name} of "
                f"{len(self._names)} streams, got {self._variant!r}"
            )
        return MultiSide(self._inputs, self._stores, self._variant)

    def _place(self, stream: str, call: str) -> int:
        self._check_running(call)
        return self.query.stream_index(stream)

    def _check_running(self, call: str) -> None:
        if self._finished:
            raise DataError(f"{call}: expected a running operator, got one after finish()")

    def _look_at_clock(self) -> None:
        if self._wall_clock is not None:
            self._core.look_at_clock(self._wall_clock.now())

    def _finish_call(self, native: _core.Output | _core.MultiOutput) -> Output:
        output = self._tables.output(native)
        self._release_payload()
        return output

    def _release_payload(self) -> None:
        for place, store in enumerate(self._stores):
            for number in self._core.take_empty_batches(place):
                store.drop(number)
            live = self._core.live_rows(place)
            self._growth.saw(place, live)
            if store.is_mostly_dead(live):
                self._compact(place)

    def _compact(self, place: int) -> None:
        """Copy the live rows of a stream together into one batch."""
        store = self._stores[place]
        number = store.next_number()
        refs = self._core.move_rows_to(place, number)
        store.replace_all(store.batch_of(refs))


def _fingerprint_of(query: Query) -> str:
    """What a snapshot must agree on with the query that goes on from it."""
    return repr(query)
