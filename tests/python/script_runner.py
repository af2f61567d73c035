"""Runs a random case on `sj.Operator` and holds every step against the oracle.

    Case --declare--> sj.Query, schemas --> sj.Operator --perform(op)--> Output --observe--> Observed
                                                                                                |
    Case.rules ------> Oracle --run(op)--> Step ------------------------------ Trial.perform compares

Output punctuations are compared as the set of values they cover, over the small domain of the case, because a
range may be written in several ways. Where the operator may hold a pattern back until its last live value is
closed (patterns over strings, dates and composite keys; the end of a stream), only bounds are checked, see
`_check_covered`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import streamjoin as sj
from oracle import Oracle, Step
from random_scripts import INTEGERS, Case
from script import (
    LEFT,
    RIGHT,
    Advance,
    Anything,
    Between,
    Const,
    Finish,
    Nothing,
    OneOf,
    Op,
    Pattern,
    Punctuate,
    Push,
    Row,
    Value,
    canonical,
    covers,
)

STREAMS = ("l", "r")
KEY_COLUMNS = (("a", "b"), ("c", "d"))  # different names on the two sides, so that a mix-up shows
ARROW_TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "string": pa.string(),
    "float64": pa.float64(),
    "date32": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "bool": pa.bool_(),
}
TIME_TYPES = {"int64": pa.int64(), "timestamp[us]": pa.timestamp("us"), "timestamp[ms]": pa.timestamp("ms")}


def declare(case: Case) -> tuple[sj.Query, dict[str, pa.Schema]]:
    rules = case.rules
    windows = (rules.upper, None if rules.lower is None else -rules.lower)
    streams = [
        sj.Stream(
            STREAMS[s],
            time="t",
            window=windows[s] if case.windows_on_streams else None,
            unique=KEY_COLUMNS[s][: len(case.kinds)] if rules.unique[s] else None,
            clustered=KEY_COLUMNS[s][: len(case.kinds)] if rules.clustered[s] else None,
            lifespan=rules.lifespan[s],
        )
        for s in (LEFT, RIGHT)
    ]
    bounded = not case.windows_on_streams and (rules.lower is not None or rules.upper is not None)
    query = sj.Query(
        streams,
        [
            f"l.{left} {'<=>' if safe else '='} r.{right}"
            for left, right, safe in zip(*KEY_COLUMNS, rules.null_safe, strict=False)
        ],
        within=[sj.between("l", "r", lower=rules.lower, upper=rules.upper)] if bounded else [],
        how=rules.how,
        where=case.where,
        late=rules.late,
        on_violation=rules.on_violation,
        require_safe=False,
    )
    return query, {STREAMS[s]: schema_of(case, s) for s in (LEFT, RIGHT)}


def schema_of(case: Case, s: int) -> pa.Schema:
    keys = [(KEY_COLUMNS[s][i], ARROW_TYPES[kind]) for i, kind in enumerate(case.kinds)]
    return pa.schema([("id", pa.int64()), *keys, ("t", TIME_TYPES[case.time_type]), ("p", pa.int64())])


def batch_of(case: Case, s: int, rows: tuple[Row, ...]) -> pa.RecordBatch:
    divisor = 1000 if case.time_type == "timestamp[ms]" else 1
    columns: list[list[Any]] = [[row.id for row in rows]]
    columns += [[row.values[i] for row in rows] for i in range(len(case.kinds))]
    columns += [[row.time // divisor for row in rows], [row.p for row in rows]]
    schema = schema_of(case, s)
    arrays = [pa.array(column, fld.type) for column, fld in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def public_pattern(pattern: Pattern) -> Any:
    match pattern:
        case Const(value):
            return value
        case OneOf(values):
            return list(values)
        case Between(low, high):
            return sj.Range(low, high)
        case Anything():
            return sj.ANY
        case Nothing():
            return sj.EMPTY


def perform(operator: sj.Operator, case: Case, op: Op) -> sj.Output:
    match op:
        case Push(s, rows):
            return operator.push(STREAMS[s], batch_of(case, s, rows))
        case Punctuate(s, patterns, time):
            pairs = [(KEY_COLUMNS[s][i], public_pattern(p)) for i, p in enumerate(patterns)]
            leave_out_any = case.seed % 2 == 0  # not naming a column and naming it `*` are the same
            named = {column: p for column, p in pairs if not (leave_out_any and p is sj.ANY)}
            return operator.punctuate(STREAMS[s], named, time=time)
        case Advance(s, time):
            return operator.advance(STREAMS[s], time)
        case Finish():
            return operator.finish()


@dataclass
class Observed:
    rows: list[tuple[int | None, int | None]]
    late: list[int]
    violations: list[int]
    covered: set[tuple[Value, str]]  # value and kind
    ends_with_any: bool


def observe(case: Case, out: sj.Output) -> Observed:
    covered, last_is_any = _covered(case, out.punctuations)
    return Observed(_ids(out.rows), _side_ids(out.late), _side_ids(out.violations), covered, last_is_any)


def _ids(table: pa.Table) -> list[tuple[int | None, int | None]]:
    left, right = (
        table.column(name).to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in ("l_id", "r_id")
    )
    return list(zip(left, right, strict=True))


def _side_ids(table: pa.Table) -> list[int]:
    streams = table.column("stream").to_pylist()
    pairs = zip(table.column("l_id").to_pylist(), table.column("r_id").to_pylist(), strict=True)
    return [pair[STREAMS.index(stream)] for stream, pair in zip(streams, pairs, strict=True)]


def _covered(case: Case, table: pa.Table) -> tuple[set[tuple[Value, str]], bool]:
    covered: set[tuple[Value, str]] = set()
    last_is_any = False
    for record in table.to_pylist():
        patterns: list[Pattern] = []
        for left, right, _ in zip(*KEY_COLUMNS, case.kinds, strict=False):
            constant, low, high = (record[f"l_{left}{end}"] for end in ("", "_low", "_high"))
            if case.rules.how not in ("left_semi", "left_anti"):
                assert canonical(record[f"r_{right}"]) == canonical(constant)
            if constant is not None:
                patterns.append(Const(constant))
            else:
                patterns.append(Anything() if low is None and high is None else Between(low, high))
        last_is_any = all(isinstance(p, Anything) for p in patterns)
        values = (
            [v for v in values if covers(p, v)] for p, values in zip(patterns, case.rules.domain, strict=True)
        )
        covered.update((value, record["kind"]) for value in itertools.product(*values))
    return covered, last_is_any


class Trial:
    """One operator and one oracle fed in step; `perform` raises AssertionError on the first difference."""

    def __init__(self, case: Case, operator: sj.Operator) -> None:
        self.case, self.operator, self.oracle = case, operator, Oracle(case.rules)
        self.index = -1
        self._values_of_row: dict[int, Value] = {}
        self._exact = True
        self._stream_ended = False
        self._covered: set[Value] = set()
        self._expected_covered: set[Value] = set()

    def run(self) -> None:
        for op in self.case.script:
            self.perform(op)

    def perform(self, op: Op) -> Observed:
        self.index += 1
        try:
            expected = self.oracle.run(op)
            seen = observe(self.case, perform(self.operator, self.case, op))
            self.operator.validate()
            self._check(op, expected, seen)
        except Exception as error:
            error.add_note(f"at operation {self.index} of\n{self.case}")
            raise
        return seen

    def _check(self, op: Op, expected: Step, seen: Observed) -> None:
        assert Counter(seen.rows) == Counter(expected.rows), "result rows (left id, right id)"
        if self.case.rules.late == "drop" or seen.late:
            assert seen.late == expected.late, "late rows"
        if self.case.rules.on_violation == "drop" or seen.violations:
            assert seen.violations == expected.violations, "violations"
        if isinstance(op, Push):
            self._values_of_row.update((row.id, tuple(map(canonical, row.values))) for row in op.rows)
        ends = isinstance(op, Finish) or (isinstance(op, Punctuate) and op.ends_stream)
        self._stream_ended = self._stream_ended or ends
        self._check_stats()
        if not self.case.null_keys:
            self._check_promises(seen)
            self._exact = (
                self._exact and not ends and (not isinstance(op, Punctuate) or self._settled_at_once(op))
            )
            self._check_covered(expected, seen)
        if isinstance(op, Finish):
            assert seen.ends_with_any, "the last punctuation of finish() must be * in every attribute"

    def _settled_at_once(self, op: Punctuate) -> bool:
        if len(self.case.kinds) == 1:
            is_integer = self.case.kinds[0] in INTEGERS and not self.case.rules.null_safe[0]
            return is_integer or isinstance(op.patterns[0], Const | OneOf | Nothing)
        return all(isinstance(p, Const) for p in op.patterns)

    def _check_covered(self, expected: Step, seen: Observed) -> None:
        if self._exact:
            assert seen.covered == set(expected.propagated), "propagated values and kinds"
        self._covered |= {value for value, _ in seen.covered}
        self._expected_covered |= {value for value, _ in expected.propagated}
        too_early = self._covered - self._expected_covered
        assert not too_early, f"propagated before it was true: {too_early}"
        nothing_live = self.oracle.state_rows(LEFT) == self.oracle.state_rows(RIGHT) == 0
        if nothing_live and self.case.rules.lifespan == (None, None):
            missing = self._expected_covered - self._covered
            assert not missing, f"never propagated, though no live row holds it back: {missing}"

    def _check_promises(self, seen: Observed) -> None:
        if self.case.rules.lifespan != (None, None):
            return
        for pair in seen.rows:
            for row_id in pair:
                value = self._values_of_row.get(row_id) if row_id is not None else None
                if value in self._covered and value not in self.oracle.broken:
                    raise AssertionError(f"result {pair} of value {value} after that value was propagated")

    def _check_stats(self) -> None:
        stats, counters = self.operator.stats(), self.oracle.counters
        assert stats.rows_out == self.oracle.rows_out, "rows_out"
        for s, name in enumerate(STREAMS):
            assert stats.state_rows[name] == self.oracle.state_rows(s), f"state_rows of {name}"
            for counter in ("rows_in", "late", "violations"):
                assert getattr(stats, counter)[name] == counters[counter, s], f"{counter} of {name}"
            gone = counters["purged", s] + counters["invalidated", s]
            assert stats.purged[name] + stats.invalidated[name] == gone, f"purged + invalidated of {name}"
            if self._stream_ended:
                continue  # an end is time and values at once: which of them removed a row is open
            for counter in ("purged", "invalidated", "discarded_on_the_fly", "dropped_after_propagation"):
                assert getattr(stats, counter)[name] == counters[counter, s], f"{counter} of {name}"
        if all(self.oracle.ended):
            assert_nothing_left(self.operator)


def assert_nothing_left(operator: sj.Operator) -> None:
    stats = operator.stats()
    assert stats.state_rows == {name: 0 for name in stats.state_rows}
    assert stats.state_keys == {name: 0 for name in stats.state_keys}
    assert stats.dictionary_entries == 0
