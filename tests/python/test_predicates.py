"""Residual predicates: parsed as SQL reads them, evaluated in three-valued logic, refused with a caret."""

import pickle
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streamjoin.errors import DataError, QueryError
from streamjoin.predicates import CallablePredicate, Predicate, band, distance, parse_where

BIG = 2**63 - 1


def mask(text: str, **columns: Any) -> list[bool]:
    """Evaluate on columns given as a_x=[...]."""
    arrays = {
        name.replace("_", ".", 1): values if isinstance(values, pa.Array) else pa.array(values)
        for name, values in columns.items()
    }
    predicate = parse_where(text, ["a", "b"])
    predicate.check({name: array.type for name, array in arrays.items()})
    found = predicate.mask(arrays)
    assert found.dtype == np.bool_
    return [bool(value) for value in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x = b.x", [False, True, False]),
        ("a.x == b.x", [False, True, False]),
        ("a.x != b.x", [True, False, True]),
        ("a.x <> b.x", [True, False, True]),
        ("a.x < b.x", [True, False, False]),
        ("a.x <= b.x", [True, True, False]),
        ("a.x > b.x", [False, False, True]),
        ("a.x >= b.x", [False, True, True]),
        ("a.x + 1 < b.x", [False, False, False]),
        ("a.x - b.x = -1", [True, False, False]),
        ("a.x = b.x - -1 - 1", [False, True, False]),
        ("a.x + 2 * b.x = 6", [False, True, False]),
        ("(a.x + 2) * b.x = 8", [False, True, False]),
        ("10 - 4 - a.x = 3", [False, False, True]),
        ("a.x / 2 = 0.5", [True, False, False]),
        ("a.x % 2 = 1", [True, False, True]),
        ("NOT a.x = 1", [False, True, True]),
        ("not a.x = 1 and b.x = 2", [False, True, True]),
        ("a.x = 1 or a.x = 2 and b.x = 3", [True, False, False]),
        ("(a.x = 1 Or a.x = 2) AND b.x = 2", [True, True, False]),
        ("true and a.x = 1", [True, False, False]),
        ("a.x = 1 or FALSE", [True, False, False]),
        ("a.x<b.x", [True, False, False]),
        ("a.x > +1.5e0", [False, True, True]),
        ("a.`x` = b.x", [False, True, False]),
    ],
)
def test_expressions_group_and_compute_as_in_sql(text: str, expected: list[bool]) -> None:
    assert mask(text, a_x=[1, 2, 3], b_x=[2, 2, 2]) == expected


def test_text_literals_and_quotes() -> None:
    assert mask("a.s = 'it''s' or a.s = 'and'", a_s=["it's", "and", "its", None]) == [
        True,
        True,
        False,
        False,
    ]


NULLABLE = [True, False, None]


def three_valued(operator: str, x: bool | None, y: bool | None) -> bool | None:
    """SQL's truth tables, by trying both values for each null."""
    outcomes = set()
    for p in [True, False] if x is None else [x]:
        for q in [True, False] if y is None else [y]:
            outcomes.add((p and q) if operator == "and" else (p or q))
    return outcomes.pop() if len(outcomes) == 1 else None


@pytest.mark.parametrize("operator", ["and", "or"])
def test_and_or_not_follow_three_valued_logic(operator: str) -> None:
    pairs = [(x, y) for x in NULLABLE for y in NULLABLE]
    expected = [three_valued(operator, x, y) for x, y in pairs]
    xs, ys = (pa.array(side, pa.bool_()) for side in zip(*pairs, strict=True))
    assert mask(f"a.x {operator} b.y", a_x=xs, b_y=ys) == [value is True for value in expected]
    assert mask(f"not (a.x {operator} b.y)", a_x=xs, b_y=ys) == [value is False for value in expected]
    assert mask(f"(a.x {operator} b.y) is null", a_x=xs, b_y=ys) == [value is None for value in expected]


def test_null_never_compares_as_true() -> None:
    for operator in ("=", "!=", "<", ">="):
        assert (
            mask(f"a.x {operator} b.x", a_x=[None, 1], b_x=pa.array([None, None], pa.int64())) == [False] * 2
        )
        assert mask(f"a.x {operator} null", a_x=[1, 2]) == [False, False]
        assert mask(f"not a.x {operator} null", a_x=[1, 2]) == [False, False]


