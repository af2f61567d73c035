"""What one join node costs: a model, to compare plans by, not to foretell memory.

A row of stream s lives until everything else is known to be over for it. Time runs along the steps of the
check:

    by a window     its width
    by a scheme     values / punctuation rate: how long a given value waits for its punctuation

and the life of a row is the time at which the last stream is reached. From it follow, for a join of streams
N:

    rate of results     selectivity(N) * sum over i of rate(i) * product over j != i of rate(j) * life(j)
    rows in state       for each input its rate * the life of its rows in this node
    probe work          each arriving row looks into the other inputs, fewest matches first; a result that
                        goes on to a join above counts as a dozen probes, which is what it takes
    punctuations kept   punctuation rate * lifespan, or the wait for the answer, at most an hour

Eager purge does a probe for each punctuation and each other input; lazy purge does it once a second for all
that came, and rows stay half a second longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from streamjoin.expressions import ColumnRef
from streamjoin.plan.rates import Rates
from streamjoin.plan.tree import Cost
from streamjoin.safety.deciders import is_safe_by_definition
from streamjoin.safety.graphs import JoinGraph, members
from streamjoin.safety.promises import promise_bounds

KEPT_AT_MOST_SECONDS, LAZY_SECONDS = 3600.0, 1.0
PASSED_ON = 12.0  # probes: columns gathered and pushed, 2.5 us against 0.2 us


class _Memory(dict[int, float]):
    """A function of a set of streams, each value worked out once."""

    def __init__(self, function: Callable[[int], float]) -> None:
        self.function = function

    def __missing__(self, streams: int) -> float:
        value = self[streams] = self.function(streams)
        return value


class _Input(NamedTuple):
    """One input of a join: rows a second, rows held, punctuations a second, punctuations kept."""

    rate: float
    rows: float
    punctuations: float
    kept: float


class CostModel:
    """Costs of the join nodes of one query. Streams and inputs are sets of streams, as in the check."""

    def __init__(self, graph: JoinGraph, rates: Rates, *, schemes: str, purge: str) -> None:
        """Take the query's graph and rates; `schemes` is all or minimal, `purge` eager or lazy."""
        self.graph = graph
        self.rates = rates
        self.schemes = schemes
        self.purge = purge
        self.waits = self._waits()
        self.kept = self._kept()
        self.schemes_in = cache(self._schemes_in)
        self.life = cache(self._life)
        self.input_of = cache(self._input_of)
        self.selectivity = _Memory(self._selectivity)
        self.result_rate = cache(self._result_rate)

    def node(self, inputs: tuple[int, ...]) -> Cost:
        """Return the cost of a join of these inputs."""
        whole = sum(inputs)
        parts = [self.input_of(part, whole) for part in inputs]
        rows = [part.rows for part in parts]
        probes = sum([part.rate * self._extensions(inputs, rows, i) for i, part in enumerate(parts)])
        probes += PASSED_ON * sum(
            [part.rate for part, below in zip(parts, inputs, strict=True) if below & (below - 1)]
        )
        sent = sum([part.punctuations for part in parts])
        probes += (len(inputs) - 1) * (min(sent, 1 / LAZY_SECONDS) if self.purge == "lazy" else sent)
        return Cost(sum(rows), probes, sum([part.kept for part in parts]))

    def least(self, inputs: tuple[int, ...]) -> float:
        """Return a number that the total of `node` is not below; quick to tell."""
        whole, share = sum(inputs), self.selectivity
        least, arriving, held = 0.0, 0.0, share[whole]
        for part in inputs:
            found = self.input_of(part, whole)
            least += found.rows + found.kept + found.rate * (1 + PASSED_ON if part & (part - 1) else 1)
            arriving += found.rate / found.rows if found.rows else 0.0
            held *= found.rows / share[part]
        # Whatever the order of probing, the results themselves are found.
        return (least + arriving * held) * (1 - 1e-9)

    def schemes_across(self, inputs: tuple[int, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the schemes that a join of these inputs uses."""
        used = [self.graph.schemes[i] for part in inputs for i in self._crossing(part, sum(inputs))]
        return tuple((self.graph.names[scheme.stream], scheme.columns) for scheme in used)

    def _crossing(self, part: int, whole: int) -> list[int]:
        """Return the schemes of an input's streams that speak to the other inputs."""
        schemes, others = self.graph.schemes, whole & ~part
        return [
            i
            for i in self.schemes_in(whole)
            if part >> schemes[i].stream & 1 and schemes[i].covered_by(others)
        ]

    def _input_of(self, part: int, whole: int) -> _Input:
        rate = self.result_rate(part)
        lazy = LAZY_SECONDS / 2 if self.purge == "lazy" else 0.0
        used = self._crossing(part, whole)
        sent = sum(self.rates.punctuations[i] for i in used)
        return _Input(rate, rate * (self.life(part, whole) + lazy), sent, sum(self.kept[i] for i in used))

    def _extensions(self, inputs: tuple[int, ...], rows: list[float], first: int) -> float:
        """Return the probes that one row of input `first` causes: one for each partial result so far."""
        share = self.selectivity
        bound, found, probes = inputs[first], 1.0, 0.0
        # The share of pairs that match is that of the whole over those of the two sides.
        left = {part: rows[i] / share[part] for i, part in enumerate(inputs) if i != first}
        while left:
            matches, best = min([(size * share[bound | part], part) for part, size in left.items()])
            probes += found
            found *= matches / share[bound]
            bound |= best
            del left[best]
        return probes + found

    def _waits(self) -> list[float]:
        values = {
            ref: 1 / share
            for columns, share in zip(self.graph.classes, self.rates.selectivities, strict=True)
            for ref in columns
        }
        return [
            math.prod(values.get(ColumnRef(self.graph.names[s.stream], c), 1.0) for c in s.columns) / rate
            for s, rate in zip(self.graph.schemes, self.rates.punctuations, strict=True)
        ]

    def _kept(self) -> list[float]:
        bounds = {(b.stream, b.columns): b for b in promise_bounds(self.graph)}
        kept = []
        for scheme, rate, wait in zip(self.graph.schemes, self.rates.punctuations, self.waits, strict=True):
            bound = bounds.get((self.graph.names[scheme.stream], scheme.columns))
            seconds = KEPT_AT_MOST_SECONDS
            if bound is not None and bound.lifespan_ns is not None:
                seconds = min(seconds, bound.lifespan_ns / 1e9)
            if bound is not None and not bound.unanswered_by:
                seconds = min(seconds, wait)
            kept.append(rate * seconds)
        return kept

    def _schemes_in(self, whole: int) -> tuple[int, ...]:
        """Return the schemes that a join of `whole` uses: all that help, or as few as keep it safe."""
        chosen = [
            i
            for i, s in enumerate(self.graph.schemes)
            if whole >> s.stream & 1 and s.covered_by(whole & ~(1 << s.stream))
        ]
        if self.schemes == "all":
            return tuple(chosen)
        for i in sorted(chosen, key=lambda i: -self.kept[i]):
            rest = [j for j in chosen if j != i]
            if is_safe_by_definition(self.graph.with_schemes(rest), whole):
                chosen = rest
        return tuple(chosen)

    def _life(self, part: int, whole: int) -> float:
        """Return how many seconds a row of input `part` stays in a join of `whole`."""
        reached = dict.fromkeys(members(part), 0.0)
        schemes = [(self.graph.schemes[i], self.waits[i]) for i in self.schemes_in(whole)]
        while len(reached) < whole.bit_count():
            soonest: dict[int, float] = {}
            for i, after in reached.items():
                for j in members(self.graph.window_targets[i] & whole):
                    if j not in reached:
                        width = max(0, self.graph.uppers[i][j] or 0) / 1e9
                        soonest[j] = min(soonest.get(j, math.inf), after + width)
            for scheme, wait in schemes:
                if scheme.stream not in reached:
                    starts = [
                        min((reached[k] for k in members(partners) if k in reached), default=math.inf)
                        for partners in scheme.partners
                    ]
                    time = max(starts) + wait
                    soonest[scheme.stream] = min(soonest.get(scheme.stream, math.inf), time)
            following = min(soonest, key=soonest.__getitem__)
            reached[following] = soonest[following]
        return max(reached.values())

    def _selectivity(self, streams: int) -> float:
        share = 1.0
        for columns, selectivity in zip(self.graph.classes, self.rates.selectivities, strict=True):
            joined = {ref.stream for ref in columns if streams >> self.graph.names.index(ref.stream) & 1}
            share *= selectivity ** max(0, len(joined) - 1)
        return share

    def _result_rate(self, streams: int) -> float:
        rates = self.rates.rows
        if streams.bit_count() == 1:
            return rates[streams.bit_length() - 1]
        alive = {i: rates[i] * self.life(1 << i, streams) for i in members(streams)}
        terms = (rates[i] * math.prod(rows for j, rows in alive.items() if j != i) for i in alive)
        return self.selectivity[streams] * sum(terms)
