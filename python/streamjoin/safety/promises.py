"""Will the punctuations themselves pile up? A promise that is kept for ever costs memory as rows do.

A promise of stream s on values of (x, y, ..) is needed as long as rows of its partners with these values may
come. It is forgotten

    answered    one column x: every stream with a column equal to x promises the same values, by a scheme that
                speaks of no other columns than the promise does;
    expired     s has a lifespan.

Otherwise its kind piles up: one entry for each value ever promised (integers that touch share one). That does
not make the query unsafe: what is held is a value, not a row, and a lifespan bounds it. Forgetting costs
nothing where rows of the partners leave by time too; elsewhere a row that comes after the lifespan stays for
ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_

from streamjoin.durations import format_duration
from streamjoin.expressions import ColumnRef
from streamjoin.safety.graphs import JoinGraph, Scheme, members


@dataclass(frozen=True)
class PromiseBound:
    """What bounds the punctuations that `stream` sends on `columns`.

    `answered_by` are the partners whose own punctuations let them be forgotten, `unanswered_by` those that
    keep them alive. `lifespan_ns` is the declared one. If `piles_up`, `needed_ns` is how long a promise may
    still matter by the windows (None: no window says so), and `harmless` tells whether forgetting earlier
    costs nothing.
    """

    stream: str
    columns: tuple[str, ...]
    answered_by: tuple[str, ...]
    unanswered_by: tuple[str, ...]
    lifespan_ns: int | None
    needed_ns: int | None
    harmless: bool

    @property
    def piles_up(self) -> bool:
        """Tell whether nothing bounds them."""
        return bool(self.unanswered_by) and self.lifespan_ns is None

    def __str__(self) -> str:
        """Return one sentence."""
        what = f"punctuations of {self.stream!r} on ({', '.join(self.columns)})"
        if not self.unanswered_by:
            return f"{what} are forgotten when {' and '.join(self.answered_by)} punctuates the same value"
        if self.lifespan_ns is not None:
            return f"{what} are forgotten after their lifespan, {format_duration(self.lifespan_ns)}"
        partners = " and ".join(self.unanswered_by)
        never = "never answer" if len(self.unanswered_by) > 1 else "never answers"
        text = f"{what} pile up: {partners} {never} them; a lifespan on {self.stream!r} bounds them"
        if self.harmless:
            return f"{text}: any will do, as rows of {partners} also leave by time"
        if self.needed_ns is not None:
            return f"{text}: of {format_duration(self.needed_ns)} or more"
        return f"{text}: as long as rows of {partners} with a punctuated value may still come"


def promise_bounds(graph: JoinGraph) -> tuple[PromiseBound, ...]:
    """Return the bound of every scheme that can purge something."""
    class_of = {ref: 1 << number for number, columns in enumerate(graph.classes) for ref in columns}
    # Which stream may speak of which columns: a set of classes, one bit more for a column that joins nothing.
    joins_nothing = 1 << len(graph.classes)
    spoken = [
        (
            1 << scheme.stream,
            reduce(
                or_,
                (
                    class_of.get(ColumnRef(graph.names[scheme.stream], c), joins_nothing)
                    for c in scheme.columns
                ),
            ),
        )
        for scheme in graph.schemes
    ]
    distinct = list(dict.fromkeys(spoken))
    return tuple(
        _bound(graph, scheme, own, distinct)
        for scheme, own in zip(graph.schemes, spoken, strict=True)
        if all(scheme.partners)
    )


def _bound(
    graph: JoinGraph, scheme: Scheme, own: tuple[int, int], spoken: list[tuple[int, int]]
) -> PromiseBound:
    stream, promised = own
    answering = 0
    for other, columns in spoken:
        if columns & ~promised == 0:
            answering |= other
    answering &= ~stream
    # The column whose partners lack the fewest answers decides; if none lacks, promises are forgotten.
    column = min(scheme.partners, key=lambda partners: (partners & ~answering).bit_count())
    missing = list(members(column & ~answering))
    lifetimes = [graph.uppers[scheme.stream][k] for k in missing]
    known = [width for width in lifetimes if width is not None]
    return PromiseBound(
        graph.names[scheme.stream],
        scheme.columns,
        tuple(graph.names[k] for k in members(column & answering)),
        tuple(graph.names[k] for k in missing),
        graph.lifespans[scheme.stream],
        max(0, *known) if missing and len(known) == len(missing) else None,
        all(graph.window_targets[k] >> scheme.stream & 1 for k in missing),
    )
