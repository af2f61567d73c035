"""Key columns of any type as int64 codes that are equal exactly where the keys are, for the window kernels.

Both sides are coded together, and a code means something in one call only. A key that the other side's type
cannot hold matches nothing there, so it is marked invalid like a null.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamjoin.errors import DataError

Codes: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Coded: TypeAlias = tuple[Codes, Mask | None]

_PLAIN = frozenset((str, bytes, int, bool, type(None)))
_TEXT = frozenset((str, type(None)))
_NAN = object()


@dataclass(frozen=True)
class Column:
    """One dimension of values in native byte order; `null` marks those that are none."""

    name: str
    values: NDArray[Any]
    null: Mask | None


def column(data: object, name: str) -> Column:
    """Take what `numpy.asarray` takes; masked, Arrow and pandas columns keep their nulls."""
    null: Mask | None = None
    inside = getattr(data, "array", data)  # of a pandas Series or Index
    # pandas' nullable and categorical arrays go by Arrow: NumPy would see NaN, a value, for their nulls.
    nullable = hasattr(inside, "__arrow_array__") or hasattr(inside, "categories")
    if nullable or isinstance(inside, (pa.Array, pa.ChunkedArray)):
        data, null = _from_arrow(inside)
    elif isinstance(data, np.ma.MaskedArray):
        data, null = data.data, np.ma.getmaskarray(data) if np.ma.is_masked(data) else None
    try:
        values = np.asarray(data)
    except ValueError as error:
        raise DataError(f"{name}: expected a column of values, got what NumPy refuses: {error}") from error
    if values.ndim != 1:
        raise DataError(f"{name}: expected one dimension, got shape {values.shape}")
    return Column(name, values.astype(values.dtype.newbyteorder("="), copy=False), null)


def key_codes(left: Column, right: Column) -> tuple[Codes, Mask | None, Codes, Mask | None]:
    """Return codes and validity of both sides; no validity means that all are valid."""
    kinds = {left.values.dtype.kind, right.values.dtype.kind}
    if len(left.values) == 0 or len(right.values) == 0:
        # Nothing can match; an empty list has no type worth comparing.
        return np.zeros(len(left.values), np.int64), None, np.zeros(len(right.values), np.int64), None
    if kinds <= set("iub"):
        coded = _integer_codes(left, right), _integer_codes(right, left)
    elif kinds <= set("iubf"):
        coded = _float_codes(left), _float_codes(right)
    elif kinds == {"M"} or kinds == {"m"}:
        coded = _datetime_codes(left, right), _datetime_codes(right, left)
    elif kinds <= set("UT") or kinds == {"S"} or ("O" in kinds and kinds <= set("OUTSiubf")):
        coded = _object_codes(left, right)
    else:
        raise DataError(
            "left keys and right keys: expected types that can be compared, "
            f"got {left.values.dtype} and {right.values.dtype}"
        )
    (left_codes, left_unmatchable), (right_codes, right_unmatchable) = coded
    return left_codes, _valid(left, left_unmatchable), right_codes, _valid(right, right_unmatchable)


def _valid(keys: Column, unmatchable: Mask | None) -> Mask | None:
    masks = [mask for mask in (keys.null, unmatchable) if mask is not None and mask.any()]
    return ~np.logical_or.reduce(masks) if masks else None


def _integer_codes(keys: Column, other: Column) -> Coded:
    if keys.values.dtype != np.uint64:
        return keys.values.astype(np.int64, copy=False), None
    # The upper half of uint64 wraps to negative codes: right among uint64, foreign to every other type.
    wrapped = None if other.values.dtype == np.uint64 else keys.values > np.iinfo(np.int64).max
    return keys.values.view(np.int64), wrapped


def _float_codes(keys: Column) -> Coded:
    if keys.values.dtype.itemsize > 8:
        raise DataError(f"{keys.name}: expected floats of at most 64 bits, got {keys.values.dtype}")
    numbers = keys.values.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    numbers[np.isnan(numbers)] = np.nan  # one bit pattern for all
    return numbers.view(np.int64), None


def _datetime_codes(keys: Column, other: Column) -> Coded:
    try:
        dtype = np.promote_types(keys.values.dtype, other.values.dtype)
    except TypeError as error:
        raise DataError(f"{keys.name}: expected units that can be compared, got {error}") from error
    converted = keys.values.astype(dtype)
    # NaT differs from itself; a time beyond the finer unit's range does not come back.
    return converted.view(np.int64), converted.astype(keys.values.dtype) != keys.values


def _object_codes(left: Column, right: Column) -> tuple[Coded, Coded]:
    left_keys, right_keys = _objects(left), _objects(right)
    if _TEXT.issuperset(map(type, left_keys)) and _TEXT.issuperset(map(type, right_keys)):
        # Arrow numbers strings several times faster than a dict, but takes valid Unicode only.
        with suppress(UnicodeEncodeError):
            return _text_codes(*(pa.array(keys, pa.large_string()) for keys in (left_keys, right_keys)))
    try:
        numbers = {key: number for number, key in enumerate(dict.fromkeys(right_keys))}
        numbers.pop(None, None)
        left_codes = np.fromiter(map(numbers.get, left_keys, repeat(-1)), np.int64, len(left_keys))
        right_codes = np.fromiter(map(numbers.get, right_keys, repeat(-1)), np.int64, len(right_keys))
    except TypeError as error:
        raise DataError(f"left keys and right keys: expected hashable keys, got {error}") from error
    return (left_codes, left_codes < 0), (right_codes, right_codes < 0)


def _text_codes(left: Any, right: Any) -> tuple[Coded, Coded]:
    known = right.unique().drop_null()
    found = (pc.index_in(side, value_set=known).fill_null(-1) for side in (left, right))
    left_codes, right_codes = (codes.to_numpy().astype(np.int64) for codes in found)
    return (left_codes, left_codes < 0), (right_codes, right_codes < 0)


def _objects(keys: Column) -> list[Any]:
    """Keys as objects whose equality is ours: None for every kind of null, one object for every NaN."""
    objects = keys.values.tolist()
    return objects if _PLAIN.issuperset(map(type, objects)) else [_canonical(key) for key in objects]


def _canonical(key: Any) -> Any:
    if type(key).__name__ in ("NAType", "NaTType"):  # of pandas, which need not be installed
        return None
    if isinstance(key, (np.datetime64, np.timedelta64)):
        return None if np.isnat(key) else key
    if isinstance(key, (float, np.floating, Decimal)) and key != key:
        return _NAN
    return key


def _from_arrow(data: Any) -> tuple[NDArray[Any], Mask | None]:
    if not isinstance(data, (pa.Array, pa.ChunkedArray)):
        data = pa.array(data)
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    if pa.types.is_dictionary(data.type):
        data = data.dictionary_decode()
    null: Mask | None = None
    if data.null_count > 0:
        null = data.is_null().to_numpy(zero_copy_only=False)
        # Left alone, a null would turn integers into floats, and among floats into NaN, which is a value.
        if pa.types.is_boolean(data.type):
            data = data.fill_null(False)
        elif pa.types.is_integer(data.type) or pa.types.is_floating(data.type):
            data = data.fill_null(0)
    return data.to_numpy(zero_copy_only=False), null
