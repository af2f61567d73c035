"""A query written as a TOML file. docs/safety.md shows the form; an error names the line.

on = ["auction.item_id = bid.item_id"]

[streams.auction]            the options of Stream, by their names
time = "opened_at"

[[within]]                   within | between | follows | path
between = ["auction", "bid"]
upper = "12 hours"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from streamjoin.errors import QueryError
from streamjoin.query import Query
from streamjoin.stream import Stream
from streamjoin.windows import WindowDeclaration, between, follows, path, within

STREAM_OPTIONS = tuple(option.name for option in fields(Stream) if option.init and option.name != "name")
QUERY_OPTIONS = tuple(
    option.name for option in fields(Query) if option.init and option.name not in ("streams", "disorder")
)


class QueryFileError(QueryError):
    """A query file is broken; the message begins with file and line."""


def read_query(file: str | PathLike[str]) -> Query:
    """Read a query from a TOML file; `QueryFileError` with the line if it is broken."""
    name = str(file)
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise QueryFileError(f"{name}: cannot be read: {error.strerror}") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise QueryFileError(f"{name}:{line}: expected text in UTF-8, got the byte {byte:#04x}") from None
    return parse_query(text, name=name)


def parse_query(text: str, *, name: str = "query") -> Query:
    """Read a query from TOML text; `name` stands for the file in errors.

    >>> parse_query('''
    ... on = ["a.x = b.x"]
    ... streams.a = {time = "t", window = "5 s"}
    ... streams.b = {time = "t", punctuations = ["x"]}
    ... ''').stream_names
    ('a', 'b')
    """
    return _Reader(text, name).query()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
            line = int(found[1]) if found else max(1, len(text.splitlines()))
            raise self.error(line, f"not TOML: {error}") from None

    def error(self, line: int, problem: object) -> QueryFileError:
        return QueryFileError(f"{self.name}:{line}: {problem}")

    def query(self) -> Query:
        for key in self.content:
            if key not in ("streams", *QUERY_OPTIONS):
                expected = ["streams", *QUERY_OPTIONS]
                raise self.error(self.line(key), f"expected one of {expected}, got {key!r}")
        tables = self.content.get("streams")
        if not isinstance(tables, Mapping) or not tables:
            raise self.error(self.line("streams"), "expected a table [streams.NAME] for each stream")
        streams = [self._stream(name, options) for name, options in tables.items()]
        options = {key: value for key, value in self.content.items() if key not in ("streams", "within")}
        declared = self.content.get("within", [])
        if not isinstance(declared, list):
            raise self.error(self.line("within"), f"within: expected tables [[within]], got {declared!r}")
        windows = [self._window(number, table) for number, table in enumerate(declared)]
        on = options.pop("on", [])
        try:
            return Query(streams, on, within=windows, **options)
        except (QueryError, TypeError) as error:
            line = self._line_of_problem(str(error))
            for number in range(len(windows)):  # the first window with which it goes wrong, if it is one
                if _refusal(streams, on, windows[:number], options) == str(error):
                    break
                if _refusal(streams, on, windows[: number + 1], options) == str(error):
                    line = self.line_of_table("within", number)
                    break
            raise self.error(line, error) from None

    def _stream(self, name: str, options: Any) -> Stream:
        line = self.line("streams", name)
        if not isinstance(options, Mapping):
            raise self.error(line, f"stream {name!r}: expected a table, got {options!r}")
        for key in options:
            if key not in STREAM_OPTIONS:
                problem = f"stream {name!r}: expected one of {list(STREAM_OPTIONS)}, got {key!r}"
                raise self.error(self.line("streams", name, key), problem)
        if "time" not in options:
            raise self.error(line, f"stream {name!r}: expected time, the column with the event time")
        try:
            return Stream(name, **options)
        except QueryError as error:
            option = re.match(r"stream '[^']*', (\w+)", str(error))
            line = self.line("streams", name, option[1]) if option else line
            raise self.error(line, error) from None

    def _window(self, number: int, table: Any) -> WindowDeclaration:
        line = self.line_of_table("within", number)
        try:
            return _window(table)
        except (QueryError, TypeError) as error:
            raise self.error(line, error) from None

    def _line_of_problem(self, problem: str) -> int:
        """Return the line of the text or option that the message begins with."""
        if quoted := re.match(r"on '([^']*)'", problem):
            for number, line in enumerate(self.text.splitlines(), start=1):
                if quoted[1] in line:
                    return number
        option = re.match(r"\w+", problem)
        return self.line(option[0]) if option and option[0] in self.content else 1

    def line(self, *keys: str) -> int:
        """Return the line on which a key is written, as table header or dotted key; 1 if unknown."""
        table: tuple[str, ...] = ()
        best, depth = 1, 0
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[\[?([^\]]+)\]", line):
                table = _dotted(header[1])
                path = table
            elif key := re.match(r"""\s*([\w."'-]+)\s*=""", line):
                path = (*table, *_dotted(key[1]))
            else:
                continue
            common = len([None for mine, theirs in zip(path, keys, strict=False) if mine == theirs])
            if path[:common] == keys[:common] and common > depth:
                best, depth = number, common
        return best

    def line_of_table(self, key: str, number: int) -> int:
        """Return the line of the `number`-th table of an array, or of the array if it is written in place."""
        lines = self.text.splitlines()
        headers = [i for i, line in enumerate(lines, start=1) if re.match(rf"\s*\[\[\s*{key}\s*\]\]", line)]
        return headers[number] if number < len(headers) else self.line(key)


def _refusal(
    streams: list[Stream], on: Any, windows: list[WindowDeclaration], options: dict[str, Any]
) -> str | None:
    try:
        Query(streams, on, within=windows, **options)
    except (QueryError, TypeError) as error:
        return str(error)
    return None


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def _names(table: Mapping[str, Any], key: str) -> list[str]:
    """Return the streams that a window is between: two, along a path more."""
    names = table[key]
    many = "two or more" if key == "path" else "two"
    if not isinstance(names, list) or (len(names) < 2 if key == "path" else len(names) != 2):
        raise QueryError(f"within: expected {key} = a list of {many} streams, got {names!r}")
    return names


def _window(table: Any) -> WindowDeclaration:
    keys = frozenset(table) if isinstance(table, Mapping) else frozenset()
    if keys == {"within"}:
        return within(table["within"])
    if keys == {"streams", "within"}:
        left, right = _names(table, "streams")
        return within(left, right, table["within"])
    if keys == {"follows", "within"}:
        left, right = _names(table, "follows")
        return follows(left, right, within=table["within"])
    if keys == {"path", "within"}:
        return path(*_names(table, "path"), within=table["within"])
    if "between" in keys and keys <= {"between", "lower", "upper"}:
        left, right = _names(table, "between")
        return between(left, right, lower=table.get("lower"), upper=table.get("upper"))
    raise QueryError(
        "within: expected within; streams and within; follows and within; path and within; "
        f"or between with lower, upper or both; got {table!r}"
    )
