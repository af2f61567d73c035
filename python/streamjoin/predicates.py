"""Residual predicates: what a pair must satisfy beyond equal keys and the window.

    text --tokens--> expression tree --pyarrow.compute--> true / false / null per candidate --> mask

Predicates are immutable and stateless and see whole blocks of candidates at once: `mask` gets one array per
needed column, under its qualified name ("a.x"), all of one length. Semantics are SQL's: null in, null out,
and null at the end is false; and / or / not in three-valued logic; `/` is a real division and, like `%`, null
where the divisor is zero. Integers are computed in 64 bits, an overflow is a `DataError`. Floats compare as
IEEE 754 says: NaN equals nothing, itself included.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from streamjoin.errors import DataError, QueryError

Mask: TypeAlias = npt.NDArray[np.bool_]
Arrays: TypeAlias = Mapping[str, Any]  # "stream.column" -> pyarrow.Array

COLUMN = r"(?P<stream>[^\W\d]\w*)\.(?:(?P<column>[^\W\d]\w*)|`(?P<quoted>[^`]+)`)"


class ColumnRef(NamedTuple):
    """A column of a stream, written `stream.column`."""

    stream: str
    column: str

    def __str__(self) -> str:
        """Return the qualified name, under which `mask` expects the array."""
        return f"{self.stream}.{self.column}"


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
            result = _evaluate(self.root, {name: pa.array([], type=type_) for name, type_ in used.items()})
        except (pa.ArrowException, TypeError) as error:
            shown = ", ".join(f"{name}: {type_}" for name, type_ in used.items())
            raise QueryError(f"where {self.text!r} does not fit its columns: {error}, got {shown}") from error
        if not pa.types.is_boolean(result.type):
            raise QueryError(f"where {self.text!r}: expected a condition, got a value of type {result.type}")

    def mask(self, arrays: Arrays) -> Mask:
        """Evaluate the expression on whole columns."""
        try:
            result = pc.fill_null(_evaluate(self.root, arrays), False)
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
        left, right = (_plain(arrays[str(ref)]) for ref in (self.left, self.right))
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
        x, y = _floats(left), _floats(right)
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
        x1, y1, x2, y2 = (_floats(_plain(arrays[str(ref)])) for ref in (*self.left, *self.right))
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
    parser = _Parser(text, tuple(streams))
    try:
        root = parser.parse()
    except RecursionError:
        raise QueryError(f"where: the condition is nested too deeply, got {text[:60]!r}...") from None
    if not parser.columns:
        raise QueryError(f"where: expected a condition on columns, got {text!r}")
    return TextPredicate(text, root, tuple(parser.columns))


# --- Expressions: a tree of calls over columns and constants ------------------------------------------------


class Constant(NamedTuple):
    """A literal."""

    value: bool | int | float | str | None


class Call(NamedTuple):
    """An operator applied to its operands."""

    operator: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = ColumnRef | Constant | Call

_TOKEN = re.compile(
    rf"""\s*(?:(?P<ref>{COLUMN})
        | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
        | (?P<string>'(?:[^']|'')*')
        | (?P<operator><=|>=|<>|!=|==|[-=<>+*/%()])
        | (?P<word>[^\W\d]\w*)
        | (?P<end>$))""",
    re.VERBOSE,
)
_KINDS = ("ref", "number", "string", "operator", "word", "end")
_COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_WORDS = {"true": True, "false": False, "null": None}


class _Parser:
    """Recursive descent, one method per level of precedence: or, and, not, comparison, sum, product, sign."""

    def __init__(self, text: str, streams: tuple[str, ...]) -> None:
        self.text, self.streams = text, streams
        self.columns: dict[ColumnRef, None] = {}
        self.position = 0
        self.advance()

    def advance(self) -> None:
        """Move to the next token: `kind`, its text `token` and where it starts."""
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            self.start = len(self.text) - len(self.text[self.position :].lstrip())
            raise self.error(f"unexpected {self.text[self.start]!r}")
        self.found = found
        self.kind = next(kind for kind in _KINDS if found[kind] is not None)
        self.token, self.start, self.position = found[self.kind], found.start(self.kind), found.end()
        if self.kind == "word":
            self.token = self.token.lower()

    def error(self, problem: str) -> QueryError:
        return QueryError(f"where: {problem} at position {self.start}\n  {self.text}\n  {' ' * self.start}^")

    def take(self, *tokens: str) -> str | None:
        """Step over the next token if it is one of these operators or words."""
        if self.kind in ("operator", "word") and self.token in tokens:
            token = self.token
            self.advance()
            return token
        return None

    def expect(self, token: str) -> None:
        if self.take(token) is None:
            raise self.error(f"expected {token!r}, got {self.shown()}")

    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(self.token)

    def parse(self) -> Expression:
        expression = self.disjunction()
        if self.kind != "end":
            raise self.error(f"expected an operator or the end, got {self.shown()}")
        return expression

    def disjunction(self) -> Expression:
        return self.chain(self.conjunction, "or")

    def conjunction(self) -> Expression:
        return self.chain(self.negation, "and")

    def negation(self) -> Expression:
        return Call("not", (self.negation(),)) if self.take("not") else self.comparison()

    def comparison(self) -> Expression:
        left = self.sum()
        if operator := self.take(*_COMPARISONS):
            return Call(_COMPARISONS[operator], (left, self.sum()))
        if self.take("is"):
            negated = self.take("not")
            self.expect("null")
            return Call("is not null" if negated else "is null", (left,))
        return left

    def sum(self) -> Expression:
        return self.chain(self.product, "+", "-")

    def product(self) -> Expression:
        return self.chain(self.sign, "*", "/", "%")

    def chain(self, operand: Callable[[], Expression], *operators: str) -> Expression:
        """Read operands joined by `operators`, grouping to the left."""
        expression = operand()
        while operator := self.take(*operators):
            expression = Call(operator, (expression, operand()))
        return expression

    def sign(self) -> Expression:
        if self.take("-"):
            return Call("negate", (self.sign(),))
        return self.sign() if self.take("+") else self.primary()

    def primary(self) -> Expression:
        if self.take("("):
            expression = self.disjunction()
            self.expect(")")
            return expression
        if self.kind == "ref":
            expression = self.column()
        elif self.kind == "number":
            expression = self.number()
        elif self.kind == "string":
            expression = Constant(self.token[1:-1].replace("''", "'"))
        elif self.kind == "word" and self.token in _WORDS:
            expression = Constant(_WORDS[self.token])
        else:
            hint = " (a column is written stream.column)" if self.kind == "word" else ""
            raise self.error(f"expected a column or a value, got {self.shown()}{hint}")
        self.advance()
        return expression

    def column(self) -> ColumnRef:
        ref = ColumnRef(self.found["stream"], self.found["column"] or self.found["quoted"])
        if ref.stream not in self.streams:
            raise self.error(f"expected one of the streams {list(self.streams)}, got {ref.stream!r}")
        self.columns[ref] = None
        return ref

    def number(self) -> Constant:
        if not self.token.isdigit():
            return Constant(float(self.token))
        if len(self.token) > 19 or int(self.token) >= 2**63:
            raise self.error(f"expected an integer of at most 64 bits, got {self.token}")
        return Constant(int(self.token))


def _evaluate(expression: Expression, arrays: Arrays) -> Any:
    if isinstance(expression, ColumnRef):
        return _plain(arrays[str(expression)])
    if isinstance(expression, Constant):
        return pa.scalar(expression.value)
    operands = [_evaluate(operand, arrays) for operand in expression.operands]
    return _OPERATORS[expression.operator](*operands)


def _compared(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(*_matched(x, y))


def _logical(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *sides: function(*map(_truth, sides))


def _truth(x: Any) -> Any:
    return pc.cast(x, pa.bool_()) if pa.types.is_null(x.type) else x


def _matched(x: Any, y: Any) -> tuple[Any, Any]:
    """Bring two operands to one type where pyarrow by itself would fail on some of the values."""
    if pa.types.is_null(x.type):
        x = pc.cast(x, pa.int64() if pa.types.is_null(y.type) else y.type)
    if pa.types.is_null(y.type):
        y = pc.cast(y, x.type)
    x, y = _widened(x), _widened(y)
    kinds = (x.type, y.type)
    if any(map(pa.types.is_floating, kinds)):
        x, y = _real(x), _real(y)
    elif all(map(pa.types.is_integer, kinds)) and kinds[0] != kinds[1]:
        x, y = (pc.cast(side, pa.decimal128(20, 0)) for side in (x, y))  # int64 and uint64
    return x, y


def _widened(x: Any) -> Any:
    small = pa.types.is_integer(x.type) and not pa.types.is_uint64(x.type)
    return pc.cast(x, pa.int64()) if small else x


def _real(x: Any) -> Any:
    return pc.cast(x, pa.float64(), safe=False) if pa.types.is_integer(x.type) else x


def _divided(x: Any, y: Any) -> Any:
    x, y = map(_real, _matched(x, y))
    return pc.divide(x, _nonzero(y))


def _remainder(x: Any, y: Any) -> Any:
    """Return the remainder with the sign of x. pyarrow has a function for it only in its newest versions."""
    x, y = _matched(x, y)
    if not (pa.types.is_integer(x.type) or pa.types.is_floating(x.type)):
        raise TypeError(f"% needs integers or floats, not {x.type} and {y.type}")
    if pa.types.is_integer(x.type):
        y = pc.abs(_nonzero(y)) if pa.types.is_signed_integer(y.type) else _nonzero(y)
        return pc.subtract(x, pc.multiply(pc.divide(x, y), y))
    y = _nonzero(y)
    with np.errstate(invalid="ignore"):
        rest = np.fmod(*(_floats(side) for side in (x, y)))
    valid = pc.and_(pc.is_valid(x), pc.is_valid(y))
    values = pa.scalar(float(rest)) if isinstance(valid, pa.Scalar) else pa.array(rest)
    return pc.if_else(valid, values, pa.scalar(None, pa.float64()))


def _nonzero(y: Any) -> Any:
    return pc.if_else(pc.equal(y, 0), pa.scalar(None, y.type), y)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "or": _logical(pc.or_kleene),
    "and": _logical(pc.and_kleene),
    "not": _logical(pc.invert),
    "=": _compared(pc.equal),
    "!=": _compared(pc.not_equal),
    "<": _compared(pc.less),
    "<=": _compared(pc.less_equal),
    ">": _compared(pc.greater),
    ">=": _compared(pc.greater_equal),
    "is null": pc.is_null,
    "is not null": pc.is_valid,
    "+": _compared(pc.add_checked),
    "-": _compared(pc.subtract_checked),
    "*": _compared(pc.multiply_checked),
    "/": _divided,
    "%": _remainder,
    "negate": lambda x: pc.negate_checked(_widened(x)),
}


# --- Columns ------------------------------------------------------------------------------------------------


def _plain(array: Any) -> Any:
    """Undo encodings that pyarrow's kernels do not compute on."""
    if pa.types.is_dictionary(array.type):
        array = pc.cast(array, array.type.value_type)
    return pc.cast(array, pa.large_string()) if pa.types.is_string_view(array.type) else array


def _floats(values: Any) -> Any:
    """Return NumPy floats with NaN for null; NaN never compares as true."""
    if isinstance(values, pa.Scalar):
        return np.float64(values.as_py() if values.is_valid else math.nan)
    return pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


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
