"""Residual predicates: what a pair must satisfy beyond equal keys and the window.

Predicates are immutable and stateless and see whole blocks of candidates at once: `mask` gets one array per
needed column, under its qualified name ("a.x"), all of one length. Null at the end is false. An integer
overflow is a `DataError`. What a condition written as text means is in `expressions`.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import DataError, QueryError
from streamjoin.expressions import (
    COLUMN,
    Arrays,
    ColumnRef,
    Expression,
    evaluate,
    floats,
    parse,
    plain_values,
)

Mask: TypeAlias = npt.NDArray[np.bool_]


def column_ref(text: str, *, what: str) -> ColumnRef:
    """Read `stream.column`; a column that is no identifier is written in backticks.

    >>> column_ref("bid.`item id`", what="band")
    ColumnRef(stream='bid', column='item id')
    """
    found = re.fullmatch(COLUMN, text.strip()) if isinstance(text, str) else None
    if found is None:
        raise QueryError(f"{what}: expected a qualified column such as 'bid.price', got {text!r}")
    return ColumnRef(found["stream"], found["column"] or found["quoted"])


class Predicate(ABC):
    """A condition on candidates; `columns` says which columns `mask` needs."""

    columns: tuple[tuple[str, str], ...]

    def bind(self, schemas: Mapping[str, Any]) -> Predicate:
        """Return the predicate for streams of these Arrow schemas."""
        return self

    def check(self, types: Mapping[str, Any]) -> None:
        """Raise QueryError unless the predicate makes sense for columns of these Arrow types."""
        for stream, column in self.columns:
            if f"{stream}.{column}" not in types:
                raise QueryError(f"where {self}: expected a column {stream}.{column}, got {sorted(types)}")

    @abstractmethod
    def mask(self, arrays: Arrays) -> Mask:
        """Return for every candidate whether it is true; null counts as false."""


@dataclass(frozen=True)
class TextPredicate(Predicate):
    """A condition written as text. Made by `parse_where`."""

    text: str
    root: Expression = field(repr=False)
    columns: tuple[tuple[str, str], ...] = field(repr=False)

    def check(self, types: Mapping[str, Any]) -> None:
        """Evaluate on empty arrays: whatever pyarrow refuses there, it would refuse on data."""
        super().check(types)
        used = {f"{stream}.{column}": types[f"{stream}.{column}"] for stream, column in self.columns}
        try:
            result = evaluate(self.root, {name: pa.array([], type=type_) for name, type_ in used.items()})
        except (pa.ArrowException, TypeError) as error:
            shown = ", ".join(f"{name}: {type_}" for name, type_ in used.items())
            raise QueryError(f"where {self.text!r} does not fit its columns: {error}, got {shown}") from error
        if not pa.types.is_boolean(result.type):
            raise QueryError(f"where {self.text!r}: expected a condition, got a value of type {result.type}")

    def mask(self, arrays: Arrays) -> Mask:
        """Evaluate the expression on whole columns."""
        try:
            result = pc.fill_null(evaluate(self.root, arrays), False)
        except pa.ArrowInvalid as error:
            raise DataError(f"where {self.text!r} cannot be computed on these rows: {error}") from error
        return np.asarray(result.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def __str__(self) -> str:
        """Return the text as it was written."""
        return self.text


@dataclass(frozen=True)
class CallablePredicate(Predicate):
    """A condition computed by a function of a dict of NumPy arrays, one per column of every stream."""

    function: Callable[[dict[str, npt.NDArray[Any]]], Any]
    columns: tuple[tuple[str, str], ...] = ()

    def bind(self, schemas: Mapping[str, Any]) -> CallablePredicate:
        """Return the predicate that asks for all columns of `schemas`."""
        refs = (ColumnRef(stream, column) for stream, schema in schemas.items() for column in schema.names)
        return CallablePredicate(self.function, tuple(refs))

    def mask(self, arrays: Arrays) -> Mask:
        """Call the function; it must answer one boolean per candidate."""
        columns = {name: array.to_numpy(zero_copy_only=False) for name, array in arrays.items()}
        expected = (len(next(iter(columns.values()))),) if columns else (0,)
        result = np.asarray(self.function(columns))
        if result.dtype != np.bool_ or result.shape != expected:
            raise DataError(
                f"where {self}: expected a boolean mask of shape {expected}, "
                f"got {result.dtype} of shape {result.shape}"
            )
        return result

    def __str__(self) -> str:
        """Return the name of the function."""
        return str(getattr(self.function, "__qualname__", self.function))


@dataclass(frozen=True)
class Band(Predicate):
    """`|left - right| <= width`. Made by `band`."""

    left: ColumnRef
    right: ColumnRef
    width: float

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        """The two columns."""
        return (self.left, self.right)

    def check(self, types: Mapping[str, Any]) -> None:
        """Both columns must be numbers."""
        super().check(types)
        _check_numbers(self, types)

    def mask(self, arrays: Arrays) -> Mask:
        """Compare; integers of one signedness exactly, over their whole range."""
        left, right = (plain_values(arrays[str(ref)]) for ref in (self.left, self.right))
        for of_kind in (pa.types.is_signed_integer, pa.types.is_unsigned_integer):
            if of_kind(left.type) and of_kind(right.type):
                x, y = (pc.fill_null(side, 0).to_numpy(zero_copy_only=False) for side in (left, right))
                # Modulo 2**64 the distance of two 64-bit integers is exact.
                gap = np.maximum(x, y).astype(np.uint64) - np.minimum(x, y).astype(np.uint64)
                near = gap <= np.uint64(min(math.floor(self.width), 2**64 - 1))
                return np.asarray(near & _both_valid(left, right), dtype=np.bool_)
        if any(pa.types.is_decimal(side.type) for side in (left, right)):
            near = pc.less_equal(pc.abs(pc.subtract(left, right)), pa.scalar(self.width))
            return np.asarray(pc.fill_null(near, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
        x, y = floats(left), floats(right)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(np.abs(x - y) <= self.width, dtype=np.bool_)

    def __str__(self) -> str:
        """Return it as a formula."""
        return f"|{self.left} - {self.right}| <= {self.width}"


@dataclass(frozen=True)
class Distance(Predicate):
    """Distance of two points of the plane below `less_than`. Made by `distance`."""

    left: tuple[ColumnRef, ColumnRef]
    right: tuple[ColumnRef, ColumnRef]
    less_than: float

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:  # type: ignore[override]
        """The four coordinates."""
        return (*self.left, *self.right)

    def check(self, types: Mapping[str, Any]) -> None:
        """All coordinates must be numbers."""
        super().check(types)
        _check_numbers(self, types)

    def mask(self, arrays: Arrays) -> Mask:
        """Compare squares, which is exact for moderate integers; a root would not be."""
        x1, y1, x2, y2 = (floats(plain_values(arrays[str(ref)])) for ref in (*self.left, *self.right))
        with np.errstate(invalid="ignore", over="ignore"):
            squared = (x1 - x2) ** 2 + (y1 - y2) ** 2
            return np.asarray(squared < self.less_than**2, dtype=np.bool_)

    def __str__(self) -> str:
        """Return it as a formula."""
        points = (f"({x}, {y})" for x, y in (self.left, self.right))
        return f"distance({', '.join(points)}) < {self.less_than}"


def band(left: str, right: str, width: float) -> Band:
    """Condition `|left - right| <= width` on one column of each of two streams.

    >>> print(band("a.x", "b.x", 2))
    |a.x - b.x| <= 2
    """
    refs = (column_ref(left, what="band"), column_ref(right, what="band"))
    if refs[0].stream == refs[1].stream:
        raise QueryError(f"band: expected columns of two different streams, got {left!r} and {right!r}")
    return Band(*refs, _number(width, "band: width", at_least_zero=True))


def distance(left: tuple[str, str], right: tuple[str, str], *, less_than: float) -> Distance:
    """Condition that the points `left` and `right` lie less than `less_than` apart.

    >>> print(distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=5))
    distance((a.x, a.y), (b.x, b.y)) < 5
    """
    points = []
    for point in (left, right):
        if isinstance(point, str) or len(point) != 2:
            raise QueryError(f"distance: expected a pair of columns such as ('a.x', 'a.y'), got {point!r}")
        x, y = (column_ref(text, what="distance") for text in point)
        points.append((x, y))
    streams = [{ref.stream for ref in point} for point in points]
    if any(len(names) != 1 for names in streams) or streams[0] == streams[1]:
        raise QueryError(f"distance: expected one point of each of two streams, got {left!r} and {right!r}")
    return Distance(points[0], points[1], _number(less_than, "distance: less_than", at_least_zero=False))


def parse_where(text: str, streams: Sequence[str]) -> TextPredicate:
    """Read a condition over qualified columns of `streams`.

    >>> where = parse_where("a.x < b.x + 3 and not b.note is null", ["a", "b"])
    >>> where.columns == (("a", "x"), ("b", "x"), ("b", "note"))
    True
    >>> arrays = {"a.x": pa.array([1, 9]), "b.x": pa.array([1, 1]), "b.note": pa.array(["n", "n"])}
    >>> where.mask(arrays).tolist()
    [True, False]
    """
    if not isinstance(text, str):
        raise QueryError(f"where: expected a text such as 'a.x < b.x + 3', got {text!r}")
    try:
        root, columns = parse(text, streams)
    except RecursionError:
        raise QueryError(f"where: the condition is nested too deeply, got {text[:60]!r}...") from None
    if not columns:
        raise QueryError(f"where: expected a condition on columns, got {text!r}")
    return TextPredicate(text, root, columns)


def _both_valid(left: Any, right: Any) -> Any:
    return pc.and_(pc.is_valid(left), pc.is_valid(right)).to_numpy(zero_copy_only=False)


def _check_numbers(predicate: Predicate, types: Mapping[str, Any]) -> None:
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    for stream, column in predicate.columns:
        type_ = types[f"{stream}.{column}"]
        if not any(of_kind(type_) for of_kind in numeric):
            raise QueryError(f"where {predicate}: column {stream}.{column} must hold numbers, got {type_}")


def _number(value: float, what: str, *, at_least_zero: bool) -> float:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or value < 0 or (value == 0 and not at_least_zero):
        wanted = "of at least zero" if at_least_zero else "above zero"
        raise QueryError(f"{what} must be a finite number {wanted}, got {value!r}")
    return value
