"""Join attributes between Arrow and the native core.

| Arrow type                            | kind    | as                                      |
| ------------------------------------- | ------- | --------------------------------------- |
| integers, booleans, all kinds of time | integer | int64, the finer unit                   |
| floats                                | real    | double; NaN equals NaN, -0.0 equals 0.0 |
| strings, binary                       | bytes   | 64-bit offsets and bytes                |
| decimals, 64-bit unsigned integers    | decimal | 16 or 32 bytes, at the larger scale     |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import DataError, QueryError

UNITS = ("s", "ms", "us", "ns")
NativeColumn = tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None, npt.NDArray[np.uint8] | None]


@dataclass(frozen=True)
class KeyAttribute:
    """One join attribute of several streams: how its values become native ones.

    `shared` is the Arrow type that the columns of all of them fit in.
    """

    kind: str
    width: int
    shared: pa.DataType

    @staticmethod
    def of(*types: pa.DataType, what: str) -> KeyAttribute:
        """Choose the kind for columns that are compared; QueryError if their values cannot be equal."""
        plain = [_plain(type_) for type_ in types]
        known = [type_ for type_ in plain if not pa.types.is_null(type_)]
        shared = _shared(known[0], known[0]) if known else None
        for type_ in known[1:]:
            shared = None if shared is None else _shared(shared, type_)
        if shared is None:
            *others, last = map(str, plain)
            got = f"{', '.join(others)} and {last}"
            raise QueryError(f"{what}: expected columns whose values can be equal, got {got}")
        if pa.types.is_floating(shared):
            return KeyAttribute("real", 0, shared)
        if pa.types.is_large_binary(shared) or pa.types.is_large_string(shared):
            return KeyAttribute("bytes", 0, shared)
        if pa.types.is_decimal(shared):
            return KeyAttribute("decimal", shared.bit_width // 8, shared)
        return KeyAttribute("integer", 0, shared)

    def native(self, column: pa.Array, *, what: str) -> NativeColumn:
        """Return a column as the core reads it: values, offsets of bytes, and which are valid (None: all)."""
        column = self.shared_values(column, what=what)
        valid = None
        if column.null_count:
            valid = pc.is_valid(column).to_numpy(zero_copy_only=False).view(np.uint8)
        if self.kind == "bytes":
            return (*_bytes(column), valid)
        if self.kind == "decimal":
            return _buffer(column, 1, np.uint8, self.width), None, valid
        if pa.types.is_boolean(self.shared):
            column = column.cast(pa.uint8())
        dtype = np.float64 if self.kind == "real" else np.int64
        width = column.type.bit_width // 8
        source = _buffer(column, 1, _dtype(column.type), width)
        return np.ascontiguousarray(source, dtype=dtype), None, valid

    def shared_values(self, column: pa.Array, *, what: str) -> pa.Array:
        """Return a column as one of the type that all streams share."""
        column = _decoded(column)
        try:
            return column.cast(self.shared) if column.type != self.shared else column
        except (
            pa.ArrowInvalid
        ) as error:  # a timestamp or a duration beyond the finer unit of the other stream
            raise DataError(f"{what}: expected values that fit {self.shared}, got {error}") from error

    def from_shared(self, column: pa.Array, type_: pa.DataType) -> pa.Array:
        """Return a column of the shared type as one of type `type_`; null where that has no such value."""
        return _exactly(column, type_)

    def native_scalar(self, value: Any, type_: pa.DataType, *, what: str) -> Any:
        """Return one value of a column of type `type_`; DataError if it is none."""
        try:
            plain = _plain(type_)
            scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, type=plain)
            column = pa.array([scalar if scalar.type == plain else scalar.as_py()], type=plain)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{what}: expected a value of type {type_}, got {value!r}") from error
        return self._scalars(column, what)[0]

    def native_scalars(self, values: list[Any], type_: pa.DataType, *, what: str) -> list[Any]:
        """Return many values as `native_scalar` does each of them, at a fraction of the cost."""
        if not any(isinstance(value, pa.Scalar) for value in values):
            try:
                return self._scalars(pa.array(values, type=_plain(type_)), what)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                pass  # the walk below names the value that does not fit
        return [self.native_scalar(value, type_, what=what) for value in values]

    def _scalars(self, column: pa.Array, what: str) -> list[Any]:
        values, offsets, valid = self.native(column, what=what)
        if self.kind == "bytes":
            assert offsets is not None
            found = [values[offsets[i] : offsets[i + 1]].tobytes() for i in range(len(column))]
        elif self.kind == "decimal":
            width = self.width
            found = [values[i * width : (i + 1) * width].tobytes() for i in range(len(column))]
        else:
            numbers = values + 0.0 if self.kind == "real" else values  # -0.0 is 0.0
            found = numbers.tolist()
        return found if valid is None else [f if v else None for f, v in zip(found, valid, strict=True)]

    def arrow(self, column: NativeColumn, type_: pa.DataType) -> pa.Array:
        """Return native values as an Arrow column of type `type_`; null where that type has no such value."""
        return self.from_shared(self._shared_column(column), type_)

    def _shared_column(self, column: NativeColumn) -> pa.Array:
        values, offsets, valid = column
        assert valid is not None
        null = valid == 0
        if self.kind in ("bytes", "decimal"):
            buffers = [values] if offsets is None else [offsets, values]
            bitmap = pa.array(~null).buffers()[1]
            return pa.Array.from_buffers(self.shared, len(null), [bitmap, *map(pa.py_buffer, buffers)])
        if self.kind == "real":
            return pa.array(values, mask=null)
        integers = pa.array(values, type=pa.int64(), mask=null)
        small = self.shared.bit_width == 32 and not pa.types.is_integer(self.shared)
        return (integers.cast(pa.int32()) if small else integers).cast(self.shared)


def _decoded(column: pa.Array) -> pa.Array:
    """Return the values of a column without dictionary, runs and extension type."""
    if isinstance(column.type, pa.BaseExtensionType):
        return _decoded(column.storage)
    if pa.types.is_dictionary(column.type):
        return _decoded(column.dictionary_decode())
    if pa.types.is_run_end_encoded(column.type):
        return _decoded(pc.run_end_decode(column))
    return column


def _encoded(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Undo `_decoded`, into a column of type `type_`."""
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, _encoded(column, type_.storage_type))
    if pa.types.is_dictionary(type_):
        coded = _encoded(column, type_.value_type).dictionary_encode()
        indices = coded.indices.cast(type_.index_type)
        return pa.DictionaryArray.from_arrays(indices, coded.dictionary, ordered=type_.ordered)
    if pa.types.is_run_end_encoded(type_):
        return pc.run_end_encode(_encoded(column, type_.value_type), run_end_type=type_.run_end_type)
    return column


