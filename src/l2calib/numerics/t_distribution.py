"""Student's t distribution for any number of degrees of freedom, as a table that is looked up in either library."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from l2calib.numerics.namespace import AnyArray, namespace_of

_CELLS = 4096  # of s = t / sqrt(freedom + t^2), from minus one to one


def t_table(freedom: float) -> np.ndarray:
    """The distribution function on an even grid of s."""
    s = np.linspace(-1, 1, _CELLS + 1)[1:-1]
    inside = stdtr(freedom, s * np.sqrt(freedom / (1 - s**2)))
    return np.concatenate([[0.0], inside, [1.0]])


def t_distribution(table: AnyArray, relative: AnyArray) -> AnyArray:
    """At t / sqrt(freedom)."""
    xp = namespace_of(relative)
    at = (relative / xp.sqrt(1 + relative**2) + 1) * (_CELLS / 2)
    cell = xp.clip(xp.floor(at), 0, _CELLS - 1)
    low = cell.astype(int)
    return table[low] + (at - cell) * (table[low + 1] - table[low])
