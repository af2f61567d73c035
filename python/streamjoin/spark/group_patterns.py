"""What output punctuations say of the groups of an aggregate, as keys, constants and ends of ranges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def keys_of(table: pa.Table, schema: pa.Schema) -> Iterable[Any]:
    """Return the rows as values that compare as the join compares: NaN equals NaN."""
    columns = []
    for name in table.schema.names:
        column = table.column(name).cast(schema.field(name).type)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        values = column.to_pylist()
        if pa.types.is_floating(column.type):
            values = ["NaN" if value != value else value for value in values]
        columns.append(values)
    return columns[0] if len(columns) == 1 else zip(*columns, strict=True)


def patterns_of(
    punctuations: pa.Table, attributes_: list[list[str]], by: list[str]
) -> list[tuple[pa.Table, pa.Table, pa.Table]]:
    """Split punctuations by the columns of `by` they fix; those that speak of other columns are left out.

    Each part has constants, and lower and upper ends of ranges, by column of `by`.
    """
    covers = np.ones(punctuations.num_rows, dtype=np.bool_)
    fixed: list[tuple[str, str, pa.ChunkedArray]] = []
    for columns in attributes_:
        known = [name for name in columns if name in punctuations.schema.names]
        same = len({punctuations.schema.field(name).type for name in known}) == 1
        value = pc.coalesce(*map(punctuations.column, known)) if same else punctuations.column(known[0])
        said = [("value", value)]
        for end in ("low", "high"):
            for name in columns:
                if f"{name}_{end}" in punctuations.schema.names:
                    said.append((end, punctuations.column(f"{name}_{end}")))
        group = next((name for name in columns if name in by), None)
        for kind, column in said:
            if group is None:
                covers &= ~pc.is_valid(column).to_numpy()
            else:
                fixed.append((kind, group, column))
    shapes = np.zeros(punctuations.num_rows, dtype=np.int64)
    for place, (_, _, column) in enumerate(fixed):
        shapes |= pc.is_valid(column).to_numpy().astype(np.int64) << place
    parts = []
    for shape in np.unique(shapes[covers]):
        chosen = pa.array(covers & (shapes == shape))
        tables = {}
        for kind in ("value", "low", "high"):
            said_of = {
                name: column.filter(chosen)
                for place, (k, name, column) in enumerate(fixed)
                if k == kind and shape >> place & 1
            }
            tables[kind] = pa.table(said_of)
        parts.append((tables["value"], tables["low"], tables["high"]))
    return parts
