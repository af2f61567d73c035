"""Attribute classes: equalities closed under transitivity, sorted by the streams they occur in."""

from __future__ import annotations

import random
from itertools import product

import pyarrow as pa
import pytest
import streamjoin as sj
from streamjoin.attribute_classes import AttributeClass, attribute_classes
from streamjoin.expressions import ColumnRef
from streamjoin.query import Equality

STREAMS = ("a", "b", "c", "d")


def equality(text: str) -> Equality:
    operator = " <=> " if "<=>" in text else " = "
    left, right = (ColumnRef(*side.split(".")) for side in text.split(operator))
    return Equality(left, right, operator == " <=> ")


def classes_of(*texts: str) -> list[str]:
    return [str(found) for found in attribute_classes(STREAMS, map(equality, texts))]


def test_equality_is_transitive() -> None:
    assert classes_of("a.x = b.y", "b.y = c.z") == ["a.x = b.y = c.z"]


def test_sets_in_the_same_streams_become_one_composite_class() -> None:
    assert classes_of("a.x = b.x", "a.y = b.y") == ["a.x = b.x, a.y = b.y"]


def test_sets_in_different_streams_stay_apart() -> None:
    assert classes_of("a.x = b.x", "b.y = c.y") == ["a.x = b.x", "b.y = c.y"]


def test_one_plain_equality_excludes_null_for_the_whole_set() -> None:
    assert classes_of("a.x <=> b.x", "b.x = c.x") == ["a.x = b.x = c.x"]
    assert classes_of("a.x <=> b.x", "b.x <=> c.x") == ["a.x <=> b.x <=> c.x"]


def test_null_safety_is_decided_set_by_set() -> None:
    assert classes_of("a.x <=> b.x", "a.y = b.y") == ["a.x <=> b.x, a.y = b.y"]


def test_two_columns_of_one_stream_are_both_in_the_key() -> None:
    assert classes_of("a.x = b.y", "a.w = b.y") == ["a.x = b.y, a.w = b.y"]


def keys_agree(classes: tuple[AttributeClass, ...], values: dict[ColumnRef, int]) -> bool:
    return all(
        len({values[ref] for ref in column.refs}) == 1 for found in classes for column in found.columns
    )


@pytest.mark.parametrize("seed", range(300))
def test_keys_agree_exactly_where_all_equalities_hold(seed: int) -> None:
    rng = random.Random(seed)
    columns = [ColumnRef(stream, column) for stream in STREAMS for column in "xy"]
    equalities = []
    for _ in range(rng.randint(1, 5)):
        left, right = sorted(rng.sample(columns, 2))
        if left.stream != right.stream:
            equalities.append(Equality(left, right, False))
    classes = attribute_classes(STREAMS, equalities)
    assert len({found.streams for found in classes}) == len(classes)
    used = sorted({ref for equality in equalities for ref in equality[:2]})
    for numbers in product((0, 1), repeat=len(used)):
        values = dict(zip(used, numbers, strict=True))
        holds = all(values[equality.left] == values[equality.right] for equality in equalities)
        assert keys_agree(classes, values) == holds, f"{equalities}"


def test_a_class_needs_one_type_for_all_its_columns() -> None:
    query = sj.Query(
        [sj.Stream(name, time="t") for name in "abc"],
        ["a.x = b.x", "b.x = c.x"],
        within=sj.within("1 s"),
    )
    schemas = {
        name: pa.schema([("x", type_), ("t", pa.int64())])
        for name, type_ in zip("abc", (pa.int32(), pa.int64(), pa.string()), strict=True)
    }
    message = "a.x = b.x = c.x: expected columns whose values can be equal, got int32, int64 and string"
    with pytest.raises(sj.QueryError, match=message):
        sj.Operator(query, schemas=schemas)
