"""What the documents show, runs: every Python block of README and docs/. And every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import streamjoin
import streamjoin.spark

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])

FENCE = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """The line of each block's first line, and its text."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, block.start("text")), block["text"])
        for block in FENCE.finditer(text)
        if block["language"] == "python"
    ]


def run(page: Path) -> dict[str, Any]:
    """Runs the blocks of one page, top to bottom in one namespace; a traceback names the page's own lines."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    for line, text in python_blocks(page):
        exec(compile("\n" * line + text, str(page), "exec"), namespace)
    return namespace


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=named)
def test_python_blocks_run(page: Path) -> None:
    run(page)


def test_readme_sample_joins_each_bid_with_its_auction() -> None:
    joined = run(ROOT / "README.md")["joined"]
    shown = joined.select(["auction_item_id", "auction_seller", "bid_price"]).to_pylist()
    assert sorted(tuple(row.values()) for row in shown) == [
        (180, "ann", 10),
        (180, "ann", 12),
        (181, "bob", 7),
    ]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_python_hides_under_another_name(page: Path) -> None:
    languages = {block["language"] for block in FENCE.finditer(page.read_text(encoding="utf-8"))}
    assert languages <= {"", "python", "bash", "cpp", "text", "toml"}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_the_api_page_names_everything_public() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    errors = {name for name in streamjoin.__all__ if hasattr(streamjoin.errors, name)}  # one entry for all
    missing = [name for name in streamjoin.__all__ if name not in page and name not in errors]
    assert missing == ["__version__"]
    assert [name for name in streamjoin.spark.__all__ if f"streamjoin.spark.{name}" not in page] == []
