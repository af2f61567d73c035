"""Tables in the documents are copies of result files; this writes them, and the tests compare them.

    python bench/tables.py            rewrites the tables of README.md and docs/
    python bench/tables.py --check    names the tables that are not what their files say

A comment names file, columns and, after a semicolon, conditions; the table follows it:

    <!-- table bench/results/peers.csv: join, rows_a_second; rows_a_side=1000000 -->
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(
    r"<!-- table (?P<file>[^:\s]+): (?P<columns>[^;]+?)(?:; (?P<where>.+?))? -->\n(?P<table>(?:[^\n]+\n)*)"
)


def pages() -> list[Path]:
    """List the documents that may quote results."""
    return [ROOT / "README.md", ROOT / "bench" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def shown(text: str) -> str:
    """Return a value of a file as a reader wants it: 1234567.8 as 1,234,568, 0.123456 as 0.12."""
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.2f}"


def table(file: str, columns: str, where: str | None) -> str:
    """Render the columns of a result file as a Markdown table, and where its numbers come from."""
    with (ROOT / file).open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    for condition in filter(None, (where or "").split(", ")):
        name, _, value = condition.partition("=")
        rows = [row for row in rows if row[name] == value]
    names = columns.split(", ")
    numeric = [all(_is_number(row[name]) for row in rows) for name in names]
    lines = [" | ".join(name.replace("_", " ") for name in names)]
    lines.append(" | ".join("---:" if right else "---" for right in numeric))
    lines += [" | ".join(shown(row[name]) for name in names) for row in rows]
    origins = sorted({f"{row['machine']}, commit {row['commit']}" for row in rows})
    source_line = f"{file} ({'; '.join(origins)})"
    return "".join(f"| {line} |\n" for line in lines) + f"\n*{source_line}*\n"


def _is_number(text: str) -> bool:
    """Tell whether it belongs into a column of numbers: an empty field does, and a run that was ended."""
    return re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?||over the limit", text) is not None


def rewritten(text: str) -> str:
    """Return a document with every table as its file says."""
    parts, at = [], 0
    for mark in MARK.finditer(text):
        fresh = table(mark["file"], mark["columns"], mark["where"])
        end = mark.end()
        origin = re.match(r"\n\*[^\n]*\*\n", text[end:])
        parts += [text[at : mark.start("table")], fresh]
        at = end + (origin.end() if origin else 0)
    return "".join([*parts, text[at:]])


def stale() -> Iterator[Path]:
    """Yield the documents with a table that is not what its file says."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if rewritten(text) != text:
            yield page


def main() -> int:
    """Rewrite, or check; return the exit code."""
    found = list(stale())
    if sys.argv[1:] == ["--check"]:
        for page in found:
            print(f"{page.relative_to(ROOT)}: a table differs from its file; run python bench/tables.py")
        return 1 if found else 0
    for page in found:
        page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"rewrote the tables of {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
