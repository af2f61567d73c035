"""What the results of one join of a tree must still pass: exact windows, conditions on columns from below.

The native join has seen one time of each input. Between the other streams the bounds are checked here, on
whole columns; of windows in both directions, all bounds of one direction must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.inputs import Inputs
from streamjoin.predicates import Predicate
from streamjoin.running_join import Times

Bound = tuple[int, int, int]  # i, j, the largest time(j) - time(i)


class ResultFilter:
    """Checks result rows that hold the columns of `streams`, each named by `column_name(stream, column)`."""

    def __init__(
        self,
        inputs: Inputs,
        column_name: Callable[[int, str], str],
        streams: Sequence[int],
        conditions: Sequence[Predicate],
    ) -> None:
        """Check the conditions against the schemas."""
        self._inputs, self._column_name, self._streams = inputs, column_name, streams
        schemas = dict(zip(inputs.names, inputs.schemas, strict=True))
        self._conditions = [condition.bind(schemas) for condition in conditions]
        for condition in self._conditions:
            condition.check(inputs.types())
        self._ways = self._bounds()

    def trust_join(self) -> None:
        """Take the windows as checked by the join, unless they go in two directions."""
        if len(self._ways) == 1:
            self._ways = []

    def passed(self, table: pa.Table) -> pa.Table:
        """Return the rows that pass everything."""
        if table.num_rows and self._ways:
            table = _kept(table, self._in_time(table))
        for condition in self._conditions:
            if not table.num_rows:
                break
            columns = {
                f"{stream}.{column}": self._column(table, self._inputs.names.index(stream), column)
                for stream, column in condition.columns
            }
            table = _kept(table, condition.mask(columns))
        return table

    def _column(self, table: pa.Table, stream: int, column: str) -> pa.Array:
        return table.column(self._column_name(stream, column)).combine_chunks()

    def _in_time(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        streams = self._inputs.query.streams
        times = {
            i: self._inputs.unit.integers(self._column(table, i, streams[i].time), what="time")
            for i in self._streams
        }
        some = np.zeros(table.num_rows, dtype=np.bool_)
        for bounds in self._ways:
            fits = np.ones(table.num_rows, dtype=np.bool_)
            for i, j, upper in bounds:
                fits &= _at_most(times[i], times[j], upper)
            some |= fits
        return some

    def _bounds(self) -> list[list[Bound]]:
        """Return the bounds of each alternative; none if one of them lets everything pass."""
        unit = self._inputs.unit
        found = [
            [
                (i, j, upper)
                for i, j in permutations(self._streams, 2)
                if (upper := unit.largest_at_most(matrix.upper(i, j))) is not None
            ]
            for matrix in self._inputs.query.window_alternatives
        ]
        return found if all(found) else []


def _kept(table: pa.Table, holds: npt.NDArray[np.bool_]) -> pa.Table:
    return table if holds.all() else table.filter(pa.array(holds))


def _at_most(earlier: Times, later: Times, upper: int) -> npt.NDArray[np.bool_]:
    """Tell where later - earlier <= upper, also where the difference has more than 64 bits."""
    ahead = later.view(np.uint64) - earlier.view(np.uint64)
    behind = earlier.view(np.uint64) - later.view(np.uint64)
    if upper >= 0:
        return (later <= earlier) | (ahead <= np.uint64(upper))
    return (later < earlier) & (behind >= np.uint64(-upper))
