"""`join`: one function for streaming and for static DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

import streamjoin as sj
from streamjoin.aggregates import Aggregate
from streamjoin.durations import Duration
from streamjoin.spark import checks, static
from streamjoin.spark.bucket import rows_schema
from streamjoin.spark.groups import Groups
from streamjoin.spark.layout import Layout, result_schema
from streamjoin.spark.packing import BUCKET, PUNCTUATION, pack_punctuations, pack_rows, unpack
from streamjoin.spark.processor import OBSERVED, OUTPUT, JoinProcessor
from streamjoin.spark.spread import Spread, choose_spread, microseconds_column, with_slab

MIN_LOG_BYTES = "spark.streamjoin.state.minLogBytes"
Punctuations = Mapping[str, DataFrame | str]


def join(
    query: sj.Query,
    streams: Mapping[str, DataFrame],
    *,
    punctuations: Punctuations | None = None,
    buckets: int | None = None,
    emit: str = "rows",
    aggregate: Aggregate | Sequence[Aggregate] = (),
    slab: Duration | None = None,
) -> DataFrame:
    """Join DataFrames: streaming ones give a streaming DataFrame, static ones a DataFrame with the same rows.

    `punctuations`: per stream a DataFrame with the columns of one of its schemes and the time, or a SQL
    condition that picks the rows of the stream which are punctuations. `buckets`: how many operators share
    the work; as many as shuffle partitions unless told; fixed by the first run of a streaming query. `emit`:
    "rows"; "rows_and_punctuations" adds the columns `_kind` and `_time`; "all" also shows late rows and
    violations (`_stream`, `_late_by`). `aggregate`: emit groups instead, each once, when it is complete.
    `slab`: the length of the slabs of time by which a join is spread that windows bound; chosen from the
    windows unless told.

    >>> import streamjoin as sj
    >>> streams = [sj.Stream("a", time="t"), sj.Stream("b", time="t")]
    >>> query = sj.Query(streams, on=["a.x = b.x"], within=sj.within("5 s"))
    >>> second = 1_000_000
    >>> a = spark.createDataFrame([(1, 0), (2, 0)], "x long, t long")
    >>> b = spark.createDataFrame([(1, 4 * second), (2, 9 * second)], "x long, t long")
    >>> join(query, {"a": a, "b": b}).collect()
    [Row(a_x=1, a_t=0, b_x=1, b_t=4000000)]
    """
    punctuations = {} if punctuations is None else punctuations
    aggregates = (aggregate,) if isinstance(aggregate, Aggregate) else tuple(aggregate)
    checks.check_frames(query, streams, "streams")
    checks.check_all_streams(query, streams)
    checks.check_frames(query, punctuations, "punctuations")
    checks.check_options(emit, buckets, aggregates)
    for stream in query.streams:
        checks.check_columns(stream, streams[stream.name])
    streaming = checks.check_same_kind(streams, punctuations)
    spark = streams[query.stream_names[0]].sparkSession
    if streaming:
        checks.check_streaming(spark, query)
    else:
        query = replace(query, disorder=sj.InOrder())  # rows are sorted: nothing to wait for
    if buckets is None:
        buckets = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    spread = choose_spread(
        query,
        buckets,
        streaming=streaming,
        by=aggregates[0].by if aggregates else None,
        emit=emit,
        punctuated=tuple(punctuations),
        slab=slab,
    )
    layout = _layout(query, streams, punctuations, spread, emit, aggregates)
    plumbing = Plumbing(spark, layout, streams, punctuations)
    return plumbing.streaming() if streaming else static.join(plumbing)


def explain(
    query: sj.Query,
    *,
    buckets: int,
    aggregate: Aggregate | Sequence[Aggregate] = (),
    emit: str = "rows",
    punctuations: Collection[str] = (),
    slab: Duration | None = None,
) -> str:
    """Return the query's own explanation and how it is spread over Spark's tasks.

    `punctuations`: the streams that get some from outside.

    >>> import streamjoin as sj
    >>> streams = [sj.Stream("a", time="t"), sj.Stream("b", time="t")]
    >>> text = explain(sj.Query(streams, on=["a.x = b.y"], within=sj.within("5 s")), buckets=8)
    >>> print("\\n".join(text.splitlines()[-2:]))
    streaming: spread over 8 buckets by a.x = b.y
    static: spread over 8 buckets by a.x = b.y and slabs of 2 min 40 s led by a
    """
    aggregates = (aggregate,) if isinstance(aggregate, Aggregate) else tuple(aggregate)
    lines = [
        choose_spread(
            query,
            buckets,
            streaming=streaming,
            by=aggregates[0].by if aggregates else None,
            emit=emit,
            punctuated=tuple(punctuations),
            slab=slab,
        ).text
        for streaming in (True, False)
    ]
    return f"{query.explain()}\n\nstreaming: {lines[0]}\nstatic: {lines[1]}"


class Plumbing:
    """The DataFrame operations of one join: which columns go in, how they are spread, what comes out."""

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        streams: Mapping[str, DataFrame],
        punctuations: Punctuations,
    ) -> None:
        """Find the types in which keys of different streams are compared."""
        self.spark, self.layout, self.streams, self.punctuations = spark, layout, streams, punctuations
        self._key_types = [
            _widest([streams[n].select(c) for n, c in zip(layout.query.stream_names, columns, strict=True)])
            for columns in zip(*layout.bucket_columns, strict=True)
        ]

    def streaming(self) -> DataFrame:
        """Pack, shuffle, join in state, unpack."""
        packed = None
        for place, stream in enumerate(self.layout.query.streams):
            parts = [self.rows(place).mapInArrow(pack_rows(self.layout, place), "bucket int, frame binary")]
            if isinstance(self.punctuations.get(stream.name), DataFrame):
                promised = self.punctuation_rows(place)
                parts.append(
                    promised.mapInArrow(pack_punctuations(self.layout, place), "bucket int, frame binary")
                )
            for part in parts:
                packed = part if packed is None else packed.unionByName(part)
        assert packed is not None
        processor = JoinProcessor(
            self.layout, min_log_bytes=int(self.spark.conf.get(MIN_LOG_BYTES, str(1 << 20)) or 0)
        )
        joined = packed.groupBy("bucket").transformWithStateInPandas(processor, OUTPUT, "Append", "None")
        totals = F.collect_list("totals").alias("totals")
        observed = joined.observe(f"{OBSERVED}_{self.layout.fingerprint[:8]}", totals)
        return observed.mapInArrow(unpack(self.layout), self.result_type())

    def rows(self, place: int) -> DataFrame:
        """Return the rows of a stream with their bucket, and a mark where a condition picks punctuations."""
        stream = self.layout.query.streams[place]
        frame = self.streams[stream.name]
        columns = self.layout.bucket_columns[place]
        if self.layout.slabs is not None:
            at = microseconds_column(frame, stream.time)
            copies = with_slab(frame, self.layout.slabs, place, at, BUCKET, self.layout.buckets)
            return copies.withColumn(BUCKET, self.bucket(copies, place, columns, F.col(BUCKET)))
        extra = [self.bucket(frame, place, columns).alias(BUCKET)]
        condition = self.punctuations.get(stream.name)
        if isinstance(condition, str):
            extra.append(F.expr(condition).alias(PUNCTUATION))
        return frame.select("*", *extra)

    def punctuation_rows(self, place: int) -> DataFrame:
        """Return the punctuations of a stream with their bucket; null where they concern every bucket."""
        stream = self.layout.query.streams[place]
        frame = self.punctuations[stream.name]
        assert isinstance(frame, DataFrame)
        known = self.layout.punctuation_columns[stream.name]
        time = [stream.time] if stream.time in frame.columns else []
        return frame.select(
            *dict.fromkeys([*known, *time]),
            self.punctuation_bucket(frame, place).alias(BUCKET),
        )

    def punctuation_bucket(self, frame: DataFrame, place: int) -> Column:
        """Return the bucket that a punctuation concerns, or null for all."""
        columns = self.layout.bucket_columns[place]
        known = self.layout.punctuation_columns[self.layout.query.stream_names[place]]
        if self.layout.buckets > 1 and not set(columns) <= set(known):
            return F.lit(None).cast("int")
        return self.bucket(frame, place, columns)

    def bucket(
        self, frame: DataFrame, place: int, columns: tuple[str, ...], slab: Column | None = None
    ) -> Column:
        """Return the bucket of a row: equal keys hash alike, whatever the types of their columns."""
        if self.layout.buckets == 1:
            return F.lit(0)
        number = F.lit(self.layout.buckets)
        keys = [frame[name].cast(t) for name, t in zip(columns, self._key_types, strict=True)]
        own = F.pmod(F.xxhash64(*keys), number) if keys else F.lit(0)
        return (own if slab is None else F.pmod(own + F.pmod(slab, number), number)).cast("int")

    def result_type(self) -> StructType:
        """Return Spark's type of the results; columns of a stream keep the type they have there."""
        own: dict[str, DataType] = {
            f"{name}_{field.name}": field.dataType
            for name, frame in self.streams.items()
            for field in frame.schema
        }
        fields = []
        for field in self.layout.result:
            same = field.name in own and to_arrow_schema(
                StructType([StructField(field.name, own[field.name])]), timezone="UTC"
            ).field(0).type == field.type  # fmt: skip
            fields.append(StructField(field.name, own[field.name] if same else from_arrow_type(field.type)))
        return StructType(fields)


