"""Polars on the workload: a lazy batch join of the files, all cores."""

import polars as pl
from runner import FOLDER, MODULUS, WINDOW_US, run


def join() -> tuple[int, int]:
    left = pl.scan_parquet(f"{FOLDER}/left/*.parquet")
    right = pl.scan_parquet(f"{FOLDER}/right/*.parquet")
    apart = (pl.col("t_right") - pl.col("t")).dt.total_microseconds()
    found = (
        left.join(right, on="k")
        .filter(apart.is_between(-WINDOW_US, WINDOW_US))
        .select(pl.len(), (pl.col("id") * pl.col("id_right") % MODULUS).sum().alias("checksum"))
        .collect(engine="streaming")
    )
    results, checksum = found.row(0)
    return results, checksum


run(pl.__version__, join)
