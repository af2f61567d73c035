"""Patterns of a punctuation as the native core takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pyarrow as pa

from streamjoin.errors import DataError
from streamjoin.inputs import Inputs
from streamjoin.keys import KeyAttribute
from streamjoin.patterns import ANY, EMPTY, Range

NativePattern = list[tuple[Any, ...] | None]


def native_patterns(
    inputs: Inputs,
    place: int,
    columns: Sequence[str],
    attributes: Sequence[KeyAttribute],
    pattern: Mapping[str, Any],
) -> list[NativePattern]:
    """Return one native pattern per combination of listed values, with one part per column of the key."""
    name = inputs.names[place]
    for column in pattern:
        if column not in columns:
            raise DataError(
                f"stream {name!r}, punctuation: "
                f"expected patterns of the join attributes {list(columns)}, got {column!r}"
            )
    choices: list[list[tuple[Any, ...] | None]] = []
    for attribute, column in zip(attributes, columns, strict=True):
        given = pattern.get(column, ANY)
        type_ = inputs.type_of(name, column)
        what = f"stream {name!r}, punctuation of column {column!r}"
        values = given if isinstance(given, (list, tuple, set, frozenset)) else [given]
        patterns = _native_patterns(attribute, [v for v in values if v is not EMPTY], type_, what)
        # A list names each value once; NaN is one value.
        choices.append(list({repr(p): p for p in patterns}.values()))
    return [list(combination) for combination in product(*choices)]


def _native_patterns(
    attribute: KeyAttribute, values: list[Any], type_: pa.DataType, what: str
) -> list[tuple[Any, ...] | None]:
    if not any(value is ANY or isinstance(value, Range) for value in values):
        return [(value,) for value in attribute.native_scalars(values, type_, what=what)]
    return [_native_pattern(attribute, value, type_, what) for value in values]


def _native_pattern(
    attribute: KeyAttribute, value: Any, type_: pa.DataType, what: str
) -> tuple[Any, ...] | None:
    if value is ANY:
        return None
    if not isinstance(value, Range):
        return (attribute.native_scalar(value, type_, what=what),)
    ends = (value.low, value.high)
    return tuple(None if end is None else attribute.native_scalar(end, type_, what=what) for end in ends)
