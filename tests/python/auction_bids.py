"""Two streams to work examples by hand on: `auction` (left) and `bid` (right), joined on `item`.

`at` is the event time in microseconds, `id` names a row, `x` is for residual predicates.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import streamjoin as sj

Pairs = list[tuple[int | None, int | None]]


def schema(key: pa.DataType | None = None, time: pa.DataType | None = None) -> pa.Schema:
    return pa.schema(
        [("id", pa.int64()), ("item", key or pa.int64()), ("at", time or pa.int64()), ("x", pa.int64())]
    )


def make(
    how: str = "inner",
    *,
    lower: int | None = -10,
    upper: int | None = 10,
    key: pa.DataType | None = None,
    time: pa.DataType | None = None,
    equal: str = "=",
    **options: Any,
) -> sj.Operator:
    bounded = lower is not None or upper is not None
    query = sj.Query(
        [sj.Stream("auction", time="at"), sj.Stream("bid", time="at")],
        [f"auction.item {equal} bid.item"],
        within=[sj.between("auction", "bid", lower=lower, upper=upper)] if bounded else [],
        how=how,
        require_safe=False,
        **options,
    )
    return sj.Operator(query, schemas={name: schema(key, time) for name in ("auction", "bid")})


def table(
    *rows: tuple[Any, ...], key: pa.DataType | None = None, time: pa.DataType | None = None
) -> pa.Table:
    """Rows of (id, item, at) or (id, item, at, x)."""
    records = [(*row, 0)[:4] for row in rows]
    target = schema(key, time)
    columns = [pa.array([row[i] for row in records], fld.type) for i, fld in enumerate(target)]
    return pa.Table.from_arrays(columns, schema=target)


def pairs(out: sj.Output) -> Pairs:
    rows = out.rows.to_pylist()
    found = [(row["auction_id"], row.get("bid_id")) for row in rows]
    return sorted(found, key=lambda pair: [(i is None, i or 0) for i in pair])


def auction(op: sj.Operator, *rows: tuple[Any, ...], **types: Any) -> Pairs:
    return pairs(op.push("auction", table(*rows, **types)))


def bid(op: sj.Operator, *rows: tuple[Any, ...], **types: Any) -> Pairs:
    return pairs(op.push("bid", table(*rows, **types)))


def counters(op: sj.Operator) -> dict[str, Any]:
    names = "rows_in rows_out state_rows state_keys punctuations_in punctuations_out purged invalidated"
    return {name: getattr(op.stats(), name) for name in [*names.split(), "late", "violations"]}
