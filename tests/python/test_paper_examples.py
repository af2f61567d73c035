"""The examples and figures of the VLDB'06 paper at run time; their graphs are in test_safety_graphs.py."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import streamjoin as sj

HOURS = 3_600_000_000


class Run:
    """An operator whose streams have integer columns."""

    def __init__(self, columns: dict[str, str], on: list[str], schemes: dict[str, Any], **lives: str) -> None:
        self.schemas = {
            name: pa.schema([*((c, pa.int64()) for c in found), ("t", pa.int64())])
            for name, found in columns.items()
        }
        streams = [
            sj.Stream(name, time="t", punctuations=schemes.get(name, ()), lifespan=lives.get(name))
            for name in columns
        ]
        self.query = sj.Query(streams, on, require_safe=False)
        self.op = sj.Operator(self.query, schemas=self.schemas, plan="single")

    def row(self, stream: str, *values: int, t: int = 1) -> sj.Output:
        names = self.schemas[stream].names
        return self.op.push(
            stream, pa.table(dict(zip(names, [[v] for v in (*values, t)], strict=True)), self.schemas[stream])
        )

    def live(self, stream: str) -> int:
        return self.op.live_rows()[stream]


RING = {"S1": "AB", "S2": "BC", "S3": "CA"}
CHAIN = ["S1.B = S2.B", "S2.C = S3.C"]
CYCLE = [*CHAIN, "S3.A = S1.A"]


def test_example_1_an_item_and_its_bids_leave_when_the_auction_closes() -> None:
    item = sj.Stream("item", time="t", unique="itemid")
    bid = sj.Stream("bid", time="t", punctuations=["itemid"])
    schema = pa.schema([("itemid", pa.int64()), ("t", pa.int64())])
    op = sj.Operator(
        sj.Query([item, bid], ["item.itemid = bid.itemid"]), schemas={"item": schema, "bid": schema}
    )
    op.push("bid", pa.table({"itemid": [1, 1], "t": [1, 2]}, schema=schema))
    assert op.push("item", pa.table({"itemid": [1, 2], "t": [3, 3]}, schema=schema)).rows.num_rows == 2
    assert op.live_rows() == {"item": 2, "bid": 0}  # each item comes once: its bids need not stay
    said = op.punctuate("bid", {"itemid": 1}).punctuations
    assert said.column("item_itemid").to_pylist() == [1]  # so that a group by item may give out its sum
    assert op.live_rows() == {"item": 1, "bid": 0}


def test_example_2_figure_3_a_tuple_needs_the_promises_of_all_its_partners_down_the_chain() -> None:
    run = Run(RING, CHAIN, {"S2": ["B"], "S3": ["C"]})
    run.row("S1", 10, 20)  # (a1, b1)
    for c in (31, 32):
        run.row("S2", 20, c)  # (b1, c1), (b1, c2)
    run.op.punctuate("S2", {"B": 20})
    run.op.punctuate("S3", {"C": 31})
    assert run.live("S1") == 1
    run.op.punctuate("S3", {"C": 32})
    assert run.live("S1") == 0


def test_figure_3_with_a_third_predicate_there_are_two_ways() -> None:
    for ways in (({"B": 20}, {"C": 31}), ({"C": 31}, {"A": 10})):
        run = Run(RING, CYCLE, {"S2": ["B", "C"], "S3": ["C", "A"]})
        run.row("S1", 10, 20)
        if ways[0] == {"B": 20}:
            run.row("S2", 20, 31)
            run.op.punctuate("S2", ways[0])
            run.op.punctuate("S3", ways[1])
        else:  # first S3 on A, then S2 on the C of its rows
            run.row("S3", 31, 10)
            run.op.punctuate("S3", ways[1])
            run.op.punctuate("S2", ways[0])
        assert run.live("S1") == 0


def test_figure_4_a_path_of_any_length_is_followed_step_by_step() -> None:
    names = [f"S{i}" for i in range(6)]
    on = [f"S{i}.b = S{i + 1}.a" for i in range(5)]
    run = Run(dict.fromkeys(names, "ab"), on, {name: ["a"] for name in names[1:]})
    for i, name in enumerate(names[:-1]):
        run.row(name, 100 + i, 101 + i)
    for i in range(1, 6):
        assert run.live("S0") == 1
        run.op.punctuate(f"S{i}", {"a": 100 + i})
    assert run.live("S0") == 0


def test_example_3_figure_5_the_ring_purges_every_stream() -> None:
    run = Run(RING, CYCLE, {"S1": ["B"], "S2": ["C"], "S3": ["A"]})
    assert run.query.check().safe
    run.row("S1", 10, 20)
    run.row("S2", 20, 30)
    run.row("S3", 30, 10)
    for name, pattern in (("S3", {"A": 10}), ("S2", {"C": 30}), ("S1", {"B": 20})):
        run.op.punctuate(name, pattern)
    assert run.op.live_rows() == {"S1": 0, "S2": 0, "S3": 0}


def test_figure_6_a_stream_that_cannot_be_reached_keeps_the_rows_of_the_others() -> None:
    run = Run(RING, CHAIN, {"S1": ["B"], "S2": ["B"]})  # S3 promises nothing
    report = run.query.check()
    assert report.purgeable == {"S1": False, "S2": False, "S3": False}
    assert "may join those of S1, S2, and 'S3' declares no punctuations" in report.reasons[0]
    run.row("S1", 10, 20)
    run.row("S2", 20, 30)
    run.op.punctuate("S1", {"B": 20})
    run.op.punctuate("S2", {"B": 20})
    assert run.row("S3", 30, 0).rows.num_rows == 1  # the witness of the proof: it was right to wait


def test_figure_7_a_binary_join_below_would_keep_what_the_single_join_purges() -> None:
    run = Run(RING, CYCLE, {"S1": ["B"], "S2": ["C"], "S3": ["A"]})
    assert [str(plan.root) for plan in run.query.plans()] == ["(S1 S2 S3)"]
    assert run.query.chosen_plan.why == "the only safe plan"


def test_example_4_figure_8_a_scheme_of_two_columns_needs_every_combination() -> None:
    run = Run(RING, CYCLE, {"S1": ["B"], "S2": ["B", "C"], "S3": [("A", "C")]})
    run.row("S1", 10, 20)
    for c in (31, 32):
        run.row("S2", 20, c)
    run.op.punctuate("S2", {"B": 20})
    run.op.punctuate("S3", {"A": 10, "C": 31})
    assert run.live("S1") == 1
    run.op.punctuate("S3", {"A": 10, "C": 32})
    assert run.live("S1") == 0


def test_section_5_1_a_promise_that_is_answered_is_forgotten_and_one_that_is_not_purges_rows_to_come() -> (
    None
):
    run = Run({"S1": "AB", "S2": "BC"}, ["S1.B = S2.B"], {"S1": ["B"], "S2": ["B"]})
    run.op.punctuate("S2", {"B": 20})
    run.row("S1", 10, 20)
    assert run.live("S1") == 0  # had it been discarded, the row could never go
    assert sum(run.op.stats().punctuations_held.values()) == 1
    run.op.punctuate("S1", {"B": 20})
    assert sum(run.op.stats().punctuations_held.values()) == 0


def test_section_5_1_sequence_numbers_come_again_after_the_lifespan() -> None:
    """The end of a transmission: source and sequence number, good for 4.55 hours."""
    run = Run(
        {"packet": "ns", "answer": "ns"},
        ["packet.n = answer.n", "packet.s = answer.s"],
        {"packet": [("n", "s")], "answer": [("n", "s")]},
        packet="4 hours 33 min",
    )
    assert not any(promise.piles_up for promise in run.query.check().promises)
    run.op.punctuate("packet", {"n": 7, "s": 1}, time=0)
    assert run.row("packet", 7, 1, t=4 * HOURS).violations.num_rows == 1
    assert run.row("packet", 7, 1, t=5 * HOURS).violations.num_rows == 0
    assert run.live("packet") == 1
