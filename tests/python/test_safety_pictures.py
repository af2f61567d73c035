"""Pictures of the punctuation graph: dot, SVG, PNG, HTML. The one in the documents is what the code draws."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from random_queries import random_query
from streamjoin.errors import StreamJoinError
from streamjoin.query import Query
from streamjoin.safety.drawing import BOUNDED, GROWS, SMALL_LETTER, UNREACHED, Arc, Box, Diamond, Label, draw
from streamjoin.stream import Stream
from streamjoin.windows import between

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
    assert sum(isinstance(shape, Diamond) for shape in shapes) == 2  # the edge's and the legend's


def market() -> Query:
    schemes: dict[str, list[str | tuple[str, ...]]] = {
        "person": ["id"],
        "auction": [("seller", "item")],
        "bid": ["item"],
        "category": [],
    }
    streams = [Stream(name, time="t", punctuations=columns) for name, columns in schemes.items()]
    on = ["person.id = auction.seller", "auction.item = bid.item", "bid.bidder = person.id"]
    on.append("auction.category = category.id")
    return Query(streams, on, within=between("person", "bid", upper="5 s"), require_safe=False)


def overlaps(query: Query) -> list[tuple[str, str]]:
    """Labels that lie on each other, or on a stream, by their rectangles."""
    report = query.check()
    found: list[tuple[str, str]] = []
    taken: list[tuple[str, float, float, float, float]] = []
    for shape in draw(report.graph, report.reached).shapes:
        if isinstance(shape, Label) and shape.align == "middle":
            box = (shape.text, *shape.place, SMALL_LETTER * len(shape.text), 14.0)
        elif isinstance(shape, Box) and shape.text:
            box = (shape.text, *shape.centre, shape.width, 34.0)
        else:
            continue
        text, x, y, width, height = box
        for other, x2, y2, width2, height2 in taken:
            if abs(x - x2) < (width + width2) / 2 and abs(y - y2) < (height + height2) / 2:
                found.append((other, text))
        taken.append(box)
    return found


def test_labels_do_not_lie_on_each_other() -> None:
    import random

    assert overlaps(market()) == overlaps(figure_8()) == overlaps(unsafe()) == []
    rng = random.Random(82)
    found = [overlaps(random_query(rng, streams=(2, 4))) for _ in range(200)]
    assert sum(map(bool, found)) < 10  # where schemes abound


def test_a_stream_that_no_other_one_reaches_is_framed_in_another_colour() -> None:
    for query, expected in ((market(), ["category"]), (unsafe(), ["b"]), (figure_8(), [])):
        report = query.check()
        shapes = draw(report.graph, report.reached).shapes
        assert [s.text for s in shapes if isinstance(s, Box) and s.text and not s.reached] == expected
        assert (UNREACHED in report.to_svg()) == bool(expected)


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
