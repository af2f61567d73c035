"""The native side of a join of two streams on values: windows and punctuations, every join type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin import _core
from streamjoin.bound_predicate import bound_predicate
from streamjoin.disorder_options import disorder_options
from streamjoin.errors import QueryError
from streamjoin.inputs import Inputs
from streamjoin.keys import KeyAttribute, NativeColumn
from streamjoin.native_patterns import NativePattern, native_patterns
from streamjoin.promised_keys import PromisedKeys
from streamjoin.results import OutputAttribute
from streamjoin.rows import RowStore


class BinarySide:
    """A `_core.BinaryOperator` with the conversion of its arguments."""

    def __init__(self, inputs: Inputs, stores: Sequence[RowStore], variant: str) -> None:
        """Choose the key types and start the core."""
        self._inputs = inputs
        query = inputs.query
        pairs = [(equality.left, equality.right) for equality in query.equalities]
        self._attributes = [
            KeyAttribute.of(*(inputs.type_of(*ref) for ref in (e.left, e.right)), what=str(e))
            for e in query.equalities
        ]
        self.key_columns = [[pair[side].column for pair in pairs] for side in (0, 1)]
        self.output_attributes = [
            OutputAttribute(pair, attribute) for pair, attribute in zip(pairs, self._attributes, strict=True)
        ]
        predicate = query.predicate
        self._predicate = None if predicate is None else bound_predicate(predicate, inputs, stores)
        self._disorder = disorder_options(inputs)
        unit = inputs.unit
        self.core = _core.BinaryOperator(
            how=query.how,
            lower=unit.smallest_at_least(query.windows.lower(0, 1)),
            upper=unit.largest_at_most(query.windows.upper(0, 1)),
            late=query.late,
            on_violation=query.on_violation,
            implies=tuple(self._implied(side) for side in (0, 1)),
            lifespans=tuple(unit.largest_at_most(stream.lifespan_ns) for stream in query.streams),
            key_types=[(attribute.kind, attribute.width) for attribute in self._attributes],
            null_safe=[equality.null_safe for equality in query.equalities],
            use_windows=variant != "pjoin",
            use_punctuations=variant != "wjoin",
            disorder=self._disorder,
            predicate=None if self._disorder is None else self._predicate,
        )

    def push(
        self,
        side: int,
        number: int,
        rows: pa.RecordBatch,
        times: npt.NDArray[np.int64],
        promised: PromisedKeys | None = None,
    ) -> _core.Output:
        """Join the rows of a stored batch, and take the punctuations between them."""
        keys = self.native_keys(side, rows, what=f"stream {self._inputs.names[side]!r}")
        predicate = self._predicate if self._disorder is None else None
        return self.core.push(side, number, times, keys, predicate, promised)

    def native_keys(self, side: int, rows: pa.RecordBatch, *, what: str) -> list[NativeColumn]:
        """Return the key columns of a batch as the core reads them."""
        return [
            attribute.native(rows.column(column), what=f"{what}, column {column!r}")
            for attribute, column in zip(self._attributes, self.key_columns[side], strict=True)
        ]

    def native_patterns(self, side: int, pattern: Mapping[str, Any]) -> list[NativePattern]:
        """Return one native pattern per combination of listed values."""
        return native_patterns(self._inputs, side, self.key_columns[side], self._attributes, pattern)

    def _implied(self, side: int) -> str:
        """Say which punctuations the rows imply. They must speak of the whole key, not less."""
        stream = self._inputs.query.streams[side]
        for option, columns in (("unique", stream.unique_columns), ("clustered", stream.clustered_columns)):
            if columns is None or not set(columns) <= set(self.key_columns[side]):
                continue  # of no use to this join; check() says so
            if option == "clustered" and set(columns) != set(self.key_columns[side]):
                raise QueryError(
                    f"stream {stream.name!r}, clustered: "
                    f"expected all join attributes {self.key_columns[side]}, got {list(columns)}"
                )
            return option
        return "nothing"
