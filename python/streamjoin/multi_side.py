"""The native side of a join of any number of streams: hash, merge and nested loop, windows and heartbeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin import _core
from streamjoin.bound_predicate import BoundPredicate, bound_predicate
from streamjoin.conjuncts import NativeForm, conjuncts, native_form
from streamjoin.disorder_options import disorder_options
from streamjoin.errors import DataError, QueryError, UnsafeQueryError
from streamjoin.expressions import ColumnRef, floats, plain_values
from streamjoin.inputs import Inputs
from streamjoin.keys import KeyAttribute, NativeColumn
from streamjoin.patterns import ANY
from streamjoin.results import OutputAttribute
from streamjoin.rows import RowStore

NativePredicate = tuple[list[int], tuple[Any, ...] | BoundPredicate]
Values = tuple[npt.NDArray[np.int64] | npt.NDArray[np.float64], npt.NDArray[np.uint8] | None]


class MultiSide:
    """A `_core.MultiOperator` with the conversion of its arguments."""

    def __init__(self, inputs: Inputs, stores: Sequence[RowStore]) -> None:
        """Choose key types and native predicates and start the core."""
        self._inputs = inputs
        query, names, unit = inputs.query, inputs.names, inputs.unit
        self._refuse_promises()
        classes = query.attribute_classes
        self._attributes = [
            [
                KeyAttribute.of(*(inputs.type_of(*ref) for ref in column.refs), what=str(column))
                for column in found.columns
            ]
            for found in classes
        ]
        self._classes_of = [[k for k, c in enumerate(classes) if name in c.streams] for name in names]
        self.key_columns = [
            list(dict.fromkeys(c for k in mine for c in classes[k].columns_of(name)))
            for name, mine in zip(names, self._classes_of, strict=True)
        ]
        self.output_attributes = [
            OutputAttribute((ColumnRef(name, column),), None)
            for name, columns in zip(names, self.key_columns, strict=True)
            for column in columns
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
            null_safe=[[column.null_safe for column in found.columns] for found in classes],
            attributes=self._classes_of,
            value_slots=[len(slots) for slots in self._slots],
            predicates=predicates,
            disorder=disorder_options(inputs),
        )

    def push(
        self, place: int, number: int, rows: pa.RecordBatch, times: npt.NDArray[np.int64]
    ) -> _core.MultiOutput:
        """Join the rows of a stored batch."""
        keys = [self._key(place, k, rows) for k in self._classes_of[place]]
        values = [_values(rows.column(column), as_real) for column, as_real in self._slots[place]]
        return self.core.push(place, number, times, keys, values)

    def native_patterns(self, place: int, pattern: Mapping[str, Any]) -> list[list[tuple[Any, ...] | None]]:
        """Return the pattern of the end of a stream; DataError for any other."""
        name, columns = self._inputs.names[place], self.key_columns[place]
        for column, given in pattern.items():
            if column not in columns:
                raise DataError(
                    f"stream {name!r}, punctuation: "
                    f"expected patterns of the join attributes {columns}, got {column!r}"
                )
            if given is not ANY:
                raise DataError(
                    f"stream {name!r}, punctuation of column {column!r}: punctuations on values are for "
                    f"joins of two streams by hash; here expected ANY, the end of the stream, got {given!r}"
                )
        return [[None for _ in columns]]

    def _refuse_promises(self) -> None:
        """Refuse what only punctuations on values could keep."""
        query = self._inputs.query
        here = f"a join of {len(query.streams)} streams by {query.chosen_algorithm.name}"
        for stream in query.streams:
            for option in ("unique", "clustered"):
                if getattr(stream, f"{option}_columns") is not None:
                    raise QueryError(f"stream {stream.name!r}: {here} takes no {option}, got {stream!r}")
        unbounded = [f"{right} after {left}" for left, right in query.windows.open_pairs()]
        if unbounded and query.require_safe:
            raise UnsafeQueryError(
                f"{here} forgets rows by windows alone, and these have no bound: {', '.join(unbounded)}\n"
                "(require_safe=False runs it all the same)"
            )

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

    def _key(self, place: int, number: int, rows: pa.RecordBatch) -> list[NativeColumn]:
        name = self._inputs.names[place]
        columns = self._inputs.query.attribute_classes[number].columns_of(name)
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
