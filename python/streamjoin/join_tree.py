"""`JoinTree`: a plan that is a tree, running as a tree of joins.

    ((a b) c)      a, b -> join -> rows, punctuations, times -> join -> Output
                                                        c ->

The rows of a join below are a stream of the join above, and so are its output punctuations: a value that a
join has closed is promised to the one above. A column that joins elsewhere is carried through a join as a
class of its own, so that promises on it are passed on, too. A call goes up one path of the tree. Only the
first join of it can refuse rows; where a condition may fail further up, the whole path is rehearsed first, so
that a failed call changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa

from streamjoin.attribute_classes import equal_columns
from streamjoin.errors import DataError, QueryError
from streamjoin.inputs import Inputs
from streamjoin.output import Output, Stats
from streamjoin.patterns import Range
from streamjoin.plan import JoinNode, Plan
from streamjoin.plan.choice import no_tree_because
from streamjoin.running_join import Times
from streamjoin.tree_join import TreeJoin, WholeQuery
from streamjoin.tree_tables import TreeTables


class JoinTree:
    """The joins of a plan, those below first. Streams go by their places in the query."""

    def __init__(self, inputs: Inputs, plan: Plan) -> None:
        """Check that the query can run as a tree, and start empty."""
        query = inputs.query
        if because := no_tree_because(query):
            raise QueryError(f"plan: {because}, got {query!r}")
        self.inputs = inputs
        sets = equal_columns(query.stream_names, query.equalities)
        whole = WholeQuery(query, plan, inputs, sets)
        self._tables = TreeTables(inputs, sets, speaks=whole.makes_promises)
        self._speaks = whole.makes_promises
        self.joins: list[TreeJoin] = []
        self.rows_out = 0
        self._build(whole, plan.root)
        self._entrance = {
            each.streams[0]: (join, place)
            for join in self.joins
            for place, each in enumerate(join.inputs)
            if each.below is None
        }

    def push(self, place: int, rows: pa.RecordBatch, times: Times) -> Output:
        """Join the rows of a batch."""
        join, entrance = self._entrance[place]
        if self._may_fail_above(join):
            self._rehearse(join, entrance, rows, times)
        return self._call(join, join.join.push(entrance, rows, times))

    def patterns(self, place: int, pattern: Mapping[str, Any]) -> list[Any]:
        """Return a pattern as the native join of its stream takes it."""
        join, entrance = self._entrance[place]
        return join.join.side.native_patterns(entrance, pattern)

    def punctuate(self, place: int, patterns: Sequence[Any], at: int | None) -> Output:
        """Take a punctuation."""
        join, entrance = self._entrance[place]
        return self._call(join, join.join.punctuate(entrance, patterns, at))

    def advance(self, place: int, at: int) -> Output:
        """Take a heartbeat."""
        join, entrance = self._entrance[place]
        return self._call(join, join.join.advance(entrance, at))

    def finish(self) -> Output:
        """End every stream. All results are out already: what is left is to say so."""
        for each in self.joins:
            out = each.join.finish()
        said = self._tables.punctuations(self.joins[-1], [out.punctuations])
        return replace(self._tables.empty, punctuations=said)

    def stats(self) -> Stats:
        """Return the counters of all joins; what a join gets from one below stands under that one's plan."""
        per_join = [(each, each.join.stats()) for each in self.joins]
        root = per_join[-1][1]
        merged: dict[str, Any] = {}
        for field in fields(Stats):
            values = [(each, getattr(stats, field.name)) for each, stats in per_join]
            if field.name == "rows_out":
                merged[field.name] = self.rows_out
            elif field.name == "punctuations_out" or values[-1][1] is None:
                merged[field.name] = getattr(root, field.name)
            elif isinstance(values[-1][1], dict):
                named = {self._shown(name): v for _, value in values for name, v in value.items()}
                merged[field.name] = self._sorted(named)
            else:
                merged[field.name] = sum(value for _, value in values)
        return Stats(**merged)

    def live_rows(self) -> dict[str, int]:
        """Return the stored rows of each stream; results of joins below under their part of the plan."""
        live = {
            self._shown(name): rows for each in self.joins for name, rows in each.join.live_rows().items()
        }
        return self._sorted(live)

    def validate(self) -> None:
        """Check every invariant of the native states."""
        for each in self.joins:
            each.join.validate()

    def save(self) -> list[bytes]:
        """Return what the tree has counted, then the parts of every join, one behind the other."""
        counted = json.dumps({"rows_out": self.rows_out}).encode()
        return [counted, *(part for each in self.joins for part in each.join.save())]

    def load(self, parts: Sequence[bytes]) -> None:
        """Go on from what `save` returned, in a new tree."""
        counted, *rest = parts
        self.rows_out = int(json.loads(counted)["rows_out"])
        for each in self.joins:
            count = 1 + len(each.inputs)
            each.join.load(rest[:count])
            rest = rest[count:]
        if rest:
            raise ValueError(f"expected the parts of {len(self.joins)} joins, got {len(rest)} more")

    # ---- up the tree ---------------------------------------------------------------------------------------

    def _build(self, whole: WholeQuery, node: JoinNode) -> TreeJoin:
        below = [self._build(whole, each) for each in node.inputs if isinstance(each, JoinNode)]
        name = f"join{len(self.joins)}"
        while name in whole.inputs.names:
            name += "_"
        made = TreeJoin(whole, node, name, below)
        self.joins.append(made)
        return made

    def _call(self, join: TreeJoin, first: Output) -> Output:
        rows, punctuations = list[pa.Table](), list[pa.Table]()
        self._climb(join, first, rows, punctuations)
        found = self._tables.rows(rows)
        self.rows_out += found.num_rows
        return Output(
            found,
            self._tables.punctuations(self.joins[-1], punctuations),
            self._tables.late(join, first.late),
            self._tables.violations(join, first.violations),
        )

    def _climb(self, join: TreeJoin, out: Output, rows: list[pa.Table], punctuations: list[pa.Table]) -> None:
        """Carry what a join gave out to the one above it: rows, punctuations, how far its time has come."""
        table, above = join.checked(out.rows), join.above
        if above is None:
            rows.append(table)
            punctuations.append(out.punctuations)
            return
        place = join.place_above
        if table.num_rows:
            batch = above.join.inputs.batch(place, table)
            self._climb(above, above.join.push(place, batch, above.times(place, batch)), rows, punctuations)
        for pattern, at in self._passed_on(join, out.punctuations):
            self._climb(above, above.join.punctuate(place, pattern, at), rows, punctuations)
        horizon, clock = join.horizon(), above.join.core.clock(place)
        if horizon is not None and (clock is None or horizon > clock):
            self._climb(above, above.join.advance(place, horizon - 1), rows, punctuations)

    def _rehearse(self, join: TreeJoin, place: int, rows: pa.RecordBatch, times: Times) -> None:
        """Find the results of a push all the way up: what a condition raises, it raises before a change."""
        table = join.checked(join.join.rehearse(place, rows, times))
        if join.above is not None and table.num_rows:
            above, place = join.above, join.place_above
            batch = above.join.inputs.batch(place, table)
            self._rehearse(above, place, batch, above.times(place, batch))

    def _may_fail_above(self, join: TreeJoin) -> bool:
        if join.later_may_fail:
            return True
        above = join.above
        if above is not None and "error" in (self.inputs.query.late, self.inputs.query.on_violation):
            return True
        while above is not None and not above.may_fail:
            above = above.above
        return above is not None

    def _passed_on(self, join: TreeJoin, punctuations: pa.Table) -> list[tuple[list[Any], int | None]]:
        """Return the punctuations of a join as patterns of the one above; without those it cannot be told."""
        above = join.above
        assert above is not None
        if not punctuations.num_rows:
            return []
        said = join.join.tables.said(punctuations) if self._speaks else []
        columns = above.inputs[join.place_above].columns
        unit, found = self.inputs.unit, []
        for row, time in enumerate(punctuations.column("time")):
            pattern: dict[str, Any] = {}
            try:
                for number, (constants, low, high) in zip(join.sets if said else (), said, strict=True):
                    known = [c[row] for c in constants if c[row].is_valid]
                    ends = low[row].as_py(), high[row].as_py()
                    if known or ends != (None, None):
                        pattern[columns[number][0]] = known[0] if known else Range(*ends)
                native = above.join.side.native_patterns(join.place_above, pattern)
            except (DataError, ValueError):  # a value that its column above cannot hold
                continue
            found.append((native, unit.integer(time, what="time") if time.is_valid else None))
        return found

    def _shown(self, name: str) -> str:
        return next((each.shown for each in self.joins if each.name == name), name)

    def _sorted(self, values: dict[str, Any]) -> dict[str, Any]:
        """Streams of the query first, in declared order."""
        names = [name for name in self.inputs.names if name in values]
        return {name: values[name] for name in [*names, *(n for n in values if n not in names)]}