def _layout(
    query: sj.Query,
    streams: Mapping[str, DataFrame],
    punctuations: Punctuations,
    spread: Spread,
    emit: str,
    aggregates: tuple[Aggregate, ...],
) -> Layout:
    schemas = tuple(arrow_schema(streams[name]) for name in query.stream_names)
    operator = sj.Operator(query, schemas=dict(zip(query.stream_names, schemas, strict=True)), plan="single")
    output = operator.advance(query.stream_names[0], -(2**62))
    result = (
        Groups(query, aggregates, rows_schema(operator, query)).schema
        if aggregates
        else result_schema(output, emit)
    )
    return Layout(
        query=query,
        schemas=schemas,
        buckets=spread.buckets,
        bucket_columns=spread.bucket_columns,
        slabs=spread.slabs,
        punctuation_columns={
            name: _punctuation_columns(query, name, source, streams[name])
            for name, source in punctuations.items()
        },
        emit=emit,
        aggregates=aggregates,
        result=result,
    )


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """Return the schema in which Spark sends a DataFrame; times with a zone are shown in UTC."""
    return pa.schema([pa.field(f.name, f.type) for f in to_arrow_schema(frame.schema, timezone="UTC")])


def _punctuation_columns(
    query: sj.Query, name: str, source: DataFrame | str, rows: DataFrame
) -> tuple[str, ...]:
    """Return the scheme that punctuations from outside follow."""
    stream = query.streams[query.stream_index(name)]
    joined = {ref.column for e in query.equalities for ref in (e.left, e.right) if ref.stream == name}
    schemes = [scheme for scheme in stream.schemes if set(scheme) <= joined]
    if isinstance(source, str):
        if len(schemes) != 1:
            raise sj.QueryError(
                f"punctuations, stream {name!r}: a condition needs exactly one scheme on join attributes "
                f"(Stream(..., punctuations=[...])), got {schemes}"
            )
        _check_condition(rows, source, name)
        return schemes[0]
    given = tuple(column for column in source.columns if column in joined)
    for column in source.columns:
        if column not in joined and column != stream.time:
            raise sj.QueryError(
                f"punctuations, stream {name!r}: expected join attributes {sorted(joined)} and the time "
                f"{stream.time!r}, got the column {column!r}"
            )
        if source.schema[column].dataType != rows.schema[column].dataType:
            raise sj.QueryError(
                f"punctuations, stream {name!r}, column {column!r}: expected the type of the stream, "
                f"{rows.schema[column].dataType.simpleString()}, "
                f"got {source.schema[column].dataType.simpleString()}"
            )
    for scheme in schemes:
        if set(scheme) == set(given):
            return scheme
    raise sj.QueryError(
        f"punctuations, stream {name!r}: expected the columns of one of its schemes {schemes}, got {given}"
    )


def _check_condition(rows: DataFrame, condition: str, name: str) -> None:
    try:
        kind = rows.select(F.expr(condition).alias("c")).schema["c"].dataType.simpleString()
    except Exception as error:
        raise sj.QueryError(
            f"punctuations, stream {name!r}: expected a SQL condition over its columns, "
            f"got {condition!r}: {error}"
        ) from error
    if kind != "boolean":
        raise sj.QueryError(
            f"punctuations, stream {name!r}: expected a condition, got {condition!r} ({kind})"
        )


def _widest(columns: Sequence[DataFrame]) -> Any:
    """Return the type in which Spark compares these columns: that of their union."""
    first, *rest = [column.limit(0) if not column.isStreaming else column for column in columns]
    for other in rest:
        first = first.union(other)
    return first.schema[0].dataType
