"""One join of a tree: which streams meet there, which windows and conditions it checks, what it passes on.

    inputs    a stream, or the results of a join below: the columns of its streams, side by side
    time      of such a result: that of one of its streams, the anchor
    windows   between anchors in the native join, which prunes and forgets by them; then exactly, between the
              streams that meet here, on the results found
    where     the parts whose streams are all here and were not all below

A result to come can hold no row of its anchor that is older than those still stored below and than the
anchor's clock: this is how far the clock of a join's results goes (`horizon`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin import _core
from streamjoin.attribute_classes import EqualColumns
from streamjoin.conjuncts import conjuncts, native_form, shown
from streamjoin.errors import QueryError
from streamjoin.expressions import ColumnRef
from streamjoin.inputs import Inputs
from streamjoin.multi_side import PartOfTree
from streamjoin.plan import JoinNode, Plan, StreamLeaf, choice
from streamjoin.predicates import Predicate, TextPredicate
from streamjoin.query import Query
from streamjoin.running_join import RunningJoin, Times
from streamjoin.safety.graphs import JoinGraph
from streamjoin.stream import Stream
from streamjoin.tree_filter import ResultFilter
from streamjoin.windows import Between


class WholeQuery:
    """What all joins of a tree share: the query, its inputs, and the conditions nobody has taken yet."""

    def __init__(self, query: Query, plan: Plan, inputs: Inputs, sets: tuple[EqualColumns, ...]) -> None:
        """Take the condition apart."""
        self.query, self.plan, self.inputs, self.sets = query, plan, inputs, sets
        self.graph = JoinGraph.of(query)
        self.set_of = {ref: number for number, columns in enumerate(sets) for ref in columns.refs}
        self.makes_promises = any(stream.schemes for stream in query.streams)
        self.conditions = list(conjuncts(query.predicate)) if query.predicate is not None else []

    def take_conditions(self, names: list[str]) -> list[Predicate]:
        """Return the conditions that can be checked where these streams are together."""
        everything = len(names) == len(self.query.streams)
        taken = [
            part
            for part in self.conditions
            if everything or (part.columns and {stream for stream, _ in part.columns} <= set(names))
        ]
        self.conditions = [part for part in self.conditions if part not in taken]
        return taken


def column_name(stream: int, column: str) -> str:
    """Return the name of a stream's column in the results of a join."""
    return f"s{stream}_{column}"


@dataclass
class _Input:
    """`columns`: by set of equal columns, those that stand for it. `anchor`: the stream whose time it has."""

    stream: Stream
    schema: pa.Schema
    streams: list[int]
    fields: list[tuple[int, str]]
    columns: dict[int, list[str]]
    anchor: int
    below: TreeJoin | None = None


