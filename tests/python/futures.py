"""`Script` draws a query and plays it against the judge of futures, step by step; a seed is a case."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import streamjoin as sj
from future_judge import COLUMNS, KINDS, FutureJudge, Row, draw_shape

FAR = 10_000  # values beyond those that rows draw


class Script:
    """A drawn query with its operator and its judge."""

    def __init__(self, seed: int, *, purge: str = "eager", lifespans: bool = False, **options: Any) -> None:
        self.seed = seed
        self.rng = rng = random.Random(f"futures {seed}/{lifespans}")
        while True:
            self.shape = shape = draw_shape(rng, lifespans=lifespans)
            try:
                self.query = shape.query(purge=purge, **options)
                break
            except sj.QueryError as error:
                if "window" not in str(error):  # they may contradict each other
                    raise
        self.exact = purge == "eager" or any(life is not None for life in shape.lifespans)
        self.op = sj.Operator(
            self.query, schemas={f"s{i}": shape.schema(i) for i in range(shape.n)}, plan="single"
        )
        self.judge = FutureJudge(shape)
        self.low_open = rng.random() < 0.5
        self.ids = self.bursts = 0
        self.log: list[str] = []
        self.said: list[dict[str, Any]] = []
        self.closed: list[str] = []
        self.many = rng.choice((2, 3, 5))
        self.speed = rng.choice((3, 6, 12))

    def play(self, steps: int) -> None:
        rng = self.rng
        try:
            for step in range(steps):
                s = rng.randrange(self.shape.n)
                dice = rng.random()
                if dice < 0.55:
                    self.push(s, step)
                elif dice < 0.88:
                    self.punctuate(s, step)
                elif dice < 0.93:
                    self.beat(s)
                elif dice < 0.95:
                    if all(life is None for life in self.shape.lifespans):
                        self.burst(s)
                elif dice < 0.97:
                    self.restore()
                elif dice < 0.98 and step > steps // 2:
                    self.end(s)
                self.look(exact=self.exact)
            for s in range(self.shape.n):
                self.end(s)
            self.look(exact=True)
            stats = self.op.stats()
            assert sum(stats.state_rows.values()) == stats.dictionary_entries == 0
        except Exception as error:
            error.add_note(f"seed {self.seed}: {self.query!r}\n" + "\n".join(self.log))
            raise

    # ---- operations ----------------------------------------------------------------------------------------

    def value(self, step: int, null: bool = True) -> int | None:
        if null and self.rng.random() < 0.08:
            return None
        return step // self.speed + self.rng.randrange(self.many)

    def push(self, s: int, step: int) -> None:
        rng, judge = self.rng, self.judge
        rows, expected = list[Row](), Counter[tuple[int, ...]]()
        if judge.clock[s] == math.inf:
            return
        time = max(judge.clock[s], 0)
        late = 0
        for _ in range(rng.choice((1, 1, 2, 4))):
            time += rng.choice((0, 0, 0, 1, 2))
            row = Row(self.ids, int(time), {c: self.value(step) for c in COLUMNS})
            if rng.random() < 0.03 and judge.clock[s] > 0:
                row = Row(self.ids, int(judge.clock[s]) - 1, row.values)
                late += 1
            elif judge.breaks(s, row):
                continue
            self.ids += 1
            rows.append(row)
            if row.time >= judge.clock[s]:
                expected.update(judge.arrive(s, row) or ())
        self.log.append(f"push s{s} {[(r.id, r.time, tuple(r.values.values())) for r in rows]}")
        out = self.op.push(f"s{s}", self.table(s, rows))
        assert out.late.num_rows == late
        self.take(out, expected)

    def punctuate(self, s: int, step: int) -> None:
        rng = self.rng
        joined = self.shape.joined(s)
        known = list(self.shape.schemes[s])
        if rng.random() < 0.15 or not known:
            known = [tuple(rng.sample(joined, rng.randint(1, len(joined))))]
        scheme = rng.choice(known)
        pattern = {c: self.pattern(s, c, step) for c in scheme}
        if all(each is sj.ANY for each in pattern.values()):
            return
        clock = self.judge.clock[s]
        if clock == math.inf:
            return
        time = rng.choice(
            (None, None, None if clock < 0 else int(clock), None if clock < 0 else int(clock) - 1)
        )
        self.log.append(f"punctuate s{s} {pattern} at {time}")
        if not any(each is sj.EMPTY for each in pattern.values()):
            spoken = {c: each for c, each in pattern.items() if each is not sj.ANY}
            self.judge.promise(s, spoken, clock if time is None else time)
        self.take(self.op.punctuate(f"s{s}", self.native(pattern), time=time), Counter())

    def pattern(self, s: int, column: str, step: int) -> Any:
        dice = self.rng.random()
        if dice < 0.6:
            null_safe = self.shape.null_safe[self.shape.class_of(s, column)]
            return self.value(step, null=null_safe and self.rng.random() < 0.3)
        if dice < 0.75:
            return sorted({self.value(step, null=False) for _ in range(3)})
        if dice < 0.90:
            low, high = sorted((self.value(step, null=False), self.value(step, null=False)))
            ends = (None, low) if self.low_open else (high + 3, None)
            return self.rng.choice(((low, high), ends))
        return sj.ANY if dice < 0.97 else sj.EMPTY

    def beat(self, s: int) -> None:
        if self.judge.clock[s] == math.inf:
            return
        time = int(max(self.judge.clock[s], 0)) + self.rng.randint(0, 3)
        self.log.append(f"advance s{s} {time}")
        self.judge.raise_clock(s, time + 1)
        self.take(self.op.advance(f"s{s}", time), Counter())

    def burst(self, s: int) -> None:
        """So many promises that rows are judged together, and promises looked through."""
        column = self.rng.choice(self.shape.joined(s))
        if self.judge.clock[s] == math.inf:
            return
        rows = sum(self.op.live_rows().values())
        self.bursts += 1  # of values that nobody has promised yet
        start = FAR * self.bursts if self.low_open else -FAR * self.bursts
        if self.shape.kind in ("date", "string"):  # an open range may have promised them
            start = abs(start)
        values = range(start, start + 3 * (620 + rows), 3)
        self.log.append(f"burst s{s} {column} {values}")
        self.judge.promise(s, {column: values}, self.judge.clock[s])
        self.take(self.op.punctuate(f"s{s}", self.native({column: list(values)})), Counter())
        self.look(exact=self.exact or start < 0 or self.low_open)

    def end(self, s: int) -> None:
        self.log.append(f"end s{s}")
        self.judge.raise_clock(s, math.inf)
        self.take(self.op.punctuate(f"s{s}", {}), Counter())

    def restore(self) -> None:
        self.log.append("restore")
        self.op = sj.Operator.restore(self.query, self.op.snapshot())

    # ---- what came out -------------------------------------------------------------------------------------

    def take(self, out: sj.Output, expected: Counter[tuple[int, ...]]) -> None:
        columns = [out.rows.column(f"s{i}_id").to_pylist() for i in range(self.shape.n)]
        found = Counter(zip(*columns, strict=True))
        assert found == expected, f"results {found - expected} too many, {expected - found} missing"
        assert out.violations.num_rows == 0, out.violations.to_pylist()
        if not any(life is not None for life in self.shape.lifespans):
            for row in out.rows.to_pylist():
                for said in self.said:
                    hit = all(said_matches(each, row[c]) for c, each in said.items())
                    assert not hit, f"result {row} after the punctuation {said}"
        for row in out.punctuations.to_pylist():
            spoken = {k: v for k, v in row.items() if v is not None and k[0] == "s" and "_" in k}
            pattern: dict[str, Any] = {}
            for column, value in spoken.items():
                name, _, end = column.rpartition("_")
                if end in ("low", "high"):
                    low, high = pattern.get(name, (None, None))
                    pattern[name] = (value, high) if end == "low" else (low, value)
                else:
                    pattern[column] = value
            self.said.append(pattern)

    def look(self, *, exact: bool) -> None:
        if self.rng.random() < 0.2 or self.ids < 30:
            self.op.validate()
        for s in range(self.shape.n):
            stored = self.stored(s)
            needed = sorted(row.id for row, _ in self.judge.live[s])
            if exact:
                assert stored == needed, f"s{s} stores {stored}, needed are {needed}"
            else:
                assert set(stored) >= set(needed), f"s{s} stores {stored}, needed are {needed}"

    def stored(self, s: int) -> list[int]:
        running = self.op._running
        running.compact(s)
        return sorted(running.stores[s].only_batch().column("id").to_pylist())

    # ---- values --------------------------------------------------------------------------------------------

    def table(self, s: int, rows: list[Row]) -> pa.Table:
        known = {c: [self.shown(row.values[c]) for row in rows] for c in COLUMNS}
        data = {"id": [row.id for row in rows], "t": [row.time for row in rows], **known}
        return pa.table(data, schema=self.shape.schema(s))

    def native(self, pattern: dict[str, Any]) -> dict[str, Any]:
        found = {}
        for column, each in pattern.items():
            if isinstance(each, tuple):
                found[column] = sj.Range(*(None if end is None else self.shown(end) for end in each))
            elif isinstance(each, list):
                found[column] = [self.shown(value) for value in each]
            else:
                found[column] = each if each in (sj.ANY, sj.EMPTY) else self.shown(each)
        return found

    def shown(self, value: int | None) -> Any:
        return None if value is None else KINDS[self.shape.kind][1](value)


def said_matches(pattern: Any, value: Any) -> bool:
    if isinstance(pattern, tuple):
        low, high = pattern
        return value is not None and (low is None or low <= value) and (high is None or value <= high)
    return bool(pattern == value)
