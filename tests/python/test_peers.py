"""The comparison with other engines ends what takes too long, and says what went wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "peers"), str(ROOT / "bench")]
import compare  # noqa: E402
import workload  # noqa: E402
from watched_run import Failure, WatchedRun  # noqa: E402

SLEEPS = "import subprocess, sys, time; print('ready', flush=True); sys.stdin.readline(); {}; time.sleep(600)"
CHILD = "child = subprocess.Popen(['sleep', '600'], start_new_session=True); print(child.pid, flush=True)"


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_a_run_over_its_limit_ends_with_everything_it_started() -> None:
    with WatchedRun(python(SLEEPS.format(CHILD)), limit=5) as run:
        assert run.line("ready") is not None
        run.go_on()
        child = run.line("")
        assert child is not None
        assert run.line("{") is None
        assert run.out_of_time
        assert run.most_bytes > 0
    assert subprocess.run(["ps", "-o", "stat=", "-p", child.strip()], capture_output=True).stdout[:1] in b"Z"


def test_a_run_that_fails_says_why() -> None:
    script = python("raise SystemExit('no such engine')")
    with pytest.raises(Failure, match="no such engine"), WatchedRun(script, limit=60) as run:
        run.line("ready")


@pytest.fixture
def only_ours(monkeypatch: pytest.MonkeyPatch) -> compare.Peer:
    class Here(compare.Peer):
        python = Path(sys.executable)

    ours = Here("streamjoin, one thread", "stream", None, "run_streamjoin.py")
    monkeypatch.setattr(compare, "PEERS", {"streamjoin": ours})
    return ours


def test_the_right_answer_gets_a_row(only_ours: compare.Peer, tmp_path: Path) -> None:
    failures: list[str] = []
    [row] = compare.compare(["streamjoin"], [2_000], tmp_path, 60, failures)
    assert failures == []
    assert row["rows_a_side"] == 2_000
    assert int(str(row["rows_a_second"])) > 0
    assert row["results"] == workload.write(tmp_path / "2000", 2_000)["results"]


def test_a_wrong_answer_gets_none(
    only_ours: compare.Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"results": 0, "checksum": 0}
    write = workload.write
    monkeypatch.setattr(workload, "write", lambda *a, **k: write(*a, **k) and wrong)
    failures: list[str] = []
    assert [*compare.compare(["streamjoin"], [1_000, 2_000], tmp_path, 60, failures)] == []
    assert len(failures) == 1
    assert failures[0].startswith("streamjoin, one thread, 1,000 rows a side: expected {'results': 0")


def test_a_row_over_the_limit_says_so_and_is_drawn(tmp_path: Path) -> None:
    def row(join: str, size: int, rate: object) -> dict[str, str]:
        return {"join": join, "rows_a_side": str(size), "rows_a_cpu_second": str(rate)}

    rows = [row("a", 100_000, 5_000), row("b", 100_000, 50_000), row("b", 1_000_000, 60_000)]
    rows.append(row("a", 1_000_000, compare.OVER))
    assert [compare.rate(each) for each in rows] == [5_000, 50_000, 60_000, 0]
    compare.draw(rows, tmp_path / "peers.svg")
    assert (tmp_path / "peers.svg").stat().st_size > 0