class TreeJoin:
    """A join of a tree, running."""

    def __init__(self, whole: WholeQuery, node: JoinNode, name: str, below: list[TreeJoin]) -> None:
        """Start empty; `below` are the joins among the inputs, in their order."""
        self.whole, self.name, self.shown = whole, name, str(node)
        self.above: TreeJoin | None = None
        self.place_above = 0
        waiting = iter(below)
        self.inputs = [
            self._of_stream(each) if isinstance(each, StreamLeaf) else self._of_join(next(waiting))
            for each in node.inputs
        ]
        self.streams = [stream for each in self.inputs for stream in each.streams]
        self.fields = [field for each in self.inputs for field in each.fields]
        self._check_safe()
        names = [whole.inputs.names[i] for i in self.streams]
        direct = {each.stream.name for each in self.inputs if each.below is None}
        self._native: list[Predicate] = []
        later: list[Predicate] = []  # on results: one of their streams comes from below
        for part in whole.take_conditions(names):
            here = part.columns and {stream for stream, _ in part.columns} <= direct
            (self._native if here else later).append(part)
        self._filter = ResultFilter(whole.inputs, column_name, self.streams, later)
        if all(each.below is None for each in self.inputs):
            self._filter.trust_join()
        types = whole.inputs.types()
        self.later_may_fail = bool(later)
        self.may_fail = self.later_may_fail or any(native_form(part, types) is None for part in self._native)
        self.join = self._start()
        self.timed = [self._is_timed(place) for place in range(len(self.inputs))]
        by_column = {
            (each.stream.name, column): number
            for each in self.inputs
            for number, columns in each.columns.items()
            for column in columns
        }
        attributes = self.join.side.output_attributes
        self.sets = [by_column[a.refs[0]] for a in attributes if a.key is not None]
        for place, each in enumerate(self.inputs):
            if each.below is not None:
                each.below.above, each.below.place_above = self, place

    # ---- while it runs -------------------------------------------------------------------------------------

    def times(self, place: int, rows: pa.RecordBatch) -> Times:
        """Return the times of an input's rows. Results from below that no window speaks of have none."""
        if not self.timed[place]:
            return np.zeros(rows.num_rows, dtype=np.int64)
        return self.join.inputs.times(place, rows)

    def checked(self, table: pa.Table) -> pa.Table:
        """Name the columns of result rows, and keep those that pass every window and condition."""
        return self._filter.passed(table.rename_columns([column_name(*field) for field in self.fields]))

    def horizon(self) -> int | None:
        """Return the earliest time that results to come have above; None if not known or of no use."""
        above = self.above
        if above is None or not above.timed[self.place_above]:
            return None
        anchor = above.inputs[self.place_above].anchor
        place = next(i for i, each in enumerate(self.inputs) if each.anchor == anchor)
        core = self.join.core
        assert isinstance(core, _core.MultiOperator)
        return core.horizon(place) if self.timed[place] else None

    # ---- how it is made ------------------------------------------------------------------------------------

    def _of_stream(self, leaf: StreamLeaf) -> _Input:
        whole = self.whole
        place = whole.query.stream_index(leaf.name)
        schema = whole.inputs.schemas[place]
        columns: dict[int, list[str]] = {}
        for ref, number in whole.set_of.items():
            if ref.stream == leaf.name:
                columns.setdefault(number, []).append(ref.column)
        fields = [(place, column) for column in schema.names]
        stream = replace(whole.query.streams[place], window=None)
        return _Input(stream, schema, [place], fields, columns, place)

    def _of_join(self, below: TreeJoin) -> _Input:
        whole = self.whole
        types = [whole.inputs.schemas[i].field(column).type for i, column in below.fields]
        names = [column_name(*field) for field in below.fields]
        columns: dict[int, list[str]] = {}
        for each in below.inputs:
            for number, own in each.columns.items():
                as_named = own if each.below else [column_name(each.streams[0], column) for column in own]
                columns.setdefault(number, []).extend(as_named)
        for number, found in columns.items():
            met = sum(number in each.columns for each in below.inputs) > 1
            if met or whole.makes_promises:  # they are equal already
                columns[number] = found[:1]
        anchor = choice.anchor(whole.graph, below.streams, [each.anchor for each in below.inputs])
        time = column_name(anchor, whole.query.streams[anchor].time)
        schemes = [column for found in columns.values() for column in found]
        stream = Stream(below.name, time=time, punctuations=schemes if whole.makes_promises else ())
        schema = pa.schema(list(zip(names, types, strict=True)))
        return _Input(stream, schema, below.streams, below.fields, columns, anchor, below)

    def _is_timed(self, place: int) -> bool:
        """Tell whether an input comes in time: a stream does, results only where windows speak of them."""
        if self.inputs[place].below is None:
            return True
        windows = self.join.inputs.query.windows
        others = [other for other in range(len(self.inputs)) if other != place]
        bounds = [b for o in others for b in (windows.upper(place, o), windows.upper(o, place))]
        return any(bound is not None for bound in bounds)

    def _check_safe(self) -> None:
        """Refuse a join whose state is bounded only by windows of streams that are not anchors."""
        whole = self.whole
        if not whole.query.require_safe:
            return
        stuck = choice.stuck_input(whole.graph, [(each.streams, each.anchor) for each in self.inputs])
        if stuck is None:
            return
        names = whole.inputs.names
        anchors = {each.below.shown: names[each.anchor] for each in self.inputs if each.below is not None}
        raise QueryError(
            f"plan: the join {self.shown} would keep rows of {self.inputs[stuck].stream.name!r} for ever: "
            "results of a join below go by the time of one stream, and windows of the others do not bound "
            f"its state; expected a plan without such a join, got the times {anchors}"
        )

    def _start(self) -> RunningJoin:
        whole, query = self.whole, self.whole.query
        on, carried = list[str](), list[EqualColumns]()
        for number, (_, null_safe) in enumerate(whole.sets):
            places = [
                [ColumnRef(each.stream.name, column) for column in each.columns[number]]
                for each in self.inputs
                if number in each.columns
            ]
            if len(places) == 1:
                carried.append(EqualColumns(tuple(places[0]), null_safe))
            if len(places) < 2:
                continue
            equals = "<=>" if null_safe else "="
            on += [f"{shown(places[0][0])} {equals} {shown(r)}" for refs in places[1:] for r in refs]
            on += [f"{shown(r)} {equals} {shown(places[1][0])}" for r in places[0][1:]]
        within = []
        for left, right in combinations(self.inputs, 2):
            pair = (left.anchor, right.anchor)
            lower, upper = query.windows.lower(*pair), query.windows.upper(*pair)
            if lower is not None or upper is not None:
                within.append(Between(left.stream.name, right.stream.name, lower, upper))
        where: Any = self._native[0] if self._native else None
        if isinstance(where, TextPredicate):
            where = " and ".join(f"({part})" for part in self._native)
        node = Query(
            [each.stream for each in self.inputs],
            on,
            within=within,
            where=where,
            algorithm="nested_loop" if query.algorithm == "nested_loop" else "hash",
            late=query.late,
            on_violation=query.on_violation,
            purge=whole.plan.purge,
            require_safe=False,
        )
        schemas = {each.stream.name: each.schema for each in self.inputs}
        tree = PartOfTree(
            tuple(carried) if whole.makes_promises else None,
            tuple(each.below is not None for each in self.inputs),
        )
        return RunningJoin(Inputs(node, schemas, part_of=whole.inputs), tree=tree)
