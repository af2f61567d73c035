"""Properties that hold for every input: promises are kept, state goes away, damage is noticed.

Hypothesis writes the scripts, so a failure comes back as the smallest script that fails.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Rules
from random_scripts import JOIN_TYPES, Case, make_case
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
    Punctuate,
    Push,
    Row,
    covers,
)
from script_runner import Trial, assert_nothing_left, declare, observe, perform

DOMAIN = tuple(range(-1, 5))
QUICK = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])

keys = st.integers(0, 3)
bounds = st.none() | st.integers(-4, 4)
streams = st.sampled_from([LEFT, RIGHT])
times = st.integers(-5, 8)


@st.composite
def patterns(draw: st.DrawFn) -> Any:
    low, high = sorted((draw(keys), draw(keys)))
    return draw(
        st.sampled_from(
            [
                Const(low),
                OneOf((low, high)),
                Between(low, high),
                Between(None, high),
                Between(low, None),
                Anything(),
                Nothing(),
            ]
        )
    )


@st.composite
def cases(draw: st.DrawFn, *, honest: bool) -> Case:
    """A query on one integer key and a script. Honest streams are in order and keep their own promises."""
    clock, promised = [-10, -10], (set[int](), set[int]())
    script: list[Op] = []
    next_id = 0
    for _ in range(draw(st.integers(1, 14))):
        s = draw(streams)
        kind = draw(st.sampled_from(["push", "push", "push", "punctuate", "advance"]))
        if kind == "push":
            rows = []
            for _ in range(draw(st.integers(1, 3))):
                key, time = draw(keys), draw(times)
                if honest:
                    time = max(time, clock[s])
                    if key in promised[s]:
                        continue
                clock[s] = max(clock[s], time)
                next_id += 1
                rows.append(Row(next_id, (key,), time, draw(st.integers(0, 2))))
            script.append(Push(s, tuple(rows)))
        elif kind == "advance":
            time = draw(times)
            clock[s] = max(clock[s], time + 1)
            script.append(Advance(s, time))
        else:
            pattern = draw(patterns())
            if isinstance(pattern, Anything) and not honest:
                continue  # a row after its stream's end is simply late; nothing to learn here
            promised[s].update(v for v in DOMAIN if covers(pattern, v))
            script.append(Punctuate(s, (pattern,), max(clock[s], -10)))
    rules = Rules(
        domain=(DOMAIN,),
        null_safe=(False,),
        lower=draw(bounds),
        upper=draw(bounds),
        how=draw(st.sampled_from(JOIN_TYPES)),
        late="drop" if honest else draw(st.sampled_from(["drop", "insert"])),
        on_violation=draw(st.sampled_from(["drop", "keep"])),
    )
    return Case(
        seed=0,
        kinds=("int64",),
        rules=rules,
        where=None,
        time_type="int64",
        windows_on_streams=False,
        script=(*script, Finish()),
        null_keys=False,
    )


def operator_for(case: Case) -> sj.Operator:
    query, schemas = declare(case)
    return sj.Operator(query, schemas=schemas)


@QUICK
@given(cases(honest=False))
def test_any_script_agrees_with_the_oracle(case: Case) -> None:
    Trial(case, operator_for(case)).run()


@QUICK
@given(cases(honest=True))
def test_no_result_matches_an_earlier_output_punctuation(case: Case) -> None:
    """Judged from the output alone: neither the oracle's idea of promises nor its timing is asked."""
    operator = operator_for(case)
    key_of = {row.id: row.values for op in case.script if isinstance(op, Push) for row in op.rows}
    promised: set[tuple[Any, ...]] = set()
    for op in case.script:
        seen = observe(case, perform(operator, case, op))
        for pair in seen.rows:
            assert not {key_of[i] for i in pair if i is not None} & promised
        promised |= {value for value, _ in seen.covered}
    assert promised == {(value,) for value in DOMAIN}  # finish() closes everything


