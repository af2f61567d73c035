"""`Operator`: a query running on Arrow batches, as one join or as a tree of them.

    batch -> checked -> one join, or up a tree of joins -> Output

Everything that can be refused is refused before a state changes, so a failed call leaves the operator as it
was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from streamjoin import snapshot
from streamjoin.errors import DataError, QueryError, SnapshotError, UnsafeQueryError
from streamjoin.inputs import Inputs
from streamjoin.join_tree import JoinTree
from streamjoin.output import Output, Stats
from streamjoin.patterns import ANY
from streamjoin.plan import Plan
from streamjoin.promised_keys import not_with_rows
from streamjoin.query import Query
from streamjoin.running_join import RunningJoin
from streamjoin.stream import Stream

Variant = Literal["pwjoin", "wjoin", "pjoin"]
FINISHED, BY_PLAN = 1, 2  # flags of a snapshot


class Operator:
    """A query running on Arrow batches.

    >>> import pyarrow as pa
    >>> import streamjoin as sj
    >>> query = sj.Query(
    ...     [sj.Stream("click", time="t"), sj.Stream("view", time="t")],
    ...     on=["click.ad = view.ad"],
    ...     within=sj.within("5 s"),
    ... )
    >>> schema = pa.schema([("ad", pa.string()), ("t", pa.timestamp("ms"))])
    >>> op = sj.Operator(query, schemas={"click": schema, "view": schema})
    >>> op.push("view", pa.table({"ad": ["x"], "t": [1000]}, schema=schema))
    Output(rows=0, punctuations=0, late=0, violations=0)
    >>> out = op.push("click", pa.table({"ad": ["x"], "t": [3000]}, schema=schema))
    >>> out.rows.column("view_ad").to_pylist()
    ['x']
    >>> op.advance("click", 9000 * 1000)  # no click up to second 9: the view is out of its window
    Output(rows=0, punctuations=0, late=0, violations=0)
    >>> op.live_rows()
    {'click': 1, 'view': 0}
    >>> op = sj.Operator.restore(query, op.snapshot())
    >>> op.stats().rows_out, op.finish()
    (1, Output(rows=0, punctuations=1, late=0, violations=0))

    `plan`: "cheapest" runs `query.chosen_plan`, which may be a tree of joins; "single" lets one join take all
    streams; or one of `query.plans()`. The rows are the same. A tree takes streams in arrival order, without
    lifespans. The attribute `plan` is what was given or chosen, None for a single join.

    `variant`: "pwjoin" uses windows and punctuations, "wjoin" windows only, "pjoin" punctuations only
    (windows are still checked, but forget nothing). The rows of an inner join are the same; what differs is
    the state, and so the cost. "pjoin" is for two streams joined on values.
    """

    def __init__(
        self,
        query: Query,
        *,
        schemas: Mapping[str, Any],
        variant: Variant = "pwjoin",
        plan: Plan | Literal["cheapest", "single"] | None = "cheapest",
    ) -> None:
        """Check the query against the schemas and start empty. UnsafeQueryError if its state could grow."""
        if variant not in ("pwjoin", "wjoin", "pjoin"):
            raise QueryError(f"variant: expected 'pwjoin', 'wjoin' or 'pjoin', got {variant!r}")
        report = query.check()
        if query.require_safe and not report.safe:
            raise UnsafeQueryError(f"{report}\n(require_safe=False runs it all the same)")
        self.query = query
        self.plan = _resolved(query, plan, variant)
        self._variant = variant
        self._unused = frozenset[tuple[str, frozenset[str]]]()
        self._finished = False
        if self.plan is None:
            self._running: RunningJoin | JoinTree = RunningJoin(Inputs(query, schemas), variant=variant)
            return
        self._unused = _unused_schemes(query, self.plan)
        streams = [_without_unused(stream, self._unused) for stream in query.streams]
        inputs = Inputs(replace(query, streams=streams, purge=self.plan.purge), schemas)
        if self.plan.is_single_join:
            self._running = RunningJoin(inputs, variant=variant)
        else:
            self._running = JoinTree(inputs, self.plan)

    # ---- the four calls ------------------------------------------------------------------------------------

    def push(self, stream: str, batch: Any, *, punctuations: Any = None) -> Output:
        """Join the rows of a batch: anything with the Arrow PyCapsule interface, or a pandas DataFrame.

        Rows come in time order; one behind the stream's clock is late and treated by the query's policy.

        `punctuations`: promises that come with the rows, one a row of a table with the stream's join
        attributes and, if it is known, its time column. Each stands behind the rows up to its time, without a
        time behind all rows. What comes out is what one call for each would give, but that takes far longer.
        For two streams joined on values and taken in arrival order.
        """
        place = self._place(stream, "push")
        inputs = self._running.inputs
        rows = inputs.batch(place, batch)
        times = inputs.times(place, rows)
        if punctuations is None:
            return self._running.push(place, rows, times)
        if isinstance(self._running, JoinTree):
            raise not_with_rows(stream)
        return self._running.push(place, rows, times, self._running.promised(place, punctuations, times))

    def punctuate(self, stream: str, pattern: Mapping[str, Any], *, time: Any = None) -> Output:
        """Promise that no row of the stream that matches `pattern` comes any more.

        `pattern` gives a value, a list, a `Range`, `ANY` or `EMPTY` per join attribute; others are `ANY`. All
        `ANY`, or an empty dict, is the end of the stream. Without `time` it stands at the stream's clock.
        Three and more streams take values only if some stream of the query declares punctuations. One by a
        scheme that a plan with a minimal set of schemes does without is counted and nothing else.

        >>> import pyarrow as pa
        >>> import streamjoin as sj
        >>> streams = [sj.Stream("a", time="t"), sj.Stream("b", time="t", punctuations=["k"])]
        >>> query = sj.Query(streams, on=["a.k = b.k"], within=sj.within("1 hour"))
        >>> rows = pa.table({"k": [1, 2, 3, 4], "t": [0, 1, 2, 3]})
        >>> op = sj.Operator(query, schemas={"a": rows.schema, "b": rows.schema})
        >>> out = op.push("a", rows)
        >>> out = op.punctuate("b", {"k": 1}, time=5)
        >>> out = op.punctuate("b", {"k": [2, 7]}, time=5)
        >>> out = op.punctuate("b", {"k": sj.Range(high=3)}, time=5)
        >>> op.live_rows()
        {'a': 1, 'b': 0}
        """
        place = self._place(stream, "punctuate")
        patterns = self._running.patterns(place, pattern)
        unit = self._running.inputs.unit
        at = unit.integer(time, what=f"stream {stream!r}, punctuation time") if time is not None else None
        named = frozenset(column for column, given in pattern.items() if given is not ANY)
        return self._running.punctuate(place, [] if (stream, named) in self._unused else patterns, at)

    def advance(self, stream: str, time: Any) -> Output:
        """Promise that no row of the stream at or before `time` comes any more (a heartbeat)."""
        place = self._place(stream, "advance")
        at = self._running.inputs.unit.integer(time, what=f"stream {stream!r}, heartbeat")
        return self._running.advance(place, at)

    def finish(self) -> Output:
        """End every stream: the rest of the results. The operator takes no further calls."""
        self._check_running("finish")
        output = self._running.finish()
        self._finished = True
        return output

    @contextmanager
    def without_results(self) -> Iterator[None]:
        """Let calls change the state and give out empty tables: their results were given out before.

        Whoever goes on from an older snapshot repeats the calls since. No result column is gathered, which
        saves a part of what the calls cost. For one join: a tree needs the rows of the joins in it.
        """
        if not isinstance(self._running, RunningJoin):
            raise QueryError(f"without_results: expected an operator of one join, got the plan {self.plan}")
        self._running.muted = True
        try:
            yield
        finally:
            self._running.muted = False

    # ---- what it holds -------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Return counters and sizes. Dead rows are freed first, so sizes are those of live ones.

        In a tree, what a join gets from one below it is counted under that part of the plan: "(a b)".
        """
        return self._running.stats()

    def live_rows(self) -> dict[str, int]:
        """Return the stored rows of each stream, in a tree also of each join; cheaper than `stats()`."""
        return self._running.live_rows()

    def validate(self) -> None:
        """Check every invariant of the native state; AssertionError names the first broken one. Slow."""
        self._running.validate()

    def snapshot(self) -> bytes:
        """Return the whole state as bytes: `Operator.restore(query, blob)` goes on from here, by its plan."""
        schemas = [schema.serialize().to_pybytes() for schema in self._running.inputs.schemas]
        flags = (FINISHED if self._finished else 0) | (BY_PLAN if self.plan is not None else 0)
        plan = [] if self.plan is None else [json.dumps(self.plan.to_plain()).encode()]
        state, *rest = self._running.save()
        return snapshot.write(
            _fingerprint_of(self.query),
            [bytes([flags]), state, *schemas, *rest, self._variant.encode(), *plan],
        )

    @classmethod
    def restore(cls, query: Query, blob: bytes | memoryview) -> Operator:
        """Return the operator of a snapshot. SnapshotError if it is damaged, newer, or of another query."""
        parts = snapshot.read(blob, _fingerprint_of(query))
        try:
            (flags,), state, *rest = parts
            plan: Any = Plan.from_plain(json.loads(rest.pop())) if flags & BY_PLAN else "single"
            variant: Any = rest.pop().decode()
            names = query.stream_names
            schemas = [pa.ipc.read_schema(pa.py_buffer(part)) for part in rest[: len(names)]]
            operator = cls(query, schemas=dict(zip(names, schemas, strict=True)), variant=variant, plan=plan)
            operator._running.load([state, *rest[len(names) :]])
            operator._finished = bool(flags & FINISHED)
        except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise SnapshotError(f"the snapshot is damaged: {error}") from error
        return operator

    # ---- parts ---------------------------------------------------------------------------------------------

    def _place(self, stream: str, call: str) -> int:
        self._check_running(call)
        return self.query.stream_index(stream)

    def _check_running(self, call: str) -> None:
        if self._finished:
            raise DataError(f"{call}: expected a running operator, got one after finish()")


