"""Declarations: frozen, comparable, picklable, and nonsense is refused at once by name."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from streamjoin import errors
from streamjoin.disorder import InOrder
from streamjoin.errors import QueryError
from streamjoin.expressions import ColumnRef
from streamjoin.patterns import ANY, EMPTY, Range
from streamjoin.predicates import CallablePredicate, band, distance
from streamjoin.query import Equality, Query
from streamjoin.stream import Stream
from streamjoin.windows import between, follows, within

HOUR = 3600 * 10**9


def auction_query(**options: Any) -> Query:
    return Query(
        [
            Stream("auction", time="opened_at", window="12 hours", unique="item_id"),
            Stream("bid", time="placed_at", window="0 s", punctuations=["item_id"]),
        ],
        **{"on": ["auction.item_id = bid.item_id"], **options},
    )


def plain(names: str, on: list[str] | str, **options: Any) -> Query:
    return Query([Stream(name, time="t") for name in names], on, **options)


# --- Errors and patterns ------------------------------------------------------------------------------------


def test_the_errors_form_the_documented_family() -> None:
    for error in (errors.QueryError, errors.DataError):
        assert issubclass(error, errors.StreamJoinError)
        assert issubclass(error, ValueError)
    assert issubclass(errors.UnsafeQueryError, errors.QueryError)
    assert issubclass(errors.PunctuationViolation, errors.DataError)
    assert issubclass(errors.LateRowError, errors.DataError)
    assert issubclass(errors.SnapshotError, errors.StreamJoinError)
    assert not issubclass(errors.SnapshotError, ValueError)


@pytest.mark.parametrize("pattern", [ANY, EMPTY])
def test_a_copy_or_pickle_of_any_and_empty_is_the_same_object(pattern: object) -> None:
    assert copy.copy(pattern) is pattern
    assert copy.deepcopy([pattern])[0] is pattern
    assert pickle.loads(pickle.dumps(pattern)) is pattern
    assert repr(pattern) == ("ANY" if pattern is ANY else "EMPTY")


def test_a_range_is_frozen_and_may_be_open_or_a_single_value() -> None:
    assert Range(3, 3) == Range(low=3, high=3)
    assert Range() == Range(None, None)
    assert Range(low="a").high is None
    assert pickle.loads(pickle.dumps(Range(1, 2))) == Range(1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Range(1, 2).low = 0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("low", "high"), [(2, 1), ("b", "a"), (1, "a"), (float("nan"), None), (None, float("nan"))]
)
def test_a_range_of_nonsense_is_refused(low: Any, high: Any) -> None:
    with pytest.raises(QueryError, match="Range: "):
        Range(low, high)


# --- Streams ------------------------------------------------------------------------------------------------


def test_a_stream_derives_plain_data() -> None:
    stream = Stream(
        "s", time="t", window="12 hours", punctuations=["x", ("x", "y"), "x"], unique=("y", "z"), lifespan=5
    )
    assert stream.window_ns == 12 * HOUR
    assert stream.lifespan_ns == 5000
    assert stream.schemes == (("x",), ("x", "y"), ("y", "z"))
    assert (stream.unique_columns, stream.clustered_columns) == (("y", "z"), None)
    bare = Stream("s", time="t")
    assert (bare.window_ns, bare.lifespan_ns, bare.schemes) == (None, None, ())
    assert Stream("s", time="t", punctuations="x").schemes == (("x",),)
    assert Stream("s", time="t", clustered="x").schemes == (("x",),)


def test_streams_are_equal_when_they_mean_the_same() -> None:
    assert Stream("s", time="t", window="60 s") == Stream("s", time="t", window="1 min")
    assert Stream("s", time="t", unique="x") != Stream("s", time="t", clustered="x")
    assert Stream("s", time="t", unique="x") != Stream("s", time="t", punctuations=["x"])


def test_a_stream_is_frozen_and_its_options_have_names() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Stream("s", time="t").time = "u"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Stream("s", "t")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "no name"}, "identifier.*'no name'"),
        ({"name": 5}, "identifier.*5"),
        ({"time": ""}, "stream 's', time: expected a column"),
        ({"time": ("a", "b")}, "stream 's', time: expected a column"),
        ({"window": "-1 s"}, "stream 's', window: must not be negative, got '-1 s'"),
        ({"window": "soon"}, "stream 's', window: expected a duration"),
        ({"lifespan": "-1 s"}, "stream 's', lifespan: must not be negative"),
        ({"lifespan": True}, "stream 's', lifespan: expected a duration"),
        ({"punctuations": [()]}, "stream 's', punctuations: expected a column"),
        ({"punctuations": [("x", "x")]}, "stream 's', punctuations: expected.*different"),
        ({"punctuations": [3]}, "stream 's', punctuations: expected.*3"),
        ({"punctuations": 3}, "stream 's', punctuations: expected a list.*3"),
        ({"punctuations": ["other.x"]}, "stream 's', punctuations: .*'other.x'"),
        ({"unique": 3}, "stream 's', unique: expected"),
        ({"clustered": [""]}, "stream 's', clustered: expected"),
        ({"unique": "x", "clustered": "y"}, "stream 's': expected unique or clustered, got both"),
    ],
)
def test_a_stream_of_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        Stream(**{"name": "s", "time": "t", **options})


# --- Queries ------------------------------------------------------------------------------------------------


def test_the_auction_query_derives_plain_data() -> None:
    query = auction_query()
    assert query.stream_names == ("auction", "bid")
    assert query.stream_index("bid") == 1
    assert query.equalities == (
        Equality(ColumnRef("auction", "item_id"), ColumnRef("bid", "item_id"), False),
    )
    assert (query.windows.lower(0, 1), query.windows.upper(0, 1)) == (0, 12 * HOUR)
    assert query.predicate is None
    assert query.disorder == InOrder()
    assert query.check().safe


def test_the_left_column_is_of_the_stream_declared_first() -> None:
    query = plain("ab", ["b.y = a.x", "a.u <=> b.v"])
    assert [str(equality) for equality in query.equalities] == ["a.x = b.y", "a.u <=> b.v"]


def test_the_stricter_of_two_equalities_on_the_same_columns_decides() -> None:
    query = plain("ab", ["a.x <=> b.x", "b.x = a.x", "a.x <=> b.x"])
    assert [str(equality) for equality in query.equalities] == ["a.x = b.x"]


def test_columns_with_odd_names_are_written_in_backticks() -> None:
    assert plain("ab", "a.`item id`=b.x").equalities[0].left == ColumnRef("a", "item id")


def test_one_declaration_of_a_window_needs_no_list() -> None:
    assert plain("ab", ["a.x = b.x"], within=within("5 s")) == plain(
        "ab", ["a.x = b.x"], within=[within("5 s")]
    )


def test_without_equalities_a_window_must_bound_both_sides() -> None:
    assert plain("ab", [], within=within("5 s")).equalities == ()
    for window in (between("a", "b", upper="5 s"), between("a", "b", lower="5 s")):
        with pytest.raises(QueryError, match="nothing ties stream 'a' to 'b'"):
            plain("ab", [], within=window)


def test_a_disconnected_join_is_refused_unless_a_window_connects_it() -> None:
    with pytest.raises(QueryError, match="nothing ties stream 'a' to 'c', 'd'"):
        plain("abcd", ["a.x = b.x", "c.x = d.x"])
    plain("abcd", ["a.x = b.x", "c.x = d.x"], within=follows("b", "c", within="5 s"))


def test_where_takes_a_text_a_native_form_or_a_function() -> None:
    assert str(plain("ab", ["a.x = b.x"], where="a.y < b.y").predicate) == "a.y < b.y"
    near = distance(("a.x", "a.y"), ("b.x", "b.y"), less_than=5)
    assert plain("ab", ["a.x = b.x"], where=near).predicate is near
    assert isinstance(plain("ab", ["a.x = b.x"], where=lambda columns: None).predicate, CallablePredicate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"on": ["auction.item_id = bit.item_id"]},
            r"expected one of the streams \['auction', 'bid'\], got 'bit'",
        ),
        ({"on": ["auction.x = auction.y"]}, "two streams, got 'auction' twice"),
        ({"on": ["auction.x < bid.x"]}, "'auction.x < bid.x', of the form"),
        ({"on": ["auction.x <= bid.x"]}, "of the form"),
        ({"on": ["auction.x = bid.x and auction.y = bid.y"]}, "of the form"),
        ({"on": ["item_id"]}, "of the form"),
        ({"on": ["item_id = item_id"]}, "expected a qualified column"),
        ({"on": [3]}, "of the form.*got 3"),
        ({"on": None}, "on: expected a list.*None"),
        ({"how": "outer"}, "how: expected one of .*'left_anti'.*got 'outer'"),
        ({"late": "keep"}, "late: expected one of .*got 'keep'"),
        ({"on_violation": "insert"}, "on_violation: expected one of"),
        ({"purge": "never"}, "purge: expected one of"),
        ({"algorithm": "sort"}, r"algorithm: expected one of \['auto', 'hash', .*\], got 'sort'"),
        ({"algorithm": "merge", "how": "left"}, "a left join is a hash join, got 'merge'"),
        ({"disorder": "none"}, r"disorder: expected InOrder\(\), Slack\(\), MaxSlack\(\) or .*got 'none'"),
        ({"require_safe": 1}, "require_safe: expected True or False"),
        ({"result_time": ""}, "result_time: expected"),
        ({"within": "5 s"}, r"within: expected within\(\).*'5 s'"),
        ({"within": [3]}, "within: expected"),
        ({"within": within("auction", "bit", "5 s")}, "got 'bit'"),
        ({"where": "bit.x = 1"}, "got 'bit'"),
        ({"where": band("auction.x", "bit.x", 1)}, r"bit\.x is of none of the streams"),
        ({"where": 3}, "where: expected text.*3"),
    ],
)
def test_a_query_of_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        auction_query(**options)


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ([Stream("a", time="t")], "two or more streams"),
        (Stream("a", time="t"), "two or more streams"),
        ("ab", "two or more streams"),
        (["a", "b"], "expected Stream objects, got 'a'"),
        ([Stream("a", time="t"), Stream("a", time="t")], "'a' twice"),
    ],
)
def test_streams_of_nonsense_are_refused(streams: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        Query(streams, ["a.x = b.x"])


def test_three_streams_join_inner_only() -> None:
    on = ["a.x = b.x", "b.x = c.x"]
    assert plain("abc", on).how == "inner"
    for how in ("left", "right", "full", "left_semi", "left_anti"):
        assert plain("ab", on[:1], how=how).how == how
        with pytest.raises(QueryError, match=f"3 streams must be 'inner', got '{how}'"):
            plain("abc", on, how=how)


def test_an_empty_interval_is_legal_for_two_streams() -> None:
    query = plain("ab", ["a.x = b.x"], within=between("a", "b", lower="9 s", upper="1 s"))
    assert (query.windows.lower(0, 1), query.windows.upper(0, 1)) == (9 * 10**9, 10**9)


def test_an_unknown_stream_has_no_index() -> None:
    with pytest.raises(QueryError, match="got 'bit'"):
        auction_query().stream_index("bit")


def test_a_query_is_frozen_and_its_options_have_names() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        auction_query().how = "left"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Query([], [], within("5 s"))  # type: ignore[call-arg]


def test_an_unsafe_query_is_declared_without_complaint() -> None:
    assert not plain("ab", ["a.x = b.x"]).check().safe


@pytest.mark.parametrize("where", [None, "auction.reserve < bid.price", band("auction.p", "bid.p", 2)])
def test_a_query_survives_pickling_and_copying(where: Any) -> None:
    query = auction_query(where=where, within=within("1 hour"))
    for again in (pickle.loads(pickle.dumps(query)), copy.deepcopy(query)):
        assert again == query
        assert hash(again) == hash(query)
        assert repr(again) == repr(query)
        assert again.explain() == query.explain()


def test_queries_differ_when_any_part_does() -> None:
    base = auction_query()
    for options in (
        {"how": "left"},
        {"where": "bid.x = 1"},
        {"within": within("1 s")},
        {"on": "auction.a = bid.a"},
    ):
        assert auction_query(**options) != base


def test_the_repr_is_the_call_that_makes_it() -> None:
    query = auction_query(within=within("1 hour"), how="left", where="auction.r < bid.p")
    assert eval(repr(query), {"Query": Query, "Stream": Stream, "within": within}) == query
    assert "late" not in repr(query)


def test_explain_shows_streams_predicates_windows_and_what_purges_what() -> None:
    text = auction_query(where="auction.reserve < bid.price").explain()
    for line in (
        "inner join",
        "auction: time opened_at, punctuations (item_id)",
        "auction.item_id = bid.item_id",
        "auction.reserve < bid.price",
        "12 hours",
        "auction: bid by time, 12 hours after the row of auction or by punctuations on (item_id)",
        "safe: every state stays bounded",
    ):
        assert line in text
