"""Runs a random m-way case on `sj.Operator` and holds every step against the oracle."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import streamjoin as sj
from multi_oracle import (
    EndAll,
    EndStream,
    Heartbeat,
    MultiOp,
    MultiOracle,
    MultiRow,
    MultiStep,
    PushRows,
    Result,
)
from random_multi import MultiCase

ALGORITHMS = ("auto", "hash", "merge", "merge_gca", "merge_lca", "nested_loop", "nested_loop_pipeline")
KEY_TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "string": pa.string(),
    "float64": pa.float64(),
    "decimal": pa.decimal128(10, 2),
}


def declare(case: MultiCase, algorithm: str = "auto", **options: Any) -> sj.Query:
    streams = [
        sj.Stream(name, time="t", window=window)
        for name, window in zip(case.names, case.own_windows, strict=True)
    ]
    return sj.Query(
        streams,
        case.on,
        within=case.within,
        where=case.where,
        algorithm=algorithm,
        late=case.rules.late,
        require_safe=False,
        **options,
    )


def schema_of(case: MultiCase, stream: int) -> pa.Schema:
    key = KEY_TYPES[case.kinds[stream]]
    numbers = [("p", pa.int64()), ("q", pa.int32()), ("x", pa.float64())]
    return pa.schema([("id", pa.int64()), ("k", key), ("l", key), ("t", pa.int64()), *numbers])


def operator_for(
    case: MultiCase, algorithm: str = "auto", *, plan: sj.Plan | None = None, **options: Any
) -> sj.Operator:
    schemas = {name: schema_of(case, i) for i, name in enumerate(case.names)}
    return sj.Operator(declare(case, algorithm, **options), schemas=schemas, plan=plan or "single")


def batch_of(case: MultiCase, stream: int, rows: tuple[MultiRow, ...]) -> pa.RecordBatch:
    schema = schema_of(case, stream)
    records = [{"id": row.id, "t": row.time, **row.values} for row in rows]
    if case.kinds[stream] == "decimal":
        for record in records:
            for column in ("k", "l"):
                record[column] = None if record[column] is None else Decimal(record[column])
    return pa.RecordBatch.from_arrays(
        [pa.array([record[field.name] for record in records], field.type) for field in schema], schema=schema
    )


def perform(operator: sj.Operator, case: MultiCase, op: MultiOp) -> sj.Output:
    match op:
        case PushRows(stream, rows):
            return operator.push(case.names[stream], batch_of(case, stream, rows))
        case Heartbeat(stream, time):
            return operator.advance(case.names[stream], time)
        case EndStream(stream):
            return operator.punctuate(case.names[stream], {}, time=0)
        case EndAll():
            return operator.finish()


def results_of(case: MultiCase, out: sj.Output) -> Counter[Result]:
    columns = [out.rows.column(f"{name}_id").to_pylist() for name in case.names]
    return Counter(zip(*columns, strict=True))


def late_of(case: MultiCase, out: sj.Output) -> list[int]:
    streams = out.late.column("stream").to_pylist()
    return [row[f"{stream}_id"] for stream, row in zip(streams, out.late.to_pylist(), strict=True)]


def expected_steps(case: MultiCase) -> list[MultiStep]:
    oracle = MultiOracle(case.rules)
    return [oracle.run(op) for op in case.script]


def judge(
    case: MultiCase,
    algorithm: str,
    steps: list[MultiStep],
    *,
    restore_at: int | None = None,
    plan: sj.Plan | None = None,
) -> None:
    """Run the script; AssertionError on the first step that differs. `restore_at`: go on from a snapshot."""
    operator = operator_for(case, algorithm, plan=plan)
    rows_out, closings = 0, 0
    for number, (op, expected) in enumerate(zip(case.script, steps, strict=True)):
        try:
            if number == restore_at:
                operator = sj.Operator.restore(operator.query, operator.snapshot())
            out = perform(operator, case, op)
            operator.validate()
            seen = results_of(case, out)
            rows_out += sum(seen.values())
            _check(operator, expected, seen)
            late = late_of(case, out)
            assert late == expected.late or (case.rules.late == "insert" and not late)
            assert operator.stats().rows_out == rows_out
            if plan is not None or not operator.query.chosen_algorithm.binary:
                assert not (seen and closings), "a result after the output was closed"
                closings += out.punctuations.num_rows
        except Exception as error:
            by = algorithm if plan is None else f"{algorithm}, plan {plan.root}"
            error.add_note(f"algorithm {by}, operation {number}, restored at {restore_at}, of\n{case}")
            raise
    assert operator.query.chosen_algorithm.binary or closings == 1
    stats = operator.stats()
    assert sum(stats.state_rows.values()) == sum(stats.stored_rows.values()) == 0
    assert stats.dictionary_entries == 0
    pushes = [op for op in case.script if isinstance(op, PushRows)]
    for stream, name in enumerate(case.names):
        assert stats.rows_in[name] == sum(len(op.rows) for op in pushes if op.stream == stream)
    assert sum(stats.late[name] for name in case.names) == sum(len(step.late) for step in steps)


def _check(operator: sj.Operator, expected: MultiStep, seen: Counter[Result]) -> None:
    required, optional = expected.required + expected.with_late_rows, expected.by_late_rows
    if operator.plan is not None:  # a join of the tree may have forgotten what a late row needs
        required, optional = expected.required, expected.with_late_rows + expected.by_late_rows
    assert not required - seen, f"missing results {required - seen}"
    assert not seen - required - optional, (
        f"results that are none, or come twice {seen - required - optional}"
    )
