"""`Groups`: aggregates of results that are not complete yet, fed by an operator's output.

    results ----> partial aggregates, one run an output ----> complete groups, each once
                     ^ found by key
    output punctuation: "no later result matches": the groups it covers leave

A group leaves when a punctuation speaks of nothing but columns of `by` and has the group's values there.
Its partial aggregates are found by an index over the columns that punctuations fix, so a punctuation
costs what it completes; a range looks at all groups held. Runs are merged when they have doubled or are
half dead: amortised O(1) a partial aggregate. Memory: at most twice the partial aggregates of the last
merge, and an index entry each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import streamjoin as sj
from streamjoin.aggregates import Aggregate
from streamjoin.spark.group_patterns import keys_of, patterns_of
from streamjoin.spark.layout import attributes, result_columns

MERGED_BY = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
SLACK_ROWS = 1024  # partial aggregates that are not worth a merge
Address = tuple[int, int]  # run, row


class Groups:
    """The incomplete groups of one bucket."""

    def __init__(self, query: sj.Query, aggregates: tuple[Aggregate, ...], rows: pa.Schema) -> None:
        """Start empty. `rows` is the schema of the join's results."""
        self._by = list(aggregates[0].by)
        self._aggregates = aggregates
        self._attributes = [sorted(result_columns(attribute)) for attribute in attributes(query)]
        self._parts = _parts(aggregates)
        self.schema = _schema(aggregates, rows)
        self._forget()

    def __len__(self) -> int:
        """Return how many partial aggregates are held."""
        return self._live_rows

    def add(self, rows: pa.Table) -> None:
        """Count results in."""
        if rows.num_rows:
            wanted = [
                ([], "count_all", None)
                if column is None
                else (column, function, pc.CountOptions(mode="only_valid") if function == "count" else None)
                for function, column in self._parts
            ]
            self._hold(self._aggregated(rows, wanted))
            if self._stored > 2 * self._merged_rows + SLACK_ROWS:
                self._merge()

    def complete(self, punctuations: pa.Table) -> pa.Table:
        """Return the groups that these output punctuations complete, and forget them."""
        found: list[Address] = []
        for values, low, high in patterns_of(punctuations, self._attributes, self._by):
            if low.num_columns or high.num_columns or not values.num_columns:
                found += self._within(values, low, high)
            else:
                index = self._index(tuple(values.schema.names))
                for key in keys_of(values, self.schema):
                    found += [place for place in index.pop(key, ()) if self._live[place[0]][place[1]]]
        if not found:
            return self._results(None)
        done = self._taken(found)
        if self._stored > 2 * self._live_rows + SLACK_ROWS:
            self._merge()
        return self._results(self._summed(done))

    def rest(self) -> pa.Table:
        """Return what is left: at the end of every stream all groups are complete."""
        held = self.save()
        self._forget()
        return self._results(held)

    def save(self) -> pa.Table | None:
        """Return the incomplete groups."""
        self._merge()
        return next(iter(self._runs.values()), None)

    def load(self, held: pa.Table | None) -> None:
        """Undo `save`."""
        self._forget()
        if held is not None and held.num_rows:
            self._hold(held)
            self._merged_rows = held.num_rows

    def _forget(self) -> None:
        self._runs: dict[int, pa.Table] = {}
        self._live: dict[int, npt.NDArray[np.bool_]] = {}
        self._indexes: dict[tuple[str, ...], dict[Any, list[Address]]] = {}
        self._next_run = self._stored = self._live_rows = self._merged_rows = 0

    def _hold(self, partial: pa.Table) -> None:
        run, self._next_run = self._next_run, self._next_run + 1
        self._runs[run] = partial
        self._live[run] = np.ones(partial.num_rows, dtype=np.bool_)
        self._stored += partial.num_rows
        self._live_rows += partial.num_rows
        for names, index in self._indexes.items():
            self._enter(index, names, run)

    def _index(self, names: tuple[str, ...]) -> dict[Any, list[Address]]:
        """Return the index over these columns, made when a punctuation first speaks of them."""
        if names not in self._indexes:
            self._indexes[names] = {}
            for run in self._runs:
                self._enter(self._indexes[names], names, run)
        return self._indexes[names]

    def _enter(self, index: dict[Any, list[Address]], names: tuple[str, ...], run: int) -> None:
        for row, key in enumerate(keys_of(self._runs[run].select(names), self.schema)):
            if self._live[run][row]:
                index.setdefault(key, []).append((run, row))

    def _within(self, values: pa.Table, low: pa.Table, high: pa.Table) -> list[Address]:
        """Find the groups of patterns with ranges, or of one that says nothing of any column: all."""
        found = []
        for run, table in self._runs.items():
            done = np.zeros(table.num_rows, dtype=np.bool_)
            for row in range(max(values.num_rows, low.num_rows, high.num_rows, 1)):
                covered = self._live[run].copy()
                for wanted, compare in ((values, pc.equal), (low, pc.greater_equal), (high, pc.less_equal)):
                    for name in wanted.schema.names:
                        end = wanted.column(name)[row]
                        if end.is_valid:
                            true = compare(table.column(name), end.cast(table.schema.field(name).type))
                            covered &= pc.fill_null(true, False).to_numpy()
                done |= covered
            found += [(run, int(row)) for row in np.flatnonzero(done)]
        return found

    def _taken(self, places: list[Address]) -> pa.Table:
        by_run: dict[int, list[int]] = {}
        for run, row in dict.fromkeys(places):
            by_run.setdefault(run, []).append(row)
        parts = []
        for run, rows in by_run.items():
            parts.append(self._runs[run].take(rows))
            self._live[run][rows] = False
            self._live_rows -= len(rows)
        return pa.concat_tables(parts)

    def _merge(self) -> None:
        if self._stored == self._live_rows and len(self._runs) <= 1:
            return
        live = [table.filter(pa.array(self._live[run])) for run, table in self._runs.items()]
        names = list(self._indexes)
        self._forget()
        merged = self._summed(pa.concat_tables(live))
        if merged.num_rows:
            self._hold(merged)
        self._merged_rows = merged.num_rows
        for shape in names:
            self._index(shape)

    def _summed(self, partial: pa.Table) -> pa.Table:
        """Put the partial aggregates of each group together."""
        return self._aggregated(
            partial,
            [
                (_part_name(part), MERGED_BY[part[0]], pc.ScalarAggregateOptions(min_count=1))
                for part in self._parts
            ],
        )

    def _aggregated(self, table: pa.Table, wanted: list[tuple[Any, ...]]) -> pa.Table:
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
        return pa.table([*keys, *ordered], names=names).combine_chunks()

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
