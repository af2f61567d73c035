"""`PlanOperator`: a plan that is a tree of joins, running as a tree of operators.

    ((a b) c)      a, b -> Operator -> rows, punctuations -> Operator -> Output
                                                  c ------->

The rows of a join below are a stream of the join above, and so are its output punctuations: a value that a
join has closed is promised to the one above. A column that joins elsewhere is carried through a join as a
class of its own, so that promises on it are passed on, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.attribute_classes import equal_columns
from streamjoin.batches import to_schema
from streamjoin.disorder import InOrder
from streamjoin.errors import QueryError
from streamjoin.expressions import ColumnRef
from streamjoin.multi_side import MultiSide
from streamjoin.operator import Operator
from streamjoin.output import Output, Stats
from streamjoin.patterns import Range
from streamjoin.plan import JoinNode, Plan, StreamLeaf
from streamjoin.query import Query, Stream

TIME = "result_time"
Said = dict[int, Any]  # by set of equal columns: a value or a Range; the empty one is the end


class NodeOperator(Operator):
    """One join of the tree: always the m-way core, with columns that are carried through to joins above."""

    def __init__(self, query: Query, schemas: Mapping[str, pa.Schema], carried: Iterable[ColumnRef]) -> None:
        """Start empty."""
        self._carried = tuple(carried)
        super().__init__(query, schemas=schemas)

    def _native_side(self) -> MultiSide:
        return MultiSide(self._inputs, self._stores, carried=self._carried)


@dataclass
class _Node:
    """A join. Its results go up to `above`, as the stream `name` there; `sets[i]` is what output attribute i
    speaks of, `columns` the column of each input that stands for a set."""

    name: str
    operator: NodeOperator
    sets: list[int]
    columns: dict[str, dict[int, str]]
    above: _Node | None = None
    newest: int = np.iinfo(np.int64).min


class PlanOperator:
    """A query running by one of its plans.

    >>> import pyarrow as pa
    >>> import streamjoin as sj
    >>> names = "abc"
    >>> streams = [sj.Stream(name, time="t", punctuations=["x"]) for name in names]
    >>> query = sj.Query(streams, on=["a.x = b.x", "b.x = c.x"])
    >>> plan = next(plan for plan in query.plans() if str(plan.root) == "((a b) c)")
    >>> schema = pa.schema([("x", pa.int64()), ("t", pa.int64())])
    >>> op = sj.PlanOperator(query, plan, schemas=dict.fromkeys(names, schema))
    >>> for name in names:
    ...     out = op.push(name, pa.table({"x": [1], "t": [0]}, schema=schema))
    >>> out.rows.num_rows
    1

    The calls and the rows are those of `Operator`, which runs the plan of one single join. For inner joins
    without windows, conditions and lifespans, in arrival order; it has no snapshots.
    """

    def __init__(self, query: Query, plan: Plan, *, schemas: Mapping[str, Any]) -> None:
        """Check that the query can run as a tree, and start empty."""
        _check(query, plan)
        self.query, self.plan = query, plan
        names = query.stream_names
        self._schemas = {name: to_schema(schemas[name], what=f"stream {name!r}") for name in names}
        self._sets = equal_columns(names, query.equalities)
        self._set_of = {ref: number for number, columns in enumerate(self._sets) for ref in columns.refs}
        self._nodes: list[_Node] = []
        self._taker: dict[str, _Node] = {}
        self._build(plan.root)
        every = [pa.field(f"{name}_{f.name}", f.type) for name in names for f in self._schemas[name]]
        self._row_schema = pa.schema(every)
        self._late_schema = pa.schema([("stream", pa.string()), ("late_by", pa.int64()), *every])
        self._violation_schema = pa.schema([("stream", pa.string()), *every])
        self._punctuation_schema = self._lay_out_punctuations()

    def push(self, stream: str, batch: Any) -> Output:
        """Join the rows of a batch."""
        return self._call(stream, lambda operator: operator.push(stream, batch))

    def punctuate(self, stream: str, pattern: Mapping[str, Any], *, time: Any = None) -> Output:
        """Promise that no row of the stream that matches `pattern` comes any more."""
        return self._call(stream, lambda operator: operator.punctuate(stream, pattern, time=time))

    def advance(self, stream: str, time: Any) -> Output:
        """Promise that no row of the stream at or before `time` comes any more."""
        return self._call(stream, lambda operator: operator.advance(stream, time))

    def finish(self) -> Output:
        """End every stream. All results are out already: what is left is to say so."""
        for node in self._nodes:
            out = node.operator.finish()
        shown = [self._shown(said, row) for said, row in self._said(node, out)]
        return Output(
            self._rows([self._renamed(node, out.rows)]),
            pa.Table.from_pylist(shown, schema=self._punctuation_schema),
            _laid_out(out.late, self._late_schema),
            _laid_out(out.violations, self._violation_schema),
        )

    def stats(self) -> dict[str, Stats]:
        """Return the counters and sizes of each join, by its part of the plan."""
        joins = self.plan.root.nodes()
        return {str(join): node.operator.stats() for join, node in zip(joins, self._nodes, strict=True)}

    def live_rows(self) -> dict[str, int]:
        """Return the stored rows of each stream; results of joins below under their part of the plan."""
        shown = {node.name: str(join) for join, node in zip(self.plan.root.nodes(), self._nodes, strict=True)}
        live: dict[str, int] = {}
        for node in self._nodes:
            live |= {shown.get(name, name): rows for name, rows in node.operator.live_rows().items()}
        return live

    # ---- the tree ------------------------------------------------------------------------------------------

    def _build(self, join: JoinNode) -> _Node:
        """Make the operators of a part of the plan, those below first."""
        inputs, columns, below = list[Stream](), dict[str, dict[int, str]](), list[_Node]()
        schemas: dict[str, pa.Schema] = {}
        for each in join.inputs:
            if isinstance(each, StreamLeaf):
                stream = self.query.streams[self.query.stream_index(each.name)]
                schemas[each.name] = self._schemas[each.name]
                own = {ref: ref.column for ref in self._set_of if ref.stream == each.name}
            else:
                node = self._build(each)
                below.append(node)
                fields = [pa.field(f"{n}_{f.name}", f.type) for n in each.streams for f in self._schemas[n]]
                schemas[node.name] = pa.schema([*fields, (TIME, node.operator._inputs.time_type)])
                own = {
                    ref: f"{ref.stream}_{ref.column}" for ref in self._set_of if ref.stream in each.streams
                }
                stream = Stream(node.name, time=TIME, punctuations=[*dict.fromkeys(own.values())])
            inputs.append(stream)
            columns[stream.name] = {}
            for ref, column in own.items():
                columns[stream.name].setdefault(self._set_of[ref], column)
        on, carried = list[str](), list[ColumnRef]()
        for number, (_, null_safe) in enumerate(self._sets):
            having = [name for name, named in columns.items() if number in named]
            places = [f"{name}.{columns[name][number]}" for name in having]
            equals = "<=>" if null_safe else "="
            on += [f"{left} {equals} {right}" for left, right in pairwise(places)]
            if len(having) == 1:
                carried.append(ColumnRef(having[0], columns[having[0]][number]))
        query = Query(
            inputs,
            on,
            late=self.query.late,
            on_violation=self.query.on_violation,
            purge=self.plan.purge,
            require_safe=False,
            result_time=TIME,
        )
        operator = NodeOperator(query, schemas, carried)
        by_column = {(name, c): n for name, named in columns.items() for n, c in named.items()}
        sets = [
            by_column[attribute.refs[0].stream, attribute.refs[0].column]
            for attribute in operator._side.output_attributes
        ]
        name = f"join{len(self._nodes)}"
        while name in self.query.stream_names:
            name += "_"
        made = _Node(name, operator, sets, columns)
        for node in below:
            node.above = made
        for leaf in join.inputs:
            if isinstance(leaf, StreamLeaf):
                self._taker[leaf.name] = made
        self._nodes.append(made)
        return made

    def _call(self, stream: str, call: Callable[[Operator], Output]) -> Output:
        self.query.stream_index(stream)
        node = self._taker[stream]
        first = call(node.operator)
        rows, punctuations = list[pa.Table](), list[dict[str, Any]]()
        self._climb(node, first, rows, punctuations)
        return Output(
            self._rows(rows),
            pa.Table.from_pylist(punctuations, schema=self._punctuation_schema),
            _laid_out(first.late, self._late_schema),
            _laid_out(first.violations, self._violation_schema),
        )

    def _climb(
        self, node: _Node, out: Output, rows: list[pa.Table], punctuations: list[dict[str, Any]]
    ) -> None:
        """Carry the rows of a join to the one above it, then its punctuations, up to the root."""
        table = self._renamed(node, out.rows)
        above = node.above
        if above is None:
            rows.append(table)
            punctuations += [self._shown(said, row) for said, row in self._said(node, out)]
            return
        if table.num_rows:
            self._climb(above, above.operator.push(node.name, table), rows, punctuations)
        known = above.operator._side.key_columns[above.operator.query.stream_index(node.name)]
        for said, _ in self._said(node, out):
            pattern = {above.columns[node.name][number]: value for number, value in said.items()}
            # Leaving a part of a promise out would promise more.
            if all(column in known for column in pattern):
                self._climb(above, above.operator.punctuate(node.name, pattern), rows, punctuations)

    def _renamed(self, node: _Node, table: pa.Table) -> pa.Table:
        """Name result columns by the streams of the query; times never fall, so that no row is late above."""
        names, kept = list[str](), list[int]()
        place = 0
        for stream, schema in zip(node.operator.query.streams, node.operator._inputs.schemas, strict=True):
            for column in schema.names:
                if stream.name in self._schemas or column != TIME:
                    names.append(f"{stream.name}_{column}" if stream.name in self._schemas else column)
                    kept.append(place)
                place += 1
        renamed = table.select(kept).rename_columns(names)
        if node.above is None:
            return renamed
        unit, type_ = node.operator._inputs.unit, table.schema.field(TIME).type
        times = [unit.integers(chunk, what=TIME) for chunk in table.column(TIME).chunks]
        newest = np.maximum.accumulate(np.concatenate([[node.newest], *times]).astype(np.int64))
        node.newest = int(newest[-1])
        return renamed.append_column(TIME, unit.column(newest[1:], type_, null=None))

    def _said(self, node: _Node, out: Output) -> list[tuple[Said, dict[str, Any]]]:
        """Take the punctuations of a join apart."""
        found = []
        for row in out.punctuations.to_pylist():
            said: Said = {}
            for number, attribute in zip(node.sets, node.operator._side.output_attributes, strict=True):
                columns = [f"{ref.stream}_{ref.column}" for ref in attribute.refs]
                constants = [row[column] for column in columns if row[column] is not None]
                low, high = row[f"{columns[0]}_low"], row[f"{columns[0]}_high"]
                if constants:
                    said[number] = constants[0]
                elif low is not None or high is not None:
                    said[number] = Range(low, high)
            found.append((said, row))
        return found

    # ---- output --------------------------------------------------------------------------------------------

    def _lay_out_punctuations(self) -> pa.Schema:
        types = {f.name: f.type for f in self._row_schema}
        columns = [[f"{ref.stream}_{ref.column}" for ref in refs] for refs, _ in self._sets]
        fields = [(name, types[name]) for named in columns for name in named]
        fields += [(f"{named[0]}_{end}", types[named[0]]) for named in columns for end in ("low", "high")]
        return pa.schema(
            [*fields, ("time", self._nodes[-1].operator._inputs.time_type), ("kind", pa.string())]
        )

    def _shown(self, said: Said, row: dict[str, Any]) -> dict[str, Any]:
        shown = {"time": row["time"], "kind": row["kind"]}
        for number, value in said.items():
            columns = [f"{ref.stream}_{ref.column}" for ref in self._sets[number].refs]
            if isinstance(value, Range):
                shown |= {f"{columns[0]}_low": value.low, f"{columns[0]}_high": value.high}
            else:
                shown |= dict.fromkeys(columns, value)
        return shown

    def _rows(self, tables: list[pa.Table]) -> pa.Table:
        empty = self._row_schema.empty_table()
        rows = pa.concat_tables([empty, *(table.select(self._row_schema.names) for table in tables)])
        if self.query.result_time is None:
            return rows
        times = [rows.column(f"{stream.name}_{stream.time}") for stream in self.query.streams]
        return rows.append_column(self.query.result_time, pc.max_element_wise(*times))


def _laid_out(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table.column(f.name) if f.name in table.schema.names else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _check(query: Query, plan: Plan) -> None:
    if sorted(plan.root.streams) != sorted(query.stream_names):
        raise QueryError(f"plan: expected a plan of the streams {list(query.stream_names)}, got {plan.root}")
    names = query.stream_names
    reasons = {
        "how='inner'": query.how == "inner",
        "no window": len(list(query.windows.open_pairs())) == len(names) * (len(names) - 1),
        "no where": query.predicate is None,
        "no lifespan": all(stream.lifespan_ns is None for stream in query.streams),
        "disorder=InOrder()": isinstance(query.disorder, InOrder),
    }
    for expected, met in reasons.items():
        if not met:
            raise QueryError(f"a plan that is run as a tree: expected {expected}, got {query!r}")
    for refs, _ in equal_columns(query.stream_names, query.equalities):
        for stream in {ref.stream for ref in refs}:
            if len(own := [ref.column for ref in refs if ref.stream == stream]) > 1:
                raise QueryError(
                    f"a plan that is run as a tree: expected one column of stream {stream!r} in "
                    f"{' = '.join(map(str, refs))}, got {own}"
                )
