"""streamjoin: joins event streams inside time windows, with state that is proved to stay bounded.

>>> import streamjoin as sj
>>> query = sj.Query(
...     [
...         sj.Stream("auction", time="opened_at", window="12 hours"),
...         sj.Stream("bid", time="placed_at", window="0 s"),
...     ],
...     on=["auction.item_id = bid.item_id"],
... )
>>> query.check().safe
True
"""

try:
    from streamjoin import _core as _core
except ImportError as error:  # pragma: no cover - only in a source tree that was not built
    raise ImportError(
        "streamjoin's native module is not built; in a source tree run 'pip install .' first, "
        "and start Python elsewhere"
    ) from error

from streamjoin import kernels
from streamjoin.aggregates import Aggregate, avg, count, max, min, sum
from streamjoin.disorder import InOrder, MaxSlack, Recall, Slack
from streamjoin.errors import (
    DataError,
    LateRowError,
    PunctuationViolation,
    QueryError,
    SnapshotError,
    StreamJoinError,
    UnsafeQueryError,
)
from streamjoin.operator import Operator
from streamjoin.output import Output, Stats
from streamjoin.patterns import ANY, EMPTY, Range
from streamjoin.plan import Plan, PlanChoice
from streamjoin.predicates import band, distance
from streamjoin.query import Query
from streamjoin.safety import SafetyReport, purge_plan
from streamjoin.stream import Stream
from streamjoin.windows import between, follows, path, within

__version__ = _core.__version__

__all__ = [
    "ANY",
    "EMPTY",
    "Aggregate",
    "DataError",
    "InOrder",
    "LateRowError",
    "MaxSlack",
    "Operator",
    "Output",
    "Plan",
    "PlanChoice",
    "PunctuationViolation",
    "Query",
    "QueryError",
    "Range",
    "Recall",
    "SafetyReport",
    "Slack",
    "SnapshotError",
    "Stats",
    "Stream",
    "StreamJoinError",
    "UnsafeQueryError",
    "__version__",
    "avg",
    "band",
    "between",
    "count",
    "distance",
    "follows",
    "kernels",
    "max",
    "min",
    "path",
    "purge_plan",
    "sum",
    "within",
]
