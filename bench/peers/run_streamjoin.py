"""streamjoin.Operator on the workload: one thread, file by file."""

import pyarrow.compute as pc
import pyarrow.parquet as pq
import streamjoin as sj
from runner import FOLDER, MODULUS, WINDOW_US, run


def join() -> tuple[int, int]:
    files = [sorted((FOLDER / side).glob("*.parquet")) for side in ("left", "right")]
    schema = pq.read_schema(files[0][0])
    query = sj.Query(
        [sj.Stream("left", time="t"), sj.Stream("right", time="t")],
        on=["left.k = right.k"],
        within=sj.within(WINDOW_US),
    )
    operator = sj.Operator(query, schemas={"left": schema, "right": schema})
    results = checksum = 0
    for pair in zip(*files, strict=True):
        for side, file in zip(("left", "right"), pair, strict=True):
            rows = operator.push(side, pq.read_table(file)).rows
            results += rows.num_rows
            product = pc.multiply(rows.column("left_id"), rows.column("right_id")).to_numpy()
            checksum += int((product % MODULUS).sum())
    return results + operator.finish().rows.num_rows, checksum


run(sj.__version__, join)