def _exactly(column: pa.Array, type_: pa.DataType) -> pa.Array:
    plain = _plain(type_)
    if pa.types.is_null(plain):
        return pa.nulls(len(column), type_)
    if column.type != plain:
        try:
            cast = column.cast(plain)
        except pa.ArrowInvalid:  # one of the values does not fit: find out which, one by one
            cast = pa.concat_arrays([_cast_or_null(column.slice(i, 1), plain) for i in range(len(column))])
        if pa.types.is_floating(plain):  # rounded without a word; NaN is not equal to itself, but fits
            same = pc.or_(pc.equal(cast.cast(column.type), column), pc.is_nan(column))
            cast = pc.if_else(same, cast.cast(pa.float64()), None).cast(plain)
        column = cast
    return _encoded(column, type_)


def _cast_or_null(one: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return one.cast(type_)
    except pa.ArrowInvalid:
        return pa.nulls(1, type_)


def _plain(type_: pa.DataType) -> pa.DataType:
    """Take dictionary, run-end and extension types off: they say how values are stored, not which."""
    if isinstance(type_, pa.BaseExtensionType):
        return _plain(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return _plain(type_.value_type)
    return type_


def _shared(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    both = (left, right)
    if all(map(pa.types.is_integer, both)) and any(map(pa.types.is_uint64, both)):
        return pa.decimal128(20, 0)
    if all(map(pa.types.is_integer, both)):
        return pa.int64()
    if all(map(_is_exact, both)):
        return _shared_decimal(left, right)
    if all(map(pa.types.is_floating, both)):
        return pa.float64()
    if all(map(_is_string, both)):
        return pa.large_string()
    if all(map(_is_binary, both)):
        return pa.large_binary()
    if all(map(pa.types.is_boolean, both)):
        return left
    if all(map(pa.types.is_date, both)):
        return left if left == right else pa.date64()
    for same in (pa.types.is_timestamp, pa.types.is_duration):
        if all(map(same, both)) and (
            not pa.types.is_timestamp(left) or (left.tz is None) == (right.tz is None)
        ):
            unit = max(left.unit, right.unit, key=UNITS.index)
            return pa.timestamp(unit, left.tz) if pa.types.is_timestamp(left) else pa.duration(unit)
    if all(map(pa.types.is_time, both)):
        unit = max(left.unit, right.unit, key=UNITS.index)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    return None


def _is_exact(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type_) or pa.types.is_integer(type_))


def _is_string(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    )


def _is_binary(type_: pa.DataType) -> bool:
    kinds = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    )
    return any(kind(type_) for kind in kinds)


def _shared_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    shapes = [(t.precision, t.scale) if pa.types.is_decimal(t) else (20, 0) for t in (left, right)]
    scale = max(scale for _, scale in shapes)
    precision = max(precision - own_scale for precision, own_scale in shapes) + scale
    if precision <= 38:
        return pa.decimal128(precision, scale)
    return pa.decimal256(precision, scale) if precision <= 76 else None


def _dtype(type_: pa.DataType) -> npt.DTypeLike:
    if pa.types.is_floating(type_):
        return np.dtype(f"f{type_.bit_width // 8}")
    return np.dtype(f"i{type_.bit_width // 8}") if not pa.types.is_uint8(type_) else np.dtype("u1")


def _buffer(column: pa.Array, number: int, dtype: npt.DTypeLike, width: int) -> npt.NDArray[Any]:
    """View the values of a fixed-width column, whatever lies under its nulls."""
    buffer = column.buffers()[number]
    if buffer is None or len(column) == 0:
        return np.empty(0, dtype=dtype)
    size = np.dtype(dtype).itemsize
    count = len(column) * width // size
    return np.frombuffer(buffer, dtype=dtype, count=count, offset=column.offset * width)


def _bytes(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    if len(column) == 0:
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _, offsets, data = column.buffers()
    positions = np.frombuffer(offsets, dtype=np.int64, count=len(column) + 1, offset=column.offset * 8)
    values = (
        np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.empty(0, dtype=np.uint8)
    )
    return values, positions
