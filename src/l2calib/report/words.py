"""Numbers as a page writes them: the digits of `display.numbers` with a page's own minus and dash."""

from __future__ import annotations

import math

from l2calib.display import numbers

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


def capitalised(sentence: str) -> str:
    """The sentence with a capital first letter, all else as it is."""
    return sentence[:1].upper() + sentence[1:]
