"""Keys and texts as TOML writes them."""

from __future__ import annotations

import re

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def quoted(text: str) -> str:
    """A text as a TOML string on one line."""
    return f'"{"".join(_escaped(sign) for sign in text)}"'


def dotted(*parts: str) -> str:
    """A key, with those of its parts quoted that are not bare."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else quoted(part) for part in parts)


def _escaped(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    return sign if sign >= " " and sign != "\x7f" else f"\\u{ord(sign):04x}"
