"""Where everything in the picture stands: shapes as plain data, for any painter.

    streams on a circle; plain edges as bent arrows; a generalized edge through a small diamond;
    windows dashed; predicates that no promise covers as dotted grey lines; growing states in red;
    streams that no other one reaches, so that all rows wait for them, in a dashed amber frame

Coordinates are pixels, y pointing down. Labels stand on a white ground, so that lines may pass below; they
and the diamonds take the first place along their line that is free (`_Ground`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from streamjoin.safety.graph_text import edge_label
from streamjoin.safety.graphs import Edge, JoinGraph, members

INK, BOUNDED, GROWS, WINDOW, PALE = "#2f3640", "#1f7a6d", "#c0392b", "#2a5db0", "#8a8f98"
UNREACHED = "#d08700"
FILL = {BOUNDED: "#e3f1ee", GROWS: "#fde8e4"}
BOX_HEIGHT, LETTER, SMALL_LETTER = 34.0, 8.6, 7.4
ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)  # where a label may stand on its line


class Point(NamedTuple):
    """A place in the picture."""

    x: float
    y: float


class Box(NamedTuple):
    """A stream; `reached` by another one, or by none."""

    centre: Point
    width: float
    text: str
    colour: str
    reached: bool = True


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
    edges = graph.edges()
    widths = [max(64.0, 24 + LETTER * len(name)) for name in graph.names]
    crowd = max(1.0, math.sqrt(len(edges) / (2 * len(widths))))  # many edges need room for their labels
    radius = max(120.0, (max(widths) + 70) * len(widths) / (2 * math.pi)) * min(crowd, 2.0)
    centre = Point(radius + max(widths) / 2 + 70, radius + 60 if len(widths) > 2 else 90)
    places = [_on_circle(centre, radius, i, len(widths)) for i in range(len(widths))]
    boxes = []
    for i, name in enumerate(graph.names):
        colour = BOUNDED if reached[i] == graph.everything else GROWS
        by_another = any(each >> i & 1 for j, each in enumerate(reached) if j != i)
        boxes.append(Box(places[i], widths[i], name, colour, by_another))
    lines, labels, dotted = _edges(graph, edges, boxes, centre)
    height = max(place.y for place in places) + 80
    legend = _legend(edges, boxes, height, dotted=dotted)
    rows = sum(isinstance(shape, Label) for shape in legend)
    return Drawing(2 * centre.x, height + 24 * rows, (*lines, *labels, *boxes, *legend))


class _Ground:
    """What stands already: rectangles that labels and diamonds keep off."""

    def __init__(self, boxes: list[Box]) -> None:
        self.taken = [(box.centre, box.width + 8, BOX_HEIGHT + 8) for box in boxes]

    def place(self, candidates: Iterable[Point], width: float, height: float) -> Point:
        """Take the first candidate that is free, or the one that covers least."""
        best = min(candidates, key=lambda point: self._covered(point, width, height))
        self.taken.append((best, width, height))
        return best

    def _covered(self, point: Point, width: float, height: float) -> float:
        covered = 0.0
        for other, across, along in self.taken:
            x = (width + across) / 2 - abs(point.x - other.x)
            y = (height + along) / 2 - abs(point.y - other.y)
            covered += x * y if x > 0 and y > 0 else 0.0
        return covered


def _on_circle(centre: Point, radius: float, i: int, n: int) -> Point:
    if n == 2:
        return Point(centre.x + (2 * i - 1) * radius, centre.y)
    angle = 2 * math.pi * i / n - math.pi / 2
    return Point(centre.x + radius * math.cos(angle), centre.y + radius * math.sin(angle))


def _edges(
    graph: JoinGraph, edges: Sequence[Edge], boxes: list[Box], centre: Point
) -> tuple[list[Shape], list[Shape], bool]:
    """Return lines and labels, and whether a predicate is covered by no edge."""
    lines: list[Shape] = []
    worded: list[tuple[Arc, str]] = []
    linked: set[frozenset[int]] = set()
    bends: dict[tuple[int, int], int] = {}
    ground = _Ground(boxes)
    for edge in edges:
        linked |= {frozenset((i, edge.target)) for i in members(edge.sources)}
        colour, style = (WINDOW, "dashed") if edge.scheme is None else (INK, "solid")
        target = boxes[edge.target]
        if edge.is_plain:
            source = edge.sources.bit_length() - 1
            turn = bends[source, edge.target] = bends.get((source, edge.target), 0) + 1
            arc = _arc(boxes[source], target, 26.0 * turn, colour, style)
            lines.append(arc)
            worded.append((arc, edge_label(edge)))
            continue
        sources = [boxes[i].centre for i in members(edge.sources)]
        meeting = ground.place(_meetings(sources, target.centre, centre), 22, 22)
        for i in members(edge.sources):
            start = _border(boxes[i], meeting)
            lines.append(Arc(start, _halfway(start, meeting), meeting, colour, style, arrow=False))
        end = _border(target, meeting)
        out = Arc(meeting, _halfway(meeting, end), end, colour, style)
        lines += [out, Diamond(meeting, colour)]
        worded.append((out, edge_label(edge)))
    place = {name: i for i, name in enumerate(graph.names)}
    dotted = False
    for left, right in graph.join_edges():
        i, j = place[left.stream], place[right.stream]
        if frozenset((i, j)) not in linked:
            turn = bends[i, j] = bends.get((i, j), 0) + 1
            arc = _arc(boxes[i], boxes[j], 26.0 * (turn - 1), PALE, "dotted")._replace(arrow=False)
            lines.append(arc)
            worded.append((arc, f"{left.column} = {right.column}"))
            dotted = True
    labels: list[Shape] = []
    # Those with the least room on their line choose first.
    for arc, text in sorted(worded, key=lambda each: math.dist(each[0].start, each[0].end) / len(each[1])):
        spot = ground.place((_at(arc, share) for share in ALONG), SMALL_LETTER * len(text) + 6, 18)
        labels.append(Label(spot, text, arc.colour))
    return lines, labels, dotted


def _meetings(sources: list[Point], target: Point, centre: Point) -> Iterator[Point]:
    """Yield where sources of a generalized edge may meet: on the way to the target, then beside it."""
    mean = Point(sum(p.x for p in sources) / len(sources), sum(p.y for p in sources) / len(sources))
    if math.dist(mean, target) < 140:  # the target lies between the sources: meet in the middle of the circle
        mean = _halfway(mean, centre)
    dx, dy = target.x - mean.x, target.y - mean.y
    for aside in (0.0, 0.15, -0.15, 0.3, -0.3):
        for share in (0.38, 0.48, 0.28, 0.18, 0.08):
            yield Point(mean.x + dx * share - dy * aside, mean.y + dy * share + dx * aside)


def _legend(edges: Sequence[Edge], boxes: list[Box], top: float, *, dotted: bool) -> list[Shape]:
    y = top
    shapes: list[Shape] = []

    def row(text: str, *shown: Shape) -> None:
        nonlocal y
        shapes.extend([*shown, Label(Point(74, y), text, INK, "start")])
        y += 24.0

    def line(colour: str, style: str, *, arrow: bool = True) -> Arc:
        return Arc(Point(24, y), Point(42, y), Point(60, y), colour, style, arrow)

    for text, colour in (("state stays bounded", BOUNDED), ("state grows", GROWS)):
        if any(box.colour == colour for box in boxes):
            row(text, Box(Point(42, y), 36, "", colour))
    if not all(box.reached for box in boxes):
        row(
            "no other stream reaches it: the rows of all others wait for it",
            Box(Point(42, y), 36, "", GROWS, False),
        )
    if any(edge.scheme for edge in edges):
        row("by punctuations on (columns)", line(INK, "solid"))
    if not all(edge.is_plain for edge in edges):
        row("from all of these streams together", line(INK, "solid"), Diamond(Point(38, y), INK))
    if any(edge.scheme is None for edge in edges):
        row("by time", line(WINDOW, "dashed"))
    if dotted:
        row("joined, but nothing says when no more rows come", line(PALE, "dotted", arrow=False))
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


def _at(arc: Arc, share: float) -> Point:
    """Return the point of a bent line at a share of its way."""
    first, second = (1 - share) ** 2, 2 * share * (1 - share)
    third = share**2
    return Point(
        first * arc.start.x + second * arc.control.x + third * arc.end.x,
        first * arc.start.y + second * arc.control.y + third * arc.end.y,
    )
