"""What an operator gives back: `Output` for each call, `Stats` on demand."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa

from streamjoin.growth import Growth

PerStream = dict[str, int]


@dataclass(frozen=True)
class Output:
    """The outcome of one call, as Arrow tables.

    `rows`: result rows, columns `<stream>_<column>`, null where an outer side is missing.
    `punctuations`: no result that comes later matches one of them. Join attributes of both streams (a
    constant), the ends of ranges (`_low`, `_high`, null is open), `time`, `kind`; an attribute without
    constant and range is `*`.
    `late`, `violations`: rows that were not joined, with the stream they came on.

    >>> import streamjoin as sj
    >>> rows = pa.table({"k": [1, 2], "t": [10, 5]})
    >>> query = sj.Query([sj.Stream(s, time="t", window="1 s") for s in "ab"], on=["a.k = b.k"])
    >>> out = sj.Operator(query, schemas={"a": rows.schema, "b": rows.schema}).push("a", rows)
    >>> out
    Output(rows=0, punctuations=0, late=1, violations=0)
    >>> out.late.select(["stream", "late_by"]).to_pylist()
    [{'stream': 'a', 'late_by': 5}]
    """

    rows: pa.Table
    punctuations: pa.Table
    late: pa.Table
    violations: pa.Table

    def __repr__(self) -> str:
        """Return the sizes of the four tables."""
        sizes = (f"{table.name}={getattr(self, table.name).num_rows}" for table in fields(self))
        return f"Output({', '.join(sizes)})"


@dataclass(frozen=True)
class Stats:
    """Counters since the start and sizes now, per stream where that makes sense. Prints as a table.

    Of disorder: `buffered` rows and punctuations wait; rows that were `behind` the clock when their turn came
    met only those after them, and the `late` among them nobody; `slack` is the current K in microseconds.
    Under `Recall`: the recall that the model expects of it, the `requirement` for this interval, and why K
    is what it is.

    `growing` names the streams whose state keeps growing although the query is safe: their punctuations do
    not come. It is judged from what the operator has seen since it was made or restored.

    >>> import streamjoin as sj
    >>> rows = pa.table({"k": [1, 2], "t": [5, 10]})
    >>> query = sj.Query([sj.Stream(s, time="t", window="1 s") for s in "ab"], on=["a.k = b.k"])
    >>> op = sj.Operator(query, schemas={"a": rows.schema, "b": rows.schema})
    >>> out = op.push("a", rows)
    >>> op.stats().state_rows
    {'a': 2, 'b': 0}
    >>> str(op.stats()).splitlines()[1].split()
    ['rows_in', '2', '0']
    """

    rows_in: PerStream
    rows_out: int
    state_rows: PerStream
    state_keys: PerStream
    state_bytes: int
    payload_bytes: PerStream
    stored_rows: PerStream
    dictionary_entries: int
    punctuations_in: PerStream
    punctuations_out: dict[str, int]
    punctuations_held: PerStream
    purged: PerStream
    invalidated: PerStream
    discarded_on_the_fly: PerStream
    dropped_after_propagation: PerStream
    violations: PerStream
    late: PerStream
    buffered: PerStream = field(default_factory=dict)
    behind: PerStream = field(default_factory=dict)
    slack: int | None = None
    estimated_recall: float | None = None
    requirement: float | None = None
    slack_reason: str | None = None
    growing: dict[str, Growth] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return a table: one line per counter, one column per stream."""
        streams = list(self.rows_in)
        lines = [["", *streams]]
        reason = None
        for each in fields(self):
            value: Any = getattr(self, each.name)
            if each.name == "growing":
                continue
            if each.name == "punctuations_out":
                lines += [[f"{each.name} ({kind})", f"{count:,}"] for kind, count in value.items()]
            elif isinstance(value, dict):
                lines += [[each.name, *(f"{value[stream]:,}" for stream in streams)]] if value else []
            elif isinstance(value, str):
                reason = f"{each.name}: {value}"
            elif value is not None:
                lines.append([each.name, f"{value:.4f}" if isinstance(value, float) else f"{value:,}"])
        widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(1 + len(streams))]
        rows = (
            "  ".join(
                [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=False))]
            ).rstrip()
            for line in lines
        )
        growing = (f"growing: {stream}, {Growth(*growth)}" for stream, growth in self.growing.items())
        return "\n".join([*rows, *([reason] if reason else []), *growing])
