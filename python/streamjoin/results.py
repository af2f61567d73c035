"""Result tables: row references, codes and counts of the native core as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin import _core
from streamjoin.expressions import ColumnRef
from streamjoin.inputs import Inputs
from streamjoin.keys import KeyAttribute
from streamjoin.output import Output
from streamjoin.rows import MISSING, RowRefs, RowStore
from streamjoin.times import LARGEST, SMALLEST

KINDS = pa.array(["regular", "early", "immediate"])


class OutputAttribute(NamedTuple):
    """Columns of which output punctuations speak together; without `key` nothing is said of single values."""

    refs: tuple[ColumnRef, ...]
    key: KeyAttribute | None


class ResultTables:
    """Builds the tables of an `Output` for one query."""

    def __init__(
        self, inputs: Inputs, stores: Sequence[RowStore], attributes: Sequence[OutputAttribute]
    ) -> None:
        """Lay out the tables once."""
        query, names = inputs.query, inputs.names
        self._stores = stores
        self._unit = inputs.unit
        self._time_type = inputs.time_type
        self._time_columns = inputs.time_columns
        self._result_time = query.result_time
        self._has_lifespan = any(stream.lifespan_ns is not None for stream in query.streams)
        self._sides = (0,) if query.how in ("left_semi", "left_anti") else tuple(range(len(names)))
        columns = [
            [pa.field(f"{name}_{field.name}", field.type) for field in schema]
            for name, schema in zip(names, inputs.schemas, strict=True)
        ]
        self._row_columns = [(side, i) for side in self._sides for i in range(len(columns[side]))]
        fields = [field for side in self._sides for field in columns[side]]
        if self._result_time is not None:
            fields.append(pa.field(self._result_time, self._time_type))
        self._row_schema = pa.schema(fields)
        every = [field for own in columns for field in own]
        self._names = pa.array(names)
        self._violation_schema = pa.schema([pa.field("stream", pa.string()), *every])
        self._late_schema = pa.schema(
            [pa.field("stream", pa.string()), pa.field("late_by", pa.int64()), *every]
        )
        shown = [names[side] for side in self._sides]
        self._attributes = [_ShownAttribute.of(attribute, inputs, shown) for attribute in attributes]
        self._punctuation_schema = self._lay_out_punctuations()
        self.empty = Output(
            _empty_table(self._row_schema),
            _empty_table(self._punctuation_schema),
            _empty_table(self._late_schema),
            _empty_table(self._violation_schema),
        )

    def output(self, native: _core.Output | _core.MultiOutput) -> Output:
        """Gather everything that one native call produced. The batches it refers to must still be stored."""
        rows = native.rows
        return Output(
            self.rows(rows),
            self._punctuations(native),
            self._refused(native.late(), with_lateness=True),
            self._refused(native.violations(), with_lateness=False),
        )

    def rows(self, rows: RowRefs) -> pa.Table:
        """Gather the columns of result rows."""
        if not len(rows):
            return self.empty.rows
        columns = [self._stores[side].gather(rows, i) for side, i in self._row_columns]
        if self._result_time is not None:
            columns.append(self._largest_time(rows))
        return pa.Table.from_arrays(columns, schema=self._row_schema)

    def _largest_time(self, rows: RowRefs) -> pa.Array:
        times = []
        for side in self._sides:
            column = self._stores[side].gather(rows, self._time_columns[side])
            known = self._unit.integers(column.drop_null(), what="time")
            spread = np.full(len(column), SMALLEST, dtype=np.int64)
            spread[pc.is_valid(column).to_numpy(zero_copy_only=False)] = known
            times.append(spread)
        return self._unit.column(np.maximum.reduce(times), self._time_type, null=None)

    def _lay_out_punctuations(self) -> pa.Schema:
        fields = [field for attribute in self._attributes for field in attribute.constants]
        fields += [field for attribute in self._attributes for field in attribute.ends]
        fields += [pa.field("time", self._time_type), pa.field("kind", pa.string())]
        if self._has_lifespan:
            fields.append(pa.field("until", self._time_type))
        return pa.schema(fields)

    def _punctuations(self, native: _core.Output | _core.MultiOutput) -> pa.Table:
        kinds, times, untils, attributes = native.take_punctuations()
        if not len(kinds):
            return self.empty.punctuations
        constants, ends = list[pa.Array](), list[pa.Array]()
        sayable = np.ones(len(kinds), dtype=np.bool_)
        spoken = [attribute for attribute in self._attributes if attribute.key is not None]
        for attribute, (constant, low, high) in zip(spoken, attributes if spoken else (), strict=True):
            assert attribute.key is not None
            shown = [attribute.key.arrow(constant, field.type) for field in attribute.constants]
            # A constant that the type of one stream cannot hold stands in the column of the other. If it is
            # in neither, the promise cannot be said: without its constant it would speak of every value.
            somewhere = np.logical_or.reduce([pc.is_valid(c).to_numpy(zero_copy_only=False) for c in shown])
            sayable &= (constant[2] == 0) | somewhere
            constants += shown
            ends += [attribute.key.arrow(end, attribute.ends[0].type) for end in (low, high)]
        if not spoken:  # every attribute is `*`
            constants = [pa.nulls(len(kinds), f.type) for a in self._attributes for f in a.constants]
        columns = [*constants, *ends, self._times(times), KINDS.take(pa.array(kinds))]
        if self._has_lifespan:
            columns.append(self._times(untils))
        table = pa.Table.from_arrays(columns, schema=self._punctuation_schema)
        return table if sayable.all() else table.filter(pa.array(sayable))

    def said(self, punctuations: pa.Table) -> list[tuple[list[Any], Any, Any]]:
        """Return for each attribute with values its columns: constants as each stream has them, low, high."""
        columns = iter(punctuations.columns)
        constants = [[next(columns) for _ in attribute.constants] for attribute in self._attributes]
        spoken = [named for named, a in zip(constants, self._attributes, strict=True) if a.key is not None]
        return [(named, next(columns), next(columns)) for named in spoken]

    def _times(self, times: npt.NDArray[np.int64]) -> pa.Array:
        return self._unit.column(times, self._time_type, null=(times == SMALLEST) | (times == LARGEST))

    def _refused(self, refused: tuple[Any, ...], *, with_lateness: bool) -> pa.Table:
        sides, batches, numbers, late_by = refused
        if not len(sides):
            return self.empty.late if with_lateness else self.empty.violations
        rows = np.full((len(sides), len(self._stores), 2), MISSING, dtype=np.uint32)
        place = np.arange(len(sides))
        rows[place, sides, 0] = batches
        rows[place, sides, 1] = numbers
        columns: list[Any] = [self._names.take(pa.array(sides))]
        columns += [pa.array(late_by)] if with_lateness else []
        columns += [store.gather(rows, i) for store in self._stores for i in range(len(store.schema))]
        return pa.Table.from_arrays(
            columns, schema=self._late_schema if with_lateness else self._violation_schema
        )


class _ShownAttribute(NamedTuple):
    """An attribute with its fields in the table of punctuations."""

    key: KeyAttribute | None
    constants: list[pa.Field]
    ends: list[pa.Field]

    @staticmethod
    def of(attribute: OutputAttribute, inputs: Inputs, shown: Sequence[str]) -> _ShownAttribute:
        types = [inputs.type_of(*ref) for ref in attribute.refs]
        names = [f"{ref.stream}_{ref.column}" for ref in attribute.refs]
        constants = [
            pa.field(name, type_)
            for name, type_, ref in zip(names, types, attribute.refs, strict=True)
            if ref.stream in shown
        ]
        if attribute.key is None:
            return _ShownAttribute(None, constants, [])
        # The ends of a range may come from any stream, so they need a type that holds the values of all.
        same = all(type_ == types[0] for type_ in types)
        end_type = types[0] if same else attribute.key.shared
        ends = [pa.field(f"{names[0]}_{end}", end_type) for end in ("low", "high")]
        return _ShownAttribute(attribute.key, constants, ends)


def _empty_table(schema: pa.Schema) -> pa.Table:
    # Not schema.empty_table(): pyarrow makes no empty array of a union from nothing.
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
