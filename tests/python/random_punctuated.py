"""Seeded random m-way queries with schemes; scripts whose streams keep their promises, or not, if asked."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import streamjoin as sj
from purge_judge import Beat, Column, Op, Punctuate, PurgeJudge, Push, Row, Rules

NAMES = "abcde"
COLUMNS = ("x", "y")


@dataclass(frozen=True, kw_only=True)
class PunctuatedCase:
    seed: int
    rules: Rules
    kind: str  # of the key columns
    schemes: tuple[tuple[tuple[str, ...], ...], ...]
    script: tuple[Op, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(NAMES[: self.rules.streams])

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.rules}, keys {self.kind}, schemes {self.schemes}"]
        return "\n".join(lines + [f"  {i}: {op}" for i, op in enumerate(self.script)])


def make_case(seed: int, *, harsh: bool = False) -> PunctuatedCase:
    """`harsh`: promises end, and rows break them."""
    rng = random.Random(f"punctuated {seed}/{harsh}")
    n = rng.choice((2, 3, 3, 3, 3, 3, 4, 4))
    columns = [[column for column in COLUMNS if rng.random() < 0.8] or ["x"] for _ in range(n)]
    equal: list[tuple[Column, Column]] = []
    for i in range(1, n):  # connected, and now and then a cycle or a second equality
        for j in [rng.randrange(i), *(k for k in range(i) if rng.random() < 0.3)]:
            pair = ((j, rng.choice(columns[j])), (i, rng.choice(columns[i])))
            if pair not in equal:
                equal.append(pair)
    joined = [sorted({column for pair in equal for s, column in pair if s == i}) for i in range(n)]
    schemes = [tuple(_scheme(rng, joined[i]) for _ in range(rng.choice((0, 1, 1, 2)))) for i in range(n)]
    implies: list[tuple[str, tuple[str, ...]] | None] = [None] * n
    for i in range(n):
        if rng.random() < 0.15:
            implies[i] = (rng.choice(("unique", "clustered")), _scheme(rng, joined[i]))
    if not any(schemes) and not any(implies):
        schemes[0] = (_scheme(rng, joined[0]),)
    bounds = []
    if rng.random() < 0.35:
        for _ in range(rng.randint(1, n)):
            i, j = rng.sample(range(n), 2)
            bounds.append((i, j, rng.randint(0, 6)))
    rules = Rules(
        streams=n,
        equal=tuple(equal),
        bounds=tuple(bounds),
        implies=tuple(implies),
        lifespans=tuple(rng.choice((None, 3, 8)) if harsh else None for _ in range(n)),
        on_violation=rng.choice(("drop", "keep")) if harsh else "drop",
    )
    kind = rng.choice(("int64", "int64", "string"))
    breaks = 0.2 if harsh else 0.0
    script = _write(rng, rules, joined, schemes, kind, rng.randint(8, 34 - 4 * n), breaks)
    return PunctuatedCase(seed=seed, rules=rules, kind=kind, schemes=tuple(schemes), script=tuple(script))


def declare(case: PunctuatedCase, **options: Any) -> sj.Query:
    rules, names = case.rules, case.names
    streams = []
    for i, name in enumerate(names):
        implied = rules.implies[i]
        extra = {} if implied is None else {implied[0]: implied[1]}
        streams.append(
            sj.Stream(
                name, time="t", punctuations=list(case.schemes[i]), lifespan=rules.lifespans[i], **extra
            )
        )
    within = [sj.between(names[i], names[j], upper=upper) for i, j, upper in rules.bounds]
    on = [f"{names[i]}.{c} = {names[j]}.{d}" for (i, c), (j, d) in rules.equal]
    options = {"on_violation": rules.on_violation, "require_safe": False, **options}
    return sj.Query(streams, on, within=within, **options)


def _scheme(rng: random.Random, joined: list[str]) -> tuple[str, ...]:
    return tuple(sorted(rng.sample(joined, rng.randint(1, len(joined)))))


def _write(
    rng: random.Random,
    rules: Rules,
    joined: list[list[str]],
    schemes: list[tuple[tuple[str, ...], ...]],
    kind: str,
    length: int,
    breaks: float,
) -> list[Op]:
    """Values drift upwards, so that there are always some that nobody has promised away."""
    judge = PurgeJudge(rules)
    script: list[Op] = []
    clocks, number = [0] * rules.streams, 0

    def value(step: int) -> Any:
        drawn = step // 5 + rng.choice((0, 0, 1, 1, 2, 3))
        return drawn if kind == "int64" else f"v{drawn:02}"

    for step in range(length):
        s = rng.randrange(rules.streams)
        dice = rng.random()
        op: Op
        if dice < 0.6:
            rows = []
            for _ in range(rng.choice((1, 1, 2, 3))):
                clocks[s] += rng.choice((0, 0, 1, 2))
                values = {c: None if rng.random() < 0.03 else value(step) for c in COLUMNS}
                row = Row(number, clocks[s], values)
                if rng.random() >= breaks and _breaks(judge, s, row, rows):
                    continue
                rows.append(row)
                number += 1
            op = Push(s, tuple(rows))
        elif dice < 0.93:
            known = [*schemes[s], *([tuple(rng.sample(joined[s], 1))] if rng.random() < 0.2 else [])]
            if not known:
                continue
            pattern = {column: _pattern(rng, value, step) for column in rng.choice(known)}
            op = Punctuate(s, pattern, rng.choice((None, clocks[s])))
        else:
            clocks[s] += rng.randint(0, 3)
            op = Beat(s, clocks[s])
            clocks[s] += 1
        judge.run(op)
        script.append(op)
    return script


def _breaks(judge: PurgeJudge, s: int, row: Row, before: list[Row]) -> bool:
    """Whether the row breaks a promise, one that earlier rows of its own batch imply included."""
    if any(judge._speaks_of(p, row) for p in judge.promises[s]):
        return True
    implied = judge.rules.implies[s]
    if implied is None:
        return False
    own = [tuple(r.values[c] for c in implied[1]) for r in [*before, row]]
    if implied[0] == "unique":
        return own[-1] in own[:-1]
    cluster = judge.cluster[s]
    runs = own if cluster is None else [tuple(cluster[c] for c in implied[1]), *own]
    return any(runs[i] == runs[-1] != runs[i + 1] for i in range(len(runs) - 1))


def _pattern(rng: random.Random, value: Any, step: int) -> Any:
    dice = rng.random()
    if dice < 0.7:
        return value(step)
    if dice < 0.85:
        return sorted({value(step) for _ in range(2)})
    low, high = sorted((value(step), value(step)))
    return rng.choice((sj.Range(low, high), sj.Range(None, low)))
