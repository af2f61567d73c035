"""Window joins of columns that are both at hand: NumPy in, row numbers out, no state.

For use inside `applyInArrow`, `cogroup(...).applyInArrow`, `mapInArrow` and pandas UDFs. A left and a right
row match when their keys are equal and `lower <= right time - left time <= upper`, both ends inclusive.
Rows may come in any order.

Keys
    Integers, booleans, `datetime64` and `timedelta64` of any width and unit, floats (NaN equals NaN, -0.0
    equals 0.0), strings, bytes, and any hashable Python objects. None, NaT, a masked value and an Arrow
    null are null keys: they match nothing, not even each other. An integer compared with a float is
    compared as a float.
Times
    Integers, or `datetime64` of any unit. A null is an error.
Bounds
    With integer times: integers in the unit of the times. With `datetime64`: a text such as "5 s", a
    `timedelta`, a `numpy.timedelta64`, or integer microseconds. None is an open end, and so is a bound that
    64 bits cannot hold. `lower` above `upper` is legal and matches nothing.

Columns are arrays of one dimension or anything `numpy.asarray` takes, masked arrays, and Arrow arrays. The
GIL is released while the rows are joined.
"""

from __future__ import annotations

from datetime import timedelta
from operator import index
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamjoin import _core
from streamjoin._key_codes import Column, column, key_codes
from streamjoin.durations import nanoseconds
from streamjoin.errors import DataError, QueryError

Bound: TypeAlias = int | str | timedelta | np.timedelta64 | None
Rows: TypeAlias = NDArray[np.int64]

_SMALLEST, _LARGEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
_FINE_UNITS = ("ns", "ps", "fs", "as")
_TIMEDELTA_NANOSECONDS = {
    "W": 604_800_000_000_000,
    "D": 86_400_000_000_000,
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}


def window_join(
    lkey: ArrayLike, ltime: ArrayLike, rkey: ArrayLike, rtime: ArrayLike, *, lower: Bound, upper: Bound
) -> tuple[Rows, Rows]:
    """Return the row numbers of all matching pairs, by left row, then by the right row's time and number.

    >>> keys, times = [7, 8, 7], [10, 10, 20]
    >>> left_rows, right_rows = window_join(keys, times, [7, 7, 9], [12, 19, 10], lower=-5, upper=5)
    >>> left_rows, right_rows
    (array([0, 2]), array([0, 1]))

    A function for `auctions.groupby("item").cogroup(bids.groupby("item")).applyInArrow(join_item, schema)`:

    >>> import pyarrow as pa
    >>> def join_item(auctions: pa.Table, bids: pa.Table) -> pa.Table:
    ...     opened, placed = auctions["opened"], bids["placed"]
    ...     auction_rows, bid_rows = window_join(
    ...         auctions["item"], opened, bids["item"], placed, lower="0 s", upper="12 hours"
    ...     )
    ...     item, price = auctions["item"].take(auction_rows), bids["price"].take(bid_rows)
    ...     return pa.table({"item": item, "price": price})
    >>> def at(*texts: str) -> pa.Array:
    ...     return pa.array([np.datetime64(text, "us") for text in texts])
    >>> auctions = pa.table({"item": ["vase"], "opened": at("2024-05-01T08:00")})
    >>> placed = at("2024-05-01T07:59", "2024-05-01T20:00", "2024-05-01T20:01")
    >>> bids = pa.table({"item": ["vase"] * 3, "placed": placed, "price": [10, 20, 30]})
    >>> join_item(auctions, bids).to_pylist()
    [{'item': 'vase', 'price': 20}]
    """
    left_rows, right_rows = _core.window_join(*_arguments(lkey, ltime, rkey, rtime, lower, upper))
    return left_rows, right_rows


def window_semi_join(
    lkey: ArrayLike, ltime: ArrayLike, rkey: ArrayLike, rtime: ArrayLike, *, lower: Bound, upper: Bound
) -> Rows:
    """Return the left rows that have at least one match, each once, ascending.

    >>> window_semi_join(["a", "b", None], [1, 1, 1], ["a", "a", None], [1, 2, 1], lower=0, upper=None)
    array([0])
    """
    return _core.window_semi_join(*_arguments(lkey, ltime, rkey, rtime, lower, upper))


def window_anti_join(
    lkey: ArrayLike, ltime: ArrayLike, rkey: ArrayLike, rtime: ArrayLike, *, lower: Bound, upper: Bound
) -> Rows:
    """Return the left rows that have no match, ascending; rows with a null key are among them.

    >>> window_anti_join(["a", "b", None], [1, 1, 1], ["a", "a", None], [1, 2, 1], lower=0, upper=None)
    array([1, 2])
    """
    return _core.window_anti_join(*_arguments(lkey, ltime, rkey, rtime, lower, upper))


