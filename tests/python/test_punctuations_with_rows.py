"""Punctuations that come with rows give what one call for each would give, in the same order."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import streamjoin as sj
from auction_bids import counters

KEYS: dict[str, list[tuple[str, pa.DataType]]] = {
    "integers": [("a", pa.int64())],
    "strings": [("a", pa.string())],
    "both": [("a", pa.int32()), ("b", pa.string())],
}


def make_query(rng: random.Random, columns: list[str]) -> sj.Query:
    where = rng.choice([None, None, "l.p < r.p + 2"])
    return sj.Query(
        [
            sj.Stream("l", time="t", window="8 us", lifespan=rng.choice([None, "9 us"])),
            sj.Stream("r", time="t", window="8 us", unique=columns if rng.random() < 0.3 else None),
        ],
        [f"l.{column} = r.{column}" for column in columns],
        how=rng.choice(["inner", "left", "full", "left_semi", "left_anti"]),
        where=where,
        late=rng.choice(["drop", "insert"]),
        on_violation=rng.choice(["drop", "keep"]),
    )


def one_by_one(rows: list[dict[str, Any]], promised: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows and promises in order: a promise behind the rows that come before the clock is past its time."""
    waiting = sorted((p for p in promised if p["t"] is not None), key=lambda p: p["t"])
    calls, clock = [], -1
    for row in rows:
        clock = max(clock, row["t"])
        while waiting and waiting[0]["t"] < clock:
            calls.append(waiting.pop(0))
        calls.append(row)
    return [*calls, *waiting, *(p for p in promised if p["t"] is None)]


def table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.mark.parametrize("kind", KEYS)
def test_they_are_calls_of_their_own(kind: str) -> None:
    keys = KEYS[kind]
    names = [name for name, _ in keys]
    schema = pa.schema([("id", pa.int64()), *keys, ("t", pa.int64()), ("p", pa.int64())])
    promised_schema = pa.schema([*keys, ("t", pa.int64())])
    for seed in range(40):
        rng = random.Random(f"{kind} {seed}")
        query = make_query(rng, names)
        schemas = {"l": schema, "r": schema}
        together, apart = (sj.Operator(query, schemas=schemas) for _ in range(2))
        clock = {"l": 0, "r": 0}

        def value(name: str, step: int, rng: random.Random = rng, kind: str = kind) -> Any:
            number = step // 4 + rng.randrange(4)
            text = kind == "strings" or name == "b"
            return None if rng.random() < 0.05 else f"key {number % 7}" if text else number

        for step in range(25):
            name = rng.choice("lr")
            rows, promised = [], []
            for at in range(rng.randrange(6)):
                clock[name] += rng.randrange(3)
                late = rng.randrange(4) if rng.random() < 0.2 else 0
                row = {"id": 100 * step + at, "t": clock[name] - late, "p": rng.randrange(5)}
                rows.append(row | {column: value(column, step) for column in names})
                while rng.random() < 0.3:
                    promised.append({column: value(column, step) for column in names} | {"t": clock[name]})
            if rng.random() < 0.3:
                promised.append({column: value(column, step) for column in names} | {"t": None})
            given: Any = table(promised_schema, rng.sample(promised, len(promised)))
            if len({record["t"] for record in promised}) < len(promised):
                given = table(promised_schema, promised)  # those of one time keep their order
            out = together.push(name, table(schema, rows), punctuations=given)
            outputs = [
                apart.push(name, table(schema, [call]))
                if "id" in call
                else apart.punctuate(name, {column: call[column] for column in names}, time=call["t"])
                for call in one_by_one(rows, promised)
            ]
            for part in ("rows", "punctuations", "late", "violations"):
                expected = [record for other in outputs for record in getattr(other, part).to_pylist()]
                found = getattr(out, part).to_pylist()
                assert found == expected, f"{kind}, seed {seed}, step {step}: {part}"
            together.validate()
            ours, theirs = together.stats(), apart.stats()
            for counter in ("punctuations_in", "purged", "invalidated", "state_rows", "state_keys"):
                assert getattr(ours, counter) == getattr(theirs, counter), f"{kind}, seed {seed}: {counter}"
            assert ours.dictionary_entries == theirs.dictionary_entries


def auctions(**options: Any) -> sj.Operator:
    schema = pa.schema([("item", pa.int64()), ("t", pa.int64())])
    streams = [sj.Stream("auction", time="t"), sj.Stream("bid", time="t", punctuations=["item"])]
    query = sj.Query(
        streams, ["auction.item = bid.item"], within=[sj.within("1 s")], require_safe=False, **options
    )
    return sj.Operator(query, schemas={"auction": schema, "bid": schema})


ROWS = pa.table({"item": [7, 8, 7], "t": [1, 2, 3]})


def test_without_times_they_stand_behind_the_rows() -> None:
    op = auctions()
    assert op.push("bid", ROWS, punctuations=pa.table({"item": [7]})).violations.num_rows == 0
    assert op.push("bid", ROWS.slice(2), punctuations=None).violations.num_rows == 1


def test_a_data_frame_may_say_them() -> None:
    op = auctions()
    out = op.push("bid", ROWS, punctuations=pd.DataFrame({"t": [2], "item": [7]}))
    assert out.violations.column("bid_t").to_pylist() == [3]


def test_they_may_come_without_rows() -> None:
    op = auctions()
    op.push("auction", ROWS)
    op.push("bid", ROWS.slice(0, 0), punctuations=pa.table({"item": [7, 8], "t": [9, 10]}))
    assert op.stats().state_rows == {"auction": 0, "bid": 0}


@pytest.mark.parametrize(
    ("punctuations", "words"),
    [
        (pa.table({"itm": [7]}), ("bid", "punctuations", "item", "itm")),
        (pa.table({"item": ["7"]}), ("bid", "punctuations", "item", "int64", "string")),
        (pa.table({"item": [7], "x": [1]}), ("bid", "punctuations", "x")),
        (pa.table({"item": [7], "t": [2**63 - 1]}), ("bid", "punctuations", "t", "64-bit")),
        (7, ("bid", "punctuations", "7")),
    ],
    ids=["another column", "another type", "one more column", "no time", "no table"],
)
def test_bad_ones_are_refused_before_anything_changes(punctuations: Any, words: tuple[str, ...]) -> None:
    op = auctions()
    before = counters(op)
    with pytest.raises(sj.DataError) as raised:
        op.push("bid", ROWS, punctuations=punctuations)
    for word in words:
        assert word in str(raised.value)
    assert counters(op) == before


def test_a_batch_that_is_refused_takes_them_along() -> None:
    op = auctions(on_violation="error")
    op.push("auction", ROWS)
    before = counters(op)
    with pytest.raises(sj.PunctuationViolation, match="row 2"):
        op.push("bid", ROWS, punctuations=pa.table({"item": [7], "t": [2]}))
    assert counters(op) == before


def test_streams_out_of_order_take_them_in_calls_of_their_own() -> None:
    op = auctions(disorder=sj.Slack("1 ms"))
    with pytest.raises(sj.DataError, match="calls of their own"):
        op.push("bid", ROWS, punctuations=pa.table({"item": [7]}))
