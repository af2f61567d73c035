"""The window kernels against nested loops in plain Python, and what they refuse."""

import doctest
import math
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamjoin import kernels
from streamjoin.errors import DataError, QueryError
from streamjoin.kernels import window_anti_join, window_join, window_semi_join

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def same_key(left, right):
    """Equality as Spark has it, on Python values: None is no value, NaN is one."""
    if left is None or right is None:
        return False
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right):
        return True
    return left == right


def nested_loops(lkey, ltime, rkey, rtime, lower, upper):
    pairs = []
    for left in range(len(lkey)):
        found = [
            (rtime[right], right)
            for right in range(len(rkey))
            if same_key(lkey[left], rkey[right])
            and (lower is None or rtime[right] - ltime[left] >= lower)
            and (upper is None or rtime[right] - ltime[left] <= upper)
        ]
        pairs += [(left, right) for _, right in sorted(found)]
    return pairs


def check(arrays, plain, lower, upper, plain_bounds=None):
    """Join `arrays` with the kernels and `plain` (the same rows as Python lists) with nested loops."""
    plain_lower, plain_upper = plain_bounds or (lower, upper)
    expected = nested_loops(*plain, plain_lower, plain_upper)
    left_rows, right_rows = window_join(*arrays, lower=lower, upper=upper)
    assert left_rows.dtype == right_rows.dtype == np.int64
    assert list(zip(left_rows.tolist(), right_rows.tolist(), strict=True)) == expected
    matched = sorted({left for left, _ in expected})
    unmatched = [row for row in range(len(plain[0])) if row not in set(matched)]
    assert window_semi_join(*arrays, lower=lower, upper=upper).tolist() == matched
    assert window_anti_join(*arrays, lower=lower, upper=upper).tolist() == unmatched


def rows(keys, times):
    return st.lists(st.tuples(keys, times), max_size=40).map(
        lambda found: ([key for key, _ in found], [time for _, time in found])
    )


TIMES = st.integers(-20, 20)
BOUNDS = st.one_of(st.none(), st.integers(-25, 25))


@given(rows(st.integers(0, 4), TIMES), rows(st.integers(0, 4), TIMES), BOUNDS, BOUNDS)
def test_integer_keys_equal_nested_loops(left, right, lower, upper):
    arrays = [np.array(values, np.int64) for values in (*left, *right)]
    check(arrays, (*left, *right), lower, upper)


