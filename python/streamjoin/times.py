"""Time columns as 64-bit integers in the unit of the query, and back.

A query runs in microseconds, or in nanoseconds if one of its time columns holds nanoseconds. A time
column holds Arrow timestamps of any unit, dates, or integers, which are microseconds. The two extreme 64-bit
values are refused: they mean "open" inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import DataError, QueryError

SMALLEST = -(2**63)
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class TimeUnit:
    """The unit a query runs in: "us" or "ns"."""

    name: str

    @property
    def nanoseconds(self) -> int:
        """Length of the unit."""
        return 1000 if self.name == "us" else 1

    @staticmethod
    def of(columns: Mapping[str, pa.DataType]) -> TimeUnit:
        """Choose the unit for these time columns (by qualified name); QueryError if one holds no times."""
        for name, type_ in columns.items():
            if not (pa.types.is_timestamp(type_) or pa.types.is_date(type_) or pa.types.is_integer(type_)):
                raise QueryError(f"time column {name}: expected timestamps, dates or integers, got {type_}")
        nanoseconds = any(pa.types.is_timestamp(t) and t.unit == "ns" for t in columns.values())
        return TimeUnit("ns" if nanoseconds else "us")

    def largest_at_most(self, ns: int | None) -> int | None:
        """Return an upper bound given in nanoseconds, in this unit; None (open) also beyond 64 bits."""
        if ns is not None and ns // self.nanoseconds < SMALLEST:
            raise QueryError(f"window: expected an upper bound within 64 bits of {self.name}, got {ns} ns")
        return None if ns is None else _clamped(ns // self.nanoseconds)

    def smallest_at_least(self, ns: int | None) -> int | None:
        """Return a lower bound given in nanoseconds, in this unit; None (open) also beyond 64 bits."""
        if ns is not None and ns // self.nanoseconds > LARGEST:
            raise QueryError(f"window: expected a lower bound within 64 bits of {self.name}, got {ns} ns")
        return None if ns is None else _clamped(-(-ns // self.nanoseconds))

    def integers(self, column: pa.Array, *, what: str) -> npt.NDArray[np.int64]:
        """Return a time column as integers. DataError names the column and the value that does not fit."""
        if column.null_count:
            row = int(np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))[0])
            raise DataError(f"{what}: expected a time in every row, got null in row {row}")
        try:
            if pa.types.is_integer(column.type):
                column = column.cast(pa.int64())
                if self.name == "ns":
                    column = pc.multiply_checked(column, 1000)
            else:
                column = column.cast(pa.timestamp(self.name)).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"{what}: expected times within 64 bits of {self.name}, got {error}") from error
        values: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
        if len(values) and (values.min() == SMALLEST or values.max() == LARGEST):
            row = int(np.flatnonzero((values == SMALLEST) | (values == LARGEST))[0])
            raise DataError(
                f"{what}: expected a time strictly inside the 64-bit range, got {values[row]} in row {row}"
            )
        return values

    def integer(self, time: Any, *, what: str) -> int:
        """Return one time as an integer; integers are microseconds. DataError if it is none."""
        try:
            scalar = time if isinstance(time, pa.Scalar) else pa.scalar(_exact(time))
            if pa.types.is_integer(scalar.type):
                value = scalar.as_py() * 1000 // self.nanoseconds
            elif pa.types.is_date(scalar.type):
                value = scalar.cast(pa.timestamp("s")).value * (10**9 // self.nanoseconds)
            elif pa.types.is_timestamp(scalar.type):
                scale = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[scalar.type.unit]
                value = scalar.value * scale // self.nanoseconds
            else:
                raise TypeError(scalar.type)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            expected = "expected a time (datetime, timestamp, date or integer microseconds)"
            raise DataError(f"{what}: {expected}, got {time!r}") from error
        if not SMALLEST < value < LARGEST:
            raise DataError(f"{what}: expected a time strictly inside the 64-bit range, got {time!r}")
        return int(value)

    def column_type(self, columns: Mapping[str, pa.DataType]) -> pa.DataType:
        """Return the type of result times: that of the time columns if they agree."""
        types = list(columns.values())
        if all(pa.types.is_integer(t) for t in types):
            return pa.int64()  # also of narrow columns: the time of a punctuation need not fit them
        if all(t == types[0] for t in types) and not pa.types.is_date(types[0]):
            return types[0]
        zones = {t.tz for t in types if pa.types.is_timestamp(t)}
        if len(zones) > 1:
            return pa.timestamp(self.name, None if None in zones else "UTC")
        return pa.timestamp(self.name, *zones)

    def column(
        self, times: npt.NDArray[np.int64], type_: pa.DataType, *, null: npt.NDArray[np.bool_] | None
    ) -> pa.Array:
        """Return integers of this unit as a column of result times, null where `null` says so."""
        if pa.types.is_integer(type_):
            divided = times // 1000 if self.name == "ns" else times
            return pa.array(divided, type=pa.int64(), mask=null).cast(type_, safe=False)
        unit = pa.array(times, type=pa.int64(), mask=null).cast(pa.timestamp(self.name))
        return unit.cast(type_, safe=False)


def _clamped(value: int) -> int | None:
    return value if SMALLEST < value <= LARGEST else None


def _exact(time: Any) -> Any:
    if hasattr(time, "to_datetime64"):
        time = time.to_datetime64()
    coarse = isinstance(time, np.datetime64) and np.datetime_data(time.dtype)[0] in (
        "Y",
        "M",
        "W",
        "D",
        "h",
        "m",
    )
    return time.astype("datetime64[s]") if coarse else time
