"""Numbers as people read them: one rule for the terminal, the notebook, the report and the sentences of errors."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING = "-"
_DOUBLE_DIGITS = 15  # more are noise
_WITHOUT_EXPONENT = range(-4, 6)  # from 0.0001 to below a million


def rounded(value: float, sd: float, digits: int = 3) -> str:
    """The value to the place that its standard deviation supports: that of the last of so many digits of the sd."""
    if not (math.isfinite(value) and math.isfinite(sd) and sd > 0):
        return short(value)
    size = _exponent(sd, digits)
    number = _to_place(value, max(size - digits, _exponent(value, _DOUBLE_DIGITS) - _DOUBLE_DIGITS) + 1)
    return _written(number, max(number.adjusted(), size))


def short(value: float | None, digits: int = 4) -> str:
    """A number of which only so many digits matter; a dash if there is none."""
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return f"{value:g}"
    number = _to_place(value, _exponent(value, digits) - digits + 1)
    return _written(number.normalize(), number.adjusted())


def named(names: Iterable[str], values: Iterable[float], digits: int = 6) -> str:
    """Numbers with their names: 'a = 1, b = 2.5'."""
    return ", ".join(f"{name} = {short(value, digits)}" for name, value in zip(names, values, strict=True))


def _exponent(value: float, digits: int) -> int:
    """The power of ten of the first digit, once the value is rounded to so many."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _to_place(value: float, place: int) -> Decimal:
    """The value rounded to a multiple of 10**place; no minus before nothing."""
    number = Decimal(float(value)).quantize(Decimal((0, (1,), place)))
    return number or abs(number)


def _written(number: Decimal, exponent: int) -> str:
    if exponent in _WITHOUT_EXPONENT:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{exponent}" if number else "0"