@given(
    st.data(),
    st.sampled_from(["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", ">i4", "bool"]),
    st.sampled_from(["int8", "uint16", "int64", "uint64", ">i8"]),
    BOUNDS,
    BOUNDS,
)
def test_keys_of_all_widths_equal_as_numbers(data, left_type, right_type, lower, upper):
    def keys(dtype):
        if dtype == "bool":
            return st.integers(0, 1)
        limits = np.iinfo(dtype)
        return st.sampled_from([limits.min, limits.max, 0, 1, limits.max // 2])

    left, right = data.draw(rows(keys(left_type), TIMES)), data.draw(rows(keys(right_type), TIMES))
    arrays = [np.array(left[0], left_type), left[1], np.array(right[0], right_type), right[1]]
    check([np.asarray(a) if len(a) else np.empty(0, np.int64) for a in arrays], (*left, *right), lower, upper)


FLOATS = st.sampled_from([0.0, -0.0, 1.0, 2.0, math.nan, math.inf, -math.inf, 5e-324])


@given(rows(FLOATS, TIMES), rows(FLOATS, TIMES), BOUNDS, BOUNDS)
def test_float_keys_have_one_nan_and_one_zero(left, right, lower, upper):
    arrays = [np.array(left[0], float), np.array(left[1], int)]
    arrays += [np.array(right[0], float), np.array(right[1], int)]
    check(arrays, (*left, *right), lower, upper)


OBJECTS = st.sampled_from([None, "a", "", "ä", 1, -1, math.nan, Decimal("1.0"), (1, "a"), b"a"])


@given(rows(OBJECTS, TIMES), rows(OBJECTS, TIMES), BOUNDS, BOUNDS)
def test_object_keys_equal_as_python_values_and_none_matches_nothing(left, right, lower, upper):
    def objects(values):
        array = np.empty(len(values), object)
        array[:] = values
        return array

    arrays = [objects(left[0]), np.array(left[1], int), objects(right[0]), np.array(right[1], int)]
    check(arrays, (*left, *right), lower, upper)


STRINGS = st.sampled_from(["", "a", "b", "ab", "ß", "a\0", "\ud800"])


@given(rows(STRINGS, TIMES), rows(STRINGS, TIMES), BOUNDS)
def test_string_keys_equal_nested_loops(left, right, upper):
    lkey, rkey = np.array(left[0], object), np.array(right[0], object)
    check([lkey, np.array(left[1], int), rkey, np.array(right[1], int)], (*left, *right), -3, upper)


MAYBE = st.one_of(st.none(), st.integers(0, 3))


@given(rows(MAYBE, TIMES), rows(MAYBE, TIMES), BOUNDS, BOUNDS)
def test_masked_and_arrow_nulls_match_nothing(left, right, lower, upper):
    def masked(values):
        null = [value is None for value in values]
        return np.ma.array([value or 0 for value in values], mask=null, dtype=int)

    ltime, rtime = np.array(left[1], int), np.array(right[1], int)
    check([masked(left[0]), ltime, masked(right[0]), rtime], (*left, *right), lower, upper)
    for kind in (pa.int32(), pa.uint64(), pa.float64()):
        columns = [
            pa.array(left[0], kind),
            pa.array(left[1], pa.int64()),
            pa.chunked_array([pa.array(right[0][:2], kind), pa.array(right[0][2:], kind)]),
            pa.array(right[1], pa.int16()),
        ]
        check(columns, (*left, *right), lower, upper)


EXTREME_TIMES = st.one_of(
    st.integers(SMALLEST + 1, SMALLEST + 4), st.integers(LARGEST - 4, LARGEST - 1), st.integers(-2, 2)
)
EXTREME_BOUNDS = st.one_of(
    st.none(),
    st.integers(SMALLEST + 1, SMALLEST + 9),
    st.integers(LARGEST - 9, LARGEST - 1),
    st.integers(-9, 9),
)


@given(rows(st.just(1), EXTREME_TIMES), rows(st.just(1), EXTREME_TIMES), EXTREME_BOUNDS, EXTREME_BOUNDS)
def test_times_and_bounds_near_the_limits_do_not_overflow(left, right, lower, upper):
    check([np.array(values, np.int64) for values in (*left, *right)], (*left, *right), lower, upper)


@pytest.mark.parametrize("beyond", [LARGEST, 2**63, 10**30])
def test_bounds_beyond_64_bits_are_infinite(beyond):
    times = np.array([SMALLEST + 1, 0, LARGEST - 1])
    keys = np.zeros(3, int)
    assert len(window_join(keys, times, keys, times, lower=-beyond - 1, upper=beyond)[0]) == 9
    assert len(window_join(keys, times, keys, times, lower=beyond, upper=None)[0]) == 0
    assert len(window_join(keys, times, keys, times, lower=None, upper=-beyond - 1)[0]) == 0


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@given(
    st.sampled_from(list(UNITS)),
    st.sampled_from(list(UNITS)),
    rows(st.integers(0, 2), TIMES),
    rows(st.integers(0, 2), TIMES),
    st.integers(-20_000, 20_000),
    st.integers(-20_000, 20_000),
)
def test_datetimes_of_all_units_and_bounds_in_nanoseconds_are_exact(lunit, runit, left, right, lower, upper):
    arrays = [np.array(left[0], int), np.array(left[1], f"M8[{lunit}]")]
    arrays += [np.array(right[0], int), np.array(right[1], f"M8[{runit}]")]
    plain = left[0], [t * UNITS[lunit] for t in left[1]], right[0], [t * UNITS[runit] for t in right[1]]
    check(arrays, plain, np.timedelta64(lower, "ns"), np.timedelta64(upper, "ns"), (lower, upper))


@pytest.mark.parametrize(
    "upper",
    [5_000_000, np.int32(5_000_000), "5 s", timedelta(seconds=5), np.timedelta64(5, "s")],
)
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_five_seconds_can_be_said_in_many_ways(upper, unit):
    times = np.array(["2024-01-01T00:00:05", "2024-01-01T00:00:06"], f"M8[{unit}]")
    start = np.array(["2024-01-01"], f"M8[{unit}]")
    assert window_join([1], start, [1, 1], times, lower="0 s", upper=upper)[1].tolist() == [0]


def test_datetime_keys_compare_across_units_and_nat_is_null():
    days = np.array(["2024-01-01", "NaT", "0001-01-01"], "M8[D]")
    fine = np.array(["NaT", "2024-01-01", "1700-01-01"], "M8[ns]")
    left_rows, right_rows = window_join(days, [0] * 3, fine, [0] * 3, lower=0, upper=0)
    assert (left_rows.tolist(), right_rows.tolist()) == ([0], [1])


def test_a_day_that_wraps_around_in_nanoseconds_matches_nothing():
    day = np.array([200_000], "M8[D]")
    wrapped = day.astype("M8[ns]")
    assert window_semi_join(day, [0], wrapped, [0], lower=0, upper=0).size == 0


def test_arrow_types_of_spark_batches_work_as_keys_and_times():
    at = pa.array([0, 1_000_000], pa.timestamp("us", tz="UTC"))
    for keys in (
        pa.array(["x", "y"]),
        pa.array(["x", "y"]).dictionary_encode(),
        pa.array([b"x", b"y"]),
        pa.array([True, False]),
        pa.array([Decimal("1.50"), Decimal("2.50")]),
        pa.array([0, 1], pa.date32()),
        at,
    ):
        assert window_join(keys, at, keys, at, lower="0 s", upper="1 s")[1].tolist() == [0, 1]
    nulls = pa.array([None, True])
    assert window_semi_join(nulls, [0, 0], nulls, [0, 0], lower=0, upper=0).tolist() == [1]


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "boolean", "string", "int8[pyarrow]", "category"])
def test_pandas_columns_keep_their_missing_values_null(dtype):
    keys = pd.Series(["a", None, "b"] if dtype in ("string", "category") else [1, None, 0], dtype=dtype)
    at = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]))
    assert window_semi_join(keys, at, keys, at, lower=0, upper=0).tolist() == [0, 2]
    days = pd.Series([1, 2, 3], dtype="Int64")
    assert window_semi_join(keys, days, keys, days, lower=0, upper=0).tolist() == [0, 2]


