"""DuckDB on the workload: a batch join of the files, all cores."""

import duckdb
from runner import FOLDER, MODULUS, WINDOW_US, run


def join() -> tuple[int, int]:
    [(results, checksum)] = duckdb.sql(
        f"select count(*), sum(l.id * r.id % {MODULUS})::bigint "
        f"from '{FOLDER}/left/*.parquet' l join '{FOLDER}/right/*.parquet' r on l.k = r.k "
        f"and epoch_us(r.t) - epoch_us(l.t) between {-WINDOW_US} and {WINDOW_US}"
    ).fetchall()
    return results, checksum


run(duckdb.__version__, join)
