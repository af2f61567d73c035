"""Static DataFrames: the same join in one pass over sorted partitions.

    union of all streams (number, time, one struct column a stream) -> partition = bucket -> sorted by time
    -> mapInArrow

Every stream is in time order, and all of them together are: behind each piece every clock stands at its last
time, so an operator holds the window and one piece, never a whole key. Pieces shrink where rows have many
matches, so that the results of one piece stay few too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import streamjoin as sj
from streamjoin.spark import frames
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout
from streamjoin.spark.packing import BUCKET, PUNCTUATION, Pass, fitted
from streamjoin.spark.spread import microseconds_column

if TYPE_CHECKING:
    from streamjoin.spark.join import Plumbing

TAG, AT = "_tag", "_at"
AT_THE_END = 2**63 - 1  # where a punctuation without a time stands
LARGEST_PIECE = 1 << 16  # rows pushed before the clocks move
WANTED_RESULTS = 1 << 18  # of one piece, as far as one row has not more


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
    # By id, not by hash: two buckets in one partition would be one operator with two copies of a row.
    ordered = whole.repartitionById(layout.buckets, BUCKET).sortWithinPartitions(AT, TAG)
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
    timed = stream.time in rows.columns
    at = microseconds_column(rows, stream.time) if timed else F.lit(None).cast("long")
    kept = "rows" if kind == frames.ROWS else "promises"
    return rows.select(
        F.lit(tag).alias(TAG),
        (F.coalesce(at, F.lit(AT_THE_END)) if punctuations else at).alias(AT),
        F.col(BUCKET).cast("int").alias(BUCKET),
        F.struct(*[rows[name] for name in names]).alias(f"{kept}_{place}"),
    )


def _joined(layout: Layout) -> Pass:
    """Return the pass over one sorted partition."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket = Bucket(layout)
        size = LARGEST_PIECE
        for batch in batches:
            start = 0
            while start < batch.num_rows:
                piece = pa.Table.from_batches([batch.slice(start, size)])
                start += piece.num_rows
                found = 0
                for output in _step(layout, bucket, piece):
                    for table in bucket.results([output]):
                        found += table.num_rows
                        yield from table.to_batches(LARGEST_PIECE)
                size = _next_size(piece.num_rows, found)
        for table in bucket.finish():
            yield from table.to_batches(LARGEST_PIECE)

    return run


def _next_size(rows: int, results: int) -> int:
    """Return how many rows may have `WANTED_RESULTS` results if they have as many as the last did."""
    return max(1, min(LARGEST_PIECE, 2 * rows, rows * WANTED_RESULTS // max(1, results)))


def _step(layout: Layout, bucket: Bucket, piece: pa.Table) -> Iterator[sj.Output]:
    """Join a piece: its rows, its punctuations, then the clocks at its last time."""
    tags = piece.column(TAG).to_numpy()
    whole = [0, piece.num_rows]
    cuts = _behind_promises(layout, tags) if _has_violations(layout, piece, tags) else whole
    for start, stop in itertools.pairwise(cuts):
        yield from _apply(layout, bucket, piece.slice(start, stop - start), tags[start:stop])
    last = piece.column(AT)[-1].as_py()
    if last != AT_THE_END:
        for place in range(len(layout.query.streams)):
            yield bucket.advance(place, last)


def _apply(
    layout: Layout, bucket: Bucket, piece: pa.Table, tags: npt.NDArray[np.int32]
) -> Iterator[sj.Output]:
    streams = layout.query.streams
    for tag in np.unique(tags):
        kind, place = divmod(int(tag), len(streams))
        table = _of_tag(layout, piece, tags, int(tag))
        if kind == frames.ROWS:
            yield bucket.operator.push(streams[place].name, fitted(table, layout.schemas[place]))
        else:
            schema = pa.schema([layout.schemas[place].field(name) for name in table.schema.names])
            yield from bucket.punctuate(place, [pa.Table.from_batches([fitted(table, schema)])])


def _of_tag(layout: Layout, piece: pa.Table, tags: npt.NDArray[np.int32], tag: int) -> pa.Table:
    kind, place = divmod(tag, len(layout.query.streams))
    column = piece.column(f"rows_{place}" if kind == frames.ROWS else f"promises_{place}")
    return pa.Table.from_struct_array(column.filter(pa.array(tags == tag)))


def _has_violations(layout: Layout, piece: pa.Table, tags: npt.NDArray[np.int32]) -> bool:
    """Tell whether a row of a stream may stand behind a promise of the same piece that speaks of it.

    Rows are pushed before promises, which is right unless a promise is broken: then order decides.
    """
    streams = layout.query.streams
    for place, stream in enumerate(streams):
        promised, rows = tags == len(streams) + place, tags == place
        if not (promised.any() and rows.any()):
            continue
        earliest = np.flatnonzero(promised)
        later = np.arange(len(tags)) > earliest[0]
        suspects = np.flatnonzero(rows & later)
        promises = pa.Table.from_struct_array(piece.column(f"promises_{place}").take(pa.array(earliest)))
        data = pa.Table.from_struct_array(piece.column(f"rows_{place}").take(pa.array(suspects)))
        broken = np.ones(len(suspects), dtype=np.bool_)
        for name in layout.punctuation_columns[stream.name]:
            # The first promise of a value; a row before it keeps it.
            found = pc.index_in(data.column(name), value_set=promises.column(name).combine_chunks())
            first = pc.fill_null(found, -1).to_numpy()
            broken &= (first >= 0) & (suspects > earliest[first])
        if broken.any():
            return True
    return False


def _behind_promises(layout: Layout, tags: npt.NDArray[np.int32]) -> list[int]:
    """Return where to cut a piece so that no row is pushed together with a promise before it."""
    promised = tags >= len(layout.query.streams)
    return [0, *(np.flatnonzero(promised[:-1] & ~promised[1:]) + 1), len(tags)]
