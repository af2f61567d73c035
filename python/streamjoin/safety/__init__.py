"""Safety: will the state of every stream stay bounded? Decided before the query runs, by declarations alone.

    graphs      join graph, punctuation graph, generalized edges
    deciders    three ways to the verdict
    chains      what purges what, for the run time
    remedies    what would make the query safe
    promises    what bounds the punctuations themselves
    report      all of it, as text and as a picture (drawing, picture, graph_text)

No native module, no data. docs/safety.md tells the idea.
"""

from streamjoin.safety.chains import PurgeChain, SchemeStep, WindowStep, purge_plan
from streamjoin.safety.graphs import JoinGraph
from streamjoin.safety.promises import PromiseBound
from streamjoin.safety.remedies import Remedy
from streamjoin.safety.report import SafetyReport, check_safety

__all__ = [
    "JoinGraph",
    "PromiseBound",
    "PurgeChain",
    "Remedy",
    "SafetyReport",
    "SchemeStep",
    "WindowStep",
    "check_safety",
    "purge_plan",
]
