"""Every kind of bad input is a clear error and leaves the operator as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from auction_bids import auction, bid, counters, make, pairs, schema, table

GOOD = table((12, 7, 6))
Bad = tuple[str, Callable[[Any], Any], str, tuple[str, ...]]

BAD_CALLS: list[Bad] = [
    ("missing column", lambda op: op.push("bid", GOOD.drop_columns(["item"])), "DataError", ("bid", "item")),
    (
        "misnamed column",
        lambda op: op.push("bid", GOOD.rename_columns(["id", "itm", "at", "x"])),
        "DataError",
        ("bid",),
    ),
    (
        "extra column",
        lambda op: op.push("bid", GOOD.append_column("zip", GOOD["x"])),
        "DataError",
        ("bid", "zip"),
    ),
    (
        "changed type of a key",
        lambda op: op.push("bid", table((12, "7", 6), key=pa.string())),
        "DataError",
        ("bid", "item", "int64", "string"),
    ),
    (
        "changed width of a key",
        lambda op: op.push("bid", table((12, 7, 6), key=pa.int32())),
        "DataError",
        ("bid", "item", "int64", "int32"),
    ),
    (
        "changed type of the time",
        lambda op: op.push("bid", table((12, 7, 6), time=pa.timestamp("us"))),
        "DataError",
        ("bid", "at", "int64", "timestamp"),
    ),
    (
        "null time",
        lambda op: op.push("bid", table((12, 7, 6), (13, 7, None))),
        "DataError",
        ("bid", "at", "null"),
    ),
    (
        "smallest 64-bit time",
        lambda op: op.push("bid", table((12, 7, -(2**63)))),
        "DataError",
        ("bid", "at", str(-(2**63))),
    ),
    (
        "largest 64-bit time",
        lambda op: op.push("bid", table((12, 7, 6), (13, 7, 2**63 - 1))),
        "DataError",
        ("bid", "at", str(2**63 - 1)),
    ),
    ("no Arrow data", lambda op: op.push("bid", 42), "DataError", ("bid", "42")),
    (
        "unknown stream in push",
        lambda op: op.push("bidz", GOOD),
        "StreamJoinError",
        ("bidz", "auction", "bid"),
    ),
    (
        "unknown stream in punctuate",
        lambda op: op.punctuate("bidz", {"item": 7}),
        "StreamJoinError",
        ("bidz",),
    ),
    ("unknown stream in advance", lambda op: op.advance("bidz", 7), "StreamJoinError", ("bidz",)),
    (
        "punctuation on an unknown column",
        lambda op: op.punctuate("bid", {"itm": 7}, time=6),
        "DataError",
        ("bid", "itm", "item"),
    ),
    (
        "punctuation of another type",
        lambda op: op.punctuate("bid", {"item": "seven"}, time=6),
        "DataError",
        ("bid", "item", "int64", "seven"),
    ),
    (
        "list with a wrong value",
        lambda op: op.punctuate("bid", {"item": [7, "seven"]}, time=6),
        "DataError",
        ("bid", "item", "seven"),
    ),
    (
        "range of another type",
        lambda op: op.punctuate("bid", {"item": sj.Range("a", "b")}, time=6),
        "DataError",
        ("bid", "item", "a"),
    ),
    (
        "integer beyond the column",
        lambda op: op.punctuate("bid", {"item": 2**80}, time=6),
        "DataError",
        ("bid", "item", str(2**80)),
    ),
    (
        "punctuation at the largest time",
        lambda op: op.punctuate("bid", {"item": 7}, time=2**63 - 1),
        "DataError",
        ("bid",),
    ),
    (
        "punctuation at no time",
        lambda op: op.punctuate("bid", {"item": 7}, time="noon"),
        "DataError",
        ("bid", "noon"),
    ),
    ("heartbeat at the largest time", lambda op: op.advance("bid", 2**63 - 1), "DataError", ("bid",)),
    ("heartbeat at the smallest time", lambda op: op.advance("bid", -(2**63)), "DataError", ("bid",)),
    ("heartbeat beyond 64 bits", lambda op: op.advance("bid", 2**80), "DataError", ("bid",)),
    ("heartbeat at no time", lambda op: op.advance("bid", "noon"), "DataError", ("bid", "noon")),
]


@pytest.mark.parametrize(
    ("call", "error", "words"), [bad[1:] for bad in BAD_CALLS], ids=[bad[0] for bad in BAD_CALLS]
)
def test_bad_input_is_a_clear_error_and_leaves_the_operator_as_it_was(
    call: Callable[[Any], Any], error: str, words: tuple[str, ...]
) -> None:
    op = make()
    assert auction(op, (1, 7, 0)) == []
    assert bid(op, (11, 7, 5)) == [(1, 11)]
    before = counters(op)
    with pytest.raises(getattr(sj, error)) as raised:
        call(op)
    for word in words:
        assert word in str(raised.value)
    assert counters(op) == before
    op.validate()
    assert pairs(op.push("bid", GOOD)) == [(1, 12)]
    assert auction(op, (2, 7, 6)) == [(2, 11), (2, 12)]
    assert pairs(op.finish()) == []


@pytest.mark.parametrize("use", ["push", "punctuate", "advance", "finish"])
def test_use_after_finish_is_an_error(use: str) -> None:
    op = make()
    assert auction(op, (1, 7, 0)) == []
    op.finish()
    before = counters(op)
    arguments = {
        "push": ("bid", GOOD),
        "punctuate": ("bid", {"item": 7}),
        "advance": ("bid", 9),
        "finish": (),
    }
    with pytest.raises(sj.StreamJoinError, match="finish"):
        getattr(op, use)(*arguments[use])
    assert counters(op) == before


@pytest.mark.parametrize(
    ("schemas", "word"),
    [
        ({"auction": schema()}, "bid"),
        ({"auction": schema(), "bid": schema().remove(1)}, "item"),
        ({"auction": schema(), "bid": schema().remove(2)}, "at"),
        ({"auction": schema(), "bid": schema(key=pa.string())}, "item"),
        ({"auction": schema(), "bid": schema(time=pa.string())}, "at"),
    ],
    ids=["no schema", "no key column", "no time column", "keys of two types", "time that is no time"],
)
def test_schemas_that_do_not_fit_the_query_are_refused(schemas: dict[str, pa.Schema], word: str) -> None:
    query = sj.Query(
        [sj.Stream("auction", time="at"), sj.Stream("bid", time="at")],
        ["auction.item = bid.item"],
        within=[sj.within("5 s")],
    )
    with pytest.raises(sj.StreamJoinError, match=word):
        sj.Operator(query, schemas=schemas)