@QUICK
@given(cases(honest=True))
def test_a_value_is_propagated_at_most_once(case: Case) -> None:
    operator = operator_for(case)
    promised: set[tuple[Any, ...]] = set()
    for op in case.script:
        if isinstance(op, Finish) or (isinstance(op, Punctuate) and op.ends_stream):
            break  # the end of a stream is one `*`, whatever was said before
        covered = {value for value, _ in observe(case, perform(operator, case, op)).covered}
        again = {v for v in covered & promised if not _punctuated_again(case, v)}
        assert not again
        promised |= covered


def _punctuated_again(case: Case, value: tuple[Any, ...]) -> bool:
    """A value that both streams promised is forgotten; promised anew, it is a new value."""
    times = [
        sum(
            isinstance(op, Punctuate) and op.stream == s and covers(op.patterns[0], value[0])
            for op in case.script
        )
        for s in (LEFT, RIGHT)
    ]
    return min(times) > 0 and sum(times) > 2


# State goes away ----------------------------------------------------------------------------------

texts = st.text(max_size=3) | st.sampled_from(["a", "b"])
events = st.lists(st.tuples(streams, texts, st.integers(0, 4)), max_size=30)


def string_operator(how: str, *, lower: int | None, upper: int | None) -> tuple[sj.Operator, pa.Schema]:
    schema = pa.schema([("k", pa.string()), ("t", pa.int64())])
    query = sj.Query(
        [sj.Stream("l", time="t"), sj.Stream("r", time="t")],
        ["l.k = r.k"],
        within=[sj.between("l", "r", lower=lower, upper=upper)] if lower is not None else [],
        how=how,
        require_safe=False,
    )
    return sj.Operator(query, schemas={"l": schema, "r": schema}), schema


def push_events(operator: sj.Operator, schema: pa.Schema, rows: list[tuple[int, str, int]]) -> None:
    time = [0, 0]
    for s, text, step in rows:
        time[s] += step
        operator.push("lr"[s], pa.RecordBatch.from_pydict({"k": [text], "t": [time[s]]}, schema=schema))


@QUICK
@given(events, st.sampled_from(JOIN_TYPES))
def test_nothing_is_left_when_everything_has_expired(rows: list[tuple[int, str, int]], how: str) -> None:
    operator, schema = string_operator(how, lower=-3, upper=5)
    push_events(operator, schema, rows)
    for stream in "lr":
        operator.advance(stream, 1000)
        operator.validate()
    assert_nothing_left(operator)


@QUICK
@given(events, st.sampled_from(JOIN_TYPES), st.randoms(use_true_random=False))
def test_nothing_is_left_when_both_streams_have_punctuated_everything(
    rows: list[tuple[int, str, int]], how: str, order: random.Random
) -> None:
    operator, schema = string_operator(how, lower=None, upper=None)
    push_events(operator, schema, rows)
    promises = [(stream, text) for stream in "lr" for text in {text for _, text, _ in rows}]
    order.shuffle(promises)
    for stream, text in promises:
        operator.punctuate(stream, {"k": text}, time=1000)
        operator.validate()
    assert_nothing_left(operator)


@QUICK
@given(events, st.sampled_from(JOIN_TYPES))
def test_nothing_is_left_when_both_streams_have_ended(rows: list[tuple[int, str, int]], how: str) -> None:
    operator, schema = string_operator(how, lower=None, upper=None)
    push_events(operator, schema, rows)
    operator.punctuate("l", {}, time=1000)
    operator.punctuate("r", {"k": sj.ANY}, time=1000)
    operator.validate()
    assert_nothing_left(operator)


# Snapshots ----------------------------------------------------------------------------------------


def busy_operator() -> tuple[Case, sj.Operator]:
    """A string-keyed full join in the middle of a script, with rows, promises and a clock to lose."""
    for seed in range(1000):
        case = make_case(seed, how="full")
        if case.kinds != ("string",) or case.rules.unique[LEFT]:
            continue
        trial = Trial(case, operator_for(case))
        for op in case.script:
            trial.perform(op)
            if min(trial.oracle.state_rows(s) for s in (LEFT, RIGHT)) >= 2 and any(trial.oracle.promises):
                return case, trial.operator
    raise AssertionError("no script reaches a busy state")


