"""A few shapes as SVG text: what the pictures of the documents are made of. The same bytes each time."""

from __future__ import annotations

from html import escape

INK, GREY, PALE = "#222222", "#8a8a8a", "#ececec"
BLUE, RED, GREEN, YELLOW = "#1f6fb4", "#c23b22", "#2e8b57", "#f5d76e"


class Picture:
    """Shapes are painted in the order they are added; y grows downwards."""

    def __init__(self, width: int, height: int) -> None:
        self.size = width, height
        self._shapes: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, *, colour: str = INK, width: float = 1.5,
             dashed: bool = False, arrow: bool = False) -> None:  # fmt: skip
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        head = f' marker-end="url(#head-{colour[1:]})"' if arrow else ""
        self._shapes.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" '
            f'stroke="{colour}" stroke-width="{width:g}"{dash}{head}/>'
        )

    def box(self, x: float, y: float, width: float, height: float, *, fill: str = "#ffffff",
            stroke: str = INK, opacity: float = 1, round_: float = 4) -> None:  # fmt: skip
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" fill="{fill}" '
            f'fill-opacity="{opacity:g}" stroke="{stroke}" stroke-width="1.2"/>'
        )

    def dot(self, x: float, y: float, *, fill: str = INK, stroke: str = INK, radius: float = 6) -> None:
        self._shapes.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" '
            f'stroke="{stroke}" stroke-width="1.5"/>'
        )

    def text(self, x: float, y: float, words: str, *, size: float = 13, colour: str = INK,
             anchor: str = "middle", bold: bool = False, mono: bool = False) -> None:  # fmt: skip
        family = "monospace" if mono else "sans-serif"
        weight = ' font-weight="bold"' if bold else ""
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{family}" font-size="{size:g}" fill="{colour}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def labelled_box(self, x: float, y: float, width: float, height: float, *lines: str,
                     fill: str = "#ffffff", stroke: str = INK, size: float = 13) -> None:  # fmt: skip
        self.box(x, y, width, height, fill=fill, stroke=stroke)
        top = y + height / 2 - (len(lines) - 1) * (size + 3) / 2 + size / 3
        for number, words in enumerate(lines):
            self.text(
                x + width / 2, top + number * (size + 3), words, size=size, bold=number == 0 < len(lines) - 1
            )

    def __str__(self) -> str:
        width, height = self.size
        heads = "".join(
            f'<marker id="head-{colour[1:]}" viewBox="0 0 10 10" refX="9" refY="5" '
            f'markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
            for colour in (INK, GREY, BLUE, RED, GREEN)
        )
        body = "\n".join(self._shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">\n<defs>{heads}</defs>\n'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
        )
