"""The command line: `streamjoin check query.toml`, `streamjoin explain query.toml`.

Exit codes: 0 safe, 1 not safe, 2 a broken file or command. Colours only on a terminal without NO_COLOR.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from streamjoin import __version__
from streamjoin.errors import QueryError, StreamJoinError
from streamjoin.query import Query
from streamjoin.query_file import read_query

GREEN, RED, YELLOW, PLAIN = "\033[32m", "\033[31m", "\033[33m", "\033[0m"
COLOURS = {"safe:": GREEN, "NOT safe:": RED, "reason:": RED, "remedy:": YELLOW, "note:": YELLOW}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        query = read_query(options.query)
        return _check(query, options) if options.command == "check" else _explain(query)
    except (QueryError, StreamJoinError) as error:
        print(f"streamjoin: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streamjoin", description="Joins event streams with bounded state.")
    parser.add_argument("--version", action="version", version=f"streamjoin {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="say whether the state of a query stays bounded")
    check.add_argument("query", help="the query, a TOML file")
    check.add_argument("--plot", metavar="FILE", help="write the punctuation graph, .svg or .png")
    explain = commands.add_parser("explain", help="show windows, punctuation graph, purge chains and plans")
    explain.add_argument("query", help="the query, a TOML file")
    return parser


def _check(query: Query, options: argparse.Namespace) -> int:
    report = query.check()
    if options.plot:
        report.plot(options.plot)
    print(_coloured(str(report), sys.stdout))
    return 0 if report.safe else 1


def _explain(query: Query) -> int:
    print(_coloured(query.explain(), sys.stdout))
    if query.check().safe:
        print(f"\nplans\n{query.plans()}")
        return 0
    return 1


def _coloured(text: str, stream: TextIO) -> str:
    if not stream.isatty() or "NO_COLOR" in os.environ:
        return text
    lines = []
    for line in text.splitlines():
        word = next((start for start in COLOURS if line.startswith(start)), None)
        lines.append(f"{COLOURS[word]}{word}{PLAIN}{line[len(word) :]}" if word else line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