def test_null_literals_work_wherever_a_value_does() -> None:
    assert mask("a.x = 1 or null", a_x=[1, 2]) == [True, False]
    assert mask("not null or a.x = 1", a_x=[1, 2]) == [True, False]
    assert mask("null = null or a.x = 1", a_x=[1, 2]) == [True, False]
    assert mask("(a.x + null) is null", a_x=[1, 2]) == [True, True]
    assert mask("a.x is null", a_x=pa.nulls(2)) == [True, True]


def test_is_null_and_is_not_null() -> None:
    assert mask("a.x is null", a_x=[None, 1]) == [True, False]
    assert mask("a.x IS NOT NULL and a.x > 0", a_x=[None, 1]) == [False, True]


def test_division_by_zero_is_null() -> None:
    assert mask("(a.x / b.x) is null", a_x=[1, 1], b_x=[0, 2]) == [True, False]
    assert mask("(a.x % b.x) is null", a_x=[1, 1], b_x=[0, 2]) == [True, False]
    assert mask("(a.x / b.x) is null", a_x=[1.0, 1.0], b_x=[0.0, 2.0]) == [True, False]
    assert mask("(a.x % b.x) is null", a_x=[1.0, None], b_x=[0.0, 2.0]) == [True, True]


def test_the_remainder_has_the_sign_of_the_dividend_over_the_whole_range() -> None:
    assert mask("a.x % b.x = -1", a_x=[-7, 7, -7], b_x=[2, 2, -2]) == [True, False, True]
    assert mask("a.x % b.x = 0", a_x=[-(2**63), BIG], b_x=[-1, -1]) == [True, True]
    assert mask("a.x % 1.5 = 0.5", a_x=[5.0, 4.5]) == [True, False]


def test_small_integers_do_not_wrap() -> None:
    eight = pa.array([100, -100], pa.int8())
    assert mask("a.x + b.x = 200 or a.x + b.x = -200", a_x=eight, b_x=eight) == [True, True]
    unsigned = pa.array([1], pa.uint32())
    assert mask("a.x - b.x = -4", a_x=unsigned, b_x=pa.array([5], pa.uint32())) == [True]
    assert mask("-a.x = -1", a_x=unsigned) == [True]


def test_integers_of_64_bits_compare_exactly_across_signedness() -> None:
    high = pa.array([2**64 - 1, 5], pa.uint64())
    assert mask("a.x > b.x", a_x=high, b_x=pa.array([-1, -1])) == [True, True]
    assert mask("a.x = 5", a_x=high) == [False, True]


def test_large_integers_compare_with_floats() -> None:
    assert mask("a.x > 1.5", a_x=[2**53 + 1, 1]) == [True, False]


def test_overflow_is_a_data_error_and_null_rows_do_not_overflow() -> None:
    with pytest.raises(DataError, match=r"a\.x \+ 1 > 0"):
        mask("a.x + 1 > 0", a_x=[BIG])
    assert mask("a.x + b.x > 0", a_x=[BIG, 1], b_x=[None, 1]) == [False, True]


def test_strings_in_any_encoding_and_decimals() -> None:
    for values in (
        pa.array(["x", None]).dictionary_encode(),
        pa.array(["x", None], pa.large_string()),
        pa.array(["x", None], pa.string_view()),
    ):
        assert mask("a.s = b.s", a_s=values, b_s=["x", "x"]) == [True, False]
    assert mask("a.d * 2 = 2.2", a_d=[Decimal("1.10"), None]) == [True, False]


def test_nan_compares_as_false() -> None:
    assert mask("a.x = a.x", a_x=[float("nan"), 1.0]) == [False, True]


@pytest.mark.parametrize(
    ("text", "caret", "problem"),
    [
        ("a.x <", 5, "expected a column or a value, got the end"),
        ("a.x < b.x < 3", 10, "got '<'"),
        ("a.x # 3", 4, "unexpected '#'"),
        ("  a.x = ?", 8, "unexpected"),
        ("c.x = 1", 0, r"expected one of the streams \['a', 'b'\], got 'c'"),
        ("x = 1", 0, "stream.column"),
        ("a.x = 'abc", 6, "unexpected"),
        ("a.x is 3", 7, "expected 'null'"),
        ("(a.x = 1", 8, r"expected '\)'"),
        ("a.x = 1)", 7, "expected an operator or the end"),
        ("a.x = 99999999999999999999", 6, "64 bits"),
        ("a.x = 9223372036854775808", 6, "64 bits"),
        ("a.x.y = 1", 3, "unexpected '.'"),
        ("", 0, "got the end"),
    ],
)
def test_a_syntax_error_shows_the_text_with_a_caret(text: str, caret: int, problem: str) -> None:
    with pytest.raises(QueryError, match=problem) as caught:
        parse_where(text, ["a", "b"])
    assert str(caught.value).endswith(f"\n  {text}\n  {' ' * caret}^")


