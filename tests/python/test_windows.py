"""Windows: declarations set the bounds they say; the closed matrix holds the tightest bounds implied."""

import random
from collections.abc import Iterable
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from streamjoin.errors import QueryError
from streamjoin.window_matrix import WindowMatrix
from streamjoin.windows import Between, Path, WindowDeclaration, between, follows, path, within

S = 10**9


def close(names: str, *declarations: WindowDeclaration, own: dict[str, int] | None = None) -> WindowMatrix:
    windows = [(own or {}).get(name) for name in names]
    return WindowMatrix.close(list(names), windows, declarations)


def test_a_stream_window_bounds_only_how_late_the_others_may_be() -> None:
    matrix = close("ab", own={"a": 12 * S})
    assert (matrix.lower(0, 1), matrix.upper(0, 1)) == (None, 12 * S)


def test_auctions_of_twelve_hours_and_bids_that_never_wait() -> None:
    matrix = close("ab", own={"a": 12 * 3600 * S, "b": 0})
    assert (matrix.lower(0, 1), matrix.upper(0, 1)) == (0, 12 * 3600 * S)
    assert (matrix.lower(1, 0), matrix.upper(1, 0)) == (-12 * 3600 * S, 0)


def test_one_window_for_all_pairs_is_symmetric() -> None:
    matrix = close("abc", within("5 s"))
    for i, j in [(0, 1), (0, 2), (1, 2), (1, 0)]:
        assert (matrix.lower(i, j), matrix.upper(i, j)) == (-5 * S, 5 * S)
        assert not matrix.is_inferred(i, j)


def test_an_interval_is_taken_as_written() -> None:
    matrix = close("ab", between("a", "b", lower="-5 s", upper="10 s"))
    assert (matrix.lower(0, 1), matrix.upper(0, 1)) == (-5 * S, 10 * S)
    assert (matrix.lower(1, 0), matrix.upper(1, 0)) == (-10 * S, 5 * S)


def test_an_interval_may_name_the_streams_in_either_order() -> None:
    assert close("ab", between("b", "a", lower="-5 s", upper="10 s")).lower(0, 1) == -10 * S


def test_follows_is_directed() -> None:
    matrix = close("ab", follows("b", "a", within="5 s"))
    assert (matrix.lower(1, 0), matrix.upper(1, 0)) == (0, 5 * S)


def test_declarations_on_one_pair_intersect() -> None:
    matrix = close("ab", within("a", "b", "5 s"), between("a", "b", lower="-1 s"), own={"a": 3 * S})
    assert (matrix.lower(0, 1), matrix.upper(0, 1)) == (-1 * S, 3 * S)


def test_the_missing_pair_of_a_path_is_inferred() -> None:
    matrix = close("abc", path("a", "b", "c", within=["5 s", "8 s"]))
    assert (matrix.lower(0, 2), matrix.upper(0, 2)) == (0, 13 * S)
    assert matrix.is_inferred(0, 2)
    assert matrix.is_inferred(2, 0)
    assert not matrix.is_inferred(0, 1)


def test_a_bound_that_others_tighten_is_inferred_and_an_open_one_is_not() -> None:
    matrix = close("abcd", path("a", "b", "c", within=["5 s", "8 s"]), between("a", "c", upper="100 s"))
    assert matrix.upper(0, 2) == 13 * S
    assert matrix.is_inferred(0, 2)
    assert matrix.upper(0, 3) is None
    assert not matrix.is_inferred(0, 3)


def test_an_empty_interval_of_two_streams_is_legal_and_kept() -> None:
    matrix = close("ab", between("a", "b", lower="10 s", upper="5 s"))
    assert (matrix.lower(0, 1), matrix.upper(0, 1)) == (10 * S, 5 * S)
    assert not matrix.inferred


def test_two_declarations_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(QueryError, match="contradict"):
        close("ab", between("a", "b", lower="10 s"), between("a", "b", upper="5 s"))


def test_a_contradiction_names_its_cycle() -> None:
    with pytest.raises(QueryError) as caught:
        close(
            "abcd", path("a", "b", "c", within=["1 s", "1 s"]), between("a", "c", lower="5 s"), within("10 s")
        )
    message = str(caught.value)
    for step in (
        "time(b) - time(a) <= 1 s",
        "time(c) - time(b) <= 1 s",
        "time(a) - time(c) <= -5 s",
        "add up to at most -3 s",
    ):
        assert step in message
    assert "time(d)" not in message


