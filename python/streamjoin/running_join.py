"""`RunningJoin`: one native join with the rows it refers to.

    batch -> times, keys -> native join -> row references -> gathered columns -> Output

An `Operator` runs one of them, or a tree of them. Everything that can be refused is refused before the native
state changes, so a failed call leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin import _core, snapshot
from streamjoin.binary_side import BinarySide
from streamjoin.disorder_options import WallClock, stats_of_disorder
from streamjoin.errors import QueryError
from streamjoin.growth import GrowthWatch
from streamjoin.inputs import Inputs
from streamjoin.multi_side import MultiSide, PartOfTree
from streamjoin.native_patterns import NativePattern
from streamjoin.output import Output, Stats
from streamjoin.promised_keys import PromisedKeys, not_with_rows, promised_keys
from streamjoin.results import ResultTables
from streamjoin.rows import RowStore

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
Times = npt.NDArray[np.int64]


class RunningJoin:
    """A native join, the batches its rows lie in, the tables it gives out. Streams go by their places."""

    def __init__(self, inputs: Inputs, *, variant: str = "pwjoin", tree: PartOfTree | None = None) -> None:
        """Start empty. `tree`: what it must know if it is one join of several."""
        self.inputs = inputs
        self.names = inputs.names
        self.stores = [RowStore(schema, i, len(self.names)) for i, schema in enumerate(inputs.schemas)]
        self.side = self._native_side(variant, tree)
        self.core = self.side.core
        self.tables = ResultTables(inputs, self.stores, self.side.output_attributes)
        self.muted = False  # outputs are empty: nobody wants what comes out
        open_pairs = {left for left, _ in inputs.query.windows.open_pairs()}
        self._growth = GrowthWatch([name in open_pairs for name in self.names])
        policy = inputs.query.disorder
        by_wall = policy.idle_clock == "wall" and policy.idle_after is not None
        self._wall_clock = WallClock(inputs.unit) if by_wall else None

    def push(
        self, place: int, rows: pa.RecordBatch, times: Times, promised: PromisedKeys | None = None
    ) -> Output:
        """Join the rows of a batch, and take the punctuations between them."""
        store = self.stores[place]
        number = store.put(rows)
        try:
            self._look_at_clock()
            if promised is None:
                native: _core.Output | _core.MultiOutput = self.side.push(place, number, rows, times)
            else:
                assert isinstance(self.side, BinarySide)
                native = self.side.push(place, number, rows, times, promised)
        except BaseException as error:
            if not self.core.took_batch():
                store.drop(number)
            if isinstance(error, _core.RefusedBatch):
                columns = self.side.key_columns[place]
                raise self.inputs.refusal(place, rows, times, columns, error.args) from None
            raise
        output = self._output(native)
        empty = set(self.core.take_empty_batches(place))
        if self.core.rows_of_batch(place, number) == 0:
            empty.add(number)  # if none of its rows was ever stored, the core did not see it become empty
        for batch_number in empty:
            store.drop(batch_number)
        self._growth.came(place, len(times), int(times[-1]) if len(times) else None)
        self._release_payload()
        return output

    def rehearse(self, place: int, rows: pa.RecordBatch, times: Times) -> pa.Table:
        """Return the result rows that `push` would give, or raise what it would raise. Changes nothing."""
        assert isinstance(self.side, MultiSide)
        store = self.stores[place]
        number = store.put(rows)
        try:
            return self.tables.rows(self.side.rehearse(place, number, rows, times))
        except _core.RefusedBatch as error:
            columns = self.side.key_columns[place]
            raise self.inputs.refusal(place, rows, times, columns, error.args) from None
        finally:
            store.drop(number)

    def promised(self, place: int, punctuations: Any, times: Times) -> PromisedKeys:
        """Return punctuations that come with rows at `times`; DataError if they do not fit."""
        side = self.side
        if isinstance(side, BinarySide) and side.key_columns[place] and self.core.disorder() is None:
            return promised_keys(self.inputs, place, side, punctuations, times)
        raise not_with_rows(self.names[place])

    def patterns(self, place: int, pattern: Mapping[str, Any]) -> list[NativePattern]:
        """Return a pattern as the native join takes it; DataError if it does not fit."""
        return self.side.native_patterns(place, pattern)

    def punctuate(self, place: int, patterns: Sequence[NativePattern], at: int | None) -> Output:
        """Take a punctuation; without patterns it is counted and nothing else."""
        self._look_at_clock()
        return self._finish_call(self.core.punctuate(place, patterns, at))

    def advance(self, place: int, at: int) -> Output:
        """Take a heartbeat."""
        self._look_at_clock()
        return self._finish_call(self.core.advance(place, at))

    def finish(self) -> Output:
        """End every stream."""
        return self._finish_call(self.core.finish())

    def stats(self) -> Stats:
        """Return counters and sizes. Dead rows are freed first, so sizes are those of live ones."""
        native: Mapping[str, Any] = self.core.stats()
        per_stream: dict[str, Any] = {
            name: dict(zip(self.names, native[name], strict=True))
            for name in (*COUNTERS, "state_rows", "state_keys")
        }
        kinds = ("regular", "early", "immediate")
        return Stats(
            **per_stream,
            rows_out=native["rows_out"],
            state_bytes=native["state_bytes"],
            payload_bytes={name: store.nbytes for name, store in zip(self.names, self.stores, strict=True)},
            stored_rows={
                name: store.stored_rows for name, store in zip(self.names, self.stores, strict=True)
            },
            dictionary_entries=native["dictionary_entries"],
            punctuations_out=dict(zip(kinds, native["punctuations_out"], strict=True)),
            punctuations_held=dict(zip(self.names, native["promises_held"], strict=True)),
            growing={
                name: growth
                for place, name in enumerate(self.names)
                if (growth := self._growth.growing(place, native["state_rows"][place])) is not None
            },
            **stats_of_disorder(self.core.disorder(), self.names, self.inputs.unit),
        )

    def live_rows(self) -> dict[str, int]:
        """Return the stored rows of each input."""
        return {name: self.core.live_rows(place) for place, name in enumerate(self.names)}

    def validate(self) -> None:
        """Check every invariant of the native state; AssertionError names the first broken one."""
        broken = self.core.validate()
        if broken:
            raise AssertionError(broken)

    def save(self) -> list[bytes]:
        """Return the state, and the live rows of each input."""
        for place in range(len(self.names)):
            self.compact(place)
        state = self.core.save()
        payload = [
            snapshot.batch_to_bytes(store.only_batch(), state, {stream.time, *keys})
            for store, stream, keys in zip(
                self.stores, self.inputs.query.streams, self.side.key_columns, strict=True
            )
        ]
        return [state, *payload]

    def load(self, parts: Sequence[bytes]) -> None:
        """Go on from what `save` returned, in a new join. ValueError or ArrowException if it is damaged."""
        state, *payload = parts
        batches = [
            snapshot.batches_from_bytes(part, state, store.schema)
            for part, store in zip(payload, self.stores, strict=True)
        ]
        self.core.load(state)
        for place, (store, pieces) in enumerate(zip(self.stores, batches, strict=True)):
            store.put_again(pieces, rows=self.core.live_rows(place))

    def compact(self, place: int) -> None:
        """Copy the live rows of an input together into one batch."""
        store = self.stores[place]
        number = store.next_number()
        refs = self.core.move_rows_to(place, number)
        store.replace_all(store.batch_of(refs))

    def _native_side(self, variant: str, tree: PartOfTree | None) -> BinarySide | MultiSide:
        query = self.inputs.query
        if tree is not None:
            return MultiSide(self.inputs, self.stores, variant, tree)
        two_on_request = len(self.names) == 2 and query.algorithm == "auto" and variant != "pwjoin"
        if query.chosen_algorithm.binary or two_on_request:
            return BinarySide(self.inputs, self.stores, variant)
        if variant == "pjoin":
            raise QueryError(
                f"variant: expected 'pwjoin' or 'wjoin' for {query.chosen_algorithm.name} of "
                f"{len(self.names)} streams, got {variant!r}"
            )
        return MultiSide(self.inputs, self.stores, variant)

    def _output(self, native: _core.Output | _core.MultiOutput) -> Output:
        return self.tables.empty if self.muted else self.tables.output(native)

    def _look_at_clock(self) -> None:
        if self._wall_clock is not None:
            self.core.look_at_clock(self._wall_clock.now())

    def _finish_call(self, native: _core.Output | _core.MultiOutput) -> Output:
        output = self._output(native)
        self._release_payload()
        return output

    def _release_payload(self) -> None:
        for place, store in enumerate(self.stores):
            for number in self.core.take_empty_batches(place):
                store.drop(number)
            live = self.core.live_rows(place)
            self._growth.saw(place, live)
            if store.is_mostly_dead(live):
                self.compact(place)