def test_ties_and_duplicates_come_in_row_order():
    left_rows, right_rows = window_join([1, 1], [0, 0], [1, 1, 1, 1], [3, 2, 3, 2], lower=0, upper=3)
    assert left_rows.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert right_rows.tolist() == [1, 3, 0, 2] * 2


def test_empty_sides_of_any_type_are_welcome():
    at = np.array(["2024-01-01"], "M8[us]")
    assert window_join([], [], ["a"], at, lower="0 s", upper=None)[0].size == 0
    assert window_anti_join(["a"], at, [], [], lower="0 s", upper=None).tolist() == [0]
    assert window_semi_join([], [], [], [], lower="0 s", upper=5).size == 0


def test_strided_and_read_only_columns_are_read_as_they_are():
    wide = np.arange(12).reshape(6, 2)
    wide.flags.writeable = False
    down, up = wide[:, 0], wide[::-1, 0]
    left_rows, right_rows = window_join(down, down, up, up, lower=0, upper=0)
    assert left_rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert right_rows.tolist() == [5, 4, 3, 2, 1, 0]


def test_results_can_be_written_to_and_outlive_the_call():
    left_rows, _ = window_join([1, 2], [0, 0], [1, 2], [0, 0], lower=0, upper=0)
    left_rows += 1
    assert left_rows.tolist() == [1, 2]


