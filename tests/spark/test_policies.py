"""Rows that a policy refuses, without Spark: the error names the stream, the bucket stays as it was."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import streamjoin as sj
from feed import AUCTION, BID, auction_query
from streamjoin.spark import frames
from streamjoin.spark.bucket import Bucket
from streamjoin.spark.layout import Layout, choose_bucket_columns


@pytest.mark.parametrize(
    ("policy", "kind", "error"),
    [
        ({"late": "error"}, frames.ROWS, sj.LateRowError),
        ({"on_violation": "error"}, frames.PUNCTUATIONS, sj.PunctuationViolation),
    ],
)
def test_a_refused_row_is_named_and_leaves_the_bucket_as_it_was(
    policy: dict[str, Any], kind: int, error: type[Exception]
) -> None:
    query = auction_query(**policy)
    operator = sj.Operator(query, schemas={"auction": AUCTION, "bid": BID})
    result = operator.advance("bid", -1).rows.schema
    columns = choose_bucket_columns(query, None)
    bucket = Bucket(Layout(query, (AUCTION, BID), 1, columns, {"bid": ("item",)}, "rows", (), result))

    def bids(item: int, at: int) -> bytes:
        row = pa.record_batch([pa.array([v], f.type) for v, f in zip((item, 1, at), BID, strict=True)], BID)
        return frames.write_frame(frames.ROWS, 1, at, row)

    bucket.apply([bids(1, 50)])
    if kind == frames.PUNCTUATIONS:
        promise = pa.record_batch([pa.array([1])], names=["item"])
        bucket.apply([frames.write_frame(frames.PUNCTUATIONS, 1, None, promise)])
    before = bucket.snapshot()
    refused = bids(2, 10) if kind == frames.ROWS else bids(1, 60)
    with pytest.raises(error, match="'bid'"):
        bucket.apply([refused])
    assert bucket.snapshot() == before
