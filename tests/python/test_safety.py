"""Safety: the verdict agrees with its definition, and says which stream would grow and why."""

import random
from itertools import combinations
from typing import Any, TypeAlias

import pytest
from streamjoin.query import Query
from streamjoin.stream import Stream
from streamjoin.windows import between, follows, within

Streams: TypeAlias = dict[str, dict[str, Any]]


def query(streams: Streams, on: list[str], **options: Any) -> Query:
    declared = [Stream(name, time="t", **more) for name, more in streams.items()]
    return Query(declared, on, require_safe=False, **options)


def test_punctuations_on_both_sides_make_a_binary_join_safe() -> None:
    report = query({"a": {"punctuations": ["x"]}, "b": {"punctuations": ["x"]}}, ["a.x = b.x"]).check()
    assert report.safe
    assert report.purgeable == {"a": True, "b": True}
    assert not report.reasons


def test_punctuations_of_one_side_purge_only_the_other() -> None:
    report = query({"a": {"punctuations": ["x"]}, "b": {}}, ["a.x = b.x"]).check()
    assert not report.safe
    assert report.purgeable == {"a": False, "b": True}
    [reason] = report.reasons
    assert "stream 'a' would grow" in reason
    assert "'b' declares no punctuations" in reason


@pytest.mark.parametrize("option", ["unique", "clustered"])
def test_unique_and_clustered_count_as_schemes(option: str) -> None:
    assert query({"a": {option: "x"}, "b": {"punctuations": ["x"]}}, ["a.x = b.x"]).check().safe


def test_a_window_needs_no_punctuation() -> None:
    assert query({"a": {}, "b": {}}, ["a.x = b.x"], within=within("5 s")).check().safe


def test_a_window_and_a_scheme_count_together() -> None:
    report = query({"a": {"window": "5 s", "punctuations": ["x"]}, "b": {}}, ["a.x = b.x"]).check()
    assert report.safe


def test_an_empty_interval_is_safe() -> None:
    assert (
        query({"a": {}, "b": {}}, ["a.x = b.x"], within=between("a", "b", lower="9 s", upper="1 s"))
        .check()
        .safe
    )


def test_equality_is_transitive() -> None:
    streams: Streams = {"a": {"punctuations": ["x"]}, "b": {}, "c": {"punctuations": ["z"]}}
    # b reaches both; a and c reach each other by a.x = c.z, but nothing reaches b.
    report = query(streams, ["a.x = b.y", "b.y = c.z"]).check()
    assert report.purgeable == {"a": False, "b": True, "c": False}
    assert report.reasons[0].endswith("may join those of a, c, and 'b' declares no punctuations")


def test_a_scheme_of_two_columns_needs_both_partners() -> None:
    streams: Streams = {
        "a": {"punctuations": ["x"]},
        "b": {"punctuations": ["y"]},
        "c": {"punctuations": [("x", "y")]},
    }
    report = query(streams, ["a.x = c.x", "b.y = c.y"]).check()
    assert report.purgeable == {"a": False, "b": False, "c": True}
    assert "the scheme (x, y) of 'c' does not help, as y joins none of a" in report.reasons[0]


def test_reachability_goes_on_after_a_scheme_of_several_columns() -> None:
    streams: Streams = {
        "a": {"punctuations": ["x", "w"]},
        "b": {"punctuations": ["y", "w"]},
        "c": {"punctuations": [("x", "y")]},
        "d": {"punctuations": ["z"]},
    }
    on = ["a.x = c.x", "b.y = c.y", "a.w = b.w", "c.z = d.z"]
    report = query(streams, on).check()
    assert report.purgeable == {"a": True, "b": True, "c": True, "d": False}


def test_a_two_column_scheme_joined_with_one_stream_is_a_plain_edge() -> None:
    streams = {"a": {"punctuations": [("x", "y")]}, "b": {"punctuations": [("x", "y")]}}
    assert query(streams, ["a.x = b.x", "a.y = b.y"]).check().safe


def test_a_useless_scheme_is_accepted_and_noted() -> None:
    report = query(
        {"a": {"punctuations": ["x", ("x", "color")]}, "b": {"punctuations": ["x"]}}, ["a.x = b.x"]
    ).check()
    assert report.safe
    assert report.notes == (
        "scheme (x, color) of stream 'a' can purge nothing: column 'color' joins no other stream",
    )


def test_a_chain_through_a_window_and_a_scheme() -> None:
    streams: Streams = {"a": {}, "b": {}, "c": {"punctuations": ["y"]}}
    report = query(streams, ["a.x = b.x", "b.y = c.y"], within=follows("a", "b", within="5 s")).check()
    # a -> b by time, b -> c by the scheme of c; c reaches nothing.
    assert report.purgeable == {"a": True, "b": True, "c": False}


