"""Flink SQL's interval join on the workload through PyFlink, streaming mode, 2 slots.

PyFlink comes without the Parquet format, so it reads the same rows as CSV. The totals are computed
inside Flink, in mini-batches, so that few updates reach Python.
"""

from importlib.metadata import version

from pyflink.table import EnvironmentSettings, TableEnvironment
from runner import FOLDER, MODULUS, WINDOW_US, run

TABLES = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for option, value in {
    "parallelism.default": "2",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "1000000",
    "table.local-time-zone": "UTC",
}.items():
    TABLES.get_config().set(option, value)


def join() -> tuple[int, int]:
    for side in ("left", "right"):
        TABLES.execute_sql(
            f"create table {side}_stream (id bigint, k bigint, t timestamp(3), v double, "
            "watermark for t as t) with ('connector' = 'filesystem', "
            f"'path' = '{FOLDER}/{side}.csv', 'format' = 'csv')"
        )
    near = f"interval '{WINDOW_US // 1_000_000}' second"
    totals = TABLES.execute_sql(
        f"select count(*), sum(mod(l.id * r.id, cast({MODULUS} as bigint))) "
        "from left_stream l join right_stream r "
        f"on l.k = r.k and r.t between l.t - {near} and l.t + {near}"
    )
    results = checksum = 0
    with totals.collect() as rows:
        for row in rows:
            results, checksum = row[0], row[1]
    return results, checksum


run(version("apache-flink"), join)
