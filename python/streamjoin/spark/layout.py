"""`Layout`: how one query lies on Spark, as plain data that the driver decides and every worker gets.

    stream rows --+                          +-- bucket 0: one operator
    stream rows --+-- packed by bucket --->  +-- bucket 1: one operator
    punctuations -+   (blobs, shuffled)      +-- ...

A bucket is a share of the keys, of the time, or of both (`spread`): rows that can match meet in one of them.
The key is that of attributes that every stream compares (`a.x = b.x = c.x`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import streamjoin as sj
from streamjoin.aggregates import Aggregate

EMITS = ("rows", "rows_and_punctuations", "all")
KIND, TIME, STREAM, LATE_BY = "_kind", "_time", "_stream", "_late_by"


@dataclass(frozen=True)
class Slabs:
    """Time cut into slabs of `length` microseconds; each row of stream `leading` is in that of its time.

    `reach`: per stream, how far before and how far behind a row the leading rows stand that it can match.
    """

    leading: int
    length: int
    reach: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Layout:
    """Everything a packing task, a bucket and an unpacking task must agree on.

    `punctuation_columns`: per stream with punctuations from outside, the join attributes they speak of.
    `bucket_columns`: per stream, the columns whose values choose the bucket. `slabs`: how its time does.
    """

    query: sj.Query
    schemas: tuple[pa.Schema, ...]
    buckets: int
    bucket_columns: tuple[tuple[str, ...], ...]
    punctuation_columns: Mapping[str, tuple[str, ...]]
    emit: str
    aggregates: tuple[Aggregate, ...]
    result: pa.Schema
    slabs: Slabs | None = None

    def operator(self) -> sj.Operator:
        """Return a fresh operator: one join, as rows of a bucket are few and come in small batches."""
        schemas = dict(zip(self.query.stream_names, self.schemas, strict=True))
        return sj.Operator(self.query, schemas=schemas, plan="single")

    @property
    def fingerprint(self) -> str:
        """What a checkpoint must agree on with the query that goes on from it."""
        plain = repr(
            (self.query, self.schemas, self.buckets, self.bucket_columns, self.slabs, self.aggregates)
        )
        return hashlib.sha256(plain.encode()).hexdigest()

    @property
    def delay(self) -> int | None:
        """How far behind the largest time a row may still come, in microseconds; None if nobody can say.

        So far a bucket may go by the clocks of the others. Slack that is learned differs by bucket.
        """
        disorder = self.query.disorder
        if isinstance(disorder, sj.InOrder):
            return 0
        return -(-disorder.slack_ns // 1000) if isinstance(disorder, sj.Slack) else None


def attributes(query: sj.Query) -> list[tuple[tuple[str, str], ...]]:
    """Return the columns (stream, column) that the query makes equal, one tuple an attribute.

    Equality is transitive, so `a.x = b.y` and `b.y = c.z` make one attribute of three columns.
    """
    groups: list[list[tuple[str, str]]] = []
    for equality in query.equalities:
        pair = [(ref.stream, ref.column) for ref in (equality.left, equality.right)]
        touched = [group for group in groups if any(column in group for column in pair)]
        groups = [group for group in groups if group not in touched]
        groups.append(list(dict.fromkeys([column for group in touched for column in group] + pair)))
    return [tuple(group) for group in groups]


def choose_bucket_columns(query: sj.Query, by: tuple[str, ...] | None) -> tuple[tuple[str, ...], ...]:
    """Return per stream the columns that choose the bucket: of attributes that every stream has.

    A group of an aggregate (`by`, result columns) must not be spread over buckets. Attributes that every
    scheme speaks of are preferred: a punctuation then concerns one bucket alone.
    """
    usable = []
    for attribute in attributes(query):
        first = dict(reversed(attribute))
        if set(first) == set(query.stream_names) and (by is None or set(by) & result_columns(attribute)):
            usable.append(first)
    schemes = [(stream.name, set(scheme)) for stream in query.streams for scheme in stream.schemes]
    promised = [a for a in usable if all(a[name] in scheme for name, scheme in schemes)]
    return tuple(tuple(a[name] for a in promised or usable) for name in query.stream_names)


def result_columns(attribute: tuple[tuple[str, str], ...]) -> set[str]:
    """Return the result columns that hold an attribute."""
    return {f"{stream}_{column}" for stream, column in attribute}


def bucket_ids(buckets: int) -> list[int]:
    """Return the grouping keys of the buckets: Spark puts key `k` into `pmod(hash(k), partitions)`.

    Bucket 0 always has the key 0, so that a query restarted with another number of buckets meets its old
    state there. The rest follow it round the partitions, one each.
    """
    first = spark_hash(0)
    ids = [0]
    candidate = 1
    while len(ids) < buckets:
        if (spark_hash(candidate) - first - len(ids)) % buckets == 0:
            ids.append(candidate)
        candidate += 1
    return ids


def spark_hash(value: int) -> int:
    """Return Spark's `hash` of a non-negative 32-bit integer: Murmur3 with seed 42, signed."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    h = 42 ^ (k * 0x1B873593 & mask)
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64 & mask) ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def result_schema(output: Any, emit: str) -> pa.Schema:
    """Return the columns of a join's DataFrame, from any `Output` of its operator."""
    if emit == "rows":
        return output.rows.schema
    marks = [pa.field(KIND, pa.string()), pa.field(TIME, output.punctuations.schema.field("time").type)]
    if emit == "rows_and_punctuations":
        return pa.schema([*marks, *output.rows.schema])
    more = [f for f in output.late.schema if f.name not in ("stream", "late_by", *output.rows.schema.names)]
    marks += [pa.field(STREAM, pa.string()), pa.field(LATE_BY, pa.int64())]
    return pa.schema([*marks, *output.rows.schema, *more])
