"""Pictures of the documents are what their code draws, and every one is shown somewhere."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw", FOLDER / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAW = load()


@pytest.mark.parametrize("name", DRAW.PICTURES)
def test_a_picture_is_what_the_code_draws(name: str) -> None:
    drawn = DRAW.PICTURES[name]()
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, "redraw: python docs/pictures/draw.py"
    ElementTree.fromstring(drawn)


def test_every_picture_is_shown() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    pictures = [path.name for path in FOLDER.rglob("*") if path.suffix in (".svg", ".png")]
    assert [name for name in pictures if f"pictures/{name}" not in text and f"/{name}" not in text] == []
