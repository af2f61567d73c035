"""Conjuncts: a condition taken apart means what it meant; native forms are found where they are exact."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streamjoin.conjuncts import NativeForm, conjuncts, native_form, shown
from streamjoin.expressions import ColumnRef
from streamjoin.predicates import CallablePredicate, band, distance, parse_where

STREAMS = ("a", "b", "c")
INT64, INT32, FLOAT32, FLOAT64 = pa.int64(), pa.int32(), pa.float32(), pa.float64()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.x < b.x", ["a.x < b.x"]),
        ("a.x < b.x and b.x < c.x", ["a.x < b.x", "b.x < c.x"]),
        ("(a.x < b.x and b.x < c.x) and a.x = 1", ["a.x < b.x", "b.x < c.x", "a.x = 1"]),
        ("a.x < b.x or b.x < c.x", ["a.x < b.x or b.x < c.x"]),
        ("not (a.x = 1 and b.x = 2)", ["not (a.x = 1 and b.x = 2)"]),
        ("a.x = 'it''s' and a.`odd name` is not null", ["a.x = 'it''s'", "a.`odd name` is not null"]),
        ("1 = 1 and a.x < b.x and true", ["(a.x < b.x and 1 = 1) and true"]),
    ],
)
def test_a_condition_is_split_at_its_outermost_ands(text: str, parts: list[str]) -> None:
    assert [str(part) for part in conjuncts(parse_where(text, STREAMS))] == parts


def test_each_part_names_only_its_own_columns() -> None:
    first, second = conjuncts(parse_where("a.x < b.x and c.y is null", STREAMS))
    assert first.columns == (("a", "x"), ("b", "x"))
    assert second.columns == (("c", "y"),)


def test_what_is_no_text_stays_whole() -> None:
    for predicate in (band("a.x", "b.x", 1), CallablePredicate(lambda columns: columns["a.x"] > 0)):
        assert conjuncts(predicate) == (predicate,)


def random_condition(rng: random.Random, depth: int) -> str:
    def value(levels: int) -> str:
        if levels == 0 or rng.random() < 0.3:
            return rng.choice(("a.x", "b.x", "c.y", "1", "-2", "2.5", "null"))
        if rng.random() < 0.2:
            return f"-({value(levels - 1)})"
        return f"({value(levels - 1)} {rng.choice('+-*/')} {value(levels - 1)})"

    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.2:
            return f"{value(1)} is {rng.choice(('', 'not '))}null"
        return f"{value(2)} {rng.choice(('<', '<=', '>', '>=', '=', '!='))} {value(2)}"
    if rng.random() < 0.2:
        return f"not ({random_condition(rng, depth - 1)})"
    sides = (random_condition(rng, depth - 1) for _ in range(2))
    return "(" + rng.choice((" and ", " or ", " and ")).join(sides) + ")"


def test_conjuncts_hold_together_exactly_where_the_condition_does() -> None:
    columns = {
        "a.x": pa.array([1, 2, None, -2, 0, 3, 1]),
        "b.x": pa.array([2, None, 1, 0, 0, -1, 1]),
        "c.y": pa.array([0.5, 1.0, 2.0, None, 0.0, 4.0, 1.0]),
    }
    split = 0
    for seed in range(1000):
        text = random_condition(random.Random(seed), 3)
        if not any(name in text for name in columns):
            continue
        whole = parse_where(text, STREAMS)
        parts = conjuncts(whole)
        split += len(parts) > 1
        together = np.logical_and.reduce([part.mask(columns) for part in parts])
        assert (together == whole.mask(columns)).all(), f"seed {seed}: {text}"
        again = parse_where(shown(whole.root), STREAMS)
        assert again.root == whole.root, f"seed {seed}: {text} is shown as {shown(whole.root)}"
    assert split > 100


def form_of(text: str, **types: Any) -> NativeForm | None:
    return native_form(
        parse_where(text, STREAMS), {name.replace("_", "."): type_ for name, type_ in types.items()}
    )


A, B = ColumnRef("a", "x"), ColumnRef("b", "x")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a.x < b.x", ((A, B), "<", 0)),
        ("a.x < b.x + 3", ((A, B), "<", 3)),
        ("a.x >= 3 + b.x", ((A, B), ">=", 3)),
        ("a.x = b.x - 3", ((A, B), "=", -3)),
        ("a.x != b.x + -3", ((A, B), "!=", -3)),
        ("a.x + 2 <= b.x", ((A, B), "<=", -2)),
        ("a.x - 2 > b.x + 5", ((A, B), ">", 7)),
    ],
)
def test_a_comparison_of_integers_with_an_offset_is_native(text: str, form: tuple[Any, ...]) -> None:
    for types in ((INT64, INT64), (INT32, INT64), (pa.uint32(), pa.int8())):
        found = form_of(text, a_x=types[0], b_x=types[1])
        assert found == NativeForm("compare", *form)
        assert isinstance(found.number, int)


def test_a_comparison_of_floats_keeps_the_one_addition_that_was_written() -> None:
    assert form_of("a.x < b.x + 3", a_x=FLOAT64, b_x=FLOAT32) == NativeForm("compare", (A, B), "<", 3.0)
    assert form_of("a.x + 0.1 < b.x", a_x=FLOAT64, b_x=FLOAT64) == NativeForm("compare", (B, A), ">", 0.1)
    assert form_of("a.x + 0.1 < b.x - 0.2", a_x=FLOAT64, b_x=FLOAT64) is None
    assert form_of("a.x + 0.5 < b.x - 1", a_x=INT64, b_x=INT64) is None


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("a.x < b.x", pa.string()),
        ("a.x < b.x", pa.uint64()),
        ("a.x < b.x", pa.decimal128(10, 2)),
        ("a.x < b.x", pa.timestamp("us")),
        ("a.x < a.x + 1", INT64),
        ("a.x < 3", INT64),
        ("a.x * 2 < b.x", INT64),
        ("3 - a.x < b.x", INT64),
        ("a.x < b.x or a.x = 1", INT64),
        ("a.x < b.x + null", INT64),
        ("a.x - 9223372036854775807 < b.x + 9223372036854775807", INT64),
    ],
)
def test_anything_else_is_left_to_arrow(text: str, type_: Any) -> None:
    assert form_of(text, a_x=type_, b_x=type_) is None


def test_band_and_distance_are_native() -> None:
    numbers = {"a.x": INT64, "b.x": INT32}
    assert native_form(band("a.x", "b.x", 2.7), numbers) == NativeForm("band", (A, B), None, 2)
    reals = {"a.x": INT64, "b.x": FLOAT64}
    assert native_form(band("a.x", "b.x", 2.7), reals) == NativeForm("band", (A, B), None, 2.7)
    assert native_form(band("a.x", "b.x", 2), {"a.x": INT64, "b.x": pa.uint64()}) is None
    near = distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=5)
    found = native_form(near, dict.fromkeys(("a.x", "a.y", "b.x", "b.y"), pa.decimal128(9, 1)))
    assert found is not None
    assert (found.name, found.number) == ("distance", 5.0)
