"""The command line and queries in TOML: verdicts, exit codes, and errors that name the line."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import streamjoin
from streamjoin import benchmarks, cli
from streamjoin.benchmarks import BENCHMARKS
from streamjoin.cli import COLOURS, _coloured, main
from streamjoin.progress import Progress
from streamjoin.query_file import QueryFileError, parse_query
from streamjoin.windows import between, follows, path, within

SAFE = """\
on = ["auction.item_id = bid.item_id"]

[streams.auction]
time = "opened_at"
window = "12 hours"
unique = "item_id"

[streams.bid]
time = "placed_at"
punctuations = ["item_id"]
"""
UNSAFE = SAFE.replace('window = "12 hours"\n', "").replace('punctuations = ["item_id"]\n', "")


def run(tmp_path: Path, text: str, *arguments: str) -> int:
    file = tmp_path / "query.toml"
    file.write_text(text, encoding="utf-8")
    return main([*arguments, str(file)])


def test_check_of_a_safe_query_exits_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, SAFE, "check") == 0
    assert capsys.readouterr().out.startswith("safe: every state stays bounded")


def test_check_of_an_unsafe_query_exits_with_1_and_names_the_growing_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, UNSAFE, "check") == 1
    out = capsys.readouterr().out
    assert out.startswith("NOT safe")
    assert "the state of stream 'auction' would grow" in out
    assert "remedy: punctuations=['item_id'] on stream 'bid'" in out


def test_explain_shows_graph_chains_and_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, SAFE, "explain") == 0
    out = capsys.readouterr().out
    for words in ("punctuation graph", "what purges the state of", "(auction bid)", "safe plans"):
        assert words in out
    assert run(tmp_path, UNSAFE, "explain") == 1


def test_check_draws_the_graph(tmp_path: Path) -> None:
    assert run(tmp_path, SAFE, "check", "--plot", str(tmp_path / "graph.svg")) == 0
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_picture_of_unknown_form_is_an_error_without_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, SAFE, "check", "--plot", str(tmp_path / "graph.gif")) == 2
    assert "ends with .svg or .png" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"streamjoin {streamjoin.__version__}\n"


def test_the_installed_command_runs_and_writes_no_colours_into_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "query.toml"
    file.write_text(UNSAFE, encoding="utf-8")
    command = Path(sys.executable).parent / "streamjoin"
    result = subprocess.run([command, "check", file], capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stderr
    assert "\033" not in result.stdout
    missing = subprocess.run([command, "check", "no.toml"], capture_output=True, text=True, check=False)
    assert missing.returncode == 2
    assert missing.stderr.startswith("streamjoin: no.toml: cannot be read")


class Terminal:
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_unless_it_asks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert _coloured("safe: yes", Terminal()).startswith(COLOURS["safe:"])  # type: ignore[arg-type]
    monkeypatch.setenv("NO_COLOR", "1")
    assert _coloured("safe: yes", Terminal()) == "safe: yes"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param(SAFE.replace('"opened_at"', "opened_at"), 4, "not TOML", id="no-toml"),
        pytest.param(SAFE + "[streams.bid]\n", 11, "not TOML", id="table-twice"),
        pytest.param(SAFE + "color = 1\n", 11, "stream 'bid': expected one of", id="unknown-stream-option"),
        pytest.param("colour = 1\n" + SAFE, 1, "got 'colour'", id="unknown-query-option"),
        pytest.param(SAFE.replace("12 hours", "12 moons"), 5, "got '12 moons'", id="bad-duration"),
        pytest.param(SAFE.replace('time = "placed_at"\n', ""), 8, "'bid': expected time", id="no-time"),
        pytest.param(SAFE.replace("= bid.item_id", "= bids.item_id"), 1, "got 'bids'", id="unknown-stream"),
        pytest.param(SAFE.replace("= bid.item_id", "bid.item_id"), 1, "of the form", id="no-equality"),
        pytest.param('\nhow = "both"\n' + SAFE, 2, "how: expected one of", id="bad-option"),
        pytest.param("x = 1", 1, "got 'x'", id="no-query"),
        pytest.param("on = []", 1, "expected a table", id="no-streams"),
        pytest.param(
            SAFE + '\n[[within]]\nbetween = ["a"]\n',
            12,
            "within: expected between = a list of two streams, got ['a']",
            id="bad-between",
        ),
        pytest.param(SAFE + '\n[[within]]\npath = "a"\nwithin = "5 s"\n', 12, "two or more", id="bad-path"),
        pytest.param(
            SAFE
            + '\n[[within]]\nwithin = "5 s"\n[[within]]\nfollows = ["auction", "bids"]\nwithin = "1 s"\n',
            14,
            "expected one of the streams ['auction', 'bid'], got 'bids'",
            id="window-of-an-unknown-stream",
        ),
        pytest.param(
            SAFE
            + '[streams.c]\ntime = "t"\n[[within]]\nfollows = ["bid", "c"]\nwithin = "1 s"\n'
            + '[[within]]\nbetween = ["c", "bid"]\nlower = "2 s"\nupper = "3 s"\n',
            16,
            "windows contradict each other",
            id="windows-that-contradict",
        ),
        pytest.param(SAFE + '\n[[within]]\nnear = "5 s"\n', 12, "within: expected within", id="bad-window"),
        pytest.param(SAFE + '\n[[within]]\nwithin = "x"\n', 12, "got 'x'", id="bad-window-duration"),
    ],
)
def test_a_broken_file_is_named_with_line_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, words: str
) -> None:
    assert run(tmp_path, text, "check") == 2
    error = capsys.readouterr().err
    assert f"query.toml:{line}: " in error
    assert words in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('within = "5 s"', within("5 s")),
        ('streams = ["auction", "bid"]\nwithin = "5 s"', within("auction", "bid", "5 s")),
        ('between = ["auction", "bid"]\nupper = "5 s"', between("auction", "bid", upper="5 s")),
        ('follows = ["auction", "bid"]\nwithin = "5 s"', follows("auction", "bid", within="5 s")),
        ('path = ["auction", "bid"]\nwithin = ["5 s"]', path("auction", "bid", within=["5 s"])),
    ],
)
def test_every_kind_of_window_can_be_written(table: str, expected: object) -> None:
    assert parse_query(f"{SAFE}\n[[within]]\n{table}\n").within == (expected,)


def test_a_file_in_a_foreign_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "query.toml"
    file.write_bytes(b"# a query\non = '\xff'")
    with pytest.raises(QueryFileError, match=r"query\.toml:2: expected text in UTF-8, got the byte 0xff"):
        streamjoin.query_file.read_query(file)


def test_without_a_command_the_help_is_shown_and_the_exit_code_is_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert "streamjoin check query.toml" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["check"], ["explain"], ["bench"], ["demo"]])
def test_every_help_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "example" in text
    assert f"  streamjoin {(command or ['check'])[0]} " in text


def test_the_query_file_of_the_help_is_a_safe_query(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out.partition("a query file:\n")[2]
    assert parse_query(textwrap.dedent(text)).check().safe


def test_bench_without_a_name_lists_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_and_checks_its_answer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", name, "--rows", "10000"]) == 0
    assert BENCHMARKS[name].question in capsys.readouterr().out


def test_a_wrong_answer_of_a_benchmark_is_an_error_without_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks, "_count_matches", lambda *arguments: -1)
    assert main(["bench", "kernel", "--rows", "1000"]) == 1
    assert "streamjoin: wrong answer: expected -1 pairs, got " in capsys.readouterr().err


def test_the_dumb_count_of_matches_is_that_of_nested_loops() -> None:
    random = np.random.default_rng(7)
    left, right = ((random.integers(0, 5, n), np.sort(random.integers(0, 40, n))) for n in (60, 50))
    pairs = sum(
        lk == rk and abs(rt - lt) <= 7
        for lk, lt in zip(*left, strict=True)
        for rk, rt in zip(*right, strict=True)
    )
    assert benchmarks._count_matches(left, right, 7) == pairs


@pytest.mark.parametrize("arguments", [["bench", "nothing"], ["bench", "join", "--rows", "7"], ["dance"]])
def test_a_broken_command_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_interrupt_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(path: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "read_query", interrupted)
    assert main(["check", "query.toml"]) == 130
    assert capsys.readouterr().err == "streamjoin: interrupted\n"


def test_a_picture_that_cannot_be_written_is_an_error_without_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, SAFE, "check", "--plot", str(tmp_path / "no" / "graph.svg")) == 2
    assert capsys.readouterr().err.startswith("streamjoin: ")


def test_the_demo_without_spark_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
    assert main(["demo"]) == 2
    assert "pip install 'streamjoin[spark,plot]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["state.gif", "no-such-folder/state.png"])
def test_the_demo_refuses_a_picture_before_it_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--picture", name])
    assert stop.value.code == 2
    assert "argument --picture: expected a" in capsys.readouterr().err


def test_a_failure_of_spark_in_the_demo_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from streamjoin.spark import demo

    def fails(events: int, batches: int) -> None:
        raise RuntimeError("the gateway is gone\n  at java.lang.Thread")

    monkeypatch.setattr(demo, "both_runs", fails)
    monkeypatch.setattr(demo.sjs, "check_environment", lambda: None)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "streamjoin demo: Spark failed: the gateway is gone\n"


def test_progress_is_shown_on_a_terminal_alone() -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((Screen(), True), (io.StringIO(), False)):
        with Progress("joining", 2, stream) as progress:
            progress.step()
            progress.step()
        assert ("joining [############............] 1/2" in stream.getvalue()) is shown
        assert bool(stream.getvalue()) is shown
