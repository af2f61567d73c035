"""A residual predicate bound to stored rows: row references in, one byte per candidate out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from streamjoin.inputs import Inputs
from streamjoin.predicates import Predicate
from streamjoin.rows import RowRefs, RowStore

BoundPredicate = Callable[[RowRefs], npt.NDArray[np.uint8]]


def bound_predicate(predicate: Predicate, inputs: Inputs, stores: Sequence[RowStore]) -> BoundPredicate:
    """Check the predicate against the schemas and return it as the core calls it."""
    bound = predicate.bind(dict(zip(inputs.names, inputs.schemas, strict=True)))
    bound.check(inputs.types())
    places = []
    for stream, column in bound.columns:
        place = inputs.names.index(stream)
        places.append((f"{stream}.{column}", stores[place], inputs.schemas[place].get_field_index(column)))

    def holds(candidates: RowRefs) -> npt.NDArray[np.uint8]:
        return bound.mask({name: store.gather(candidates, column) for name, store, column in places}).view(
            np.uint8
        )

    return holds
