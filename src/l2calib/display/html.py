"""HTML for notebooks: everything escaped, and in the colours that the notebook has, be it light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from l2calib.display.numbers import rounded

_TABLE = "border-collapse:collapse;color:inherit;background:none;margin:0.4em 0"
_CELL = "padding:0.15em 0.7em;border:none;background:none;color:inherit"
_HEAD = f"{_CELL};border-bottom:1px solid currentColor;font-weight:600"


def block(title: str, *parts: str) -> str:
    """A title above parts that are HTML already."""
    return f'<div class="l2calib"><p><strong>{escape(title)}</strong></p>{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """A sentence of its own."""
    return f"<p>{escape(text)}</p>"


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], sd: str | None = None) -> str:
    """Words to the left and numbers to the right, to the place that the column `sd` supports or to four digits."""
    drawn = [list(row) for row in rows]
    numeric = [bool(drawn) and all(isinstance(row[j], float) for row in drawn) for j in range(len(headings))]
    spreads = [math.nan if sd is None else row[headings.index(sd)] for row in drawn]
    head = _row("th", headings, numeric, _HEAD)
    body = "".join(
        _row("td", [_shown(value, spread) for value in row], numeric, _CELL)
        for row, spread in zip(drawn, spreads, strict=True)
    )
    return f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _shown(value: object, sd: float) -> str:
    return rounded(value, sd) if isinstance(value, float) else str(value)


def _row(tag: str, texts: Sequence[str], numeric: Sequence[bool], style: str) -> str:
    cells = (
        f'<{tag} style="{style};text-align:{"right" if number else "left"}">{escape(text)}</{tag}>'
        for text, number in zip(texts, numeric, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
