"""Conditions written as text: read into a tree, evaluated on whole Arrow columns.

    text --tokens--> expression tree --pyarrow.compute--> true / false / null per candidate

Semantics are SQL's: null in, null out; and / or / not in three-valued logic; `/` is a real division and, like
`%`, null where the divisor is zero. Integers are computed in 64 bits. Floats compare as IEEE 754 says: NaN
equals nothing, itself included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import QueryError

Arrays: TypeAlias = Mapping[str, Any]  # "stream.column" -> pyarrow.Array

COLUMN = r"(?P<stream>[^\W\d]\w*)\.(?:(?P<column>[^\W\d]\w*)|`(?P<quoted>[^`]+)`)"


class ColumnRef(NamedTuple):
    """A column of a stream, written `stream.column`."""

    stream: str
    column: str

    def __str__(self) -> str:
        """Return the qualified name, under which `mask` expects the array."""
        return f"{self.stream}.{self.column}"


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


def parse(text: str, streams: Sequence[str]) -> tuple[Expression, tuple[ColumnRef, ...]]:
    """Read a condition over columns of `streams`; return it with the columns it needs."""
    parser = _Parser(text, tuple(streams))
    return parser.parse(), tuple(parser.columns)


def evaluate(expression: Expression, arrays: Arrays) -> Any:
    """Return the value per candidate, as an Arrow array (a scalar if no column is in it)."""
    if isinstance(expression, ColumnRef):
        return plain_values(arrays[str(expression)])
    if isinstance(expression, Constant):
        return pa.scalar(expression.value)
    operands = [evaluate(operand, arrays) for operand in expression.operands]
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
        rest = np.fmod(*(floats(side) for side in (x, y)))
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


def plain_values(array: Any) -> Any:
    """Undo encodings that pyarrow's kernels do not compute on."""
    if pa.types.is_dictionary(array.type):
        array = pc.cast(array, array.type.value_type)
    return pc.cast(array, pa.large_string()) if pa.types.is_string_view(array.type) else array


def floats(values: Any) -> Any:
    """Return NumPy floats with NaN for null; NaN never compares as true."""
    if isinstance(values, pa.Scalar):
        return np.float64(values.as_py() if values.is_valid else math.nan)
    return pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
