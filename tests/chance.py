"""Counts against the share that is said of them."""

from __future__ import annotations

from scipy import stats

FALSE_ALARM = 1e-4


def as_often_as_said(number: int, of: int, share: float) -> bool:
    low, high = stats.binom.interval(1 - FALSE_ALARM, of, share)
    return bool(low <= number <= high)
