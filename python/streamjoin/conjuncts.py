"""A residual predicate taken apart: what can be checked early, and what the native core checks itself.

    "a.x < b.x + 3 and b.y = c.y"     two conjuncts: one as soon as a and b are bound, one with b and c

A conjunct of one of these shapes has a native form, where the columns hold integers of at most 64 bits with
sign or floats: `v1 op v2 + offset`, `|v1 - v2| <= width`, and the distance of two points. It says what
pyarrow would, and where pyarrow gives up (an integer overflow) it is still exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from streamjoin.expressions import Call, ColumnRef, Constant, Expression
from streamjoin.predicates import Band, Distance, Predicate, TextPredicate

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_LARGEST = 2**63 - 1


class NativeForm(NamedTuple):
    """A check the core has built in: its name, its columns and its further arguments."""

    name: str  # "compare", "band" or "distance"
    columns: tuple[ColumnRef, ...]
    operator: str | None  # of "compare"
    number: float  # the offset, the width, the radius; an integer where integers are computed


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the predicates that must all hold, split at every `and` that stands outside of the others.

    >>> from streamjoin.predicates import parse_where
    >>> for part in conjuncts(parse_where("(a.x < b.x and not b.y = c.y) and c.z is null", "abc")):
    ...     print(part)
    a.x < b.x
    not b.y = c.y
    c.z is null
    """
    if not isinstance(predicate, TextPredicate):
        return (predicate,)
    parts = list(_split(predicate.root))
    constant = [part for part in parts if not list(_columns(part))]
    parts = [part for part in parts if part not in constant]
    for part in constant:  # it names no stream: let it ride with one that does
        parts[0] = Call("and", (parts[0], part))
    return tuple(TextPredicate(shown(part), part, tuple(dict.fromkeys(_columns(part)))) for part in parts)


def native_form(predicate: Predicate, types: Mapping[str, Any]) -> NativeForm | None:
    """Return the native form of a conjunct over columns of these Arrow types; None if it has none."""
    if isinstance(predicate, Distance):  # both sides compute it in floats, whatever the columns hold
        exact = float(predicate.less_than) ** 2 == predicate.less_than**2
        refs = (*predicate.left, *predicate.right)
        return NativeForm("distance", refs, None, float(predicate.less_than)) if exact else None
    kinds = {_kind(types[f"{stream}.{column}"]) for stream, column in predicate.columns}
    if None in kinds:
        return None
    if isinstance(predicate, Band):
        whole = min(math.floor(predicate.width), _LARGEST)
        width = whole if kinds == {"integer"} else float(predicate.width)
        return NativeForm("band", (predicate.left, predicate.right), None, width)
    if not isinstance(predicate, TextPredicate) or not isinstance(predicate.root, Call):
        return None
    operator, operands = predicate.root
    if operator not in _MIRRORED:
        return None
    left, right = (_shifted(operand) for operand in operands)
    if left is None or right is None or left[0].stream == right[0].stream:
        return None
    integral = kinds == {"integer"} and isinstance(left[1], int) and isinstance(right[1], int)
    if left[1] != 0 and right[1] != 0 and not integral:
        return None  # two roundings: not what one addition gives
    if not integral and left[1] != 0:
        left, right, operator = right, left, _MIRRORED[operator]
    offset = right[1] - left[1] if integral else float(right[1])
    if abs(offset) > _LARGEST:
        return None
    return NativeForm("compare", (left[0], right[0]), operator, offset)


def shown(expression: Expression) -> str:
    """Write an expression as text again."""
    if isinstance(expression, ColumnRef):
        name = expression.column
        return str(expression) if name.isidentifier() else f"{expression.stream}.`{name}`"
    if isinstance(expression, Constant):
        return _literal(expression.value)
    operator, logical = expression.operator, expression.operator in ("and", "or", "not")
    operands = [
        f"({shown(operand)})" if _needs_brackets(operand, logical=logical) else shown(operand)
        for operand in expression.operands
    ]
    if operator in ("is null", "is not null"):
        return f"{operands[0]} {operator}"
    if len(operands) == 1:
        return f"not {operands[0]}" if operator == "not" else f"-{operands[0]}"
    return f" {operator} ".join(operands)


def _needs_brackets(expression: Expression, *, logical: bool) -> bool:
    if not isinstance(expression, Call):
        return False
    return expression.operator in ("and", "or") if logical else expression.operator != "negate"


def _literal(value: bool | float | str | None) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "null" if value is None else str(value).lower()


def _split(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Call) and expression.operator == "and":
        for operand in expression.operands:
            yield from _split(operand)
    else:
        yield expression


def _columns(expression: Expression) -> Iterator[ColumnRef]:
    if isinstance(expression, ColumnRef):
        yield expression
    elif isinstance(expression, Call):
        for operand in expression.operands:
            yield from _columns(operand)


def _shifted(expression: Expression) -> tuple[ColumnRef, float] | None:
    """Read `column`, `column + number`, `number + column` or `column - number`."""
    if isinstance(expression, ColumnRef):
        return expression, 0
    if not isinstance(expression, Call) or expression.operator not in ("+", "-"):
        return None
    operands: Sequence[Expression] = expression.operands
    if expression.operator == "+" and isinstance(operands[1], ColumnRef):
        operands = operands[::-1]
    column, number = operands[0], _number(operands[1])
    if number is None or not isinstance(column, ColumnRef):
        return None
    return column, -number if expression.operator == "-" else number


def _number(expression: Expression) -> float | None:
    if isinstance(expression, Call) and expression.operator == "negate":
        number = _number(expression.operands[0])
        return None if number is None else -number
    value = expression.value if isinstance(expression, Constant) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _kind(type_: Any) -> str | None:
    """Say how a column computes, if it does so in 64-bit integers or floats."""
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return "real"
    return "integer" if pa.types.is_integer(type_) and not pa.types.is_uint64(type_) else None
