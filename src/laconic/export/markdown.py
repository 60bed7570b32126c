"""Markdown tables whose cells stay cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_LONGEST = 200


def inert(value: Any) -> str:
    """A value as text that Markdown and HTML take literally, on one line and not endless."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "".join(c if c.isprintable() else " " for c in str(value)).strip()
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$!])", r"\\\1", text)


def table(heads: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a table: numbers to the right, texts to the left.

    >>> table(["rule", "cost"], [["a|b", 0.25]])[-1]
    '| a\\\\|b | 0.25 |'
    """
    sides = [
        " ---: " if all(isinstance(row[c], int | float) for row in rows) else " :--- "
        for c in range(len(heads))
    ]
    return [_row(heads), "|" + "|".join(sides) + "|", *(_row(row) for row in rows)]


def _row(cells: Sequence[Any]) -> str:
    return "".join(f"| {inert(cell)} " for cell in cells).replace("|  ", "| ") + "|"
