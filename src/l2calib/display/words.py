"""Lists, counts and exceptions as sentences hold them."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def one_line(text: str) -> str:
    """The text without the line breaks that what it quotes may hold."""
    return " ".join(text.split())


def reason_of(error: BaseException, file: str | None = None) -> str:
    """An exception in a clause: its kind, what it says, and the last line of the file that it came through."""
    said = one_line(str(error))
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{where}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """The names with commas, and a word before the last."""
    *before, final = names
    return f"{', '.join(before)} {last} {final}" if before else final


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: '1 method', '63 observations'."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
