"""Aggregates over the results of a join: declarations only.

A group is emitted once, when the join's own output punctuation says that no further result belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamjoin.errors import QueryError


@dataclass(frozen=True)
class Aggregate:
    """One function over the groups of `by`; made by `count`, `sum`, `min`, `max`, `avg`.

    >>> avg("bid_price", by=["auction_item_id", "auction_seller"], as_="price").by
    ('auction_item_id', 'auction_seller')
    """

    function: str
    column: str | None
    by: tuple[str, ...]
    as_: str


def count(column: str | None = None, *, by: str | Sequence[str], as_: str = "count") -> Aggregate:
    """Count the results of a group; with a column, those where it is not null.

    >>> count(by="auction_item_id", as_="bids")
    Aggregate(function='count', column=None, by=('auction_item_id',), as_='bids')
    """
    return _aggregate("count", column, by, as_)


def sum(column: str, *, by: str | Sequence[str], as_: str | None = None) -> Aggregate:
    """Add up a result column within a group; null if it has no value there.

    >>> sum("bid_price", by="auction_item_id").as_
    'sum_bid_price'
    """
    return _aggregate("sum", column, by, as_)


def min(column: str, *, by: str | Sequence[str], as_: str | None = None) -> Aggregate:
    """Find the smallest value of a result column within a group.

    >>> min("bid_price", by="auction_item_id").as_
    'min_bid_price'
    """
    return _aggregate("min", column, by, as_)


def max(column: str, *, by: str | Sequence[str], as_: str | None = None) -> Aggregate:
    """Find the largest value of a result column within a group.

    >>> max("bid_price", by="auction_item_id", as_="price").as_
    'price'
    """
    return _aggregate("max", column, by, as_)


def avg(column: str, *, by: str | Sequence[str], as_: str | None = None) -> Aggregate:
    """Average a result column within a group, nulls left out.

    >>> avg("bid_price", by="auction_item_id").function
    'avg'
    """
    return _aggregate("avg", column, by, as_)


def _aggregate(function: str, column: str | None, by: str | Sequence[str], as_: str | None) -> Aggregate:
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise QueryError(f"{function}, by: expected a result column or several, got {by!r}")
    if len(set(columns)) != len(columns):
        raise QueryError(f"{function}, by: expected different columns, got {by!r}")
    name = as_ if as_ is not None else f"{function}_{column}"
    if not isinstance(name, str) or not name or name in columns:
        raise QueryError(f"{function}, as_: expected the name of a new column, got {as_!r}")
    return Aggregate(function, column, columns, name)
