"""Numbers and lists as a page writes them: the digits of `display.numbers` with a page's own minus and dash."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from l2calib.display import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTHING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"  # as wide as a plus


def rounded(value: float, sd: float, digits: int = 3) -> str:
    """The value to the place that its standard deviation supports."""
    return numbers.rounded(value, sd, digits).replace("-", _MINUS) if math.isfinite(value) else NOTHING


def short(value: float | None, digits: int = 4) -> str:
    """A number of which only so many digits matter, a dash if there is none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return numbers.short(value, digits).replace("-", _MINUS)


def listed(names: Sequence[str], last: str = "and") -> str:
    """The names with commas, and a word before the last."""
    *before, final = names
    return f"{', '.join(before)} {last} {final}" if before else final


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: '1 method', '63 observations'."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def capitalised(sentence: str) -> str:
    """The sentence with a capital first letter, all else as it is."""
    return sentence[:1].upper() + sentence[1:]