def test_the_report_prints_the_verdict_and_every_stream() -> None:
    text = str(query({"a": {"punctuations": ["x"]}, "long": {}}, ["a.x = long.x"]).check())
    assert text.splitlines()[0].startswith("NOT safe")
    assert "  a     grows" in text
    assert "  long  bounded" in text
    assert "reason: " in text


# --- Against the definition, on random queries --------------------------------------------------------------


def random_query(rng: random.Random, *, windows: bool) -> Query:
    n = rng.randint(2, 5)
    names = "abcde"[:n]
    on = [
        f"{names[rng.randrange(i)]}.{rng.choice('xyz')} = {names[i]}.{rng.choice('xyz')}" for i in range(1, n)
    ]
    for _ in range(rng.randint(0, 3)):
        i, j = rng.sample(range(n), 2)
        on.append(f"{names[i]}.{rng.choice('xyz')} = {names[j]}.{rng.choice('xyz')}")
    streams = {}
    for name in names:
        schemes = [tuple(rng.sample("xyz", rng.choice([1, 1, 2]))) for _ in range(rng.randint(0, 3))]
        window = "5 s" if windows and rng.random() < 0.15 else None
        streams[name] = {"punctuations": schemes, "window": window}
    pairs = []
    if windows:
        pairs = [between(*rng.sample(names, 2), upper="1 s") for _ in range(rng.randint(0, n - 1))]
    return query(streams, on, within=pairs)


def equal_columns(query_: Query) -> set[frozenset[tuple[str, str]]]:
    """All pairs of columns that are equal in every result: apply transitivity until nothing new comes."""
    pairs = {frozenset(((*e.left,), (*e.right,))) for e in query_.equalities}
    while True:
        new = {p ^ q for p, q in combinations(pairs, 2) if len(p & q) == 1} - pairs
        if not new:
            return pairs
        pairs |= new


def can_join(query_: Query, pairs: set[frozenset[tuple[str, str]]], known: set[str], stream: Stream) -> bool:
    """Whether `stream` may be added to the streams known to have no more partners."""

    def joined(column: str) -> bool:
        mates = [next(iter(p - {(stream.name, column)})) for p in pairs if (stream.name, column) in p]
        return any(mate[0] in known for mate in mates)

    by_scheme = any(all(joined(column) for column in scheme) for scheme in stream.schemes)
    index = query_.stream_index
    return by_scheme or any(query_.windows.upper(index(k), index(stream.name)) is not None for k in known)


def purgeable_by_definition(query_: Query, name: str) -> bool:
    """No proper subset of the streams with `name` is a trap: from each, some further stream can be added."""
    pairs = equal_columns(query_)
    others = [other for other in query_.stream_names if other != name]
    for size in range(len(others)):
        for chosen in combinations(others, size):
            known = {name, *chosen}
            outside = [s for s in query_.streams if s.name not in known]
            if not any(can_join(query_, pairs, known, stream) for stream in outside):
                return False
    return True


@pytest.mark.parametrize("windows", [False, True])
def test_the_verdict_on_random_queries_agrees_with_the_definition(windows: bool) -> None:
    seed, verdicts = 41, set()
    rng = random.Random(seed)
    for round_ in range(600):
        asked = random_query(rng, windows=windows)
        report = asked.check()
        expected = {name: purgeable_by_definition(asked, name) for name in asked.stream_names}
        assert report.purgeable == expected, f"seed {seed}, round {round_}: {asked}"
        assert report.safe == all(expected.values())
        assert len(report.reasons) == list(expected.values()).count(False)
        verdicts.add((report.safe, any(expected.values())))
    assert verdicts == {(True, True), (False, True), (False, False)}, (
        "the random queries must be of all kinds"
    )


def merged_graph_is_one_node(query_: Query) -> bool:
    """The transformed punctuation graph: merge strongly connected nodes until nothing merges."""
    pairs = equal_columns(query_)
    nodes = [{name} for name in query_.stream_names]
    while True:
        edges = {
            (p, q)
            for p, source in enumerate(nodes)
            for q, target in enumerate(nodes)
            if p != q and any(can_join(query_, pairs, source, s) for s in query_.streams if s.name in target)
        }
        reach = {(p, p) for p in range(len(nodes))} | edges
        while more := {(p, r) for p, q in reach for q2, r in reach if q == q2} - reach:
            reach |= more
        groups = {
            frozenset(q for q in range(len(nodes)) if (p, q) in reach and (q, p) in reach)
            for p in range(len(nodes))
        }
        if len(groups) == len(nodes):
            return len(nodes) == 1
        nodes = [set().union(*(nodes[p] for p in group)) for group in groups]


@pytest.mark.parametrize("windows", [False, True])
def test_a_query_is_safe_exactly_if_its_transformed_graph_shrinks_to_one_node(windows: bool) -> None:
    seed = 43
    rng = random.Random(seed)
    for round_ in range(600):
        asked = random_query(rng, windows=windows)
        assert asked.check().safe == merged_graph_is_one_node(asked), f"seed {seed}, round {round_}: {asked}"
