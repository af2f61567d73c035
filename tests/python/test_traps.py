"""Traps that stream joins are known to fall into, one test each, by hand; then late rows and violations."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest
import streamjoin as sj
from auction_bids import auction, bid, counters, make, pairs, table

MIN_TIME, MAX_TIME = -(2**63) + 1, 2**63 - 2  # the two extreme 64-bit values are refused
OUTER = ("left", "right", "full")


def test_a_row_at_the_clock_itself_still_finds_its_partner() -> None:
    op = make("left", lower=0, upper=10)
    assert auction(op, (1, 7, 0)) == []
    assert bid(op, (11, 7, 10)) == [(1, 11)]  # the clock of bid is now 10, the reach of auction 1 is 10
    assert op.stats().state_rows["auction"] == 1
    assert bid(op, (12, 7, 10)) == [(1, 12)]
    assert bid(op, (13, 7, 11)) == []
    assert op.stats().state_rows["auction"] == 0


def test_a_heartbeat_at_the_reach_forgets_the_row_and_one_before_it_does_not() -> None:
    op = make("left", lower=0, upper=10)
    assert auction(op, (1, 7, 0)) == []
    assert pairs(op.advance("bid", 9)) == []  # a bid at 10 may still come
    assert pairs(op.advance("bid", 10)) == [(1, None)]


@pytest.mark.parametrize("how", OUTER)
def test_a_row_remembers_its_match_after_the_partner_was_invalidated(how: str) -> None:
    op = make(how)
    assert bid(op, (11, 7, 0)) == []
    assert auction(op, (1, 7, 5)) == [(1, 11)]
    out = op.advance("auction", 10)  # bid 11 is invalidated, matched
    assert pairs(out) == []
    assert op.stats().state_rows == {"auction": 1, "bid": 0}
    assert pairs(op.advance("bid", 15)) == []  # auction 1 is invalidated, matched
    assert op.stats().state_rows == {"auction": 0, "bid": 0}
    assert pairs(op.finish()) == []


def test_one_batch_may_match_and_invalidate_the_same_key() -> None:
    op = make("left", lower=0, upper=10)
    assert auction(op, (1, 7, 0), (2, 8, 0)) == []
    # The first bid matches auction 1 at the very end of its reach, the second invalidates auctions 1 and 2.
    assert bid(op, (11, 7, 10), (12, 7, 11), (13, 8, 11)) == [(1, 11), (2, None)]
    assert pairs(op.finish()) == []


@pytest.mark.parametrize("how", OUTER)
def test_an_equal_key_that_fails_the_residual_is_no_match(how: str) -> None:
    op = make(how, where="auction.x < bid.x")
    assert auction(op, (1, 7, 0, 5)) == []
    assert bid(op, (11, 7, 0, 5)) == []
    lonely = {"left": [(1, None)], "right": [(None, 11)], "full": [(1, None), (None, 11)]}
    assert pairs(op.finish()) == lonely[how]


def test_a_residual_on_null_is_no_match() -> None:
    op = make("left", where="auction.x < bid.x")
    assert auction(op, (1, 7, 0, None), (2, 7, 0, 1)) == []
    assert bid(op, (11, 7, 0, 9)) == [(2, 11)]
    assert bid(op, (12, 7, 0, None)) == []
    assert pairs(op.finish()) == [(1, None)]


def test_semi_and_anti_joins_look_past_a_partner_that_fails_the_residual() -> None:
    for how, expected in (("left_semi", [(1, None)]), ("left_anti", [(2, None)])):
        op = make(how, where="auction.x < bid.x")
        seen = bid(op, (11, 7, 0, 0), (12, 7, 0, 9))
        seen += auction(op, (1, 7, 0, 5), (2, 7, 0, 10))
        seen += pairs(op.finish())
        assert seen == expected


def test_the_two_sides_expire_at_their_own_ages() -> None:
    op = make("full", lower=-1, upper=100)
    assert auction(op, (1, 1, 0), (2, 2, 50)) == []
    assert bid(op, (11, 3, 0), (12, 4, 49)) == [
        (None, 11)
    ]  # clock of auction is 50, bid 11 reached only 1: not kept
    assert auction(op, (3, 5, 51)) == [(None, 12)]  # bid 12 reached 50
    assert op.stats().state_rows == {"auction": 3, "bid": 0}
    assert pairs(op.advance("bid", 100)) == [(1, None)]
    assert op.stats().state_rows == {"auction": 2, "bid": 0}


def test_a_late_insert_past_its_reach_behind_an_open_row_is_invalidated() -> None:
    op = make("left", lower=0, upper=10, late="insert")
    assert auction(op, (1, 1, 20), (2, 2, 5)) == []  # auction 2 is late and stands behind auction 1
    assert op.stats().late["auction"] == 1
    assert bid(op, (11, 2, 15)) == [(2, 11)]
    assert pairs(op.advance("bid", 15)) == []  # auction 2 reached 15 and had its match
    assert op.stats().state_rows["auction"] == 1
    assert bid(op, (12, 2, 16)) == []
    assert auction(op, (3, 3, 4)) == [(3, None)]  # reaches 14, which is past: not kept, out at once
    assert op.stats().state_rows["auction"] == 1


def test_null_keys_match_nothing_and_are_not_kept() -> None:
    op = make("full")
    assert auction(op, (1, None, 0)) == [(1, None)]
    assert bid(op, (11, None, 0)) == [(None, 11)]
    assert op.stats().state_rows == {"auction": 0, "bid": 0}
    assert pairs(op.finish()) == []


def test_null_keys_match_each_other_under_null_safe_equality() -> None:
    op = make("full", equal="<=>")
    assert auction(op, (1, None, 0), (2, 0, 0)) == []
    assert bid(op, (11, None, 0)) == [(1, 11)]
    assert pairs(op.finish()) == [(2, None)]


def test_nan_equals_nan_and_the_two_zeros_are_one() -> None:
    floats = {"key": pa.float64()}
    op = make(**floats)
    assert auction(op, (1, math.nan, 0), (2, -0.0, 0), **floats) == []
    assert bid(op, (11, math.nan, 0), (12, 0.0, 0), (13, 1.0, 0), **floats) == [(1, 11), (2, 12)]


def test_duplicates_of_key_and_time_all_pair_up() -> None:
    op = make()
    assert auction(op, (1, 7, 0), (2, 7, 0)) == []
    assert bid(op, (11, 7, 0), (12, 7, 0), (13, 7, 0)) == [(a, b) for a in (1, 2) for b in (11, 12, 13)]


def test_a_self_join_pairs_each_row_with_itself_once() -> None:
    rows = table((1, 7, 0), (2, 7, 3), (3, 8, 3))
    op = make(lower=0, upper=10)
    seen = pairs(op.push("auction", rows)) + pairs(op.push("bid", rows)) + pairs(op.finish())
    assert sorted(seen) == [(1, 1), (1, 2), (2, 2), (3, 3)]


def test_negative_times_are_times_like_any_other() -> None:
    op = make("left", lower=-2, upper=3)
    assert auction(op, (1, 7, -100), (2, 7, -1)) == []
    assert bid(op, (11, 7, -98)) == [(1, 11)]
    assert bid(op, (12, 7, -3), (13, 7, 2), (14, 7, 3)) == [(2, 12), (2, 13)]


def test_times_before_1970_work_as_timestamps_too() -> None:
    time = {"time": pa.timestamp("s")}
    op = make(lower=-1_000_000, upper=0, **time)
    assert auction(op, (1, 7, dt.datetime(1960, 1, 1, 0, 0, 1)), **time) == []
    bids = [(11 + s, 7, dt.datetime(1960, 1, 1, 0, 0, s)) for s in (0, 1, 2)]
    assert bid(op, *bids, **time) == [(1, 11), (1, 12)]


def test_nanosecond_times_stay_exact() -> None:
    time = {"time": pa.timestamp("ns")}
    op = make(lower=0, upper=1, **time)  # one microsecond
    assert auction(op, (1, 7, 1_000_000_000_000_000_001), **time) == []
    late_enough = [
        (11, 7, 1_000_000_000_000_000_000),
        (12, 7, 1_000_000_000_000_001_001),
        (13, 7, 1_000_000_000_000_001_002),
    ]
    assert bid(op, *late_enough, **time) == [(1, 12)]


def test_bounds_at_the_64_bit_limits_do_not_wrap() -> None:
    op = make("left", lower=-(2**63) + 1, upper=2**63 - 1)
    assert auction(op, (1, 7, MIN_TIME), (2, 7, -2), (3, 7, MAX_TIME)) == []
    # bid - auction: 2**63 - 3 - (-2) is exactly the upper bound, one more is outside of it.
    assert bid(op, (11, 7, 2**63 - 3)) == [(1, None), (2, 11), (3, 11)]
    assert bid(op, (12, 7, MAX_TIME)) == [(3, 12)]
    assert pairs(op.finish()) == []


def test_a_bound_wider_than_time_itself_matches_everything() -> None:
    op = make(lower=-(2**70), upper=2**70)
    assert auction(op, (1, 7, MIN_TIME)) == []
    assert bid(op, (11, 7, MAX_TIME)) == [(1, 11)]


def test_a_heartbeat_at_the_largest_time_leaves_no_room() -> None:
    op = make("left", lower=0, upper=10)
    assert auction(op, (1, 7, MAX_TIME)) == []
    assert pairs(op.advance("bid", MAX_TIME - 1)) == []
    assert bid(op, (11, 7, MAX_TIME)) == [(1, 11)]
    assert pairs(op.advance("bid", MAX_TIME)) == []
    late = op.push("bid", table((12, 7, MAX_TIME)))
    assert pairs(late) == []
    assert late.late.column("bid_id").to_pylist() == [12]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "left_semi", "left_anti"])
def test_an_empty_interval_is_legal_and_matches_nothing(how: str) -> None:
    op = make(how, lower=5, upper=-5)
    seen = (
        auction(op, (1, 7, 0)) + bid(op, (11, 7, 0), (12, 7, 5)) + auction(op, (2, 7, 5)) + pairs(op.finish())
    )
    lefts, rights = [(1, None), (2, None)], [(None, 11), (None, 12)]
    expected = {"left": lefts, "left_anti": lefts, "right": rights, "full": lefts + rights}
    assert sorted(seen, key=str) == sorted(expected.get(how, []), key=str)


# Late rows and violations: data, handled by policy ------------------------------------------------


def test_a_late_row_is_offered_with_its_lateness() -> None:
    op = make()
    out = op.push("bid", table((11, 7, 10), (12, 7, 7), (13, 7, 10)))
    assert out.late.select(["stream", "late_by", "bid_id"]).to_pylist() == [
        {"stream": "bid", "late_by": 3, "bid_id": 12}
    ]
    assert out.late.column("auction_id").to_pylist() == [None]
    assert op.stats().late == {"auction": 0, "bid": 1}
    assert auction(op, (1, 7, 10)) == [(1, 11), (1, 13)]


def test_a_violation_is_offered_and_counted() -> None:
    op = make()
    op.punctuate("bid", {"item": 7}, time=0)
    out = op.push("bid", table((11, 7, 1), (12, 8, 1)))
    assert out.violations.select(["stream", "bid_id", "bid_item"]).to_pylist() == [
        {"stream": "bid", "bid_id": 11, "bid_item": 7}
    ]
    assert op.stats().violations == {"auction": 0, "bid": 1}
    assert auction(op, (1, 7, 1), (2, 8, 1)) == [(2, 12)]


@pytest.mark.parametrize(
    ("options", "error"),
    [({"late": "error"}, "LateRowError"), ({"on_violation": "error"}, "PunctuationViolation")],
)
def test_a_batch_with_a_forbidden_row_changes_nothing_at_all(options: dict[str, str], error: str) -> None:
    op = make("left", **options)
    assert auction(op, (1, 7, 0), (2, 8, 0)) == []
    op.punctuate("bid", {"item": 9}, time=0)
    assert bid(op, (11, 7, 5)) == [(1, 11)]
    before = counters(op)
    forbidden = (14, 8, 4) if error == "LateRowError" else (14, 9, 20)
    with pytest.raises(getattr(sj, error), match="bid"):
        op.push("bid", table((12, 7, 5), (13, 8, 20), forbidden))
    assert counters(op) == before
    assert bid(op, (12, 7, 5)) == [(1, 12)]  # neither moved the clock nor stayed
    assert bid(op, (13, 8, 20)) == [(2, None)]