def _fingerprint_of(query: Query) -> str:
    """What a snapshot must agree on with the query that goes on from it."""
    return repr(query)


def _resolved(query: Query, plan: Plan | str | None, variant: str) -> Plan | None:
    """Return the plan to run; None where that is one join, with all schemes, by the query's own options."""
    plan = "cheapest" if plan is None else plan
    if plan == "cheapest" and len(query.streams) > 2 and variant == "pwjoin":
        chosen = query.chosen_plan.plan
        return chosen if chosen is not None and not chosen.is_single_join else None
    if plan in ("cheapest", "single"):
        return None
    if not isinstance(plan, Plan):
        raise QueryError(f"plan: expected 'cheapest', 'single' or one of query.plans(), got {plan!r}")
    if sorted(plan.root.streams) != sorted(query.stream_names):
        raise QueryError(f"plan: expected a plan of the streams {list(query.stream_names)}, got {plan.root}")
    if variant != "pwjoin" and not plan.is_single_join:
        raise QueryError(f"variant: expected 'pwjoin' for a tree of joins, got {variant!r}")
    return plan


def _unused_schemes(query: Query, plan: Plan) -> frozenset[tuple[str, frozenset[str]]]:
    """Return the declared schemes that a plan with a minimal set of them does without."""
    if plan.schemes != "minimal":
        return frozenset()
    used = {(name, frozenset(columns)) for node in plan.root.nodes() for name, columns in node.schemes}
    declared = {(stream.name, frozenset(scheme)) for stream in query.streams for scheme in stream.schemes}
    return frozenset(declared - used)


def _without_unused(stream: Stream, unused: frozenset[tuple[str, frozenset[str]]]) -> Stream:
    """Let a stream imply no promises that nobody uses; it still declares that it could."""
    unique, clustered = stream.unique_columns, stream.clustered_columns
    if unique is not None and (stream.name, frozenset(unique)) in unused:
        return replace(stream, punctuations=[*stream.punctuations, unique], unique=None)
    if clustered is not None and (stream.name, frozenset(clustered)) in unused:
        return replace(stream, punctuations=[*stream.punctuations, clustered], clustered=None)
    return stream
