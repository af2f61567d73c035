"""Keys of any two types that can be compared join exactly where plain Python values are equal.

The judge is `==` on Python values in a nested loop, with one NaN and without null. Output punctuations are
read the same way: they name the value that was promised, or nothing.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import streamjoin as sj
from streamjoin.keys import KeyAttribute

Key = tuple[pa.DataType, list[Any]]


def ints(width: int, *, unsigned: bool = False) -> Key:
    low, high = (0, 2**width - 1) if unsigned else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    near = [n for n in (-1, 0, 1, 100, 127, 255, 2**31, 2**32, 2**63 - 1) if low <= n <= high]
    return getattr(pa, f"{'u' * unsigned}int{width}")(), [low, high, None, *near]


def texts(type_: pa.DataType) -> Key:
    return type_, ["", "a", None, "ä", "a" * 30, "a\0b"]


def blobs(type_: pa.DataType) -> Key:
    return type_, [b"abc", None, b"\x00\xff\x00"] + ([] if type_.id == pa.binary(3).id else [b"", b"z" * 40])


def decimals(type_: pa.DataType, *values: str) -> Key:
    return type_, [None if value == "" else Decimal(value) for value in values]


def moments(type_: pa.DataType) -> Key:
    """Counts since the epoch, in the unit of the type."""
    step = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[type_.unit]
    return type_, [0, step, None, 5 * step, 5 * step + 1, step // 2]


def clocks(type_: pa.DataType) -> Key:
    step = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[type_.unit]
    return type_, [0, step, None, 86399 * step, step // 2]


DATES = [dt.date(1969, 12, 31), None, dt.date(1970, 1, 1), dt.date(2024, 2, 29)]
FLOATS = [math.nan, -0.0, None, 0.5, 1.0, math.inf, 2.0**-24]
UNITS = ("s", "ms", "us", "ns")
NUMBERS = [ints(width, unsigned=u) for width in (8, 16, 32, 64) for u in (False, True)]
TEXTS = [texts(t) for t in (pa.string(), pa.large_string(), pa.string_view())]
BLOBS = [blobs(t) for t in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3))]
REALS = [(pa.float16(), [np.float16(f) if f is not None else None for f in FLOATS])] + [
    (t, [*FLOATS, 0.1]) for t in (pa.float32(), pa.float64())
]
DECIMALS = [
    decimals(pa.decimal32(7, 2), "1.50", "", "-0.01", "99999.99"),
    decimals(pa.decimal64(15, 1), "1.5", "", "99999.9", "0.0"),
    decimals(pa.decimal128(30, 4), "1.5000", "", "99999.9900", "0.0001"),
    decimals(pa.decimal256(60, 3), "1.500", "", "-0.010", "123456789012345678901234567890.123"),
    decimals(pa.decimal128(5, 0), "100", "", "0", "-1"),
]
ENCODED = [
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "ä", "a"]),
    (pa.dictionary(pa.int32(), pa.large_string()), ["a", None, ""]),
    (pa.run_end_encoded(pa.int32(), pa.string()), ["a", "a", None, "ä"]),
]
FAMILIES: list[list[Key]] = [
    NUMBERS,
    [(pa.bool_(), [True, None, False])],
    [(pa.date32(), DATES), (pa.date64(), DATES)],
    [moments(pa.timestamp(unit)) for unit in UNITS],
    [*(moments(pa.timestamp(unit, "UTC")) for unit in UNITS), moments(pa.timestamp("us", "Europe/Berlin"))],
    [moments(pa.duration(unit)) for unit in UNITS],
    [*(clocks(pa.time32(unit)) for unit in UNITS[:2]), *(clocks(pa.time64(unit)) for unit in UNITS[2:])],
    REALS,
    [*TEXTS, *ENCODED],
    BLOBS,
    DECIMALS,
]
PAIRS = [(left, right) for family in FAMILIES for left in family for right in family]
PAIRS += [(number, decimal) for number in NUMBERS[-2:] for decimal in DECIMALS]
PAIRS += [(decimal, number) for number in NUMBERS[:2] for decimal in DECIMALS]
PAIRS += [((pa.null(), [None, None]), TEXTS[0]), (NUMBERS[0], (pa.null(), [None]))]


def array(key: Key) -> pa.Array:
    type_, values = key
    if pa.types.is_run_end_encoded(type_):
        ends = pa.array(range(1, len(values) + 1), type_.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, pa.array(values, type_.value_type), type_)
    return pa.array(values, type_)


def value(scalar: pa.Scalar) -> Any:
    """The Python value that equality is judged on: instants and spans as exact seconds, NaN as a word."""
    if not scalar.is_valid:
        return None
    type_ = scalar.type
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or pa.types.is_time(type_):
        return Decimal(scalar.value) / {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[type_.unit]
    plain = scalar.as_py()
    return "NaN" if isinstance(plain, float | np.floating) and plain != plain else plain


def values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    return [value(scalar) for scalar in column]


def operator(left: pa.DataType, right: pa.DataType, *, equal: str = "=", how: str = "inner") -> sj.Operator:
    query = sj.Query(
        [sj.Stream("a", time="t"), sj.Stream("b", time="t")],
        on=[f"a.k {equal} b.k"],
        within=sj.within("1 s"),
        how=how,
    )
    columns = [("id", pa.int64()), ("t", pa.int64())]
    types = {"a": left, "b": right}
    return sj.Operator(query, schemas={n: pa.schema([*columns, ("k", t)]) for n, t in types.items()})


def table(keys: pa.Array) -> pa.Table:
    return pa.table({"id": range(len(keys)), "t": [0] * len(keys), "k": keys})


def named(pair: tuple[Key, Key]) -> str:
    return " = ".join(str(type_) for type_, _ in pair)


@pytest.mark.parametrize("pair", PAIRS, ids=named)
@pytest.mark.parametrize("equal", ["=", "<=>"])
def test_keys_join_exactly_where_python_values_are_equal(pair: tuple[Key, Key], equal: str) -> None:
    left, right = map(array, pair)
    op = operator(left.type, right.type, equal=equal)
    op.push("a", table(left))
    rows = op.push("b", table(right)).rows
    found = sorted(zip(rows["a_id"].to_pylist(), rows["b_id"].to_pylist(), strict=True))
    expected = [
        (i, j)
        for i, x in enumerate(values(left))
        for j, y in enumerate(values(right))
        if x == y and (x is not None or equal == "<=>")
    ]
    assert found == expected
    op.validate()


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_an_output_punctuation_names_the_promised_value_or_nothing(pair: tuple[Key, Key]) -> None:
    left, right = map(array, pair)
    op = operator(left.type, right.type)
    for promised, scalar in zip(values(right), right, strict=True):
        if promised is None:
            continue
        out = op.punctuate("b", {"k": scalar}).punctuations
        # The stream holds no row, so the value is closed; a second punctuation of it says nothing new.
        for a_value, b_value in zip(values(out["a_k"]), values(out["b_k"]), strict=True):
            assert b_value == promised
            assert a_value in (promised, None)
            assert (a_value is None) == (not holds(left.type, scalar))
    assert op.stats().punctuations_out["immediate"] == len({v for v in values(right) if v is not None})


def holds(type_: pa.DataType, scalar: pa.Scalar) -> bool:
    """Whether a column of the type can hold the value, by trying."""
    type_ = type_.value_type if hasattr(type_, "value_type") else type_
    if pa.types.is_null(type_):
        return False
    try:
        if hasattr(scalar, "value") and hasattr(type_, "unit"):
            per_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
            count = Decimal(scalar.value) * per_second[type_.unit] / per_second[scalar.type.unit]
            return count == int(count)
        back = pa.scalar(scalar.as_py(), type_)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return False
    return bool(value(back) == value(scalar))


REFUSED = [
    (pa.int64(), pa.string()),
    (pa.int64(), pa.float64()),
    (pa.bool_(), pa.int8()),
    (pa.string(), pa.binary()),
    (pa.date32(), pa.timestamp("us")),
    (pa.date32(), pa.int32()),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us"), pa.int64()),
    (pa.time32("s"), pa.duration("s")),
    (pa.decimal128(10, 2), pa.float64()),
    (pa.decimal256(76, 0), pa.decimal256(76, 76)),
    (pa.list_(pa.int64()), pa.list_(pa.int64())),
    (pa.struct([("x", pa.int64())]), pa.struct([("x", pa.int64())])),
    (pa.dictionary(pa.int8(), pa.string()), pa.int64()),
]


@pytest.mark.parametrize(("left", "right"), REFUSED, ids=lambda type_: str(type_))
def test_types_that_cannot_be_equal_are_refused_by_name(left: pa.DataType, right: pa.DataType) -> None:
    for one, other in ((left, right), (right, left)):
        with pytest.raises(sj.QueryError) as raised:
            operator(one, other)
        shown = [t.value_type if pa.types.is_dictionary(t) else t for t in (one, other)]
        for word in ("a.k", "b.k", *map(str, shown)):
            assert word in str(raised.value)


def test_a_key_beyond_the_finer_unit_is_refused_and_changes_nothing() -> None:
    op = operator(pa.timestamp("s"), pa.timestamp("ns"))
    op.push("b", table(pa.array([5 * 10**9], pa.timestamp("ns"))))
    far = pa.array([5, 2**40], pa.timestamp("s"))
    with pytest.raises(sj.DataError, match=r"stream 'a', column 'k'.*timestamp\[ns\]"):
        op.push("a", table(far))
    with pytest.raises(sj.DataError, match=r"stream 'a', punctuation of column 'k'.*timestamp\[ns\]"):
        op.punctuate("a", {"k": far[1]})
    assert op.stats().rows_in == {"a": 0, "b": 1}
    assert op.push("a", table(far.slice(0, 1))).rows.num_rows == 1


def test_a_promise_that_the_output_cannot_name_is_not_made() -> None:
    op = operator(pa.int8(), pa.int64(), how="left_semi")
    op.punctuate("a", {"k": [1]})
    out = op.punctuate("b", {"k": [1, 1000]}).punctuations
    assert set(out["a_k"].to_pylist()) <= {1}


def test_the_ends_of_a_range_come_out_as_they_were_promised() -> None:
    op = operator(pa.int8(), pa.int64())
    out = op.punctuate("b", {"k": sj.Range(-1000, 2**40)}).punctuations
    assert out.select(["a_k_low", "a_k_high"]).to_pylist() == [{"a_k_low": -1000, "a_k_high": 2**40}]
    op = operator(pa.timestamp("s"), pa.timestamp("ms"))
    low, high = (pa.scalar(ms, pa.timestamp("ms")) for ms in (1500, 2500))
    out = op.punctuate("b", {"k": sj.Range(low.as_py(), high.as_py())}).punctuations
    assert (out["a_k_low"][0].value, out["a_k_high"][0].value) == (1500, 2500)


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="this pyarrow has no uuid type")
def test_extension_types_join_by_what_they_store() -> None:
    ids = [uuid.UUID(int=n).bytes for n in (1, 2)]
    left = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([ids[0], None, ids[1]], pa.binary(16)))
    op = operator(left.type, pa.binary())
    op.push("a", table(left))
    rows = op.push("b", table(pa.array([ids[1], ids[0]], pa.binary()))).rows
    assert sorted(zip(rows["a_id"].to_pylist(), rows["b_id"].to_pylist(), strict=True)) == [(0, 1), (2, 0)]
    out = op.punctuate("a", {"k": ids[0]})
    assert op.stats().purged["b"] == 1
    assert out.punctuations.schema.field("a_k").type == pa.uuid()


def test_keys_of_several_columns_compare_each_column_by_itself() -> None:
    query = sj.Query(
        [sj.Stream("a", time="t"), sj.Stream("b", time="t")],
        on=["a.x = b.x", "a.y <=> b.y"],
        within=sj.within("1 s"),
    )
    left = pa.table({"t": [0] * 4, "x": pa.array([1, 1, 2, None], pa.int8()), "y": ["p", None, "p", "p"]})
    dictionary = pa.array(["p", None, None]).dictionary_encode()
    right = pa.table({"t": [0] * 3, "x": pa.array([1, 1, 2], pa.uint64()), "y": dictionary})
    op = sj.Operator(query, schemas={"a": left.schema, "b": right.schema})
    op.push("a", left)
    rows = op.push("b", right).rows.select(["a_x", "a_y", "b_x", "b_y"]).to_pylist()
    found = sorted((tuple(row.values()) for row in rows), key=str)
    assert found == [(1, "p", 1, "p"), (1, None, 1, None)]


@pytest.mark.parametrize("key", [*NUMBERS, *TEXTS, *BLOBS, *REALS, *DECIMALS], ids=lambda key: str(key[0]))
def test_a_list_of_values_is_read_as_its_values_one_by_one(key: Key) -> None:
    type_, values = key
    attribute = KeyAttribute.of(type_, type_, what="k")
    one_by_one = [attribute.native_scalar(value, type_, what="k") for value in values]
    assert repr(attribute.native_scalars(values, type_, what="k")) == repr(one_by_one)
    as_scalars = [pa.scalar(value, type_) for value in values]
    assert repr(attribute.native_scalars(as_scalars, type_, what="k")) == repr(one_by_one)


def test_a_list_with_a_value_that_does_not_fit_names_it() -> None:
    attribute = KeyAttribute.of(pa.int8(), pa.int8(), what="k")
    with pytest.raises(sj.DataError, match="expected a value of type int8, got 1000"):
        attribute.native_scalars([1, 2, 1000], pa.int8(), what="k")
