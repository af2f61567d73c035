"""The declaration of a query: plain, frozen data that refuses nonsense at once.

    Stream, Stream, ...  +  on  +  within  +  where  --validate-->  equalities, windows, predicate, algorithm

Everything derived is computed when the query is made and never changes. No data, no native module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from itertools import permutations
from typing import Any, NamedTuple

from streamjoin.algorithms import ALGORITHMS, Algorithm, choose_algorithm
from streamjoin.attribute_classes import AttributeClass, attribute_classes
from streamjoin.disorder import DisorderPolicy, InOrder, MaxSlack, Recall, Slack
from streamjoin.errors import QueryError
from streamjoin.explanation import explain
from streamjoin.expressions import ColumnRef
from streamjoin.plan import JoinNode, Plan, PlanChoice, Plans, StreamLeaf, choose_plan, plan_of, safe_plans
from streamjoin.predicates import CallablePredicate, Predicate, column_ref, parse_where
from streamjoin.safety import SafetyReport, check_safety
from streamjoin.stream import Stream, call_of
from streamjoin.window_matrix import WindowMatrix
from streamjoin.windows import AllPairs, Between, Path, WindowDeclaration

CHOICES = {
    "how": ("inner", "left", "right", "full", "left_semi", "left_anti"),
    "algorithm": ALGORITHMS,
    "late": ("drop", "insert", "error"),
    "on_violation": ("drop", "keep", "error"),
    "purge": ("eager", "lazy"),
}


class Equality(NamedTuple):
    """A join predicate; the stream of `left` is declared before that of `right`. Null-safe: null = null."""

    left: ColumnRef
    right: ColumnRef
    null_safe: bool

    def __str__(self) -> str:
        """Return it as it is written in `on`."""
        return f"{self.left} {'<=>' if self.null_safe else '='} {self.right}"


@dataclass(frozen=True, repr=False)
class Query:
    """A join of two or more streams.

    `on`: equalities as text, "a.x = b.y" or null-safe "a.x <=> b.y"; all must hold. `within`: windows, made
    by `within`, `between`, `follows` and `path`. `how`: "inner", "left", "right", "full", "left_semi" or
    "left_anti"; three and more streams join "inner". `where`: a further condition as text, `band`, `distance`
    or a function from a dict of arrays to a mask. `algorithm`: "auto" chooses; `explain()` says what and why.

    `disorder`: `InOrder`, `Slack`, `MaxSlack` or `Recall`. `late` rows are dropped, inserted or an error,
    rows that break a promise (`on_violation`) dropped, kept or an error. `purge`: punctuations are acted on
    at once ("eager") or together ("lazy"). `require_safe=False` lets `Operator` run a query whose state could
    grow. `result_time`: the name of a result column with the largest time of the parts.

    >>> auction = Stream("auction", time="opened_at", window="12 hours", unique="item_id")
    >>> bid = Stream("bid", time="placed_at", window="0 s", punctuations=["item_id"])
    >>> query = Query([auction, bid], on=["auction.item_id = bid.item_id"])
    >>> query.check().safe
    True
    """

    streams: Sequence[Stream]
    on: str | Sequence[str] = field(compare=False)
    _: KW_ONLY
    within: WindowDeclaration | Sequence[WindowDeclaration] = field(default=(), compare=False)
    how: str = "inner"
    where: str | Predicate | Callable[[dict[str, Any]], Any] | None = field(default=None, compare=False)
    algorithm: str = "auto"
    disorder: DisorderPolicy = field(default=InOrder())
    late: str = "drop"
    on_violation: str = "drop"
    purge: str = "eager"
    require_safe: bool = True
    result_time: str | None = None
    equalities: tuple[Equality, ...] = field(init=False)
    attribute_classes: tuple[AttributeClass, ...] = field(init=False)
    windows: WindowMatrix = field(init=False)
    window_alternatives: tuple[WindowMatrix, ...] = field(init=False)
    predicate: Predicate | None = field(init=False)
    chosen_algorithm: Algorithm = field(init=False)

    def __post_init__(self) -> None:
        """Refuse nonsense and derive the plain data."""
        derive = partial(object.__setattr__, self)
        derive("streams", _streams(self.streams))
        if not isinstance(self.on, Sequence):
            raise QueryError(f"on: expected a list of texts such as 'a.x = b.y', got {self.on!r}")
        derive("on", (self.on,) if isinstance(self.on, str) else tuple(self.on))
        derive("within", self._declarations())
        self._check_options()
        derive("equalities", self._equalities())
        own = [stream.window_ns for stream in self.streams]
        alternatives = WindowMatrix.alternatives(self.stream_names, own, self.within)  # type: ignore[arg-type]
        derive("window_alternatives", alternatives)
        derive("windows", WindowMatrix.hull(alternatives))
        derive("attribute_classes", attribute_classes(self.stream_names, self.equalities))
        derive("predicate", self._predicate())
        self._check_connected()
        derive("chosen_algorithm", choose_algorithm(self))

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names of the streams, in declared order."""
        return tuple(stream.name for stream in self.streams)

    @property
    def declared_rates(self) -> dict[str, float]:
        """The rates of the streams that declare one."""
        return {stream.name: stream.rate for stream in self.streams if stream.rate is not None}

    def stream_index(self, name: str) -> int:
        """Return the place of a stream in the declared order."""
        try:
            return self.stream_names.index(name)
        except ValueError:
            raise QueryError(f"expected one of the streams {list(self.stream_names)}, got {name!r}") from None

    def check(self) -> SafetyReport:
        """Say whether the state of every stream stays bounded. Never raises.

        >>> a, b = Stream("a", time="t", window="5 s"), Stream("b", time="t")
        >>> Query([a, b], on=["a.x = b.x"], require_safe=False).check().purgeable
        {'a': True, 'b': False}
        """
        return check_safety(self)

    def plans(
        self,
        *,
        rates: Mapping[str, float] | None = None,
        selectivities: Mapping[str, float] | None = None,
        punctuation_rates: Mapping[str, float] | None = None,
        schemes: str = "all",
        purge: str | None = None,
        limit: int | None = 100,
    ) -> Plans:
        """List the safe plans, cheapest first, at most `limit` of them.

        `rates`: rows a second by stream, where they are not those declared; `selectivities`: by predicate as
        in `on`; `punctuation_rates`: punctuations a second by scheme ("bid.item_id", "s3.A, C"). `schemes`:
        use all, or a minimal set.

        >>> a, b = (Stream(name, time="t", punctuations=["x"]) for name in "ab")
        >>> print(Query([a, b], on=["a.x = b.x"]).plans()[0].root)
        (a b)
        """
        return safe_plans(
            self,
            rates={**self.declared_rates, **(rates or {})},
            selectivities=selectivities or {},
            punctuation_rates=punctuation_rates or {},
            schemes=schemes,
            purge=self.purge if purge is None else purge,
            limit=limit,
        )

    @cached_property
    def chosen_plan(self) -> PlanChoice:
        """The plan that an `Operator` runs if it is given none: the cheapest that can run, and why."""
        return choose_plan(self)

    def single_join_plan(self, *, schemes: str = "all", purge: str | None = None) -> Plan:
        """Return the plan in which one join takes all streams. QueryError if the query is not safe."""
        if not self.check().safe:
            raise QueryError("single_join_plan: expected a query that check() finds safe")
        root = JoinNode(tuple(map(StreamLeaf, self.stream_names)))
        return plan_of(self, root, schemes=schemes, purge=self.purge if purge is None else purge)

    def explain(self) -> str:
        """Return the query, its windows after closure, its algorithm and what purges what, as text."""
        return explain(self)

    def __repr__(self) -> str:
        """Return the call that declares it."""
        return call_of(self, positional=("streams", "on"))

    def _declarations(self) -> tuple[WindowDeclaration, ...]:
        declarations = self.within if isinstance(self.within, Sequence) else (self.within,)
        for declaration in declarations:
            if not isinstance(declaration, (AllPairs, Between, Path)):
                expected = "expected within(), between(), follows(), path() or a list of them"
                raise QueryError(f"within: {expected}, got {self.within!r}")
        return tuple(declarations)

    def _check_options(self) -> None:
        for option, choices in CHOICES.items():
            value = getattr(self, option)
            if value not in choices:
                raise QueryError(f"{option}: expected one of {list(choices)}, got {value!r}")
        if self.how != "inner" and len(self.streams) > 2:
            raise QueryError(f"how: a join of {len(self.streams)} streams must be 'inner', got {self.how!r}")
        if self.how != "inner" and self.algorithm not in ("auto", "hash"):
            raise QueryError(f"algorithm: a {self.how} join is a hash join, got {self.algorithm!r}")
        if not isinstance(self.disorder, (InOrder, Slack, MaxSlack, Recall)):
            expected = "expected InOrder(), Slack(), MaxSlack() or Recall()"
            raise QueryError(f"disorder: {expected}, got {self.disorder!r}")
        if not isinstance(self.disorder, InOrder) and self.on_violation == "error":
            raise QueryError(
                f"on_violation: under {self.disorder!r} a row is found to break a promise after the call "
                "that brought it; expected 'drop' or 'keep', got 'error'"
            )
        if not isinstance(self.require_safe, bool):
            raise QueryError(f"require_safe: expected True or False, got {self.require_safe!r}")
        if self.result_time is not None and (not isinstance(self.result_time, str) or not self.result_time):
            raise QueryError(f"result_time: expected the name of a result column, got {self.result_time!r}")

    def _equalities(self) -> tuple[Equality, ...]:
        null_safe: dict[tuple[ColumnRef, ColumnRef], bool] = {}
        for text in self.on:
            left, right, safe = _equality(text)
            for stream in (left.stream, right.stream):
                if stream not in self.stream_names:
                    names = list(self.stream_names)
                    raise QueryError(f"on {text!r}: expected one of the streams {names}, got {stream!r}")
            if left.stream == right.stream:
                raise QueryError(f"on {text!r}: expected columns of two streams, got {left.stream!r} twice")
            if self.stream_index(left.stream) > self.stream_index(right.stream):
                left, right = right, left
            # Of two predicates on the same columns the stricter one decides.
            null_safe[left, right] = safe and null_safe.get((left, right), True)
        return tuple(Equality(*pair, safe) for pair, safe in null_safe.items())

    def _predicate(self) -> Predicate | None:
        if self.where is None:
            return None
        if isinstance(self.where, str):
            return parse_where(self.where, self.stream_names)
        if not isinstance(self.where, Predicate):
            if not callable(self.where):
                raise QueryError(
                    f"where: expected text, band(), distance() or a function, got {self.where!r}"
                )
            return CallablePredicate(self.where)
        for stream, column in self.where.columns:
            if stream not in self.stream_names:
                names = list(self.stream_names)
                raise QueryError(f"where {self.where}: {stream}.{column} is of none of the streams {names}")
        return self.where

    def _check_connected(self) -> None:
        """Refuse streams that neither an equality nor a two-sided window ties to the rest."""
        names = self.stream_names
        equal = {frozenset((equality.left.stream, equality.right.stream)) for equality in self.equalities}
        links = [
            (names[i], names[j])
            for i, j in permutations(range(len(names)), 2)
            if frozenset((names[i], names[j])) in equal or self.windows.is_bounded(i, j)
        ]
        tied = {names[0]}
        while more := {right for left, right in links if left in tied} - tied:
            tied |= more
        if loose := [name for name in names if name not in tied]:
            raise QueryError(
                f"on: nothing ties stream {names[0]!r} to {', '.join(map(repr, loose))}; expected an "
                f"equality or a window that bounds their difference on both sides, got on={list(self.on)}"
            )


def _streams(streams: Sequence[Stream]) -> tuple[Stream, ...]:
    if isinstance(streams, (str, Stream)) or not isinstance(streams, Sequence) or len(streams) < 2:
        raise QueryError(f"streams: expected a list of two or more streams, got {streams!r}")
    names = []
    for stream in streams:
        if not isinstance(stream, Stream):
            raise QueryError(f"streams: expected Stream objects, got {stream!r}")
        if stream.name in names:
            raise QueryError(f"streams: names must differ, got {stream.name!r} twice")
        names.append(stream.name)
    return tuple(streams)


def _equality(text: str) -> tuple[ColumnRef, ColumnRef, bool]:
    what = f"on {text!r}, of the form 'a.x = b.y' or 'a.x <=> b.y'"
    found = re.fullmatch(r"(.*?)(<=>|==?)(.*)", text, re.DOTALL) if isinstance(text, str) else None
    if found is None:
        raise QueryError(f"{what}: expected two columns and one of these operators, got {text!r}")
    return column_ref(found[1], what=what), column_ref(found[3], what=what), found[2] == "<=>"
