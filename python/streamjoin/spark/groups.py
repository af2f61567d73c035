"""`Groups`: aggregates of results that are not complete yet, fed by an operator's output.

    results ----> partial aggregates by group ----> complete groups, each once
                         ^
    output punctuation --+   "no later result matches": the groups it covers leave

A group leaves when a punctuation speaks of nothing but columns of `by` and has the group's values there.
Cost: each call with punctuations looks at all groups held, column-wise; memory is one row a group.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import streamjoin as sj
from streamjoin.aggregates import Aggregate
from streamjoin.spark.layout import attributes, result_columns

MERGED_BY = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


class Groups:
    """The incomplete groups of one bucket."""

    def __init__(self, query: sj.Query, aggregates: tuple[Aggregate, ...], rows: pa.Schema) -> None:
        """Start empty. `rows` is the schema of the join's results."""
        self._by = list(aggregates[0].by)
        self._aggregates = aggregates
        self._attributes = [sorted(result_columns(attribute)) for attribute in attributes(query)]
        self._parts = _parts(aggregates)
        self.schema = _schema(aggregates, rows)
        self._held: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Count results in."""
        if rows.num_rows:
            wanted = [
                ([], "count_all", None)
                if column is None
                else (column, function, pc.CountOptions(mode="only_valid") if function == "count" else None)
                for function, column in self._parts
            ]
            self._hold(rows, wanted)
            if len(self._held) > 16:
                self._merge()

    def complete(self, punctuations: pa.Table) -> pa.Table:
        """Return the groups that these output punctuations complete, and forget them."""
        held = self._merge()
        if held is None or not punctuations.num_rows:
            return self._results(None)
        done = np.zeros(held.num_rows, dtype=np.bool_)
        for pattern in _by_pattern(punctuations, self._attributes, self._by):
            keys = held.select(pattern.schema.names)
            for name in keys.schema.names:
                pattern = pattern.set_column(
                    pattern.schema.get_field_index(name),
                    name,
                    pattern.column(name).cast(keys.field(name).type),
                )
            if len(pattern.schema) == 1:
                done |= pc.is_in(keys.column(0), value_set=pattern.column(0)).to_numpy()
            else:
                numbered = keys.append_column("_row", pa.array(np.arange(len(done))))
                found = numbered.join(pattern, pattern.schema.names, join_type="left semi", use_threads=False)
                done[found.column("_row").to_numpy()] = True
        self._held = [held.filter(pa.array(~done))]
        return self._results(held.filter(pa.array(done)))

    def rest(self) -> pa.Table:
        """Return what is left: at the end of every stream all groups are complete."""
        held, self._held = self._merge(), []
        return self._results(held)

    def save(self) -> pa.Table | None:
        """Return the incomplete groups."""
        return self._merge()

    def load(self, held: pa.Table | None) -> None:
        """Undo `save`."""
        self._held = [] if held is None else [held]

    def _merge(self) -> pa.Table | None:
        if len(self._held) > 1:
            together = pa.concat_tables(self._held)
            self._held = []
            names = [_part_name(part) for part in self._parts]
            self._hold(
                together,
                [
                    (n, MERGED_BY[p[0]], pc.ScalarAggregateOptions(min_count=1))
                    for n, p in zip(names, self._parts, strict=True)
                ],
            )
        return self._held[0] if self._held else None

    def _hold(self, table: pa.Table, wanted: list[tuple[Any, ...]]) -> None:
        grouped = table.group_by(self._by, use_threads=False).aggregate(
            [
                (column, function) if options is None else (column, function, options)
                for column, function, options in wanted
            ]
        )
        ordered = []
        for column, function, _ in wanted:
            ordered.append(grouped.column("count_all" if column == [] else f"{column}_{function}"))
        keys = [grouped.column(name) for name in self._by]
        names = [*self._by, *(_part_name(part) for part in self._parts)]
        self._held.append(pa.table([*keys, *ordered], names=names))

    def _results(self, held: pa.Table | None) -> pa.Table:
        if held is None:
            return pa.Table.from_arrays(
                [pa.nulls(0, field.type) for field in self.schema], schema=self.schema
            )
        columns = [held.column(name) for name in self._by]
        for aggregate in self._aggregates:
            if aggregate.function == "avg":
                total = held.column(_part_name(("sum", aggregate.column))).cast(pa.float64())
                number = held.column(_part_name(("count", aggregate.column)))
                columns.append(
                    pc.divide(total, pc.if_else(pc.equal(number, 0), None, number.cast(pa.float64())))
                )
            else:
                columns.append(held.column(_part_name((aggregate.function, aggregate.column))))
        fitted = [c.cast(field.type) for c, field in zip(columns, self.schema, strict=True)]
        return pa.Table.from_arrays(fitted, schema=self.schema)


def _parts(aggregates: tuple[Aggregate, ...]) -> list[tuple[str, str | None]]:
    """What is kept of each group: an average is a sum and a count."""
    parts: list[tuple[str, str | None]] = []
    for aggregate in aggregates:
        functions = ("sum", "count") if aggregate.function == "avg" else (aggregate.function,)
        parts += [(function, aggregate.column) for function in functions]
    return list(dict.fromkeys(parts))


def _part_name(part: tuple[str, str | None]) -> str:
    return f"{part[0]} of {part[1] or '*'}"


def _schema(aggregates: tuple[Aggregate, ...], rows: pa.Schema) -> pa.Schema:
    by = aggregates[0].by
    for aggregate in aggregates:
        if aggregate.by != by:
            raise sj.QueryError(f"aggregate: expected the same groups for all, got {by} and {aggregate.by}")
        for name in (*by, *([] if aggregate.column is None else [aggregate.column])):
            if name not in rows.names:
                raise sj.QueryError(
                    f"aggregate {aggregate.as_!r}: expected one of {rows.names}, got {name!r}"
                )
    fields = [rows.field(name) for name in by] + [pa.field(a.as_, _type(a, rows)) for a in aggregates]
    if len({field.name for field in fields}) != len(fields):
        raise sj.QueryError(f"aggregate: expected different names, got {[field.name for field in fields]}")
    return pa.schema(fields)


def _type(aggregate: Aggregate, rows: pa.Schema) -> pa.DataType:
    if aggregate.function == "count":
        return pa.int64()
    source = rows.field(aggregate.column).type
    if aggregate.function in ("min", "max"):
        return source
    number = pa.types.is_integer(source) or pa.types.is_floating(source) or pa.types.is_decimal(source)
    if not number:
        raise sj.QueryError(
            f"aggregate {aggregate.as_!r}: expected a column of numbers, "
            f"got {aggregate.column!r} of type {source}"
        )
    if aggregate.function == "avg" or pa.types.is_floating(source):
        return pa.float64()
    return pa.int64() if pa.types.is_integer(source) else pa.decimal128(38, source.scale)


def _by_pattern(punctuations: pa.Table, attributes_: list[list[str]], by: list[str]) -> list[pa.Table]:
    """Split punctuations by the attributes they fix; keep those that speak of columns of `by` alone."""
    rows = punctuations.num_rows
    covers = np.ones(rows, dtype=np.bool_)
    fixed: dict[str, pa.Array] = {}
    for columns in attributes_:
        known = [name for name in columns if name in punctuations.schema.names]
        value = (
            pc.coalesce(*(punctuations.column(name) for name in known))
            if len({punctuations.schema.field(name).type for name in known}) == 1
            else punctuations.column(known[0])
        )
        group = next((name for name in columns if name in by), None)
        if group is None:
            covers &= ~pc.is_valid(value).to_numpy()
        else:
            fixed[group] = value
        for name in columns:
            for end in ("_low", "_high"):
                if f"{name}{end}" in punctuations.schema.names:
                    covers &= ~pc.is_valid(punctuations.column(f"{name}{end}")).to_numpy()
    shapes = np.zeros(rows, dtype=np.int64)
    for place, value in enumerate(fixed.values()):
        shapes |= pc.is_valid(value).to_numpy().astype(np.int64) << place
    patterns = []
    for shape in np.unique(shapes[covers]):
        chosen = pa.array(covers & (shapes == shape))
        names = [name for place, name in enumerate(fixed) if shape >> place & 1]
        if names:
            patterns.append(pa.table({name: fixed[name] for name in names}).filter(chosen))
    return patterns
