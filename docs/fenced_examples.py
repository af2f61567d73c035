"""Shows the examples of docstrings as code on the API page.

In Markdown `>>> ` is a quotation. Each example, up to the next blank line, goes into a fence:

    Text.                          Text.

    >>> Range(10, 20)       ->     ```pycon
    Range(low=10, high=20)         >>> Range(10, 20)
                                   Range(low=10, high=20)
                                   ```
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import griffe


def fenced(text: str) -> str:
    """Return Markdown in which every paragraph that begins with `>>> ` is code."""
    lines: list[str] = []
    for blank, paragraph in groupby(text.splitlines(), key=lambda line: not line.strip()):
        part = list(paragraph)
        begin = next((i for i, line in enumerate(part) if line.startswith(">>> ")), len(part))
        if blank or begin == len(part):
            lines += part
        else:
            lines += [*part[:begin], *([""] if begin else []), "```pycon", *part[begin:], "```"]
    return "\n".join(lines)


class FencedExamples(griffe.Extension):
    """Changes the docstrings as they are read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Fence the examples of one object."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
