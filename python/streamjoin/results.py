"""Result tables: row references, codes and counts of the native core as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin import _core
from streamjoin.keys import KeyAttribute
from streamjoin.output import Output
from streamjoin.query import Query
from streamjoin.rows import MISSING, RowRefs, RowStore
from streamjoin.times import LARGEST, SMALLEST, TimeUnit

KINDS = pa.array(["regular", "early", "immediate"])


class ResultTables:
    """Builds the tables of an `Output` for one query."""

    def __init__(
        self,
        query: Query,
        schemas: Sequence[pa.Schema],
        stores: Sequence[RowStore],
        attributes: Sequence[KeyAttribute],
        unit: TimeUnit,
        time_type: pa.DataType,
    ) -> None:
        """Lay out the tables once."""
        self._stores = stores
        self._attributes = attributes
        self._unit = unit
        self._time_type = time_type
        self._sides = (0,) if query.how in ("left_semi", "left_anti") else (0, 1)
        self._has_lifespan = any(stream.lifespan_ns is not None for stream in query.streams)
        self._result_time = query.result_time
        self._time_columns = [
            schema.get_field_index(s.time) for s, schema in zip(query.streams, schemas, strict=True)
        ]
        columns = [
            [(i, pa.field(f"{name}_{field.name}", field.type)) for i, field in enumerate(schema)]
            for name, schema in zip(query.stream_names, schemas, strict=True)
        ]
        self._row_columns = [(side, i) for side in self._sides for i, _ in columns[side]]
        fields = [field for side in self._sides for _, field in columns[side]]
        if self._result_time is not None:
            fields.append(pa.field(self._result_time, time_type))
        self._row_schema = pa.schema(fields)
        every = [field for side in (0, 1) for _, field in columns[side]]
        names = pa.array(query.stream_names)
        self._names = names
        self._violation_schema = pa.schema([pa.field("stream", pa.string()), *every])
        self._late_schema = pa.schema(
            [pa.field("stream", pa.string()), pa.field("late_by", pa.int64()), *every]
        )
        self._punctuation_types = [
            [schemas[side].field(ref.column).type for side, ref in enumerate((e.left, e.right))]
            for e in query.equalities
        ]
        # The ends of a range may come from either stream, so they need a type that holds the values of both.
        self._end_types = [
            types[0] if types[0] == types[1] else attribute.shared
            for types, attribute in zip(self._punctuation_types, attributes, strict=True)
        ]
        self._punctuation_schema = self._lay_out_punctuations(query)
        self._empty = Output(
            _empty_table(self._row_schema),
            _empty_table(self._punctuation_schema),
            _empty_table(self._late_schema),
            _empty_table(self._violation_schema),
        )

    def output(self, native: _core.Output) -> Output:
        """Gather everything that one native call produced. The batches it refers to must still be stored."""
        rows = native.rows
        return Output(
            self._rows(rows) if len(rows) else self._empty.rows,
            self._punctuations(native),
            self._refused(native.late(), with_lateness=True),
            self._refused(native.violations(), with_lateness=False),
        )

    def _rows(self, rows: RowRefs) -> pa.Table:
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

    def _lay_out_punctuations(self, query: Query) -> pa.Schema:
        fields = []
        for equality, types in zip(query.equalities, self._punctuation_types, strict=True):
            for side, ref in enumerate((equality.left, equality.right)):
                if side in self._sides:
                    fields.append(pa.field(f"{ref.stream}_{ref.column}", types[side]))
        for equality, end_type in zip(query.equalities, self._end_types, strict=True):
            name = f"{equality.left.stream}_{equality.left.column}"
            fields += [pa.field(f"{name}_low", end_type), pa.field(f"{name}_high", end_type)]
        fields += [pa.field("time", self._time_type), pa.field("kind", pa.string())]
        if self._has_lifespan:
            fields.append(pa.field("until", self._time_type))
        return pa.schema(fields)

    def _punctuations(self, native: _core.Output) -> pa.Table:
        kinds, times, untils, attributes = native.take_punctuations()
        if not len(kinds):
            return self._empty.punctuations
        columns = []
        sayable = np.ones(len(kinds), dtype=np.bool_)
        for attribute, types, (constant, _, _) in zip(
            self._attributes, self._punctuation_types, attributes, strict=True
        ):
            shown = [attribute.arrow(constant, types[side]) for side in self._sides]
            # A constant that the type of one stream cannot hold stands in the column of the other. If it is
            # in neither, the promise cannot be said: without its constant it would speak of every value.
            somewhere = np.logical_or.reduce([pc.is_valid(c).to_numpy(zero_copy_only=False) for c in shown])
            sayable &= (constant[2] == 0) | somewhere
            columns += shown
        for attribute, end_type, (_, low, high) in zip(
            self._attributes, self._end_types, attributes, strict=True
        ):
            columns += [attribute.arrow(end, end_type) for end in (low, high)]
        columns += [self._times(times), KINDS.take(pa.array(kinds))]
        if self._has_lifespan:
            columns.append(self._times(untils))
        table = pa.Table.from_arrays(columns, schema=self._punctuation_schema)
        return table if sayable.all() else table.filter(pa.array(sayable))

    def _times(self, times: npt.NDArray[np.int64]) -> pa.Array:
        return self._unit.column(times, self._time_type, null=(times == SMALLEST) | (times == LARGEST))

    def _refused(self, refused: tuple[Any, ...], *, with_lateness: bool) -> pa.Table:
        sides, batches, numbers, late_by = refused
        if not len(sides):
            return self._empty.late if with_lateness else self._empty.violations
        rows = np.full((len(sides), 4), MISSING, dtype=np.uint32)
        place = np.arange(len(sides))
        rows[place, 2 * sides] = batches
        rows[place, 2 * sides + 1] = numbers
        columns: list[Any] = [self._names.take(pa.array(sides))]
        columns += [pa.array(late_by)] if with_lateness else []
        columns += [store.gather(rows, i) for store in self._stores for i in range(len(store.schema))]
        return pa.Table.from_arrays(
            columns, schema=self._late_schema if with_lateness else self._violation_schema
        )


def _empty_table(schema: pa.Schema) -> pa.Table:
    # Not schema.empty_table(): pyarrow makes no empty array of a union from nothing.
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
