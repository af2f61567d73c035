"""Which algorithm joins a query's streams, and why.

| algorithm              | how a new row finds its partners                                                 |
| ---------------------- | -------------------------------------------------------------------------------- |
| `hash`                 | stream by stream through the I-Nodes of the attributes they share (HW-join)      |
| `merge_gca`            | a sweep over time, filtered by the largest bound of all pairs, then by the       |
|                        | matrix (MW-join)                                                                 |
| `merge_lca`            | the same sweep, filtered by each stream's own largest bound                      |
| `nested_loop`          | every stored row is looked at (NLW-join)                                         |
| `nested_loop_pipeline` | the same in binary steps, in declared order: each looks at every stored row or   |
|                        | intermediate result of its other side; these are stored (NLW-join as published)  |

`merge` stands for the better of its two filters: they are the same where all streams have one largest bound,
and where they differ LCA looks at fewer rows and lets them go earlier. Two streams joined on values run in
the binary operator, which also takes punctuations on values.

Rates decide where streams declare them. With equalities, a new row's period may hold so few rows of every
other stream that looking at them all is cheaper than keeping indexes; then the sweep is chosen. Without
equalities it always is: it never looks at more rows than the nested loop, and at far fewer where rates
differ.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from streamjoin.predicates import Band, Distance
from streamjoin.window_matrix import WindowMatrix

if TYPE_CHECKING:
    from streamjoin.query import Query

FEW_ROWS = (
    4.0  # rows of a stream in a period up to which comparing keys beats looking them up (multi_join_bench)
)
ALGORITHMS = ("auto", "hash", "merge", "nested_loop", "merge_gca", "merge_lca", "nested_loop_pipeline")


class Algorithm(NamedTuple):
    """The chosen algorithm: its name, whether the binary operator runs it, and why."""

    name: str
    binary: bool
    why: str

    def __str__(self) -> str:
        """Return name and reason."""
        return f"{self.name} ({self.why})"


def choose_algorithm(query: Query) -> Algorithm:
    """Choose from what was asked for, the predicates, the windows and the rates."""
    two = len(query.streams) == 2
    asked = query.algorithm
    if asked == "hash":
        return Algorithm("hash", two, "asked for")
    if asked == "merge":
        filter_, why = _merge_filter(query.windows)
        return Algorithm(filter_, False, f"asked for merge; {why}")
    if asked != "auto":
        return Algorithm(asked, False, "asked for")
    if query.how != "inner":
        return Algorithm("hash", True, f"a {query.how} join is a hash join")
    if query.equalities:
        keyed = {name for found in query.attribute_classes for name in found.streams}
        loose = [name for name in query.stream_names if name not in keyed]
        seen = f"; of {', '.join(loose)} every row in the window" if loose else ""
        if not two and (few := _few_rows(query)) is not None:
            filter_, why = _merge_filter(query.windows)
            reason = f"at the declared rates at most {few:.3g} rows of a stream lie in a row's period, fewer"
            return Algorithm(filter_, False, f"{reason} than an index pays for; {why}")
        return Algorithm("hash", two, f"join attributes find the partners{seen}")
    if two and not isinstance(query.predicate, (Band, Distance)):
        return Algorithm("hash", True, "two streams without a band or distance: every row in the window")
    filter_, why = _merge_filter(query.windows)
    rates = query.declared_rates.values()
    if len(rates) > 1 and max(rates) > 2 * min(rates):
        why += f"; rates of {min(rates):g} to {max(rates):g} rows a second leave much to pass over"
    return Algorithm(filter_, False, f"no equality to index, time alone narrows the search; {why}")


def _few_rows(query: Query) -> float | None:
    """Return the most rows of a stream that a period is expected to hold, if known and few everywhere."""
    if len(query.declared_rates) < len(query.streams) or any(stream.schemes for stream in query.streams):
        return None  # punctuations purge by key: they need the indexes
    expected = 0.0
    for i, j in permutations(range(len(query.streams)), 2):
        after, before = query.windows.upper(i, j), query.windows.upper(j, i)
        if after is None or before is None:
            return None
        expected = max(expected, query.declared_rates[query.stream_names[j]] * (after + before) / 1e9)
    return expected if expected <= FEW_ROWS else None


def _merge_filter(windows: WindowMatrix) -> tuple[str, str]:
    largest = [
        max((bound for j, bound in enumerate(row) if j != i and bound is not None), default=None)
        for i, row in enumerate(windows.uppers)
    ]
    if len(set(largest)) == 1:
        return "merge_gca", "all streams have the same largest bound, so the global filter is as sharp"
    return "merge_lca", "the streams' largest bounds differ, so each is filtered by its own"
