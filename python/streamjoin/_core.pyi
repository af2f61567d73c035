"""The native core of streamjoin. Private: use the package around it. Sides are 0 (left) and 1 (right)."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict, type_check_only

import numpy as np
from numpy.typing import NDArray

__version__: str

_RowRefs: TypeAlias = NDArray[np.uint32]
_Rows: TypeAlias = NDArray[np.int64]
_Validity: TypeAlias = NDArray[np.bool_] | None
# values, offsets of bytes, validity (None: all valid)
_KeyColumn: TypeAlias = tuple[NDArray[Any], NDArray[np.int64] | None, NDArray[np.uint8] | None]
# None is `*`, (value,) a constant, (low, high) a range with None for an open end
_AttributePattern: TypeAlias = tuple[Any, ...] | None
_PerSide: TypeAlias = tuple[int, int]
_PerStream: TypeAlias = tuple[int, ...]
# numbers of one value slot, and which are valid (None: all)
_ValueColumn: TypeAlias = tuple[NDArray[np.int64] | NDArray[np.float64], NDArray[np.uint8] | None]
# ("band", stream, slot, stream, slot, width), ("distance", stream, x, y, stream, x, y, less_than),
# ("compare", stream, slot, op, stream, slot, offset), or a function of an (n, m, 2) array
_TuplePredicate: TypeAlias = tuple[Any, ...] | Callable[[_RowRefs], NDArray[np.uint8]]
# side, batch, row, late_by
_Refused: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]
# kinds, times, untils, and per attribute its constants and the low and high ends of its ranges
_Punctuations: TypeAlias = tuple[
    NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], list[tuple[_KeyColumn, _KeyColumn, _KeyColumn]]
]

@type_check_only
class _Stats(TypedDict):
    rows_in: _PerSide
    punctuations_in: _PerSide
    purged: _PerSide
    invalidated: _PerSide
    discarded_on_the_fly: _PerSide
    dropped_after_propagation: _PerSide
    violations: _PerSide
    late: _PerSide
    state_rows: list[int]
    state_keys: list[int]
    promises_held: list[int]
    rows_out: int
    punctuations_out: list[int]
    dictionary_entries: int
    state_bytes: int

@type_check_only
class _MultiStats(TypedDict):
    rows_in: _PerStream
    punctuations_in: _PerStream
    purged: _PerStream
    invalidated: _PerStream
    discarded_on_the_fly: _PerStream
    dropped_after_propagation: _PerStream
    violations: _PerStream
    late: _PerStream
    state_rows: _PerStream
    state_keys: _PerStream
    promises_held: _PerStream
    rows_out: int
    punctuations_out: list[int]
    dictionary_entries: int
    state_bytes: int
    probing_order: tuple[list[int], ...]

class RefusedBatch(Exception): ...
class DamagedArchive(ValueError): ...

class Output:
    @property
    def rows(self) -> _RowRefs: ...
    def late(self) -> _Refused: ...
    def violations(self) -> _Refused: ...
    def take_punctuations(self) -> _Punctuations: ...

class DisorderOptions:
    def __init__(
        self,
        *,
        streams: int,
        policy: str,
        slack: int = 0,
        idle_after: int | None = None,
        idle_by_wall_clock: bool = False,
        target: float = 1.0,
        period: int = 1,
        adapt_every: int = 1,
        granularity: int = 1,
        basic_window: int = 1,
        learned_selectivity: bool = True,
        windows: Sequence[Sequence[int]] = [],
    ) -> None: ...

class AdaptiveWindow:
    def __init__(self, delta: float = 0.002) -> None: ...
    def add(self, value: float) -> bool: ...
    def width(self) -> int: ...
    def mean(self) -> float: ...
    def variance(self) -> float: ...

class BinaryOperator:
    def __init__(
        self,
        *,
        how: str,
        lower: int | None,
        upper: int | None,
        late: str,
        on_violation: str,
        implies: Sequence[str],
        lifespans: Sequence[int | None],
        key_types: Sequence[tuple[str, int]],
        null_safe: Sequence[bool],
        use_windows: bool = True,
        use_punctuations: bool = True,
        disorder: DisorderOptions | None = None,
        predicate: Callable[[_RowRefs], NDArray[np.uint8]] | None = None,
    ) -> None: ...
    def push(
        self,
        side: int,
        batch: int,
        times: NDArray[np.int64],
        keys: Sequence[_KeyColumn],
        predicate: Callable[[_RowRefs], NDArray[np.uint8]] | None = None,
        punctuations: tuple[NDArray[np.int64], NDArray[np.int64], Sequence[_KeyColumn]] | None = None,
    ) -> Output: ...
    def punctuate(
        self, side: int, patterns: Sequence[Sequence[_AttributePattern]], time: int | None = None
    ) -> Output: ...
    def advance(self, side: int, time: int) -> Output: ...
    def finish(self) -> Output: ...
    def look_at_clock(self, now: int) -> None: ...
    def took_batch(self) -> bool: ...
    def disorder(self) -> dict[str, Any] | None: ...
    def take_empty_batches(self, side: int) -> list[int]: ...
    def rows_of_batch(self, side: int, batch: int) -> int: ...
    def live_rows(self, side: int) -> int: ...
    def move_rows_to(self, side: int, batch: int) -> _RowRefs: ...
    def stats(self) -> _Stats: ...
    def clock(self, side: int) -> int | None: ...
    def validate(self) -> str: ...
    def save(self) -> bytes: ...
    def load(self, bytes: bytes) -> None: ...

class MultiOutput:
    @property
    def rows(self) -> _RowRefs: ...
    def late(self) -> _Refused: ...
    def violations(self) -> _Refused: ...
    def take_punctuations(self) -> _Punctuations: ...

class MultiOperator:
    def __init__(
        self,
        *,
        algorithm: str,
        alternatives: Sequence[Sequence[Sequence[int | None]]],
        late: str,
        on_violation: str,
        classes: Sequence[Sequence[tuple[str, int]]],
        null_safe: Sequence[Sequence[bool]],
        attributes: Sequence[Sequence[int]],
        value_slots: Sequence[int] = (),
        predicates: Sequence[tuple[Sequence[int], _TuplePredicate]] = (),
        purge: str | None = None,
        lifespans: Sequence[int | None] = (),
        implies: Sequence[tuple[str, Sequence[int]]] = (),
        unordered: Sequence[bool] = (),
        disorder: DisorderOptions | None = None,
    ) -> None: ...
    def push(
        self,
        stream: int,
        batch: int,
        times: NDArray[np.int64],
        keys: Sequence[Sequence[_KeyColumn]],
        values: Sequence[_ValueColumn] = (),
    ) -> MultiOutput: ...
    def rehearse(
        self,
        stream: int,
        batch: int,
        times: NDArray[np.int64],
        keys: Sequence[Sequence[_KeyColumn]],
        values: Sequence[_ValueColumn] = (),
    ) -> MultiOutput: ...
    def punctuate(
        self, stream: int, patterns: Sequence[Sequence[_AttributePattern]], time: int | None = None
    ) -> MultiOutput: ...
    def advance(self, stream: int, time: int) -> MultiOutput: ...
    def finish(self) -> MultiOutput: ...
    def look_at_clock(self, now: int) -> None: ...
    def took_batch(self) -> bool: ...
    def disorder(self) -> dict[str, Any] | None: ...
    def take_empty_batches(self, stream: int) -> list[int]: ...
    def rows_of_batch(self, stream: int, batch: int) -> int: ...
    def live_rows(self, stream: int) -> int: ...
    def move_rows_to(self, stream: int, batch: int) -> _RowRefs: ...
    def stats(self) -> _MultiStats: ...
    def clock(self, stream: int) -> int | None: ...
    def horizon(self, stream: int) -> int | None: ...
    def validate(self) -> str: ...
    def save(self) -> bytes: ...
    def load(self, bytes: bytes) -> None: ...

class Payload:
    def __init__(self, layout: Sequence[tuple[str, int]]) -> None: ...
    def put(self, batch: int, columns: Sequence[tuple[int, int, int, int]]) -> None: ...
    def drop(self, batch: int) -> None: ...
    def gather(
        self, rows: _RowRefs, stream: int, column: int
    ) -> tuple[
        NDArray[np.uint8], NDArray[np.int32] | NDArray[np.int64] | None, NDArray[np.uint8] | None, int
    ]: ...

def window_join(
    left_keys: _Rows,
    left_times: _Rows,
    right_keys: _Rows,
    right_times: _Rows,
    lower: int,
    upper: int,
    left_valid: _Validity = None,
    right_valid: _Validity = None,
) -> tuple[_Rows, _Rows]: ...
def window_semi_join(
    left_keys: _Rows,
    left_times: _Rows,
    right_keys: _Rows,
    right_times: _Rows,
    lower: int,
    upper: int,
    left_valid: _Validity = None,
    right_valid: _Validity = None,
) -> _Rows: ...
def window_anti_join(
    left_keys: _Rows,
    left_times: _Rows,
    right_keys: _Rows,
    right_times: _Rows,
    lower: int,
    upper: int,
    left_valid: _Validity = None,
    right_valid: _Validity = None,
) -> _Rows: ...
