"""Redraws the pictures of the ideas: `python docs/pictures/draw.py [FOLDER]`, default is this folder.

One function a picture. `tests/python/test_pictures.py` redraws them and compares: a picture in the
documents is always what this file draws.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import streamjoin as sj

sys.path.insert(0, str(Path(__file__).parent))
from svg import BLUE, GREEN, GREY, INK, PALE, RED, YELLOW, Picture


def windows() -> str:
    """Draw what a bound allows, and what two bounds imply."""
    p = Picture(760, 330)
    p.text(20, 28, 'between("a", "b", lower="-5 s", upper="10 s")', anchor="start", mono=True, size=14)
    p.box(230, 52, 240, 100, fill=YELLOW, stroke="none", opacity=0.45, round_=0)
    for y, name in ((75, "a"), (130, "b")):
        p.text(28, y + 5, name, bold=True, size=15)
        p.line(50, y, 720, y, colour=GREY, arrow=True)
    p.text(735, 134, "t", colour=GREY)
    p.dot(310, 75, fill=BLUE, stroke=BLUE)
    p.text(310, 60, "row of a, time t", size=12)
    for x in (120, 190, 520, 640):
        p.dot(x, 130, fill="#ffffff", stroke=GREY)
    for x in (230, 275, 380, 470):
        p.dot(x, 130, fill=GREEN, stroke=GREEN)
        p.line(310, 75, x, 123, colour=GREEN, width=1)
    for x, words in ((230, "t - 5 s"), (470, "t + 10 s")):
        p.line(x, 52, x, 152, colour=INK, dashed=True, width=1)
        p.text(x, 168, words, size=12)
    p.text(720, 168, "both ends included", size=12, anchor="end", colour=GREY)

    p.line(20, 188, 740, 188, colour=PALE, width=2)
    p.text(20, 213, 'path("a", "b", "c", within=["5 s", "8 s"])', anchor="start", mono=True, size=14)
    for y, name in ((235, "a"), (268, "b"), (301, "c")):
        p.text(28, y + 5, name, bold=True, size=15)
        p.line(50, y, 720, y, colour=GREY, arrow=True)
    p.box(150, 262, 150, 12, fill=YELLOW, stroke="none", opacity=0.8, round_=0)
    p.box(250, 295, 240, 12, fill=YELLOW, stroke="none", opacity=0.8, round_=0)
    p.box(150, 309, 390, 5, fill=RED, stroke="none", opacity=0.8, round_=0)
    for x, y in ((150, 235), (250, 268), (400, 301)):
        p.dot(x, y, fill=BLUE, stroke=BLUE)
    p.text(310, 258, "0 to 5 s after a", size=12, anchor="start")
    p.text(500, 291, "0 to 8 s after b", size=12, anchor="start")
    p.text(550, 318, "so c is at most 13 s after a", size=12, anchor="start", colour=RED)
    return str(p)


def punctuations() -> str:
    """Draw one punctuation and the three things the join makes of it."""
    p = Picture(760, 300)
    for y, name in ((60, "bids in"), (150, "auctions stored"), (245, "results out")):
        p.text(20, y + 5, name, anchor="start", bold=True)
    for y in (60, 245):
        p.line(140, y, 730, y, colour=GREY, arrow=True)
    for y, item, end in ((135, "180", 430), (165, "181", 720)):
        p.box(150, y - 9, end - 150, 18, fill=BLUE, stroke="none", opacity=0.35, round_=2)
        p.text(165, y + 5, item, anchor="start", size=12)
    p.box(430, 126, 290, 18, fill="#ffffff", stroke=GREY, round_=2)
    p.text(575, 139, "what the window alone would have held", size=11, colour=GREY)
    for x, item in ((190, "180"), (270, "181"), (350, "180"), (560, "181")):
        for y in (60, 245):
            p.dot(x, y, fill=GREEN, stroke=GREEN, radius=5)
            p.text(x, y - 12, item, size=12)
    p.line(430, 40, 430, 262, colour=RED, dashed=True)
    for y in (60, 245):
        p.box(424, y - 11, 12, 22, fill=RED, stroke=RED, round_=2)
    p.text(430, 28, "punctuation: no more bids on 180", colour=RED)
    p.text(444, 118, "1 purged at once", anchor="start", colour=RED, size=12)
    p.text(430, 284, "3 punctuation: no later result is about 180, its count is final", colour=RED)
    p.text(444, 90, "2 an auction 180 that still comes is not stored", anchor="start", colour=RED, size=12)
    return str(p)


def state() -> str:
    """Draw one stream's state: the index, value lists and the time list through the same T-Nodes."""
    p = Picture(760, 300)
    p.text(90, 26, "index by key", bold=True)
    p.text(440, 26, "T-Nodes: one a stored row", bold=True)
    rows = {"180": (70, [200, 440]), "181": (140, [320, 560]), "182": (210, [680])}
    for key, (y, xs) in rows.items():
        p.labelled_box(40, y - 16, 100, 32, key, fill=PALE)
        at = 140
        for x in xs:
            p.line(at, y, x - 30, y, colour=BLUE, arrow=True)
            p.box(x - 30, y - 18, 60, 36)
            at = x + 30
    for number, (x, y) in enumerate(((200, 70), (320, 140), (440, 70), (560, 140), (680, 210)), start=1):
        p.text(x, y - 3, f"time {10 * number}", size=11)
        p.text(x, y + 11, f"row {number}", size=11, colour=GREY)
    for x1, y1, x2, y2 in (
        (200, 88, 300, 122),
        (320, 122, 420, 88),
        (440, 88, 540, 122),
        (560, 158, 660, 192),
    ):
        p.line(x1 + 8, y1, x2, y2, colour=RED, arrow=True)
    p.text(
        40,
        262,
        "value list: the rows of one key, oldest first. A probe and a purge walk it.",
        colour=BLUE,
        anchor="start",
    )
    expiry = "time list: all rows, oldest first. Expiry takes from its head, so it costs what it removes."
    p.text(40, 284, expiry, colour=RED, anchor="start")
    return str(p)


