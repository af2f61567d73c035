"""The command line: `streamjoin check | explain | bench | demo`.

Exit codes: 0 all well, 1 the query is not safe or a benchmark's answer is wrong, 2 a broken file or command,
130 interrupted. Errors are one line without a traceback. Colours only on a terminal without NO_COLOR.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from streamjoin import __version__
from streamjoin.benchmarks import BENCHMARKS, WrongAnswer
from streamjoin.errors import StreamJoinError
from streamjoin.query import Query
from streamjoin.query_file import read_query

GREEN, RED, YELLOW, PLAIN = "\033[32m", "\033[31m", "\033[33m", "\033[0m"
COLOURS = {"safe:": GREEN, "NOT safe:": RED, "reason:": RED, "remedy:": YELLOW, "note:": YELLOW}

ABOUT = "Joins event streams inside time windows, with state that is proved to stay bounded."
EXAMPLES = """\
examples:
  streamjoin check query.toml                  will the state stay bounded? exit code 0: yes, 1: no
  streamjoin check query.toml --plot graph.svg the same, and draw what purges what
  streamjoin explain query.toml                windows, what ends a row's life, plans with their costs
  streamjoin bench join                        how fast is it on this machine?
  streamjoin demo                              bids per auction on a local Spark

a query file:
  on = ["auction.item_id = bid.item_id"]
  [streams.auction]
  time = "opened_at"
  window = "12 hours"
  unique = "item_id"
  [streams.bid]
  time = "placed_at"
  window = "0 s"
  punctuations = ["item_id"]
"""
CHECK_HELP = """\
Decides by the declarations alone whether every stored row will be allowed to leave the state one day.
An unsafe query is answered with the stream that would grow, why, and the least that would help.

exit codes: 0 safe, 1 not safe, 2 the file is broken (the message names its line)

examples:
  streamjoin check query.toml
  streamjoin check query.toml --plot graph.svg && deploy
"""
EXPLAIN_HELP = """\
Shows what the query will do: the windows of all pairs after closure, the punctuation graph, what purges the
state of each stream, and if the query is safe, its safe plans, cheapest first.

exit codes: as for check

example:
  streamjoin explain query.toml
"""
BENCH_HELP = """\
Measures the installed package on this machine. Each benchmark takes seconds and checks its answer; time is
processor time. Without a name it lists them.

{list}

The larger benchmarks, the papers' experiments and the comparison with other engines live in the source tree:
ci/bench, ci/figures, ci/peers.

examples:
  streamjoin bench join
  streamjoin bench punctuations --rows 2000000
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    try:
        if arguments[0] == "demo":
            return _demo(arguments[1:])
        options = parser.parse_args(arguments)
        if options.command == "bench":
            return _bench(options)
        query = read_query(options.query)
        return _check(query, options) if options.command == "check" else _explain(query)
    except WrongAnswer as error:
        print(f"streamjoin: {error}", file=sys.stderr)
        return 1
    except (StreamJoinError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"streamjoin: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("streamjoin: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="streamjoin", description=ABOUT, epilog=EXAMPLES, formatter_class=plain
    )
    parser.add_argument("--version", action="version", version=f"streamjoin {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check", help="say whether the state stays bounded", description=CHECK_HELP, formatter_class=plain
    )
    check.add_argument("query", help="the query, a TOML file")
    check.add_argument("--plot", metavar="FILE", help="write the punctuation graph, .svg or .png")
    explain = commands.add_parser(
        "explain",
        help="show windows, punctuation graph, purge chains and plans",
        description=EXPLAIN_HELP,
        formatter_class=plain,
    )
    explain.add_argument("query", help="the query, a TOML file")
    bench = commands.add_parser(
        "bench",
        help="measure the installed package",
        description=BENCH_HELP.format(list=_list_of_benchmarks()),
        formatter_class=plain,
    )
    bench.add_argument("name", nargs="?", choices=[*BENCHMARKS], metavar="NAME", help="one of those above")
    bench.add_argument(
        "--rows", type=_number_of_rows, default=1_000_000, help="rows a side (default: %(default)s)"
    )
    commands.add_parser("demo", help="the auction query on a local Spark", add_help=False)
    return parser


def _number_of_rows(text: str) -> int:
    rows = int(text) if text.isdecimal() else 0
    if rows < 1_000:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 1000, got {text!r}")
    return rows


def _check(query: Query, options: argparse.Namespace) -> int:
    report = query.check()
    if options.plot:
        report.plot(options.plot)
    print(_coloured(str(report), sys.stdout))
    if options.plot:
        print(f"picture: {options.plot}")
    return 0 if report.safe else 1


def _explain(query: Query) -> int:
    print(_coloured(query.explain(), sys.stdout))
    if query.check().safe:
        print(f"\nplans\n{query.plans()}")
        return 0
    return 1


def _list_of_benchmarks() -> str:
    return "\n".join(f"  {name:14}{benchmark.question}" for name, benchmark in BENCHMARKS.items())


def _bench(options: argparse.Namespace) -> int:
    if options.name is None:
        print(_list_of_benchmarks())
        return 0
    benchmark = BENCHMARKS[options.name]
    print(f"{benchmark.question} ({options.rows:,} rows a side)")
    for finding in benchmark.run(options.rows):
        value = f"{finding.value:,.0f}" if finding.value >= 100 else f"{finding.value:,.2f}"
        print(f"  {finding.what:44}{value:>14} {finding.unit}".rstrip())
    return 0


def _demo(arguments: list[str]) -> int:
    if importlib.util.find_spec("pyspark") is None:
        print("streamjoin: the demo needs Spark: pip install 'streamjoin[spark,plot]'", file=sys.stderr)
        return 2
    from streamjoin.spark import demo

    return demo.main(arguments)


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