def _arguments(
    lkey: ArrayLike, ltime: ArrayLike, rkey: ArrayLike, rtime: ArrayLike, lower: Bound, upper: Bound
) -> tuple[Rows, Rows, Rows, Rows, int, int, NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    left_keys, left_times = column(lkey, "left keys"), column(ltime, "left times")
    right_keys, right_times = column(rkey, "right keys"), column(rtime, "right times")
    for side, keys, times in (("left", left_keys, left_times), ("right", right_keys, right_times)):
        many, got = len(keys.values), len(times.values)
        if many != got:
            raise DataError(f"{side}: expected as many times as keys, got {many} keys and {got} times")
    unit = _time_unit(left_times, right_times)
    left_codes, left_valid, right_codes, right_valid = key_codes(left_keys, right_keys)
    return (
        left_codes,
        _time_codes(left_times, unit),
        right_codes,
        _time_codes(right_times, unit),
        _SMALLEST if lower is None else _bound(lower, "lower", unit, round_up=True),
        _LARGEST if upper is None else _bound(upper, "upper", unit, round_up=False),
        left_valid,
        right_valid,
    )


def _time_unit(left: Column, right: Column) -> str:
    """Return "us" or "ns" for datetime64 times, "" for integers. An empty side goes with the other."""
    units = set()
    for side in (left, right):
        dtype = side.values.dtype
        if dtype.kind == "M":
            units.add("ns" if np.datetime_data(dtype)[0] in _FINE_UNITS else "us")
        elif len(side.values) > 0 and dtype.kind in "iu":
            units.add("")
        elif len(side.values) > 0:
            raise DataError(f"{side.name}: expected integers or datetime64, got {dtype}")
    if "" in units and len(units) > 1:
        raise DataError(
            "left times and right times: expected both integers or both datetime64, "
            f"got {left.values.dtype} and {right.values.dtype}"
        )
    # With neither rows nor a type on either side there is nothing to compare: bounds of every kind will do.
    return "ns" if "ns" in units else next(iter(units), "us")


def _time_codes(times: Column, unit: str) -> Rows:
    values = times.values
    if len(values) == 0:
        return np.empty(0, np.int64)
    if times.null is not None:
        _refuse_first(times.null, times, "no null", got="null")
    if unit:
        _refuse_first(np.isnat(values), times, "no null")
        converted = values.astype(f"datetime64[{unit}]")
        inexact = converted.astype(values.dtype) != values
        _refuse_first(inexact, times, f"times that 64 bits of {unit} hold exactly")
        codes = converted.view(np.int64)
    else:
        if values.dtype == np.uint64:
            _refuse_first(values > _LARGEST, times, "times that a signed 64-bit integer holds")
        codes = values.astype(np.int64, copy=False)
    if codes.min() == _SMALLEST or codes.max() == _LARGEST:
        extreme = (codes == _SMALLEST) | (codes == _LARGEST)
        _refuse_first(extreme, times, "times inside the two 64-bit extremes")
    return codes


def _refuse_first(wrong: NDArray[np.bool_], times: Column, expected: str, *, got: str = "") -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"{times.name}: expected {expected}, got {got or times.values[row]} at row {row}")


def _bound(bound: int | str | timedelta | np.timedelta64, name: str, unit: str, *, round_up: bool) -> int:
    if not unit:
        exact = _integer(bound, name)
    elif isinstance(bound, np.timedelta64):
        exact = _timedelta_nanoseconds(bound, name)
    else:
        exact = nanoseconds(bound, what=name)
    if unit == "us":
        # Differences of times are whole microseconds: rounding inwards changes no match.
        exact = -(-exact // 1_000) if round_up else exact // 1_000
    return max(_SMALLEST, min(_LARGEST, exact))


def _integer(bound: object, name: str) -> int:
    try:
        if not isinstance(bound, bool):
            return index(bound)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise QueryError(f"{name}: expected an integer in the unit of the times, or None, got {bound!r}")


def _timedelta_nanoseconds(bound: np.timedelta64, name: str) -> int:
    unit, count = np.datetime_data(bound.dtype)
    if np.isnat(bound) or unit not in _TIMEDELTA_NANOSECONDS:
        raise QueryError(f"{name}: expected a timedelta64 in weeks to nanoseconds, got {bound!r}")
    return int(bound.astype(np.int64)) * count * _TIMEDELTA_NANOSECONDS[unit]
