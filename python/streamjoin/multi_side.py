"""The native side of a join of any number of streams: hash, merge and nested loop, windows, punctuations.

Equal columns that always come together share one index, as long as no stream declares punctuations; these may
speak of one column without the other, so then every set of equal columns is a class of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin import _core
from streamjoin.attribute_classes import EqualColumns, equal_columns
from streamjoin.bound_predicate import BoundPredicate, bound_predicate
from streamjoin.conjuncts import NativeForm, conjuncts, native_form
from streamjoin.disorder_options import disorder_options
from streamjoin.errors import DataError
from streamjoin.expressions import ColumnRef, floats, plain_values
from streamjoin.inputs import Inputs
from streamjoin.keys import KeyAttribute, NativeColumn
from streamjoin.native_patterns import NativePattern, native_patterns
from streamjoin.patterns import ANY
from streamjoin.results import OutputAttribute
from streamjoin.rows import RowRefs, RowStore

NativePredicate = tuple[list[int], tuple[Any, ...] | BoundPredicate]
Values = tuple[npt.NDArray[np.int64] | npt.NDArray[np.float64], npt.NDArray[np.uint8] | None]


class PartOfTree(NamedTuple):
    """What a join is told of the tree that it is part of.

    `carried`: columns that join nothing here, but above: promises on them are passed on. None if no stream
    of the query makes promises. `unordered`: which of its inputs are results of joins below.
    """

    carried: tuple[EqualColumns, ...] | None
    unordered: tuple[bool, ...]


class MultiSide:
    """A `_core.MultiOperator` with the conversion of its arguments."""

    def __init__(
        self,
        inputs: Inputs,
        stores: Sequence[RowStore],
        variant: str = "pwjoin",
        tree: PartOfTree | None = None,
    ) -> None:
        """Choose key types and native predicates and start the core."""
        self._inputs = inputs
        query, names, unit = inputs.query, inputs.names, inputs.unit
        carried = () if tree is None or tree.carried is None else tree.carried
        declared = any(stream.schemes for stream in query.streams)
        self._takes_promises = declared if tree is None else tree.carried is not None
        # Per class its attributes; per stream the class and the columns of each key that it pushes.
        self._attributes: list[list[KeyAttribute]] = []
        self._keys: list[list[tuple[int, tuple[str, ...]]]] = [[] for _ in names]
        self.output_attributes: list[OutputAttribute] = []
        null_safe = self._apart(carried) if self._takes_promises else self._together()
        self.key_columns = [
            list(dict.fromkeys(c for _, columns in keys for c in columns)) for keys in self._keys
        ]
        self._slots: list[list[tuple[str, bool]]] = [[] for _ in names]  # column, whether as a real
        predicates = self._native_predicates(stores)
        self.core = _core.MultiOperator(
            algorithm=query.chosen_algorithm.name,
            alternatives=[
                [[unit.largest_at_most(bound) for bound in row] for row in matrix.uppers]
                for matrix in query.window_alternatives
            ],
            late=query.late,
            on_violation=query.on_violation,
            classes=[[(a.kind, a.width) for a in attributes] for attributes in self._attributes],
            null_safe=null_safe,
            attributes=[[number for number, _ in keys] for keys in self._keys],
            value_slots=[len(slots) for slots in self._slots],
            predicates=predicates,
            purge=self._purge(variant) if self._takes_promises else None,
            lifespans=[unit.largest_at_most(stream.lifespan_ns) for stream in query.streams],
            implies=[self._implied(place) for place in range(len(names))],
            unordered=() if tree is None else tree.unordered,
            disorder=disorder_options(inputs),
        )

    def push(
        self, place: int, number: int, rows: pa.RecordBatch, times: npt.NDArray[np.int64]
    ) -> _core.MultiOutput:
        """Join the rows of a stored batch."""
        return self.core.push(place, number, times, *self._columns(place, rows))

    def rehearse(
        self, place: int, number: int, rows: pa.RecordBatch, times: npt.NDArray[np.int64]
    ) -> RowRefs:
        """Return the result rows that `push` would give; nothing changes."""
        return self.core.rehearse(place, number, times, *self._columns(place, rows)).rows

    def native_patterns(self, place: int, pattern: Mapping[str, Any]) -> list[NativePattern]:
        """Return one native pattern per combination of listed values."""
        if self._takes_promises:
            attributes = [self._attributes[number][0] for number, _ in self._keys[place]]
            return native_patterns(self._inputs, place, self.key_columns[place], attributes, pattern)
        name, columns = self._inputs.names[place], self.key_columns[place]
        for column, given in pattern.items():
            if column not in columns:
                raise DataError(
                    f"stream {name!r}, punctuation: "
                    f"expected patterns of the join attributes {columns}, got {column!r}"
                )
            if given is not ANY:
                raise DataError(
                    f"stream {name!r}, punctuation of column {column!r}: no stream of this query declares "
                    "punctuations, unique or clustered, so here expected ANY, the end of the stream, "
                    f"got {given!r}"
                )
        return [[None for _, parts in self._keys[place] for _ in parts]]

    def _purge(self, variant: str) -> str:
        """Say when promises are acted on: those that end at once, as later they could purge nothing."""
        query = self._inputs.query
        if variant == "wjoin":
            return "off"
        ends = any(stream.lifespan_ns is not None for stream in query.streams)
        return "eager" if ends else query.purge

    def _together(self) -> list[list[bool]]:
        """Make one class of all columns that always come together. Return where null equals null."""
        inputs, names = self._inputs, self._inputs.names
        classes = inputs.query.attribute_classes
        for number, found in enumerate(classes):
            self._attributes.append(
                [
                    KeyAttribute.of(*(inputs.type_of(*ref) for ref in column.refs), what=str(column))
                    for column in found.columns
                ]
            )
            for name in found.streams:
                self._keys[names.index(name)].append((number, found.columns_of(name)))
        for name, keys in zip(names, self._keys, strict=True):
            for column in dict.fromkeys(c for _, columns in keys for c in columns):
                self.output_attributes.append(OutputAttribute((ColumnRef(name, column),), None))
        return [[column.null_safe for column in found.columns] for found in classes]

    def _apart(self, carried: Sequence[EqualColumns]) -> list[list[bool]]:
        """Make a class of each set of equal columns. Return where null equals null."""
        inputs, names = self._inputs, self._inputs.names
        found = [*equal_columns(names, inputs.query.equalities), *carried]
        for number, columns in enumerate(found):
            attribute = KeyAttribute.of(*(inputs.type_of(*ref) for ref in columns.refs), what=str(columns))
            self._attributes.append([attribute])
            self.output_attributes.append(OutputAttribute(columns.refs, attribute))
            for ref in columns.refs:
                self._keys[names.index(ref.stream)].append((number, (ref.column,)))
        return [[columns.null_safe] for columns in found]

    def _implied(self, place: int) -> tuple[str, list[int]]:
        """Say which punctuations the rows of a stream imply, and on which of its classes."""
        stream = self._inputs.query.streams[place]
        class_of = {column: number for number, columns in self._keys[place] for column in columns}
        classes = list(dict.fromkeys(number for number, _ in self._keys[place]))
        for option, columns in (("unique", stream.unique_columns), ("clustered", stream.clustered_columns)):
            if columns is not None and class_of.keys() >= set(columns):
                return option, sorted({classes.index(class_of[column]) for column in columns})
        return "nothing", []  # or of no use to this join; check() says so

    def _native_predicates(self, stores: Sequence[RowStore]) -> list[NativePredicate]:
        inputs = self._inputs
        predicate = inputs.query.predicate
        found: list[NativePredicate] = []
        for part in conjuncts(predicate) if predicate is not None else ():
            check = bound_predicate(part, inputs, stores)
            streams = {inputs.names.index(stream) for stream, _ in part.columns} or range(len(inputs.names))
            form = native_form(part, inputs.types())
            found.append((sorted(streams), check if form is None else self._native(form)))
        return found

    def _native(self, form: NativeForm) -> tuple[Any, ...]:
        places = [self._slot(ref, as_real=form.name == "distance") for ref in form.columns]
        if form.name == "distance":
            (left, x1), (_, y1), (right, x2), (_, y2) = places
            return (form.name, left, x1, y1, right, x2, y2, form.number)
        (left, slot1), (right, slot2) = places
        operator = () if form.operator is None else ("==" if form.operator == "=" else form.operator,)
        return (form.name, left, slot1, *operator, right, slot2, form.number)

    def _slot(self, ref: ColumnRef, *, as_real: bool) -> tuple[int, int]:
        """Return the place of a column among the values that its stream pushes, adding it if it is new."""
        place = self._inputs.names.index(ref.stream)
        value = (ref.column, as_real or not pa.types.is_integer(self._inputs.type_of(*ref)))
        slots = self._slots[place]
        if value not in slots:
            slots.append(value)
        return place, slots.index(value)

    def _columns(self, place: int, rows: pa.RecordBatch) -> tuple[list[list[NativeColumn]], list[Values]]:
        """Return keys and values of a batch as the core takes them."""
        keys = [self._key(place, number, columns, rows) for number, columns in self._keys[place]]
        return keys, [_values(rows.column(column), as_real) for column, as_real in self._slots[place]]

    def _key(
        self, place: int, number: int, columns: tuple[str, ...], rows: pa.RecordBatch
    ) -> list[NativeColumn]:
        name = self._inputs.names[place]
        return [
            attribute.native(rows.column(column), what=f"stream {name!r}, column {column!r}")
            for attribute, column in zip(self._attributes[number], columns, strict=True)
        ]


def _values(column: pa.Array, as_real: bool) -> Values:
    valid = None
    if column.null_count:
        valid = pc.is_valid(column).to_numpy(zero_copy_only=False).view(np.uint8)
    if as_real:
        return np.ascontiguousarray(floats(plain_values(column)), dtype=np.float64), valid
    integers = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(integers, dtype=np.int64), valid
