"""Numbers and lists as people write them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NOTHING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"  # as wide as a plus
_HUGE, _TINY = 1e6, 1e-4


def rounded(value: float, sd: float) -> str:
    """The value to the digits that its standard deviation supports: two of the sd, or one if it begins with 4 to 9."""
    if not (math.isfinite(value) and math.isfinite(sd) and sd > 0):
        return short(value)
    return _fixed(value, places(sd), max(abs(value), sd))


def places(sd: float) -> int:
    """The decimal places that a standard deviation supports; negative where even tens are in doubt."""
    exponent = math.floor(math.log10(sd))
    leading = round(100 * sd / 10**exponent)
    if leading >= 950:  # it rounds to 10 of the last place
        return -exponent
    return -exponent if leading >= 355 else 1 - exponent


def short(value: float | None, digits: int = 4) -> str:
    """A number of which only so many digits matter, a dash if there is none."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    return _fixed(value, digits - 1 - math.floor(math.log10(abs(value))), abs(value), trim=True)


def _fixed(value: float, decimals: int, size: float, *, trim: bool = False) -> str:
    if size >= _HUGE or size < _TINY:
        exponent = math.floor(math.log10(size))
        text = f"{value / 10.0**exponent:.{max(decimals + exponent, 0)}f}"
        return _minus(f"{_trimmed(text) if trim else text}e{exponent}")
    text = f"{round(value, decimals):.{max(decimals, 0)}f}"
    return _minus(_trimmed(text) if trim else text)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _minus(text: str) -> str:
    if text.startswith("-") and not text.strip("-0."):
        return text[1:]  # no minus before nothing
    return text.replace("-", _MINUS)


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