NAT = np.array(["2024-01-01", "NaT"], "M8[us]")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1, 2], [1], [1], [1]), "left: expected as many times as keys, got 2 keys and 1 times"),
        (([1], [1], [1], [1, 2]), "right: expected as many times as keys, got 1 keys and 2 times"),
        (([[1]], [1], [1], [1]), r"left keys: expected one dimension, got shape \(1, 1\)"),
        ((1, [1], [1], [1]), r"left keys: expected one dimension, got shape \(\)"),
        (([[1], [1, 2]], [1, 2], [1], [1]), "left keys: expected a column"),
        (([1], [1.0], [1], [1]), "left times: expected integers or datetime64, got float64"),
        (([1], [True], [1], [1]), "left times: expected integers or datetime64, got bool"),
        (([1], [1], [1], ["1"]), "right times: expected integers or datetime64, got <U1"),
        (([1], [1], [1, 1], NAT), "both integers or both datetime64, got int64 and datetime64"),
        (([1, 1], NAT, [1, 1], NAT), "left times: expected no null, got NaT at row 1"),
        (([1], [1], [1, 2], np.ma.array([1, 2], mask=[0, 1])), "right times: expected no null, got null"),
        (([1], [1], [1, 2], pa.array([1, None])), "right times: expected no null, got null at row 1"),
        (([1], [2**63], [1], [1]), "left times: expected times that a signed 64-bit integer holds, got 92"),
        (([1, 1], [0, SMALLEST], [1], [1]), "left times: expected times inside .* got -9.* at row 1"),
        (([1], [LARGEST], [1], [1]), "left times: expected times inside .* at row 0"),
        (
            ([1], np.array(["3000-01-01"], "M8[D]"), [1], np.array(["2024"], "M8[ns]")),
            "left times: expected times that 64 bits of ns hold exactly, got 3000-01-01 at row 0",
        ),
        ((["a"], [1], [1], [1]), "expected types that can be compared, got <U1 and int64"),
        (([1], [1], np.array(["2024"], "M8[D]"), [1]), "expected types that can be compared"),
        (([b"a"], [1], ["a"], [1]), "expected types that can be compared"),
        (([1j], [1], [1j], [1]), "expected types that can be compared"),
        ((np.array([{}, None]), [1, 1], [None], [1]), "expected hashable keys, got unhashable type"),
    ],
)
def test_what_does_not_fit_is_a_data_error_that_says_what_came(arguments, words):
    for kernel in (window_join, window_semi_join, window_anti_join):
        with pytest.raises(DataError, match=words):
            kernel(*arguments, lower=0, upper=0)


@pytest.mark.parametrize("bound", ["5 s", timedelta(1), 1.0, True, np.timedelta64(1, "s")])
def test_integer_times_take_integer_bounds_only(bound):
    with pytest.raises(QueryError, match="lower: expected an integer in the unit of the times"):
        window_join([1], [1], [1], [1], lower=bound, upper=None)


@pytest.mark.parametrize(
    "bound", ["five", 1.5, True, np.timedelta64("NaT"), np.timedelta64(1, "M"), np.timedelta64(1)]
)
def test_datetimes_refuse_bounds_that_are_no_duration(bound):
    at = np.array(["2024-01-01"], "M8[us]")
    with pytest.raises(QueryError, match="upper: expected"):
        window_join([1], at, [1], at, lower=None, upper=bound)


def test_the_examples_in_the_docstrings_are_true():
    outcome = doctest.testmod(kernels)
    assert outcome.attempted > 0
    assert outcome.failed == 0
