"""Static DataFrames: the same join in one pass over sorted partitions.

    union of all streams (number, time, one struct column a stream) -> partitions by key -> sorted by time
    -> mapInArrow

Every stream is in time order, and all of them together are: behind each Arrow batch every clock stands at
its last time, so an operator holds the window and one batch, never a whole key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamjoin as sj
from streamjoin.spark import frames
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout
from streamjoin.spark.packing import BUCKET, PUNCTUATION, Pass, fitted, microseconds

if TYPE_CHECKING:
    from streamjoin.spark.join import Plumbing

TAG, AT = "_tag", "_at"


def join(plumbing: Plumbing) -> DataFrame:
    """Return the join of static DataFrames."""
    layout = plumbing.layout
    parts = []
    for place, stream in enumerate(layout.query.streams):
        rows = plumbing.rows(place)
        if PUNCTUATION in rows.columns:
            promised = rows.where(F.col(PUNCTUATION))
            bucket = plumbing.punctuation_bucket(promised, place)
            parts.append(_tagged(layout, place, promised.withColumn(BUCKET, bucket), punctuations=True))
            rows = rows.where(~F.coalesce(F.col(PUNCTUATION), F.lit(False)))
        parts.append(_tagged(layout, place, rows, punctuations=False))
        if isinstance(plumbing.punctuations.get(stream.name), DataFrame):
            parts.append(_tagged(layout, place, plumbing.punctuation_rows(place), punctuations=True))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    spread = whole.repartition(1) if layout.buckets == 1 else whole.repartition(layout.buckets, BUCKET)
    ordered = spread.sortWithinPartitions(AT, TAG)
    return ordered.mapInArrow(_joined(layout), plumbing.result_type())


def _tagged(layout: Layout, place: int, rows: DataFrame, *, punctuations: bool) -> DataFrame:
    """Return rows in the shape of the union. At one time punctuations stand behind rows."""
    stream = layout.query.streams[place]
    names = list(layout.schemas[place].names)
    kind = frames.PUNCTUATIONS if punctuations else frames.ROWS
    tag = kind * len(layout.query.streams) + place
    if punctuations:
        known = [*layout.punctuation_columns[stream.name], stream.time]
        names = [name for name in dict.fromkeys(known) if name in rows.columns]
        if layout.buckets > 1:
            every = F.array([F.lit(bucket) for bucket in range(layout.buckets)])
            rows = rows.withColumn(
                BUCKET, F.explode(F.when(F.col(BUCKET).isNull(), every).otherwise(F.array(BUCKET)))
            )
    at = rows[stream.time] if stream.time in rows.columns else F.lit(None)
    kept = "rows" if kind == frames.ROWS else "promises"
    return rows.select(
        F.lit(tag).alias(TAG),
        _microseconds(rows, stream.time, at).alias(AT),
        F.col(BUCKET).cast("int").alias(BUCKET),
        F.struct(*[rows[name] for name in names]).alias(f"{kept}_{place}"),
    )


def _microseconds(rows: DataFrame, name: str, at: F.Column) -> F.Column:  # type: ignore[name-defined]
    kind = rows.schema[name].dataType.typeName() if name in rows.columns else "void"
    if kind in ("byte", "short", "integer", "long"):
        return at.cast("long")
    if kind == "void":
        return F.lit(2**63 - 1)
    return F.unix_micros(at.cast("timestamp"))


def _joined(layout: Layout) -> Pass:
    """Return the pass over one sorted partition."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket = Bucket(layout)
        for batch in batches:
            for table in bucket.results(_step(layout, bucket, pa.Table.from_batches([batch]))):
                yield from table.to_batches()
        for table in bucket.finish():
            yield from table.to_batches()

    return run


def _step(layout: Layout, bucket: Bucket, batch: pa.Table) -> Iterator[sj.Output]:
    streams = layout.query.streams
    tags = batch.column(TAG)
    for tag in range(2 * len(streams)):
        kind, place = divmod(tag, len(streams))
        chosen = batch.filter(pc.equal(tags, tag))
        if chosen.num_rows == 0:
            continue
        column = f"rows_{place}" if kind == frames.ROWS else f"promises_{place}"
        table = pa.Table.from_struct_array(chosen.column(column))
        if kind == frames.ROWS:
            yield bucket.operator.push(streams[place].name, fitted(table, layout.schemas[place]))
        else:
            schema = pa.schema([layout.schemas[place].field(name) for name in table.schema.names])
            yield from bucket.punctuate(place, [pa.Table.from_batches([fitted(table, schema)])])
    if batch.num_rows:
        last = microseconds(batch.column(AT), what="time")[-1]
        for place in range(len(streams)):
            yield bucket.advance(place, int(last))
