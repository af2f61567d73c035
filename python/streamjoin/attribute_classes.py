"""Attribute classes: the equalities of a query, closed under transitivity, as the m-way join indexes them.

    a.x = b.y, b.y = c.z      one class, in the streams a, b, c
    a.u = b.v                 a second class, in the streams a, b

Columns that are equal in every result form one set. Sets that occur in exactly the same streams always bind
together, so they become one class with a composite key, unless punctuations may speak of one without the
other (`equal_columns`). Each stream has at most one key per class. If two
columns of one stream are in a set, the key names both, so that a row joins only if they are equal:

    a.x = b.y, a.w = b.y      keys of a: (x, w), of b: (y, y)

Null equals null only if every equality of the set is null-safe: one plain `=` excludes null for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from streamjoin.expressions import ColumnRef

if TYPE_CHECKING:
    from streamjoin.query import Equality


class ClassColumn(NamedTuple):
    """One part of a class's key: a column of each of its streams, in declared order."""

    refs: tuple[ColumnRef, ...]
    null_safe: bool

    def __str__(self) -> str:
        """Return it as a chain of equalities."""
        return (" <=> " if self.null_safe else " = ").join(map(str, self.refs))


class EqualColumns(NamedTuple):
    """All columns of a query, of any stream, that a result has equal; streams in declared order."""

    refs: tuple[ColumnRef, ...]
    null_safe: bool

    def __str__(self) -> str:
        """Return it as a chain of equalities."""
        return (" <=> " if self.null_safe else " = ").join(map(str, self.refs))


class AttributeClass(NamedTuple):
    """Columns of several streams that a result has equal, part by part."""

    streams: tuple[str, ...]
    columns: tuple[ClassColumn, ...]

    def columns_of(self, stream: str) -> tuple[str, ...]:
        """Return the key's columns in one of its streams."""
        place = self.streams.index(stream)
        return tuple(column.refs[place].column for column in self.columns)

    def __str__(self) -> str:
        """Return its equalities."""
        return ", ".join(map(str, self.columns))


def attribute_classes(names: Sequence[str], equalities: Iterable[Equality]) -> tuple[AttributeClass, ...]:
    """Close `equalities` between the streams `names` and sort them into classes.

    >>> from streamjoin.query import Equality
    >>> x, y, z = ColumnRef("a", "x"), ColumnRef("b", "y"), ColumnRef("c", "z")
    >>> [found] = attribute_classes(["a", "b", "c"], [Equality(x, y, True), Equality(y, z, False)])
    >>> print(found)
    a.x = b.y = c.z
    """
    classes: dict[tuple[str, ...], list[ClassColumn]] = {}
    for members, null_safe in equal_columns(names, equalities):
        columns = {name: [r for r in members if r.stream == name] for name in names}
        streams = tuple(name for name in names if columns[name])
        parts = classes.setdefault(streams, [])
        first = {name: columns[name][0] for name in streams}
        parts.append(ClassColumn(tuple(first.values()), null_safe))
        for name in streams:
            for ref in columns[name][1:]:
                parts.append(ClassColumn(tuple({**first, name: ref}.values()), null_safe))
    return tuple(AttributeClass(streams, tuple(parts)) for streams, parts in classes.items())


def equal_columns(names: Sequence[str], equalities: Iterable[Equality]) -> tuple[EqualColumns, ...]:
    """Close `equalities` and return each set of columns by itself: what punctuations may speak of."""
    equalities = list(equalities)
    declared = list(dict.fromkeys(ref for e in equalities for ref in (e.left, e.right)))
    equal = {ref: {ref} for ref in declared}
    for equality in equalities:
        merged = equal[equality.left] | equal[equality.right]
        equal.update(dict.fromkeys(merged, merged))
    found = []
    for members in {id(members): members for members in equal.values()}.values():
        null_safe = all(equality.null_safe for equality in equalities if equality.left in members)
        refs = tuple(r for name in names for r in declared if r in members and r.stream == name)
        found.append(EqualColumns(refs, null_safe))
    return tuple(found)
