"""The declaration of one stream: its time, its window, what it promises. Frozen; nonsense is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from typing import Any, TypeAlias

from streamjoin.durations import Duration, nanoseconds
from streamjoin.errors import QueryError
from streamjoin.plan.rates import positive

Columns: TypeAlias = str | Sequence[str]


@dataclass(frozen=True, repr=False)
class Stream:
    """One input of a query.

    `time` is the column with the event time. `window` says how long after its own time a row stays joinable.
    `punctuations` are schemes: the columns (or tuples of columns) on which the stream can send punctuations.
    `unique`: every row implies the punctuation of its own value; `clustered`: a change of value implies it.
    `lifespan`: how long a punctuation of the stream is remembered. `rate`: about how many rows come a second,
    where that is known; plans and the choice of the algorithm use it, results never depend on it.

    >>> Stream("bid", time="placed_at", window="0 s", punctuations=["item_id"])
    Stream('bid', time='placed_at', window='0 s', punctuations=('item_id',))
    """

    name: str
    _: KW_ONLY
    time: str
    window: Duration | None = field(default=None, compare=False)
    punctuations: Columns | Sequence[Columns] = field(default=(), compare=False)
    unique: Columns | None = field(default=None, compare=False)
    clustered: Columns | None = field(default=None, compare=False)
    lifespan: Duration | None = field(default=None, compare=False)
    rate: float | None = None
    window_ns: int | None = field(init=False)
    lifespan_ns: int | None = field(init=False)
    unique_columns: tuple[str, ...] | None = field(init=False)
    clustered_columns: tuple[str, ...] | None = field(init=False)
    schemes: tuple[tuple[str, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Refuse nonsense and derive the plain data."""
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise QueryError(f"stream: the name must be an identifier such as 'bid', got {self.name!r}")
        _columns(self.time, f"stream {self.name!r}, time", single=True)
        if self.unique is not None and self.clustered is not None:
            raise QueryError(f"stream {self.name!r}: expected unique or clustered, got both")
        declared = (self.punctuations,) if isinstance(self.punctuations, str) else self.punctuations
        if not isinstance(declared, Sequence):
            raise QueryError(
                f"stream {self.name!r}, punctuations: expected a list of columns, got {declared!r}"
            )
        schemes = [_columns(scheme, f"stream {self.name!r}, punctuations") for scheme in declared]
        for option in ("unique", "clustered"):
            value = getattr(self, option)
            columns = None if value is None else _columns(value, f"stream {self.name!r}, {option}")
            object.__setattr__(self, f"{option}_columns", columns)
            schemes += [] if columns is None else [columns]
        if self.rate is not None:
            positive(self.rate, f"stream {self.name!r}, rate")
        kept = tuple(scheme if isinstance(scheme, str) else tuple(scheme) for scheme in declared)
        object.__setattr__(self, "punctuations", kept)
        object.__setattr__(self, "schemes", tuple(dict.fromkeys(schemes)))
        for option in ("window", "lifespan"):
            object.__setattr__(self, f"{option}_ns", self._nanoseconds(option))

    def _nanoseconds(self, option: str) -> int | None:
        duration = getattr(self, option)
        if duration is None:
            return None
        ns = nanoseconds(duration, what=f"stream {self.name!r}, {option}")
        if ns < 0:
            raise QueryError(f"stream {self.name!r}, {option}: must not be negative, got {duration!r}")
        return ns

    def __repr__(self) -> str:
        """Return the call that declares it."""
        return call_of(self, positional=("name",))


def _columns(value: Columns, what: str, *, single: bool = False) -> tuple[str, ...]:
    """Return one or several column names of a stream as a tuple."""
    columns = (value,) if isinstance(value, str) else value
    expected = "a column" if single else "a column or a tuple of different columns"
    if not isinstance(columns, Sequence) or not columns or (single and not isinstance(value, str)):
        raise QueryError(f"{what}: expected {expected}, got {value!r}")
    for column in columns:
        if not isinstance(column, str) or not column or columns.count(column) > 1:
            raise QueryError(f"{what}: expected {expected}, got {value!r}")
        if "." in column:
            raise QueryError(f"{what}: expected a column of the stream, without its name, got {column!r}")
    return tuple(columns)


def call_of(declaration: Any, *, positional: tuple[str, ...]) -> str:
    """Write a declaration as the call that makes it, without the options left at their defaults."""
    arguments = [repr(getattr(declaration, name)) for name in positional]
    for option in fields(declaration):
        value = getattr(declaration, option.name)
        if (
            option.init
            and option.name not in positional
            and (option.default is MISSING or value != option.default)
        ):
            arguments.append(f"{option.name}={value!r}")
    return f"{type(declaration).__name__}({', '.join(arguments)})"
