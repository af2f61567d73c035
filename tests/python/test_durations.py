"""Durations: every spelling means what it says, nonsense is refused with its name."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamjoin.durations import format_duration, nanoseconds
from streamjoin.errors import QueryError

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 hours", 12 * 3600 * SECOND),
        ("250 ms", SECOND // 4),
        ("1.5 s", 3 * SECOND // 2),
        ("1 hour 30 min", 5400 * SECOND),
        ("1hour30min", 5400 * SECOND),
        ("-1 hour 30 min", -5400 * SECOND),
        ("-5 s", -5 * SECOND),
        ("+5 s", 5 * SECOND),
        ("- 5 s", -5 * SECOND),
        ("0 s", 0),
        ("  7   DAYS ", 7 * 86400 * SECOND),
        ("2 weeks", 14 * 86400 * SECOND),
        ("1 day", 86400 * SECOND),
        ("3 us", 3000),
        ("3 µs", 3000),
        ("3 μs", 3000),
        ("0.001 us", 1),
        ("1 ns", 1),
        ("100000 days", 100000 * 86400 * SECOND),
    ],
)
def test_a_text_means_what_it_says(text: str, expected: int) -> None:
    assert nanoseconds(text, what="window") == expected


@pytest.mark.parametrize(
    "spellings",
    [
        ["1 ns", "1 nsec", "1 nanosecond", "1 nanoseconds"],
        ["1 us", "1 usec", "1 microsecond", "1 microseconds"],
        ["1 ms", "1 msec", "1 millisecond", "1 milliseconds"],
        ["1 s", "1 sec", "1 second", "1 seconds"],
        ["1 min", "1 m", "1 minute", "1 minutes"],
        ["1 hour", "1 h", "1 hr", "1 hours"],
        ["1 day", "1 d", "1 days"],
        ["1 week", "1 w", "1 weeks"],
    ],
)
def test_spellings_of_one_unit_agree(spellings: list[str]) -> None:
    assert len({nanoseconds(text, what="window") for text in spellings}) == 1


@pytest.mark.parametrize(
    "nonsense",
    [
        "",
        "5",
        "s",
        "5 parsecs",
        "five s",
        "1 s 1 s",
        "1 min 1 hour",
        "5 s x",
        "1,5 s",
        "--5 s",
        "1 hour -5 min",
    ],
)
def test_nonsense_text_is_refused_with_its_name_and_value(nonsense: str) -> None:
    with pytest.raises(QueryError) as caught:
        nanoseconds(nonsense, what="stream 'bid', window")
    message = str(caught.value)
    assert message.startswith("stream 'bid', window: expected a duration")
    assert message.endswith(repr(nonsense))


@pytest.mark.parametrize("value", [True, False, 1.5, None, b"5 s", ["5 s"], np.float64(3), np.True_])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(QueryError, match="window: expected a duration"):
        nanoseconds(value, what="window")  # type: ignore[arg-type]


def test_nothing_is_finer_than_a_nanosecond() -> None:
    with pytest.raises(QueryError, match=r"window: .*nanosecond.*'0\.5 ns'"):
        nanoseconds("0.5 ns", what="window")


def test_numbers_and_timedeltas() -> None:
    assert nanoseconds(7, what="w") == 7000
    assert nanoseconds(np.int32(7), what="w") == 7000  # type: ignore[arg-type]
    assert nanoseconds(2**63, what="w") == 2**63 * 1000
    assert nanoseconds(pd.Timedelta(1_000_000_001, unit="ns"), what="w") == 1_000_000_001


@given(st.timedeltas())
def test_a_timedelta_is_exact_to_the_microsecond(duration: timedelta) -> None:
    assert nanoseconds(duration, what="w") == duration // timedelta(microseconds=1) * 1000


@given(st.integers(-(10**25), 10**25))
def test_a_formatted_duration_reads_back_exactly(ns: int) -> None:
    assert nanoseconds(format_duration(ns), what="w") == ns


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        (0, "0 s"),
        (1, "1 ns"),
        (5400 * SECOND, "1 hour 30 min"),
        (-SECOND, "-1 s"),
        (172800 * SECOND, "2 days"),
    ],
)
def test_formatting_uses_the_largest_units(ns: int, expected: str) -> None:
    assert format_duration(ns) == expected
