"""Remedies make a query safe, nothing smaller does; promises that pile up are named."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import combinations

from random_queries import random_query
from streamjoin.expressions import ColumnRef
from streamjoin.query import Query
from streamjoin.safety import JoinGraph, Remedy
from streamjoin.safety.remedies import find_remedies
from streamjoin.stream import Stream

ROUNDS = int(os.environ.get("STREAMJOIN_SAFETY_ROUNDS", "3000")) // 10


def treated(query: Query, schemes: tuple[ColumnRef, ...], windows: tuple[str, ...]) -> Query:
    """The query as the user would write it with the remedy: schemes and wide windows added to the streams."""
    streams = []
    for stream in query.streams:
        more = [ref.column for ref in schemes if ref.stream == stream.name]
        window = "1 day" if stream.name in windows else stream.window
        streams.append(replace(stream, punctuations=[*stream.punctuations, *more], window=window))
    return Query(streams, query.on, within=query.within, require_safe=False)


def smallest_by_trying_all(query: Query) -> set[tuple[frozenset[ColumnRef], frozenset[str]]]:
    refs = {ref for equality in query.equalities for ref in (equality.left, equality.right)}
    additions: list[ColumnRef | str] = [*sorted(refs), *query.stream_names]
    for size in range(len(additions) + 1):
        found = set()
        for chosen in combinations(additions, size):
            schemes = tuple(one for one in chosen if isinstance(one, ColumnRef))
            windows = tuple(one for one in chosen if isinstance(one, str))
            if treated(query, schemes, windows).check().safe:
                found.add((frozenset(schemes), frozenset(windows)))
        if found:
            return found
    raise AssertionError("windows on all streams make every query safe")


def test_remedies_are_all_the_smallest_sets_and_no_others() -> None:
    seed, sizes = 61, set()
    rng = random.Random(seed)
    for round_ in range(ROUNDS):
        query = random_query(rng, streams=(2, 4))
        remedies = query.check().remedies
        sizes.add(len(remedies[0]) if remedies else 0)
        if remedies and len(remedies[0]) > 2:
            continue  # trying all sets of three is slow; the next test takes these
        expected = smallest_by_trying_all(query)
        found = {(frozenset(remedy.schemes), frozenset(remedy.windows)) for remedy in remedies}
        assert (found or {(frozenset(), frozenset())}) == expected, f"seed {seed}, round {round_}: {query}"
    assert sizes >= {0, 1, 2}


def test_every_remedy_makes_the_query_safe_and_no_part_of_it_does() -> None:
    seed = 62
    rng = random.Random(seed)
    for round_ in range(ROUNDS):
        query = random_query(rng)
        for remedy in query.check().remedies:
            where = f"seed {seed}, round {round_}, {remedy}: {query}"
            assert treated(query, remedy.schemes, remedy.windows).check().safe, where
            for size in range(len(remedy)):
                for part in combinations([*remedy.schemes, *remedy.windows], size):
                    schemes = tuple(one for one in part if isinstance(one, ColumnRef))
                    windows = tuple(one for one in part if isinstance(one, str))
                    assert not treated(query, schemes, windows).check().safe, where


def test_a_search_that_is_given_up_still_gives_a_remedy_without_a_spare_part() -> None:
    seed = 63
    rng = random.Random(seed)
    for round_ in range(ROUNDS // 3):
        query = random_query(rng)
        for remedy in find_remedies(JoinGraph.of(query), search_steps=0):
            where = f"seed {seed}, round {round_}, {remedy}: {query}"
            assert not remedy.smallest, where
            assert treated(query, remedy.schemes, remedy.windows).check().safe, where
            for one in remedy.schemes:
                rest = tuple(ref for ref in remedy.schemes if ref != one)
                assert not treated(query, rest, remedy.windows).check().safe, where


def test_a_missing_scheme_or_a_window_on_the_growing_stream_are_the_remedies_of_a_binary_join() -> None:
    a, b = Stream("a", time="t", punctuations=["x"]), Stream("b", time="t")
    report = Query([a, b], ["a.x = b.x"], require_safe=False).check()
    assert report.remedies == (Remedy(schemes=(ColumnRef("b", "x"),)), Remedy(windows=("a",)))
    assert "remedy: punctuations=['x'] on stream 'b'" in str(report)
    assert "remedy: window=... on stream 'a'" in str(report)


def test_promises_answered_by_the_partner_do_not_pile_up() -> None:
    streams = [Stream(name, time="t", punctuations=["x"]) for name in "ab"]
    assert [promise.piles_up for promise in Query(streams, ["a.x = b.x"]).check().promises] == [False, False]


def test_promises_that_nobody_answers_pile_up_unless_they_have_a_lifespan() -> None:
    # The paper's remark on figure 5: a punctuation of S1 on B goes only by one of S2 on B, and S2 has none.
    on = ["S1.B = S2.B", "S2.C = S3.C", "S3.A = S1.A"]
    schemes = {"S1": "B", "S2": "C", "S3": "A"}
    ring = [Stream(name, time="t", punctuations=[column]) for name, column in schemes.items()]
    report = Query(ring, on).check()
    assert report.safe
    assert [(p.stream, p.unanswered_by) for p in report.promises if p.piles_up] == [
        ("S1", ("S2",)),
        ("S2", ("S3",)),
        ("S3", ("S1",)),
    ]
    ring = [replace(stream, lifespan="1 hour") for stream in ring]
    assert not any(promise.piles_up for promise in Query(ring, on).check().promises)


def test_the_window_says_how_long_a_promise_can_matter() -> None:
    a = Stream("a", time="t", punctuations=["x"], window="5 s")
    report = Query([a, Stream("b", time="t")], ["a.x = b.x"], require_safe=False).check()
    [promise] = report.promises
    assert (promise.piles_up, promise.needed_ns, promise.harmless) == (True, 5_000_000_000, False)
    assert "of 5 s or more" in str(promise)
