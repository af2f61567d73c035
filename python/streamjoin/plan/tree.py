"""A plan as plain data that an operator can run.

JoinNode                          ((auction bid) person)
  JoinNode                        every node names its streams; inputs are nodes or streams
    StreamLeaf auction
    StreamLeaf bid
  StreamLeaf person
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias


class Cost(NamedTuple):
    """What a plan holds and does: rows in state, probes a second, punctuations kept."""

    state_rows: float
    probes: float
    punctuations: float

    @property
    def total(self) -> float:
        """One number to compare plans by: a row, a probe a second and a punctuation count the same."""
        return self.state_rows + self.probes + self.punctuations

    def plus(self, other: Cost) -> Cost:
        """Return the cost of both together."""
        return Cost(self[0] + other[0], self[1] + other[1], self[2] + other[2])


@dataclass(frozen=True)
class StreamLeaf:
    """An input of the query."""

    name: str

    @property
    def streams(self) -> tuple[str, ...]:
        """The stream itself."""
        return (self.name,)

    def __str__(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True)
class JoinNode:
    """A join of two or more inputs; `schemes` are the punctuations it uses, as (stream, columns)."""

    inputs: tuple[PlanNode, ...]
    schemes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams below, from left to right."""
        return tuple(name for node in self.inputs for name in node.streams)

    def nodes(self) -> Iterator[JoinNode]:
        """Yield this join and all below it, inputs first: the order in which to build them."""
        for node in self.inputs:
            if isinstance(node, JoinNode):
                yield from node.nodes()
        yield self

    def __str__(self) -> str:
        """Return the tree in parentheses."""
        return f"({' '.join(map(str, self.inputs))})"


PlanNode: TypeAlias = StreamLeaf | JoinNode


@dataclass(frozen=True)
class Plan:
    """A safe plan with its cost.

    `root` is the tree, `purge` says when punctuations are acted on, `schemes` whether all of them are or only
    a minimal set: that of the joins. `Operator(query, plan=...)` runs it.

    >>> import streamjoin as sj
    >>> streams = [sj.Stream(name, time="t", window="5 s") for name in "abc"]
    >>> plans = sj.Query(streams, on=["a.x = b.x", "b.x = c.x"]).plans()
    >>> sorted(str(plan.root) for plan in plans if plan.is_single_join)
    ['(a b c)']
    """

    root: JoinNode
    cost: Cost
    purge: str = "eager"
    schemes: str = "all"

    @property
    def is_single_join(self) -> bool:
        """Tell whether one join takes all the streams."""
        return all(isinstance(node, StreamLeaf) for node in self.root.inputs)

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "root": _to_plain(self.root),
            "cost": list(self.cost),
            "purge": self.purge,
            "schemes": self.schemes,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Plan:
        """Return the plan that `to_plain` wrote; ValueError, KeyError or TypeError if it is none."""
        root = _from_plain(plain["root"])
        if not isinstance(root, JoinNode):
            raise ValueError(f"expected a join at the root of a plan, got {root}")
        return cls(root, Cost(*plain["cost"]), plain["purge"], plain["schemes"])

    def __str__(self) -> str:
        """Return the tree and its cost."""
        shown = ", ".join(f"{value:,.4g} {what}" for value, what in zip(self.cost, COST_WORDS, strict=True))
        return f"{self.root}: {shown}"


COST_WORDS = ("rows in state", "probes a second", "punctuations kept")


def _to_plain(node: PlanNode) -> Any:
    if isinstance(node, StreamLeaf):
        return node.name
    return {"inputs": [_to_plain(each) for each in node.inputs], "schemes": node.schemes}


def _from_plain(plain: Any) -> PlanNode:
    if isinstance(plain, str):
        return StreamLeaf(plain)
    inputs = tuple(_from_plain(each) for each in plain["inputs"])
    return JoinNode(inputs, tuple((str(name), tuple(columns)) for name, columns in plain["schemes"]))
