"""Pictures of the punctuation graph: dot, SVG, PNG, HTML. The one in the documents is what the code draws."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from random_queries import random_query
from streamjoin.errors import StreamJoinError
from streamjoin.query import Query
from streamjoin.safety.drawing import BOUNDED, GROWS, Arc, Box, Diamond, draw
from streamjoin.stream import Stream

ROOT = Path(__file__).resolve().parents[2]


def figure_8() -> Query:
    schemes = {"S1": ["B"], "S2": ["B", "C"], "S3": [("A", "C")]}
    streams = [Stream(name, time="t", punctuations=columns) for name, columns in schemes.items()]
    return Query(streams, ["S1.B = S2.B", "S2.C = S3.C", "S3.A = S1.A"])


def unsafe() -> Query:
    a, b = Stream("a", time="t", punctuations=["x"]), Stream("b", time="t")
    return Query([a, b], ["a.x = b.x"], require_safe=False)


def test_the_picture_in_the_documents_is_what_the_code_draws(tmp_path: Path) -> None:
    figure_8().check().plot(tmp_path / "figure_8.svg")
    drawn = (tmp_path / "figure_8.svg").read_text(encoding="utf-8")
    assert (ROOT / "docs/pictures/figure_8.svg").read_text(encoding="utf-8") == drawn


def test_svg_is_well_formed_and_names_every_stream_and_scheme() -> None:
    root = ElementTree.fromstring(figure_8().check().to_svg())
    words = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"S1", "S2", "S3", "(B)", "(C)", "(A, C)"} <= words


def test_growing_states_have_another_colour_and_generalized_edges_a_diamond() -> None:
    report = unsafe().check()
    boxes = {s.text: s.colour for s in draw(report.graph, report.reached).shapes if isinstance(s, Box)}
    assert (boxes["a"], boxes["b"]) == (GROWS, BOUNDED)
    report = figure_8().check()
    shapes = draw(report.graph, report.reached).shapes
    assert sum(isinstance(shape, Diamond) for shape in shapes) == 1


def test_windows_are_dashed() -> None:
    a, b = Stream("a", time="t", window="5 s", punctuations=["x"]), Stream("b", time="t")
    report = Query([a, b], ["a.x = b.x"]).check()
    arcs = [s for s in draw(report.graph, report.reached).shapes if isinstance(s, Arc)]
    assert {arc.style for arc in arcs} == {"solid", "dashed"}


def test_dot_has_a_node_for_each_stream_and_a_diamond_for_each_generalized_edge() -> None:
    dot = figure_8().check().to_dot()
    assert dot.startswith("digraph")
    assert dot.endswith("}")
    assert dot.count("shape=diamond") == 1
    assert '"S3" -> "S2" [label="(C)"]' in dot


def test_png_is_an_image_of_some_size(tmp_path: Path) -> None:
    unsafe().check().plot(tmp_path / "graph.png")
    data = (tmp_path / "graph.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 2_000


def test_without_matplotlib_a_png_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(StreamJoinError, match=r"streamjoin\[plot\]"):
        unsafe().check().plot(tmp_path / "graph.png")
    unsafe().check().plot(tmp_path / "graph.svg")


def test_a_notebook_shows_picture_and_text() -> None:
    html = unsafe().check()._repr_html_()
    assert html.startswith("<svg")
    assert "NOT safe" in html


def test_pictures_of_random_queries_are_well_formed() -> None:
    import random

    rng = random.Random(81)
    for _ in range(200):
        report = random_query(rng, streams=(2, 6)).check()
        ElementTree.fromstring(report.to_svg())
        assert report.graph_text()
        assert report.to_dot()