def spark() -> str:
    """Draw the way of a micro-batch through Spark."""
    p = Picture(760, 300)
    for y, name in ((50, "auctions"), (120, "bids"), (190, "closings")):
        p.labelled_box(15, y - 18, 90, 36, name, fill=PALE)
        p.line(105, y, 145, y, arrow=True)
        p.labelled_box(145, y - 22, 120, 44, "mapInArrow", "rows to frames", size=12)
        for target in (75, 165):
            p.line(265, y, 380, target, colour=GREY, arrow=True, width=1)
    p.text(322, 32, "shuffle by bucket", size=12, colour=GREY)
    for y, bucket in ((75, "bucket 0"), (165, "bucket 1")):
        p.labelled_box(
            380,
            y - 36,
            165,
            72,
            bucket,
            "transformWithState",
            "Operator stays resident",
            size=12,
            fill="#e7f0f8",
        )
        p.line(545, y, 590, y, arrow=True)
        p.labelled_box(590, y - 22, 110, 44, "mapInArrow", "rows again", size=12)
        p.line(700, y, 745, y, arrow=True)
    p.line(462, 201, 462, 240, colour=BLUE, arrow=True)
    words = ("state store of each bucket (RocksDB)", "a snapshot and the frames since")
    p.labelled_box(310, 240, 305, 44, *words, size=12, stroke=BLUE)
    return str(p)


def disorder() -> str:
    """Draw how rows that come out of order get into order: a buffer a stream, then the synchronizer."""
    p = Picture(760, 260)
    p.text(95, 26, "as they arrive", colour=GREY, size=12)
    p.text(330, 26, "wait K: in order again", colour=GREY, size=12)
    p.text(575, 26, "in step with the others", colour=GREY, size=12)
    for y, name, rows in ((75, "a", (3, 1, 4, 2)), (175, "b", (1, 4, 2, 5))):
        p.text(18, y + 5, name, bold=True, size=15)
        for place, row in enumerate(rows):
            colour = RED if row < max(rows[: place + 1]) else BLUE
            p.labelled_box(35 + 32 * place, y - 14, 28, 28, str(row), stroke=colour, size=12)
        p.line(168, y, 205, y, arrow=True)
        p.box(205, y - 34, 250, 68, fill=PALE, stroke=GREY)
        p.text(330, y - 16, f"slack of {name}", size=12, bold=True)
        for place, row in enumerate(sorted(rows)):
            p.labelled_box(262 + 34 * place, y - 6, 28, 28, str(row), stroke=BLUE, size=12)
        p.line(455, y, 500, 125 - (10 if y < 125 else -10), arrow=True)
    p.labelled_box(500, 85, 150, 80, "synchronizer", "oldest of all first", fill="#e7f0f8", size=12)
    p.line(650, 125, 685, 125, arrow=True)
    p.labelled_box(685, 103, 60, 44, "join", size=13)
    words = "K: fixed, the largest delay seen, or as little as a recall target allows. Red: out of order."
    p.text(380, 245, words, size=12)
    return str(p)


def figure_8() -> str:
    """Draw the punctuation graph of docs/safety.md."""
    query = sj.Query(
        [
            sj.Stream("S1", time="t", punctuations=["B"]),
            sj.Stream("S2", time="t", punctuations=["B", "C"]),
            sj.Stream("S3", time="t", punctuations=[("A", "C")]),
        ],
        on=["S1.B = S2.B", "S2.C = S3.C", "S3.A = S1.A"],
    )
    return query.check().to_svg()


PICTURES: dict[str, Callable[[], str]] = {
    "windows.svg": windows,
    "punctuations.svg": punctuations,
    "state.svg": state,
    "spark.svg": spark,
    "disorder.svg": disorder,
    "figure_8.svg": figure_8,
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw(), encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    main()
