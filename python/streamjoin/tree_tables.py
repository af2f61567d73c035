"""The tables of an `Output`, as the query declares them, from what the joins of a tree give out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.attribute_classes import EqualColumns
from streamjoin.expressions import ColumnRef
from streamjoin.inputs import Inputs
from streamjoin.keys import KeyAttribute
from streamjoin.query import Query
from streamjoin.results import OutputAttribute, ResultTables
from streamjoin.tree_join import TreeJoin, column_name


class TreeTables:
    """Lays rows, punctuations and refused rows out by the streams of the query."""

    def __init__(self, inputs: Inputs, sets: Sequence[EqualColumns], *, speaks: bool) -> None:
        """Lay the tables out once. `speaks`: punctuations speak of values, set by set of equal columns."""
        self._inputs, self._sets, self._speaks = inputs, sets, speaks
        self._keys = [
            KeyAttribute.of(*(inputs.type_of(*ref) for ref in columns.refs), what=str(columns))
            for columns in sets
        ]
        attributes = [
            OutputAttribute(columns.refs, key) for columns, key in zip(sets, self._keys, strict=True)
        ]
        if not speaks:
            attributes = [OutputAttribute((ref,), None) for ref in _join_columns(inputs.query)]
        self.empty = ResultTables(inputs, (), attributes).empty

    def rows(self, tables: Sequence[pa.Table]) -> pa.Table:
        """Return the results of the last join with their columns in declared order."""
        found = [table for table in tables if table.num_rows]
        if not found:
            return self.empty.rows
        rows = pa.concat_tables(found)
        columns: list[Any] = [
            rows.column(column_name(i, column))
            for i, schema in enumerate(self._inputs.schemas)
            for column in schema.names
        ]
        if self._inputs.query.result_time is not None:
            unit = self._inputs.unit
            times = [
                unit.integers(rows.column(column_name(i, stream.time)).combine_chunks(), what="time")
                for i, stream in enumerate(self._inputs.query.streams)
            ]
            columns.append(unit.column(np.maximum.reduce(times), self._inputs.time_type, null=None))
        return pa.Table.from_arrays(columns, schema=self.empty.rows.schema)

    def punctuations(self, root: TreeJoin, tables: Sequence[pa.Table]) -> pa.Table:
        """Return the punctuations of the last join, each value under every column that equals it."""
        schema = self.empty.punctuations.schema
        table = pa.concat_tables(tables) if tables else self.empty.punctuations
        if not table.num_rows:
            return self.empty.punctuations
        columns = [pa.nulls(table.num_rows, field.type) for field in list(schema)[:-2]]
        if self._speaks:
            said = dict(zip(root.sets, root.join.tables.said(table), strict=True))
            columns = self._values([said[number] for number in range(len(self._sets))], schema)
        return pa.Table.from_arrays([*columns, table.column("time"), table.column("kind")], schema=schema)

    def _values(self, said: list[tuple[list[Any], Any, Any]], schema: pa.Schema) -> list[Any]:
        shared = [
            [key.shared_values(column.combine_chunks(), what="output") for column in (*constants, low, high)]
            for key, (constants, low, high) in zip(self._keys, said, strict=True)
        ]
        fields = iter(schema)
        constants = [
            key.from_shared(pc.coalesce(*found[:-2]), next(fields).type)
            for key, columns, found in zip(self._keys, self._sets, shared, strict=True)
            for _ in columns.refs
        ]
        ends = [
            key.from_shared(end, next(fields).type)
            for key, found in zip(self._keys, shared, strict=True)
            for end in found[-2:]
        ]
        return [*constants, *ends]

    def late(self, join: TreeJoin, table: pa.Table) -> pa.Table:
        """Return late rows of a stream that enters the tree at `join`."""
        return self._refused(join, table, self.empty.late)

    def violations(self, join: TreeJoin, table: pa.Table) -> pa.Table:
        """Return rows that broke a promise, of a stream that enters the tree at `join`."""
        return self._refused(join, table, self.empty.violations)

    def _refused(self, join: TreeJoin, table: pa.Table, empty: pa.Table) -> pa.Table:
        if not table.num_rows:
            return empty
        lead = table.columns[: table.num_columns - len(join.fields)]
        found = dict(zip(join.fields, table.columns[len(lead) :], strict=True))
        every = [(i, column) for i, own in enumerate(self._inputs.schemas) for column in own.names]
        columns = [
            found[field] if field in found else pa.nulls(table.num_rows, shown.type)
            for field, shown in zip(every, list(empty.schema)[len(lead) :], strict=True)
        ]
        return pa.Table.from_arrays([*lead, *columns], schema=empty.schema)


def _join_columns(query: Query) -> list[ColumnRef]:
    found = []
    for name in query.stream_names:
        own = [c for each in query.attribute_classes if name in each.streams for c in each.columns_of(name)]
        found += [ColumnRef(name, column) for column in dict.fromkeys(own)]
    return found
