"""What `Query.explain()` prints: the query as it was understood, its closed windows, and how it will run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from streamjoin.conjuncts import conjuncts
from streamjoin.disorder import in_words
from streamjoin.durations import format_duration
from streamjoin.plan.enumerate import plan_of
from streamjoin.plan.tree import COST_WORDS, Cost
from streamjoin.safety import purge_plan

if TYPE_CHECKING:
    from streamjoin.query import Query


def explain(query: Query) -> str:
    """Return the query, its windows after closure, its algorithm and what purges what, as text."""
    report = query.check()
    sections: dict[str, Iterable[str]] = {
        f"{query.how} join, algorithm {query.chosen_algorithm}": (),
        "streams": _streams(query),
        "join predicates": _predicates(query),
        "windows": _windows(query),
        "disorder": in_words(query.disorder),
        "punctuation graph": report.graph_text().splitlines(),
        "what purges the state of": _purges(query),
    }
    sections["plan that runs"] = _plan(query)
    if report.promises:
        sections["promises"] = map(str, report.promises)
    blocks = ["\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections.items()]
    return "\n\n".join([*blocks, str(report)])


def _plan(query: Query) -> Iterator[str]:
    yield str(query.chosen_plan)
    plan = query.chosen_plan.plan
    if plan is None or not any(stream.schemes for stream in query.streams):
        return
    other = "lazy" if query.purge == "eager" else "eager"
    acts = {
        "eager": "a row goes at the punctuation that frees it",
        "lazy": "punctuations are acted on together, which is less work and more rows",
    }
    own = plan_of(query, plan.root, purge=query.purge).cost
    yield f"purge={query.purge!r}: {acts[query.purge]}"
    yield f"  {other!r}: {acts[other]}; {_compared(plan_of(query, plan.root, purge=other).cost, own)}"
    minimal = plan_of(query, plan.root, purge=query.purge, schemes="minimal").cost
    yield "schemes='all': a row goes at the first punctuation that lets it"
    yield f"  'minimal': only punctuations that safety needs are kept; {_compared(minimal, own)}"


def _compared(cost: Cost, own: Cost) -> str:
    pairs = zip(cost, own, COST_WORDS, strict=True)
    changes = [f"{c:,.4g} {what} instead of {o:,.4g}" for c, o, what in pairs if f"{c:.3g}" != f"{o:.3g}"]
    return ", ".join(changes) or "here about the same cost"


def _streams(query: Query) -> Iterator[str]:
    for stream in query.streams:
        schemes = ", ".join(f"({', '.join(scheme)})" for scheme in stream.schemes) or "none"
        kept = stream.lifespan_ns
        lifespan = "" if kept is None else f", lifespan {format_duration(kept)}"
        rate = "" if stream.rate is None else f", about {stream.rate:g} rows a second"
        yield f"{stream.name}: time {stream.time}, punctuations {schemes}{lifespan}{rate}"


def _predicates(query: Query) -> Iterator[str]:
    if len(query.streams) > 2:
        yield from map(str, query.attribute_classes)
    else:
        yield from map(str, query.equalities)
    if not query.equalities:
        yield "none: time alone decides"
    for part in conjuncts(query.predicate) if query.predicate else ():
        named = {stream for stream, _ in part.columns} or set(query.stream_names)
        streams = ", ".join(name for name in query.stream_names if name in named)
        yield f"{part}  (residual, checked when {streams} {'are' if len(named) > 1 else 'is'} bound)"


def _windows(query: Query) -> Iterator[str]:
    alternatives = query.window_alternatives
    for number, matrix in enumerate(alternatives, start=1):
        if len(alternatives) > 1:
            yield f"alternative {number} of {len(alternatives)}; a result satisfies at least one"
        yield from matrix.text().splitlines()
    for left, right in query.windows.open_pairs():
        yield f"unbounded: nothing says how long after a row of {left} one of {right} may come"


def _purges(query: Query) -> Iterator[str]:
    for name, chain in purge_plan(query).items():
        steps = groupby(chain.ways, key=lambda step: step.target)
        shown = [f"{other} {' or '.join(map(str, means))}" for other, means in steps]
        yield f"{name}: {', then '.join(shown) or 'nothing'}"