def test_a_condition_needs_a_column_and_a_bounded_depth() -> None:
    with pytest.raises(QueryError, match="condition on columns"):
        parse_where("1 = 1", ["a", "b"])
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_where("(" * 100_000 + "a.x" + ")" * 100_000, ["a", "b"])


@pytest.mark.parametrize(
    ("text", "types", "message"),
    [
        ("a.x = b.s", {"a.x": pa.int64(), "b.s": pa.string()}, "a.x: int64, b.s: string"),
        ("a.x + 1", {"a.x": pa.int64()}, "expected a condition, got a value of type int64"),
        ("a.x", {"a.x": pa.int64()}, "expected a condition"),
        ("not a.x", {"a.x": pa.int64()}, "a.x: int64"),
        ("a.x and a.y", {"a.x": pa.bool_(), "a.y": pa.string()}, "a.y: string"),
        ("a.s % 2 = 1", {"a.s": pa.string()}, "a.s: string"),
        ("a.x = 1", {"a.y": pa.int64()}, r"expected a column a\.x"),
    ],
)
def test_types_that_do_not_fit_are_refused_before_any_data(text: str, types: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_where(text, ["a", "b"]).check(types)


def random_expression(rng: random.Random, depth: int, boolean: bool) -> tuple[str, Callable[[Any], Any]]:
    """Return a random text and the same condition as a function of one row of Python values."""
    if not boolean:
        if depth == 0 or rng.random() < 0.3:
            column = rng.choice(["a.x", "b.x", "b.y"])
            number = rng.randint(0, 4)
            if rng.random() < 0.7:
                return column, lambda row: row[column]
            return str(number), lambda row: number
        sign = rng.choice(["+", "-", "*"])
        (left, f), (right, g) = (random_expression(rng, depth - 1, False) for _ in range(2))

        def compute(row: Any) -> Any:
            x, y = f(row), g(row)
            if x is None or y is None:
                return None
            return x + y if sign == "+" else x - y if sign == "-" else x * y

        return f"({left} {sign} {right})", compute
    if depth == 0 or rng.random() < 0.4:
        comparison = rng.choice(["=", "!=", "<", "<=", ">", ">="])
        (left, f), (right, g) = (random_expression(rng, 2, False) for _ in range(2))

        def compare(row: Any) -> Any:
            x, y = f(row), g(row)
            if x is None or y is None:
                return None
            return {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[comparison]

        return f"{left} {comparison} {right}", compare
    if rng.random() < 0.2:
        text, f = random_expression(rng, depth - 1, True)
        return f"not ({text})", lambda row: None if f(row) is None else not f(row)
    operator = rng.choice(["and", "or"])
    (left, f), (right, g) = (random_expression(rng, depth - 1, True) for _ in range(2))
    return f"({left}) {operator} ({right})", lambda row: three_valued(operator, f(row), g(row))


def test_random_conditions_agree_with_row_by_row_python() -> None:
    seed = 7
    rng = random.Random(seed)
    rows = [{c: rng.choice([None, 0, 1, 2, 3, -1]) for c in ("a.x", "b.x", "b.y")} for _ in range(60)]
    arrays = {name: pa.array([row[name] for row in rows], pa.int64()) for name in rows[0]}
    checked = 0
    while checked < 500:
        text, judge = random_expression(rng, 3, True)
        if "." not in text:
            continue
        found = parse_where(text, ["a", "b"]).mask(arrays).tolist()
        assert found == [judge(row) is True for row in rows], f"seed {seed}: {text}"
        checked += 1


# --- Native forms and functions -----------------------------------------------------------------------------


def test_band_is_exact_over_the_whole_range_of_integers() -> None:
    xs = [0, 5, BIG, -(2**63), None, 3]
    ys = [2, 2, BIG - 2, BIG, 1, None]
    predicate = band("a.x", "b.x", 2)
    expected = [x is not None and y is not None and abs(x - y) <= 2 for x, y in zip(xs, ys, strict=True)]
    assert predicate.mask({"a.x": pa.array(xs), "b.x": pa.array(ys)}).tolist() == expected


def test_band_on_floats_and_decimals_includes_its_end() -> None:
    predicate = band("a.x", "b.x", 0.5)
    floats = {"a.x": pa.array([1.0, 1.0, float("nan"), None]), "b.x": pa.array([1.5, 1.75, 1.0, 1.0])}
    assert predicate.mask(floats).tolist() == [True, False, False, False]
    mixed = {"a.x": pa.array([1, 2]), "b.x": pa.array([1.5, 0.0])}
    assert predicate.mask(mixed).tolist() == [True, False]
    decimals = {"a.x": pa.array([Decimal("1.5"), None]), "b.x": pa.array([Decimal("1.0"), Decimal("1.0")])}
    assert predicate.mask(decimals).tolist() == [True, False]


def test_distance_excludes_its_end() -> None:
    predicate = distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=5)
    arrays = {
        "a.x": pa.array([0, 0, 0, None]),
        "a.y": pa.array([0.0, 0.0, float("nan"), 0.0]),
        "b.x": pa.array([3, 3, 0, 0]),
        "b.y": pa.array([4.0, 3.9, 0.0, 0.0]),
    }
    assert predicate.mask(arrays).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: band("a.x", "a.y", 2), "two different streams"),
        (lambda: band("x", "b.x", 2), "expected a qualified column"),
        (lambda: band("a.x", "b.x", -1), "at least zero"),
        (lambda: band("a.x", "b.x", True), "finite number"),
        (lambda: band("a.x", "b.x", float("nan")), "finite number"),
        (lambda: distance("a.x", ("b.x", "b.y"), less_than=5), "pair of columns"),  # type: ignore[arg-type]
        (lambda: distance(("a.x", "b.y"), ("b.x", "b.y"), less_than=5), "one point of each of two streams"),
        (lambda: distance(("a.x", "a.y"), ("a.x", "a.y"), less_than=5), "one point of each of two streams"),
        (lambda: distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=0), "above zero"),
    ],
)
def test_native_forms_refuse_nonsense(make: Callable[[], object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


def test_native_forms_want_numbers() -> None:
    near = distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=5)
    types = dict.fromkeys(["a.x", "a.y", "b.x", "b.y"], pa.float32())
    near.check(types)
    with pytest.raises(QueryError, match=r"b\.y must hold numbers, got string"):
        near.check(types | {"b.y": pa.string()})
    with pytest.raises(QueryError, match=r"a\.x must hold numbers, got timestamp"):
        band("a.x", "b.x", 1).check({"a.x": pa.timestamp("us"), "b.x": pa.int64()})


def close_prices(columns: dict[str, Any]) -> Any:
    return np.abs(columns["a.p"] - columns["b.p"]) < 1


def test_a_function_sees_all_columns_as_numpy_and_answers_a_mask() -> None:
    seen: dict[str, Any] = {}

    def remember(columns: dict[str, Any]) -> Any:
        seen.update(columns)
        return close_prices(columns)

    schemas = {"a": pa.schema({"p": pa.float64(), "s": pa.string()}), "b": pa.schema({"p": pa.int64()})}
    predicate = CallablePredicate(remember).bind(schemas)
    assert predicate.columns == (("a", "p"), ("a", "s"), ("b", "p"))
    arrays = {"a.p": pa.array([1.5, 9.0]), "a.s": pa.array(["u", None]), "b.p": pa.array([1, None])}
    assert predicate.mask(arrays).tolist() == [True, False]
    assert set(seen) == {"a.p", "a.s", "b.p"}
    assert np.isnan(seen["b.p"][1])


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (lambda c: c["a.p"], r"got float64 of shape \(2,\)"),
        (lambda c: np.array([True]), r"got bool of shape \(1,\)"),
        (lambda c: True, r"got bool of shape \(\)"),
        (lambda c: None, "got object"),
    ],
)
def test_a_wrong_answer_of_a_function_is_a_data_error(answer: Callable[[Any], Any], came: str) -> None:
    with pytest.raises(DataError, match=came):
        CallablePredicate(answer).mask({"a.p": pa.array([1.0, 2.0])})


@pytest.mark.parametrize(
    "predicate",
    [
        parse_where("a.x < b.x + 3", ["a", "b"]),
        band("a.x", "b.x", 2),
        distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=5),
        CallablePredicate(close_prices),
    ],
)
def test_predicates_survive_pickling(predicate: Predicate) -> None:
    again = pickle.loads(pickle.dumps(predicate))
    assert again == predicate
    assert hash(again) == hash(predicate)
    assert str(again) == str(predicate)
