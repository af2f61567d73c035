"""What is known of the data: rates, selectivities, punctuation rates; and what is assumed where nothing is
said.

    rate                rows a second of a stream                             1
    selectivity         share of pairs of rows that agree in a predicate      0.01: a hundred values in use
    punctuation rate    punctuations a second of one scheme                   a tenth of the stream's rows

Columns of one class draw from the same values, 1 / selectivity of them; of several selectivities given within
a class the smallest counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamjoin.errors import QueryError
from streamjoin.expressions import ColumnRef
from streamjoin.safety.graphs import JoinGraph

if TYPE_CHECKING:
    from streamjoin.query import Query

RATE, SELECTIVITY, ROWS_PER_PUNCTUATION = 1.0, 0.01, 10.0


@dataclass(frozen=True)
class Rates:
    """Numbers for every stream, class of equal columns, and scheme of a join graph, in its order."""

    rows: tuple[float, ...]
    selectivities: tuple[float, ...]
    punctuations: tuple[float, ...]


def resolve_rates(
    query: Query,
    graph: JoinGraph,
    rates: Mapping[str, float],
    selectivities: Mapping[str, float],
    punctuation_rates: Mapping[str, float],
) -> Rates:
    """Match what the user says with streams, predicates and schemes; refuse what names none of them."""
    rows = [RATE] * len(graph.names)
    for name, value in rates.items():
        rows[query.stream_index(name)] = positive(value, f"rates, stream {name!r}")
    shares: list[list[float]] = [[] for _ in graph.classes]
    class_of = {ref: number for number, columns in enumerate(graph.classes) for ref in columns}
    predicates = {str(equality): equality for equality in query.equalities}
    written = dict(zip(map(_squeezed, query.on), query.on, strict=True))
    for text, value in selectivities.items():
        ref = _left_column(text, predicates, written)
        share = positive(value, f"selectivities, {text!r}")
        if share > 1:
            raise QueryError(f"selectivities, {text!r}: expected a share of at most 1, got {value!r}")
        shares[class_of[ref]].append(share)
    schemes = {f"{graph.names[s.stream]}.{', '.join(s.columns)}": i for i, s in enumerate(graph.schemes)}
    punctuations = [rows[s.stream] / ROWS_PER_PUNCTUATION for s in graph.schemes]
    for text, value in punctuation_rates.items():
        if text not in schemes:
            raise QueryError(f"punctuation_rates: expected one of {list(schemes)}, got {text!r}")
        punctuations[schemes[text]] = positive(value, f"punctuation_rates, {text!r}")
    return Rates(tuple(rows), tuple(min(found, default=SELECTIVITY) for found in shares), tuple(punctuations))


def _left_column(text: str, predicates: Mapping[str, object], written: Mapping[str, str]) -> ColumnRef:
    from streamjoin.predicates import column_ref

    if _squeezed(text) not in written and text not in predicates:
        raise QueryError(f"selectivities: expected one of {list(predicates)}, got {text!r}")
    return column_ref(text.replace("<=>", "=").split("=")[0], what="selectivities")


def _squeezed(text: str) -> str:
    return "".join(text.split())


def positive(value: float, what: str) -> float:
    """Return a positive finite number as a float; QueryError for anything else."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise QueryError(f"{what}: expected a positive number, got {value!r}")
    return float(value)