def test_an_empty_interval_among_three_streams_is_refused() -> None:
    with pytest.raises(QueryError, match="contradict"):
        close("abc", between("a", "b", lower="10 s", upper="5 s"))


def test_bounds_do_not_overflow() -> None:
    matrix = close("abc", path("a", "b", "c", within=[2**63 - 1, 2**63 - 1]))
    assert matrix.upper(0, 2) == 2 * (2**63 - 1) * 1000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: within("a", "b"), "within: expected a duration, or two streams"),  # type: ignore[call-overload]
        (lambda: within("-5 s"), "must not be negative"),
        (lambda: within("a", "a", "5 s"), "two different streams"),
        (lambda: within("soon"), "within: expected a duration"),
        (lambda: between("a", "b"), "got neither"),
        (lambda: between("a", "b", lower="soon"), "between a, b, lower: expected a duration"),
        (lambda: between("a", 3, lower="5 s"), "the name of a stream, got 3"),  # type: ignore[arg-type]
        (lambda: follows("a", "b", within="-1 s"), "must not be negative"),
        (lambda: path("a", within=[]), "two or more different streams"),
        (lambda: path("a", "b", "a", within=["1 s", "1 s"]), "two or more different streams"),
        (lambda: path("a", "b", "c", within=["1 s"]), "2 durations"),
        (lambda: path("a", "b", within="1 s"), "1 durations"),
        (lambda: path("a", "b", "c", within=["1 s", True]), "step 2: expected a duration"),
        (lambda: path("a", "b", within=["1 s"], both_directions=1), "True or False, got 1"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_is_refused(make: object, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()  # type: ignore[operator]


def test_an_unknown_stream_is_refused_with_the_known_ones() -> None:
    with pytest.raises(QueryError, match=r"expected one of the streams \['a', 'b'\], got 'c'"):
        close("ab", within("a", "c", "5 s"))


def test_the_table_is_aligned_and_marks_what_is_inferred() -> None:
    lines = close("abc", path("a", "b", "c", within=["5 s", "8 s"])).text().splitlines()
    assert len({len(line) for line in lines[:4]}) == 1
    assert lines[1].split() == ["a", ".", "5", "s", "13", "s*"]
    assert close("ab", own={"a": S}).text().splitlines()[2].split() == ["b", "open", "."]


# --- Both directions ---------------------------------------------------------------------------------------


def alternatives(names: str, *declarations: WindowDeclaration) -> tuple[WindowMatrix, ...]:
    return WindowMatrix.alternatives(list(names), [None] * len(names), declarations)


def test_a_path_in_both_directions_is_two_alternatives_and_their_hull() -> None:
    both = path("a", "b", "c", within=["5 s", "8 s"], both_directions=True)
    forwards, backwards = alternatives("abc", both)
    assert (forwards.lower(0, 2), forwards.upper(0, 2)) == (0, 13 * S)
    assert (backwards.lower(0, 2), backwards.upper(0, 2)) == (-13 * S, 0)
    hull = close("abc", both)
    assert (hull.lower(0, 2), hull.upper(0, 2)) == (-13 * S, 13 * S)


def test_both_directions_of_a_pair_are_one_symmetric_window() -> None:
    [matrix] = alternatives("ab", path("a", "b", within=["5 s"], both_directions=True))
    assert (matrix.lower(0, 1), matrix.upper(0, 1)) == (-5 * S, 5 * S)


def test_a_direction_that_another_window_excludes_is_left_out() -> None:
    both = path("a", "b", "c", within=["5 s", "8 s"], both_directions=True)
    [matrix] = alternatives("abc", both, between("a", "c", lower="1 s"))
    assert (matrix.lower(0, 2), matrix.upper(0, 2)) == (1 * S, 13 * S)


def test_directions_that_are_both_excluded_are_a_contradiction() -> None:
    both = path("a", "b", "c", within=["5 s", "8 s"], both_directions=True)
    with pytest.raises(QueryError, match="contradict"):
        alternatives("abc", both, within("a", "b", "20 s"), between("a", "c", lower="14 s"))


def test_an_alternative_within_another_is_left_out() -> None:
    tied = path("a", "b", within=[0], both_directions=True)
    assert len(alternatives("abc", tied, within("3 s"))) == 1


# --- The closure against brute force over small integer times -----------------------------------------------


def times_of(n: int, reach: int) -> npt.NDArray[np.int64]:
    """All assignments of times to n streams with the first at 0; only differences matter."""
    return np.array([(0, *rest) for rest in product(range(-reach, reach + 1), repeat=n - 1)])


def random_bounds(rng: random.Random, n: int) -> list[Between]:
    names, bounds = "abcd"[:n], []
    for i in range(n):
        for j in range(i + 1, n):
            if rng.random() < 0.7:
                middle, half = rng.randint(-2, 2), rng.randint(0, 3)
                lower = None if rng.random() < 0.3 else middle - half
                upper = None if rng.random() < 0.3 else middle + half
                if lower is not None or upper is not None:
                    bounds.append(Between(names[i], names[j], lower, upper))
    return bounds


@pytest.mark.parametrize(("n", "rounds", "reach"), [(2, 500, 40), (3, 3000, 40), (4, 150, 24)])
def test_closed_bounds_are_the_tightest_that_brute_force_finds(n: int, rounds: int, reach: int) -> None:
    seed = 20240613 + n
    rng, times = random.Random(seed), times_of(n, reach)
    contradictions = 0
    for round_ in range(rounds):
        bounds = random_bounds(rng, n)
        legal = np.ones(len(times), dtype=bool)
        for bound in bounds:
            difference = times[:, "abcd".index(bound.right)] - times[:, "abcd".index(bound.left)]
            legal &= (bound.lower is None) | (difference >= (bound.lower or 0))
            legal &= (bound.upper is None) | (difference <= (bound.upper or 0))
        where = f"seed {seed}, round {round_}: {bounds}"
        if not legal.any():
            contradictions += 1
            with pytest.raises(QueryError, match="contradict"):
                close("abcd"[:n], *bounds)
            continue
        matrix = close("abcd"[:n], *bounds)
        for i, j in product(range(n), repeat=2):
            found = int((times[legal][:, j] - times[legal][:, i]).max())
            upper = matrix.upper(i, j)
            # No chain of declared bounds adds up to more than 15, so what reaches further is open.
            assert found == upper if upper is not None else found > 15, (where, i, j)
            mirrored = matrix.upper(j, i)
            assert matrix.lower(i, j) == (None if mirrored is None else -mirrored), where
    assert n == 2 or contradictions > rounds // 100, "the test must meet contradictions too"


def test_alternatives_allow_the_times_that_brute_force_finds() -> None:
    seed = 20240617
    rng, times = random.Random(seed), times_of(3, 12)
    several = 0
    for round_ in range(1000):
        paths = [
            Path(tuple(rng.sample("abc", k=size)), tuple(rng.randint(0, 3) for _ in range(size - 1)), True)
            for size in (3, rng.choice((2, 3)))[: rng.randint(1, 2)]
        ]
        bounds = random_bounds(rng, 3) if rng.random() < 0.5 else []
        legal = np.ones(len(times), dtype=bool)
        for declaration in (*paths, *bounds):
            ways = [_all_hold(way, times) for way in declaration.alternatives("abc")]
            legal &= np.logical_or.reduce(ways)
        where = f"seed {seed}, round {round_}: {paths}, {bounds}"
        if not legal.any():
            with pytest.raises(QueryError, match="contradict"):
                alternatives("abc", *paths, *bounds)
            continue
        matrices = alternatives("abc", *paths, *bounds)
        several += len(matrices) > 1
        found = np.zeros(len(times), dtype=bool)
        for matrix in matrices:
            way = [
                Between("abc"[i], "abc"[j], matrix.lower(i, j), matrix.upper(i, j))
                for i, j in ((0, 1), (0, 2), (1, 2))
            ]
            found |= _all_hold(way, times)
        assert (found == legal).all(), where
    assert several > 100


def _all_hold(bounds: Iterable[Between], times: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    legal = np.ones(len(times), dtype=bool)
    for bound in bounds:
        difference = times[:, "abc".index(bound.right)] - times[:, "abc".index(bound.left)]
        legal &= (bound.lower is None) | (difference >= (bound.lower or 0))
        legal &= (bound.upper is None) | (difference <= (bound.upper or 0))
    return legal
