"""Painters of a `Drawing`: SVG by hand, PNG by matplotlib, which is imported only when asked for."""

from __future__ import annotations

import math
from html import escape
from os import PathLike, fspath
from typing import Any

from streamjoin.errors import StreamJoinError
from streamjoin.safety.drawing import BOX_HEIGHT, FILL, UNREACHED, Arc, Box, Diamond, Drawing, Label, Point

DASHES = {"solid": "", "dashed": "7 4", "dotted": "2 4"}
FONT = "DejaVu Sans, Verdana, sans-serif"
ARROW = 9.0


def save_picture(drawing: Drawing, path: str | PathLike[str]) -> None:
    """Write the drawing in the form that the name's ending asks for."""
    name = fspath(path)
    if name.lower().endswith(".svg"):
        with open(name, "w", encoding="utf-8") as file:
            file.write(svg_text(drawing))
    elif name.lower().endswith(".png"):
        _paint_png(drawing, name)
    else:
        raise StreamJoinError(f"plot: expected a name that ends with .svg or .png, got {name!r}")


def svg_text(drawing: Drawing) -> str:
    """Return the drawing as an SVG document."""
    width, height = round(drawing.width), round(drawing.height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FONT}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for shape in drawing.shapes:
        lines += _svg_shape(shape)
    return "\n".join([*lines, "</svg>", ""])


def _svg_shape(shape: Box | Arc | Diamond | Label) -> list[str]:
    if isinstance(shape, Box):
        x, y = shape.centre.x - shape.width / 2, shape.centre.y - (BOX_HEIGHT if shape.text else 14) / 2
        height = BOX_HEIGHT if shape.text else 14
        frame, dash = (shape.colour, "") if shape.reached else (UNREACHED, ' stroke-dasharray="6 3"')
        found = [
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{shape.width:.1f}" height="{height:.1f}" rx="7" '
            f'fill="{FILL[shape.colour]}" stroke="{frame}" stroke-width="1.6"{dash}/>'
        ]
        return found + ([_svg_words(shape.centre, shape.text, shape.colour, 14)] if shape.text else [])
    if isinstance(shape, Arc):
        a, c, b = shape.start, shape.control, shape.end
        dash = f' stroke-dasharray="{DASHES[shape.style]}"' if DASHES[shape.style] else ""
        found = [
            f'<path d="M {a.x:.1f} {a.y:.1f} Q {c.x:.1f} {c.y:.1f} {b.x:.1f} {b.y:.1f}" fill="none" '
            f'stroke="{shape.colour}" stroke-width="1.5"{dash}/>'
        ]
        if shape.arrow:
            corners = " ".join(f"{p.x:.1f},{p.y:.1f}" for p in _arrow_head(shape))
            found.append(f'<polygon points="{corners}" fill="{shape.colour}"/>')
        return found
    if isinstance(shape, Diamond):
        corners = " ".join(f"{p.x:.1f},{p.y:.1f}" for p in _diamond(shape.centre))
        return [f'<polygon points="{corners}" fill="white" stroke="{shape.colour}" stroke-width="1.5"/>']
    words = _svg_words(shape.place, shape.text, shape.colour, 12, shape.align)
    ground = words.replace('fill="', 'stroke="white" stroke-width="5" stroke-linejoin="round" fill="', 1)
    return [ground, words]


def _svg_words(place: Point, text: str, colour: str, size: int, align: str = "middle") -> str:
    return (
        f'<text x="{place.x:.1f}" y="{place.y + size * 0.35:.1f}" font-size="{size}" '
        f'text-anchor="{align}" fill="{colour}">{escape(text)}</text>'
    )


def _arrow_head(arc: Arc) -> list[Point]:
    dx, dy = arc.end.x - arc.control.x, arc.end.y - arc.control.y
    length = math.hypot(dx, dy) or 1.0
    dx, dy = dx / length * ARROW, dy / length * ARROW
    base = Point(arc.end.x - dx, arc.end.y - dy)
    return [
        arc.end,
        Point(base.x - dy * 0.45, base.y + dx * 0.45),
        Point(base.x + dy * 0.45, base.y - dx * 0.45),
    ]


def _diamond(centre: Point) -> list[Point]:
    return [Point(centre.x + dx * 7, centre.y + dy * 7) for dx, dy in ((0, -1), (1, 0), (0, 1), (-1, 0))]


def _paint_png(drawing: Drawing, name: str) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StreamJoinError(
            "plot: a PNG needs matplotlib (pip install 'streamjoin[plot]'); an SVG needs nothing"
        ) from error
    figure = Figure(figsize=(drawing.width / 72, drawing.height / 72), dpi=144)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.set_axis_off()
    for order, shape in enumerate(drawing.shapes, start=1):
        _paint(axes, shape, order)
    figure.savefig(name)


def _paint(axes: Any, shape: Box | Arc | Diamond | Label, order: int) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
    from matplotlib.path import Path

    if isinstance(shape, Box):
        height = BOX_HEIGHT if shape.text else 14
        corner = (shape.centre.x - shape.width / 2, shape.centre.y - height / 2)
        style = "round,pad=0,rounding_size=7"
        colours: dict[str, Any] = {
            "facecolor": FILL[shape.colour],
            "edgecolor": shape.colour if shape.reached else UNREACHED,
            "linewidth": 1.6,
            "linestyle": "-" if shape.reached else (0, (4, 2)),
        }
        axes.add_patch(FancyBboxPatch(corner, shape.width, height, boxstyle=style, zorder=order, **colours))
        axes.text(
            *shape.centre, shape.text, color=shape.colour, size=14, ha="center", va="center", zorder=order
        )
    elif isinstance(shape, Arc):
        bent = Path([shape.start, shape.control, shape.end], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        dashes = (0, tuple(map(float, DASHES[shape.style].split()))) if DASHES[shape.style] else "-"
        look = {"edgecolor": shape.colour, "linewidth": 1.5, "linestyle": dashes, "zorder": order}
        axes.add_patch(PathPatch(bent, fill=False, **look))
        if shape.arrow:
            axes.add_patch(Polygon(_arrow_head(shape), color=shape.colour, linewidth=0, zorder=order))
    elif isinstance(shape, Diamond):
        patch: dict[str, Any] = {"facecolor": "white", "edgecolor": shape.colour, "linewidth": 1.5}
        axes.add_patch(Polygon(_diamond(shape.centre), zorder=order, **patch))
    else:
        align = "left" if shape.align == "start" else "center"
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        look = {"color": shape.colour, "size": 12, "ha": align, "va": "center", "zorder": order}
        axes.text(*shape.place, shape.text, bbox=ground, **look)
