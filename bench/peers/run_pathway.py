"""Pathway's interval_join on the workload, in its static mode."""

from importlib.metadata import version

import pathway as pw
import pyarrow as pa
import pyarrow.parquet as pq
from runner import FOLDER, MODULUS, WINDOW_US, run


def read(side: str) -> pw.Table:
    table = pq.read_table(FOLDER / side)
    plain = table.set_column(2, "t", table.column("t").cast(pa.int64()))
    return pw.debug.table_from_pandas(plain.rename_columns(["number", "k", "t", "v"]).to_pandas())


def join() -> tuple[int, int]:
    left, right = read("left"), read("right")
    reach = pw.temporal.interval(-WINDOW_US, WINDOW_US)
    pairs = left.interval_join(right, left.t, right.t, reach, left.k == right.k)
    products = pairs.select(product=left.number * right.number % MODULUS)
    totals = products.reduce(results=pw.reducers.count(), checksum=pw.reducers.sum(products.product))
    row = pw.debug.table_to_pandas(totals).iloc[0]
    return int(row["results"]), int(row["checksum"])


run(version("pathway"), join)
