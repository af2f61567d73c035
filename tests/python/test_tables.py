"""Numbers in the documents are those of the files that the benchmarks wrote."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import tables  # noqa: E402


@pytest.mark.parametrize("page", tables.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_table_is_what_its_file_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.rewritten(text) == text, "run python bench/tables.py"


@pytest.mark.parametrize("file", sorted((ROOT / "bench/results").glob("*.csv")), ids=lambda file: file.name)
def test_a_result_file_says_where_it_comes_from(file: Path) -> None:
    with file.open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    assert rows
    assert all(row["machine"] and row["commit"] for row in rows)


def test_a_number_that_was_changed_by_hand_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.csv").write_text("join,rate,machine,commit\nours,1234567.8,m,c\n", encoding="utf-8")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    written = tables.rewritten("Before.\n\n<!-- table r.csv: join, rate -->\n\nAfter.\n")
    assert "| ours | 1,234,568 |\n" in written
    assert written.endswith("\n*r.csv (m, commit c)*\n\nAfter.\n")
    assert tables.rewritten(written) == written
    assert tables.rewritten(written.replace("1,234,568", "9,234,568")) == written


def test_the_simulated_day_holds_what_its_file_says() -> None:
    import state_over_time_bench as day

    with (ROOT / "bench/results/state_over_time.csv").open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    for column, with_closings in (("window_alone", False), ("window_and_punctuations", True)):
        held, _ = day.run(24, with_closings=with_closings)
        assert held == [int(row[column]) for row in rows]
