"""Where everything in the picture stands: shapes as plain data, for any painter.

    streams on a circle; plain edges as bent arrows; a generalized edge through a small diamond;
    windows dashed; predicates that no promise covers as dotted grey lines; growing states in red

Coordinates are pixels, y pointing down. Labels stand on a white ground, so that lines may pass below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from streamjoin.safety.graph_text import edge_label
from streamjoin.safety.graphs import JoinGraph, members

INK, BOUNDED, GROWS, WINDOW, PALE = "#2f3640", "#1f7a6d", "#c0392b", "#2a5db0", "#8a8f98"
FILL = {BOUNDED: "#e3f1ee", GROWS: "#fde8e4"}
BOX_HEIGHT, LETTER = 34.0, 8.6


class Point(NamedTuple):
    """A place in the picture."""

    x: float
    y: float


class Box(NamedTuple):
    """A stream."""

    centre: Point
    width: float
    text: str
    colour: str


class Arc(NamedTuple):
    """A line bent through a control point; `style` is solid, dashed or dotted."""

    start: Point
    control: Point
    end: Point
    colour: str
    style: str = "solid"
    arrow: bool = True


class Diamond(NamedTuple):
    """Where the sources of a generalized edge meet."""

    centre: Point
    colour: str


class Label(NamedTuple):
    """Words on white ground; `align` is middle or start."""

    place: Point
    text: str
    colour: str
    align: str = "middle"


Shape: TypeAlias = Box | Arc | Diamond | Label


@dataclass(frozen=True)
class Drawing:
    """Shapes in the order of painting."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


def draw(graph: JoinGraph, reached: tuple[int, ...]) -> Drawing:
    """Lay out the punctuation graph with its verdict."""
    widths = [max(64.0, 24 + LETTER * len(name)) for name in graph.names]
    radius = max(120.0, (max(widths) + 70) * len(widths) / (2 * math.pi))
    centre = Point(radius + max(widths) / 2 + 70, radius + 60)
    places = [_on_circle(centre, radius, i, len(widths)) for i in range(len(widths))]
    boxes = []
    for i, name in enumerate(graph.names):
        colour = BOUNDED if reached[i] == graph.everything else GROWS
        boxes.append(Box(places[i], widths[i], name, colour))
    lines, labels = _edges(graph, boxes, centre)
    height = max(place.y for place in places) + 80
    legend = _legend(graph, boxes, height)
    return Drawing(2 * centre.x, height + 24 * len(legend) / 2, (*lines, *labels, *boxes, *legend))


def _on_circle(centre: Point, radius: float, i: int, n: int) -> Point:
    if n == 2:
        return Point(centre.x + (2 * i - 1) * radius, centre.y)
    angle = 2 * math.pi * i / n - math.pi / 2
    return Point(centre.x + radius * math.cos(angle), centre.y + radius * math.sin(angle))


def _edges(graph: JoinGraph, boxes: list[Box], centre: Point) -> tuple[list[Shape], list[Shape]]:
    lines: list[Shape] = []
    labels: list[Shape] = []
    linked: set[frozenset[int]] = set()
    bends: dict[tuple[int, int], int] = {}
    meetings = 0
    for edge in graph.edges():
        linked |= {frozenset((i, edge.target)) for i in members(edge.sources)}
        colour, style = (WINDOW, "dashed") if edge.scheme is None else (INK, "solid")
        target = boxes[edge.target]
        if edge.is_plain:
            source = edge.sources.bit_length() - 1
            turn = bends[source, edge.target] = bends.get((source, edge.target), 0) + 1
            arc = _arc(boxes[source], target, 26.0 * turn, colour, style)
            lines.append(arc)
            labels.append(Label(_middle(arc), edge_label(edge), colour))
            continue
        sources = [boxes[i].centre for i in members(edge.sources)]
        mean = Point(sum(p.x for p in sources) / len(sources), sum(p.y for p in sources) / len(sources))
        share = 0.38 + 0.1 * (meetings % 3)
        meetings += 1
        meeting = Point(
            mean.x + (target.centre.x - mean.x) * share, mean.y + (target.centre.y - mean.y) * share
        )
        for i in members(edge.sources):
            start = _border(boxes[i], meeting)
            lines.append(Arc(start, _halfway(start, meeting), meeting, colour, style, arrow=False))
        end = _border(target, meeting)
        out = Arc(meeting, _halfway(meeting, end), end, colour, style)
        lines += [out, Diamond(meeting, colour)]
        labels.append(Label(_middle(out), edge_label(edge), colour))
    place = {name: i for i, name in enumerate(graph.names)}
    for left, right in graph.join_edges():
        i, j = place[left.stream], place[right.stream]
        if frozenset((i, j)) not in linked:
            turn = bends[i, j] = bends.get((i, j), 0) + 1
            arc = _arc(boxes[i], boxes[j], 26.0 * (turn - 1), PALE, "dotted")._replace(arrow=False)
            lines.append(arc)
            labels.append(Label(_middle(arc), f"{left.column} = {right.column}", PALE))
    return lines, labels


def _legend(graph: JoinGraph, boxes: list[Box], top: float) -> list[Shape]:
    edges = graph.edges()
    rows = [("state stays bounded", BOUNDED)] if any(box.colour == BOUNDED for box in boxes) else []
    rows += [("state grows", GROWS)] if any(box.colour == GROWS for box in boxes) else []
    rows += [("by punctuations on (columns)", INK)] if any(edge.scheme for edge in edges) else []
    rows += [("by time", WINDOW)] if any(edge.scheme is None for edge in edges) else []
    shapes: list[Shape] = []
    for number, (text, colour) in enumerate(rows):
        y = top + 24.0 * number
        if colour in FILL:
            shapes.append(Box(Point(42, y), 36, "", colour))
        else:
            style = "dashed" if colour == WINDOW else "solid"
            shapes.append(Arc(Point(24, y), Point(42, y), Point(60, y), colour, style))
        shapes.append(Label(Point(74, y), text, INK, "start"))
    return shapes


def _arc(source: Box, target: Box, bend: float, colour: str, style: str) -> Arc:
    """Bend to the right of the way, so that the two directions of a pair stay apart."""
    a, b = source.centre, target.centre
    length = math.hypot(b.x - a.x, b.y - a.y)
    middle = _halfway(a, b)
    control = Point(middle.x - (b.y - a.y) / length * 2 * bend, middle.y + (b.x - a.x) / length * 2 * bend)
    return Arc(_border(source, control), control, _border(target, control), colour, style)


def _border(box: Box, towards: Point) -> Point:
    """Return where the line from the box's centre leaves it, with a little air."""
    dx, dy = towards.x - box.centre.x, towards.y - box.centre.y
    across = (box.width / 2 + 5) / abs(dx) if dx else math.inf
    along = (BOX_HEIGHT / 2 + 5) / abs(dy) if dy else math.inf
    share = min(across, along, 1.0)
    return Point(box.centre.x + dx * share, box.centre.y + dy * share)


def _halfway(a: Point, b: Point) -> Point:
    return Point((a.x + b.x) / 2, (a.y + b.y) / 2)


def _middle(arc: Arc) -> Point:
    return _halfway(_halfway(arc.start, arc.control), _halfway(arc.control, arc.end))
