"""HTML for notebooks: everything escaped, and in the colours that the notebook has, be it light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_TABLE = "border-collapse:collapse;color:inherit;background:none;margin:0.4em 0"
_CELL = "padding:0.15em 0.7em;border:none;background:none;color:inherit"
_HEAD = f"{_CELL};border-bottom:1px solid currentColor;font-weight:600"


def block(title: str, *parts: str) -> str:
    """A title above parts that are HTML already."""
    return f'<div class="l2calib"><p><strong>{escape(title)}</strong></p>{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """A sentence of its own."""
    return f"<p>{escape(text)}</p>"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Words to the left and numbers to the right, rounded to four digits."""
    drawn = [list(row) for row in rows]
    numeric = [bool(drawn) and all(isinstance(row[j], float) for row in drawn) for j in range(len(headings))]
    head = "".join(_cell("th", name, number, _HEAD) for name, number in zip(headings, numeric, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', value, number, _CELL) for value, number in zip(row, numeric, strict=True))}</tr>"
        for row in drawn
    )
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(tag: str, value: object, number: bool, style: str) -> str:
    shown = f"{value:.4g}" if isinstance(value, float) else escape(str(value))
    return f'<{tag} style="{style};text-align:{"right" if number else "left"}">{shown}</{tag}>'
