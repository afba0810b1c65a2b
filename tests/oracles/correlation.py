"""The squared exponential correlation of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tests.oracles.arrays import Array


def correlation(a: Array, b: Array, psi: Array) -> Array:
    """exp(-sum_j psi_j (a_j - b_j)^2) for every pair of rows."""
    squares = (a[:, None, :] - b[None, :, :]) ** 2
    return np.asarray(np.exp(-squares @ psi))
