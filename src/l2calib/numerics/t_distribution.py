"""Student's t distribution for any number of degrees of freedom, as a table that is looked up in either library."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from l2calib.numerics.namespace import AnyArray, namespace_of

_CELLS = 4096  # of the angle whose tangent is t / sqrt(freedom): the function is smooth in it up to its ends


def t_table(freedom: float) -> np.ndarray:
    """The distribution function on an even grid of the angle."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, _CELLS + 1)[1:-1]
    inside = stdtr(freedom, np.sqrt(freedom) * np.tan(angle))
    return np.concatenate([[0.0], inside, [1.0]])


def t_distribution(table: AnyArray, relative: AnyArray) -> AnyArray:
    """At t / sqrt(freedom)."""
    xp = namespace_of(relative)
    at = (xp.arctan(relative) / np.pi + 0.5) * _CELLS
    cell = xp.clip(xp.floor(at), 0, _CELLS - 1)
    low = cell.astype(int)
    return table[low] + (at - cell) * (table[low + 1] - table[low])
