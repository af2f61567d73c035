"""`Spread`: by what the work of one join is shared among buckets: by key, by slabs of time, by both, or not.

    time       |---- slab 0 ----|---- slab 1 ----|---- slab 2 ----|
    leading        a     a     a    a                                 a row is in the slab of its time
    another            b       b|b  b                                 a row is in every slab that can hold
                               +-- in slabs 0 and 1                   a leading row it matches

Slab `k` of a key belongs to bucket `(hash of the key + k) mod buckets`. Every result has one row of the
leading stream, which is in one bucket only, with everything it can match: so each result comes once, and so
does each unmatched row if the leading stream is the preserved one. Within a bucket rows are in time order
whatever slabs they are of, so there is one operator and one clock a stream, and what it holds is bounded by
the window.

Cost: a row of another stream is sent and held `1 + width of its window / length of a slab` times on average.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import streamjoin as sj
from streamjoin.durations import Duration, format_duration, nanoseconds
from streamjoin.spark.layout import Slabs, choose_bucket_columns

WIDTHS = 4  # of the widest window in one slab, unless told: copies are a quarter of the rows, or less
WIDTHS_OF_KEY = 16  # where keys spread as well and slabs only cut hot ones
FAR = 2**62
LEADING = {"left": 0, "left_semi": 0, "left_anti": 0, "right": 1}


@dataclass(frozen=True)
class Spread:
    """What chooses the bucket of a row, and in words what does or why nothing can."""

    bucket_columns: tuple[tuple[str, ...], ...]
    slabs: Slabs | None
    buckets: int
    text: str


def choose_spread(
    query: sj.Query,
    buckets: int,
    *,
    streaming: bool,
    by: tuple[str, ...] | None = None,
    emit: str = "rows",
    punctuated: Collection[str] = (),
    slab: Duration | None = None,
) -> Spread:
    """Choose keys where every stream has one in common, slabs where windows allow them.

    `by`: the groups of an aggregate, `punctuated`: streams that get punctuations from outside, `slab`: the
    length of slabs. Without it a streaming join that has a key is spread by the key alone: copies are state.
    """
    columns = choose_bucket_columns(query, by)
    length = None if slab is None else nanoseconds(slab, what="slab")
    if length is not None and length < 1000:
        raise sj.QueryError(f"slab: expected a duration of at least a microsecond, got {slab!r}")
    slabs = _slabs(query, length, bool(columns[0]), streaming, by, emit, punctuated)
    if isinstance(slabs, str) and length is not None:
        raise sj.QueryError(f"slab: this join cannot be spread by time: {slabs}; got slab={slab!r}")
    if columns[0] and streaming and length is None:
        slabs = "a key spreads a streaming join"
    by_key = _keys(query, columns)
    if isinstance(slabs, Slabs):
        chosen = " and ".join([*([by_key] if by_key else []), slabs_text(query, slabs)])
        return Spread(columns, slabs if buckets > 1 else None, buckets, _over(buckets, chosen))
    if by_key:
        return Spread(columns, None, buckets, _over(buckets, by_key))
    common = "no attribute is common to all streams" + (" and the groups" if by is not None else "")
    why = (
        f"one bucket: {common}, and slabs of time cannot spread it: {slabs}; the whole join runs in one task"
    )
    return Spread(columns, None, 1, why)


def slabs_text(query: sj.Query, slabs: Slabs) -> str:
    """Return the slabs in words."""
    return f"slabs of {format_duration(slabs.length * 1000)} led by {query.stream_names[slabs.leading]}"


def microseconds_column(frame: DataFrame, name: str) -> Column:
    """Return a time column as microseconds since 1970, as the operator reads it: no time zone moves it."""
    column, kind = frame[name], frame.schema[name].dataType.typeName()
    if kind in ("byte", "short", "integer", "long"):
        return column.cast("long")
    if kind == "timestamp":
        return F.unix_micros(column)
    days = F.unix_date(column.cast("date")).cast("long") * 86_400_000_000
    if kind == "date":
        return days
    # A time without zone: the session's zone would move it, or fold an hour of it.
    seconds = F.hour(column) * 3600 + F.minute(column) * 60
    exact = F.expr(f"extract(SECOND FROM `{name}`)").cast("decimal(8, 6)") * 1_000_000
    return days + seconds.cast("long") * 1_000_000 + exact.cast("long")


def with_slab(frame: DataFrame, slabs: Slabs, place: int, at: Column, name: str, buckets: int) -> DataFrame:
    """Return the rows of a stream with the number of their slab, once for every slab it has partners in.

    A slab is found in floating point, which rounds but never reverses two times: a row and its partner agree.
    """
    back, ahead = slabs.reach[place]
    length = F.lit(float(slabs.length))
    inside = F.greatest(F.lit(-FAR), F.least(F.lit(FAR), at))  # no sum below leaves the 64 bits
    # A missing time is not forgotten: the operator refuses it by name.
    if place == slabs.leading:
        return frame.select("*", F.floor(F.coalesce(inside, F.lit(0)) / length).alias(name))
    first, last = F.floor((inside - back) / length), F.floor((inside + ahead) / length)
    # More slabs than buckets would bring a row into one bucket twice.
    numbers = F.when(last >= first, F.sequence(first, F.least(last, first + (buckets - 1))))
    anywhere = F.array(F.lit(0).cast("long"))
    return frame.select("*", F.explode(F.when(at.isNull(), anywhere).otherwise(numbers)).alias(name))


def _slabs(
    query: sj.Query,
    length: int | None,
    has_key: bool,
    streaming: bool,
    by: tuple[str, ...] | None,
    emit: str,
    punctuated: Collection[str],
) -> Slabs | str:
    """Return the slabs of a query, or why it can have none."""
    promising = [s.name for s in query.streams if s.unique_columns or s.clustered_columns] + list(punctuated)
    if promising:
        return f"punctuations of {promising[0]} speak of all times"
    if by is not None:
        return "groups would be spread over slabs"
    if emit != "rows":
        return f"emit={emit!r} would show copies of rows"
    if query.how == "full":
        return "a full join preserves both streams, and only one can lead"
    if streaming and not isinstance(query.disorder, sj.InOrder):
        return f"{query.disorder} keeps a clock of its own in every bucket"
    found = []
    for leading in [LEADING[query.how]] if query.how in LEADING else range(len(query.streams)):
        reach = [_reach(query, leading, place) for place in range(len(query.streams))]
        bounded = [part for part in reach if part is not None]
        if len(bounded) == len(reach):
            widest = max(back + ahead for back, ahead in bounded)
            copied = sum(back + ahead for back, ahead in bounded)
            found.append((copied, leading, widest, tuple(bounded)))
    if not found:
        open_pair = next(query.windows.open_pairs())
        return f"windows leave it open how long after {open_pair[0]} a row of {open_pair[1]} may come"
    _, leading, widest, reach_of = min(found)
    unless_told = max(1, widest * (WIDTHS_OF_KEY if has_key else WIDTHS))
    return Slabs(leading, unless_told if length is None else length // 1000, reach_of)


def _reach(query: sj.Query, leading: int, place: int) -> tuple[int, int] | None:
    """How far before and behind a row of a stream the leading rows stand that it can match, microseconds."""
    back, ahead = query.windows.upper(leading, place), query.windows.upper(place, leading)
    if back is None or ahead is None:
        return None
    rounded = -(-back // 1000), -(-ahead // 1000)
    return rounded if max(map(abs, rounded)) < FAR // (4 * WIDTHS_OF_KEY) else None


def _keys(query: sj.Query, columns: tuple[tuple[str, ...], ...]) -> str:
    return ", ".join(
        " = ".join(f"{n}.{c}" for n, c in zip(query.stream_names, attribute, strict=True))
        for attribute in zip(*columns, strict=True)
    )


def _over(buckets: int, by: str) -> str:
    return f"spread over {buckets} buckets by {by}" if buckets > 1 else "one bucket, as asked for"
