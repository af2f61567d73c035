"""Which algorithm joins a query's streams, and why.

| algorithm     | how a new row finds its partners                                                          |
| ------------- | ----------------------------------------------------------------------------------------- |
| `hash`        | stream by stream through the I-Nodes of the attributes they share (HW-join)               |
| `merge_gca`   | a sweep over time, filtered by the largest bound of all pairs, then the matrix (MW-join)  |
| `merge_lca`   | the same sweep, filtered by each stream's own largest bound                               |
| `nested_loop` | every stored row is looked at (NLW-join)                                                  |

`merge` stands for the better of its two filters: they are the same where all streams have one largest bound,
and where they differ LCA looks at fewer rows. Two streams joined on values run in the binary operator, which
also takes punctuations on values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamjoin.predicates import Band, Distance
from streamjoin.window_matrix import WindowMatrix

if TYPE_CHECKING:
    from streamjoin.query import Query

ALGORITHMS = ("auto", "hash", "merge", "nested_loop", "merge_gca", "merge_lca")


class Algorithm(NamedTuple):
    """The chosen algorithm: its name, whether the binary operator runs it, and why."""

    name: str
    binary: bool
    why: str

    def __str__(self) -> str:
        """Return name and reason."""
        return f"{self.name} ({self.why})"


def choose_algorithm(query: Query) -> Algorithm:
    """Choose from what was asked for, the equalities and the windows."""
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
        return Algorithm("hash", two, f"join attributes find the partners{seen}")
    if two and not isinstance(query.predicate, (Band, Distance)):
        return Algorithm("hash", True, "two streams without a band or distance: every row in the window")
    filter_, why = _merge_filter(query.windows)
    return Algorithm(filter_, False, f"no equality to index, time alone narrows the search; {why}")


def _merge_filter(windows: WindowMatrix) -> tuple[str, str]:
    largest = [
        max((bound for j, bound in enumerate(row) if j != i and bound is not None), default=None)
        for i, row in enumerate(windows.uppers)
    ]
    if len(set(largest)) == 1:
        return "merge_gca", "all streams have the same largest bound, so the global filter is as sharp"
    return "merge_lca", "the streams' largest bounds differ, so each is filtered by its own"