def test_every_damaged_byte_of_a_snapshot_is_noticed() -> None:
    case, operator = busy_operator()
    query, _ = declare(case)
    blob = operator.snapshot()
    sj.Operator.restore(query, blob).validate()
    places = (
        range(len(blob))
        if len(blob) <= 4096
        else sorted({*range(1024), *range(0, len(blob), len(blob) // 3000)})
    )
    for place in places:
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(blob)
            damaged[place] ^= flip
            with pytest.raises(sj.SnapshotError):
                sj.Operator.restore(query, bytes(damaged))
    sj.Operator.restore(query, blob).validate()


def test_a_snapshot_of_another_length_is_noticed() -> None:
    case, operator = busy_operator()
    query, _ = declare(case)
    blob = operator.snapshot()
    lengths = {
        0,
        1,
        3,
        4,
        7,
        8,
        15,
        16,
        31,
        32,
        *range(0, len(blob), max(1, len(blob) // 200)),
        len(blob) - 1,
    }
    for damaged in [
        *(blob[:length] for length in sorted(lengths)),
        blob + b"\0",
        blob + blob,
        b"no snapshot at all",
    ]:
        with pytest.raises(sj.SnapshotError):
            sj.Operator.restore(query, damaged)


def test_a_snapshot_of_a_newer_version_says_so() -> None:
    case, operator = busy_operator()
    query, _ = declare(case)
    blob = bytearray(operator.snapshot())
    magic = len(b"STREAMJOIN")
    version = int.from_bytes(blob[magic : magic + 4], "little")
    blob[magic : magic + 4] = (version + 1).to_bytes(4, "little")
    with pytest.raises(sj.SnapshotError, match="newer"):
        sj.Operator.restore(query, bytes(blob))


def test_a_snapshot_of_another_query_is_refused() -> None:
    _, operator = busy_operator()
    blob = operator.snapshot()
    other = sj.Query(
        [sj.Stream("x", time="at"), sj.Stream("y", time="at")], ["x.item = y.item"], within=[sj.within("5 s")]
    )
    with pytest.raises(sj.StreamJoinError):
        sj.Operator.restore(other, blob)


def test_a_snapshot_does_not_disturb_the_operator() -> None:
    _, operator = busy_operator()
    before = operator.stats().state_rows
    assert operator.snapshot() == operator.snapshot()
    operator.validate()
    assert operator.stats().state_rows == before


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
@pytest.mark.parametrize("on", [["a.k <=> b.k"], ["a.k <=> b.k", "a.m <=> b.m"]])
def test_a_closed_null_is_not_sent_on_as_if_it_were_every_value(kind: pa.DataType, on: list[str]) -> None:
    """A null constant would read as `*`, and results that come later would break it."""
    schema = pa.schema([("k", kind), ("m", kind), ("t", pa.int64())])
    one = 1 if pa.types.is_integer(kind) else "x"
    columns = ["k", "m"][: len(on)]
    query = sj.Query([sj.Stream(name, time="t", punctuations=[tuple(columns)]) for name in "ab"], on)
    op = sj.Operator(query, schemas={"a": schema, "b": schema})
    nulls = {"k": None, "m": one} if len(on) == 2 else {"k": None}
    ranged = {"k": None, "m": sj.Range(one, one)} if len(on) == 2 else {"k": [None]}
    for name, pattern in (("a", nulls), ("b", nulls), ("a", ranged)):
        assert op.punctuate(name, pattern).punctuations.num_rows == 0
    for name in "ab":
        out = op.push(name, pa.table({"k": [one], "m": [one], "t": [1]}, schema=schema))
    assert out.rows.num_rows == 1
    said = op.punctuate("a", dict.fromkeys(columns, one)).punctuations
    said = pa.concat_tables([said, op.punctuate("b", dict.fromkeys(columns, one)).punctuations])
    assert said.column("a_k").to_pylist() == [one]
