"""Time columns of every kind, heartbeats and punctuation times of every kind, and the type of result times.

Worked in nanoseconds with Python integers; a join of one key shows which rows are within the window.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import streamjoin as sj

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY = 86_400 * 10**9
TIMESTAMPS = [pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Europe/Berlin")]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
DATES = [pa.date32(), pa.date64()]


def per_count(type_: pa.DataType) -> int:
    """Nanoseconds that one count of the type stands for. Integers are microseconds."""
    if pa.types.is_timestamp(type_):
        return UNITS[type_.unit]
    return {pa.date32(): DAY, pa.date64(): 10**6}.get(type_, 1000)


def operator(
    left: pa.DataType, right: pa.DataType, *, lower: Any = "-1 s", upper: Any = "1 s", **options: Any
) -> sj.Operator:
    query = sj.Query(
        [sj.Stream("a", time="t"), sj.Stream("b", time="t")],
        on=["a.k = b.k"],
        within=sj.between("a", "b", lower=lower, upper=upper),
        **options,
    )
    schemas = {n: pa.schema([("k", pa.int64()), ("t", t)]) for n, t in (("a", left), ("b", right))}
    return sj.Operator(query, schemas=schemas)


def table(type_: pa.DataType, counts: list[Any]) -> pa.Table:
    return pa.table({"k": pa.array([0] * len(counts), pa.int64()), "t": pa.array(counts, type_)})


def counts(column: pa.ChunkedArray) -> list[int | None]:
    number = pa.int32() if column.type == pa.date32() else pa.int64()
    return list(column.cast(number).to_pylist())


def joined(op: sj.Operator, left: pa.Table, right: pa.Table) -> list[tuple[int, int]]:
    op.push("a", left)
    rows = op.push("b", right).rows
    return sorted(zip(counts(rows["a_t"]), counts(rows["b_t"]), strict=True))


MIXED = [
    pa.timestamp("s"),
    pa.timestamp("ms"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.int32(),
    pa.int64(),
]


@pytest.mark.parametrize("right", MIXED, ids=str)
@pytest.mark.parametrize("left", MIXED, ids=str)
def test_times_of_different_units_are_compared_exactly(left: pa.DataType, right: pa.DataType) -> None:
    """Times around zero and around one second, a window of one second and a microsecond."""
    width = 10**9 + 1000
    times = {
        type_: [c for ns in (-(10**9), 0, 10**9) for c in nearby(ns // per_count(type_))]
        for type_ in (left, right)
    }
    op = operator(left, right, lower=-(10**6) - 1, upper=10**6 + 1)
    expected = [
        (x, y)
        for x in times[left]
        for y in times[right]
        if -width <= y * per_count(right) - x * per_count(left) <= width
    ]
    assert joined(op, table(left, times[left]), table(right, times[right])) == sorted(expected)


def nearby(count: int) -> list[int]:
    return [count - 1, count, count + 1] if abs(count) > 1 else [count]


@pytest.mark.parametrize("type_", TIMESTAMPS + INTEGERS + DATES, ids=str)
def test_every_kind_of_time_joins_with_itself(type_: pa.DataType) -> None:
    step = DAY // per_count(type_) if type_ in DATES else 1
    window = step * per_count(type_)
    op = operator(
        type_, type_, lower=0, upper=dt.timedelta(microseconds=window / 1000) if window >= 1000 else "1 ns"
    )
    times = [0, step, 2 * step]
    expected = [(0, 0), (0, step), (step, step), (step, 2 * step), (2 * step, 2 * step)]
    assert joined(op, table(type_, times), table(type_, times)) == expected


def test_a_time_zone_does_not_move_an_instant() -> None:
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    op = operator(
        pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "America/New_York"), lower=0, upper=0
    )
    found = joined(
        op,
        table(pa.timestamp("us", "Europe/Berlin"), [noon]),
        table(pa.timestamp("us", "America/New_York"), [noon]),
    )
    assert len(found) == 1


# Result times -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (pa.int64(), pa.int64(), pa.int64()),
        (pa.int32(), pa.int32(), pa.int64()),
        (pa.int32(), pa.uint16(), pa.int64()),
        (pa.timestamp("s"), pa.timestamp("s"), pa.timestamp("s")),
        (pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us")),
        (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("us")),
        (pa.date32(), pa.date32(), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("ns", "UTC"), pa.timestamp("ns", "UTC")),
        (pa.int64(), pa.timestamp("us"), pa.timestamp("us")),
    ],
    ids=str,
)
def test_result_time_is_the_largest_time_in_a_type_of_both(
    left: pa.DataType, right: pa.DataType, expected: pa.DataType
) -> None:
    op = operator(left, right, lower="-2 days", upper="2 days", result_time="when")
    out = op.push("a", table(left, [0])).rows
    assert out.schema.field("when").type == expected
    count = max(1, 10**9 // per_count(right)) if right != pa.uint16() else 60_000
    rows = op.push("b", table(right, [count])).rows
    assert rows.schema.field("when").type == expected
    assert [c * per_count(expected) for c in counts(rows["when"])] == [count * per_count(right)]


def test_result_time_of_an_unmatched_row_is_its_own() -> None:
    op = operator(pa.int64(), pa.int64(), how="full", result_time="when")
    op.push("a", table(pa.int64(), [7]))
    assert op.finish().rows["when"].to_pylist() == [7]


def test_the_time_of_a_punctuation_need_not_fit_a_narrow_time_column() -> None:
    op = operator(pa.int8(), pa.int8())
    out = op.punctuate("b", {"k": 0}, time=2**40)
    assert out.punctuations["time"].to_pylist() == [2**40]


# Heartbeats and punctuation times -----------------------------------------------------------------

MOMENT = 1_704_067_200 * 10**9  # 2024-01-01T00:00:00Z
MOMENTS: list[tuple[Any, int]] = [
    (dt.datetime(2024, 1, 1), MOMENT),
    (dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), MOMENT),
    (dt.datetime(2024, 1, 1, 0, 0, 0, 1), MOMENT + 1000),
    (dt.date(2024, 1, 1), MOMENT),
    (MOMENT // 1000, MOMENT),
    (np.int64(MOMENT // 1000), MOMENT),
    (np.datetime64("2024-01-01"), MOMENT),
    (np.datetime64("2024-01-01T00:00", "m"), MOMENT),
    (np.datetime64("2024-01-01T00:00:00.000000007"), MOMENT + 7),
    (pd.Timestamp("2024-01-01T00:00:00.000000007"), MOMENT + 7),
    (pd.Timestamp("2024-01-01T01:00:00.000000007", tz="Europe/Berlin"), MOMENT + 7),
    (pa.scalar(MOMENT + 7, pa.timestamp("ns")), MOMENT + 7),
    (pa.scalar(MOMENT // 10**9, pa.timestamp("s", "UTC")), MOMENT),
    (pa.scalar(MOMENT // DAY, pa.date32()), MOMENT),
    (pa.scalar(MOMENT // 10**6, pa.date64()), MOMENT),
]


@pytest.mark.parametrize(("time", "ns"), MOMENTS, ids=lambda value: repr(value)[:60])
def test_a_heartbeat_of_any_kind_is_exact_to_the_nanosecond(time: Any, ns: int) -> None:
    type_ = pa.timestamp("ns")
    op = operator(type_, type_, lower=0, upper=0, how="left")
    op.push("a", table(type_, [ns - 1, ns, ns + 1]))
    gone = op.advance("b", time).rows
    assert [value.value for value in gone["a_t"].combine_chunks()] == [ns - 1, ns]


@pytest.mark.parametrize(("time", "ns"), MOMENTS, ids=lambda value: repr(value)[:60])
def test_a_heartbeat_between_two_microseconds_keeps_the_later_one(time: Any, ns: int) -> None:
    type_ = pa.timestamp("us")
    op = operator(type_, type_, lower=0, upper=0, how="left")
    op.push("a", table(type_, [ns // 1000, ns // 1000 + 1]))
    assert counts(op.advance("b", time).rows["a_t"]) == [ns // 1000]


@pytest.mark.parametrize(
    "time",
    ["noon", 1.5, None, True, dt.time(12), dt.timedelta(1), pd.NaT, np.datetime64("NaT"), 2**63 - 1, 2**80],
)
def test_what_is_no_time_is_refused(time: Any) -> None:
    op = operator(pa.timestamp("ns"), pa.int64())
    with pytest.raises(sj.DataError, match="stream 'b', heartbeat"):
        op.advance("b", time)
    if time is not None:  # without a time, a punctuation stands at the stream's clock
        with pytest.raises(sj.DataError, match="stream 'b', punctuation time"):
            op.punctuate("b", {"k": 1}, time=time)


# Limits -------------------------------------------------------------------------------------------

OVERFLOWS = [
    (pa.timestamp("s"), pa.timestamp("us"), 2**62),
    (pa.timestamp("ms"), pa.timestamp("us"), -(2**62)),
    (pa.timestamp("us"), pa.timestamp("ns"), 2**62),
    (pa.timestamp("s"), pa.timestamp("ns"), 2**40),
    (pa.date32(), pa.timestamp("us"), 2**31 - 1),
    (pa.date32(), pa.timestamp("ns"), 10**6),
    (pa.date64(), pa.timestamp("us"), 2**62 - 2**62 % 86_400_000),
    (pa.int64(), pa.timestamp("ns"), 2**62),
    (pa.int64(), pa.timestamp("ns"), -(2**62)),
    (pa.uint64(), pa.int64(), 2**63),
    (pa.uint64(), pa.int64(), 2**63 - 1),
    (pa.timestamp("us"), pa.int64(), 2**63 - 1),
    (pa.timestamp("ns"), pa.int64(), -(2**63) + 1 - 1),
]


@pytest.mark.parametrize(("left", "right", "count"), OVERFLOWS, ids=str)
def test_a_time_beyond_64_bits_of_the_query_unit_is_refused(
    left: pa.DataType, right: pa.DataType, count: int
) -> None:
    op = operator(left, right)
    with pytest.raises(sj.DataError, match="stream 'a', time column 't'"):
        op.push("a", table(left, [0, count]))
    assert op.stats().rows_in["a"] == 0
    assert joined(op, table(left, [0]), table(right, [0])) == [(0, 0)]


@pytest.mark.parametrize(
    "bounds", [{"lower": 2**70, "upper": None}, {"lower": None, "upper": -(2**70)}], ids=str
)
def test_a_window_that_no_two_times_can_reach_is_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(sj.QueryError, match="window"):
        operator(pa.int64(), pa.int64(), require_safe=False, **bounds)


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.float64(), pa.time64("us"), pa.duration("us"), pa.bool_()], ids=str
)
def test_a_column_that_holds_no_times_is_refused(type_: pa.DataType) -> None:
    with pytest.raises(sj.QueryError, match=r"a\.t"):
        operator(type_, pa.int64())
