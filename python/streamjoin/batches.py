"""What users push, as one Arrow batch that fits its stream's schema; schemas likewise."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamjoin.errors import DataError, QueryError


def to_schema(schema: Any, *, what: str) -> pa.Schema:
    """Return a schema given as Arrow or by the PyCapsule interface."""
    if not isinstance(schema, pa.Schema):
        try:
            schema = pa.schema(schema)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise QueryError(f"{what}: expected an Arrow schema, got {schema!r}") from error
    if len(set(schema.names)) != len(schema.names):
        raise QueryError(f"{what}: expected different column names, got {schema.names}")
    return schema.remove_metadata()


def to_batch(data: Any, schema: pa.Schema, *, what: str) -> pa.RecordBatch:
    """Return data as one batch with exactly the columns of `schema`, in order; DataError if it cannot."""
    if isinstance(data, pa.RecordBatch) and data.schema.equals(schema):
        return data
    table = _to_table(data, schema, what=what)
    for name in schema.names:
        if name not in table.schema.names:
            raise DataError(f"{what}: expected a column {name!r}, got {table.schema.names}")
    for name in table.schema.names:
        if name not in schema.names:
            raise DataError(f"{what}: expected the columns {schema.names}, got also {name!r}")
    if len(table.schema) != len(schema):
        raise DataError(f"{what}: expected different column names, got {table.schema.names}")
    for field in schema:
        came = table.schema.field(field.name).type
        if came != field.type:
            raise DataError(f"{what}, column {field.name!r}: expected type {field.type}, got {came}")
    if isinstance(table, pa.RecordBatch):
        return pa.RecordBatch.from_arrays([table.column(name) for name in schema.names], schema=schema)
    batches = table.select(schema.names).combine_chunks().to_batches()
    if len(batches) > 1:
        raise DataError(
            f"{what}: expected a batch of at most 2 GiB a column, got {table.nbytes} bytes; push it in pieces"
        )
    columns = (
        [batches[0].column(name) for name in schema.names]
        if batches
        else [pa.nulls(0, f.type) for f in schema]
    )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _to_table(data: Any, schema: pa.Schema, *, what: str) -> pa.Table | pa.RecordBatch:
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return data
    try:
        if type(data).__module__.partition(".")[0] == "pandas":
            known = pa.schema([field for field in schema if field.name in data.columns])
            table = pa.Table.from_pandas(data, schema=known, preserve_index=False)
            extra = [column for column in data.columns if column not in schema.names]
            if extra:
                raise DataError(f"{what}: expected the columns {schema.names}, got also {extra[0]!r}")
            return table
        if hasattr(data, "__arrow_c_array__"):
            return pa.record_batch(data)
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{what}: expected data of the schema ({_shown(schema)}), got {error}") from error
    raise DataError(f"{what}: expected Arrow data or a pandas DataFrame, got {data!r}")


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
