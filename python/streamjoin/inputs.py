"""The inputs of a running query: schemas checked against its declaration, batches and times read by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.batches import to_batch, to_schema
from streamjoin.errors import DataError, LateRowError, PunctuationViolation, QueryError
from streamjoin.query import Query
from streamjoin.stream import Stream
from streamjoin.times import TimeUnit


class Inputs:
    """What every stream of a query brings: its schema, its time column, its unit of time."""

    def __init__(self, query: Query, schemas: Mapping[str, Any], *, part_of: Inputs | None = None) -> None:
        """Check that the schemas have the columns that the query names.

        `part_of`: the inputs of the whole query, if this is one join of a tree; it runs in the unit of all.
        """
        self.query = query
        self.names = query.stream_names
        for name in schemas:
            if name not in self.names:
                raise QueryError(f"schemas: expected the streams {list(self.names)}, got {name!r}")
        self.schemas = [self._checked(stream, schemas) for stream in query.streams]
        pairs = list(zip(query.streams, self.schemas, strict=True))
        self.time_columns = [schema.get_field_index(stream.time) for stream, schema in pairs]
        types = {f"{stream.name}.{stream.time}": schema.field(stream.time).type for stream, schema in pairs}
        self.unit: TimeUnit = TimeUnit.of(types) if part_of is None else part_of.unit
        self.time_type: pa.DataType = self.unit.column_type(types) if part_of is None else part_of.time_type

    def type_of(self, stream: str, column: str) -> pa.DataType:
        """Return the type of a column."""
        return self.schemas[self.names.index(stream)].field(column).type

    def types(self) -> dict[str, pa.DataType]:
        """Return the types of all columns, by qualified name."""
        return {
            f"{n}.{f.name}": f.type
            for n, schema in zip(self.names, self.schemas, strict=True)
            for f in schema
        }

    def batch(self, place: int, data: Any) -> pa.RecordBatch:
        """Return data of a stream as one batch of its schema."""
        return to_batch(data, self.schemas[place], what=f"stream {self.names[place]!r}")

    def times(self, place: int, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Return the times of a batch as integers."""
        return self.unit.integers(rows.column(self.time_columns[place]), what=self._time_name(place))

    def refusal(
        self,
        place: int,
        rows: pa.RecordBatch,
        times: npt.NDArray[np.int64],
        key_columns: list[str],
        refused: tuple[str, int, int],
    ) -> DataError:
        """Return the error for a batch that the core refused by policy."""
        why, row, clock = refused
        value = rows.column(self.time_columns[place])[row].as_py()
        if why == "late":
            behind = f"a time not behind the stream's clock {clock} ({self.unit.name})"
            return LateRowError(
                f"{self._time_name(place)}: expected {behind}, got {value} ({int(times[row])}) in row {row}"
            )
        key = {column: rows.column(column)[row].as_py() for column in key_columns}
        return PunctuationViolation(
            f"stream {self.names[place]!r}, columns {key_columns}: "
            f"expected no more rows of a key that was punctuated, got {key} in row {row}"
        )

    def _checked(self, stream: Stream, schemas: Mapping[str, Any]) -> pa.Schema:
        if stream.name not in schemas:
            raise QueryError(f"schemas: expected a schema of stream {stream.name!r}, got {sorted(schemas)}")
        schema = to_schema(schemas[stream.name], what=f"stream {stream.name!r}")
        wanted = {stream.time, *(column for scheme in stream.schemes for column in scheme)}
        wanted |= {
            ref.column
            for equality in self.query.equalities
            for ref in (equality.left, equality.right)
            if ref.stream == stream.name
        }
        for column in sorted(wanted - set(schema.names)):
            raise QueryError(
                f"stream {stream.name!r}: expected a column {column!r} in its schema, got {schema.names}"
            )
        return schema

    def _time_name(self, place: int) -> str:
        return f"stream {self.names[place]!r}, time column {self.query.streams[place].time!r}"
