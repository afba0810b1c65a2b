"""The wiffle balls: 21 heights in metres, three times in seconds at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tests.oracles.arrays import Array

BOX = (0.175, 4.275)

ROWS = np.array(
    [
        [0.178, 0.27, 0.15, 0.2],
        [0.356, 0.22, 0.24, 0.35],
        [0.534, 0.27, 0.43, 0.36],
        [0.712, 0.43, 0.43, 0.49],
        [0.89, 0.41, 0.49, 0.38],
        [1.068, 0.49, 0.51, 0.49],
        [1.246, 0.46, 0.51, 0.47],
        [1.424, 0.6, 0.52, 0.57],
        [1.602, 0.65, 0.56, 0.54],
        [1.78, 0.62, 0.52, 0.59],
        [1.958, 0.7, 0.59, 0.6],
        [2.67, 0.81, 0.81, 0.7],
        [2.848, 0.69, 0.84, 0.83],
        [3.026, 0.81, 1.08, 0.86],
        [3.204, 0.89, 0.88, 0.78],
        [3.382, 0.86, 0.86, 0.96],
        [3.56, 0.89, 0.96, 0.94],
        [3.738, 1.1, 0.94, 1.07],
        [3.916, 1.05, 1.02, 0.96],
        [4.094, 0.99, 1.28, 1.08],
        [4.272, 1.05, 1.04, 1.17],
    ]
)


def observations() -> tuple[Array, Array]:
    """Heights scaled to the unit interval, shape (63, 1), and times."""
    heights = np.repeat(ROWS[:, 0], 3)
    low, high = BOX
    return ((heights - low) / (high - low))[:, None], ROWS[:, 1:].ravel()


def fall_time(x: Array, theta: Array) -> Array:
    """Free fall with drag quadratic in velocity; x on the unit interval."""
    low, high = BOX
    height = low + (high - low) * x[:, 0]
    g, m = theta[..., :1], theta[..., 1:2]
    # arccosh(exp(z)) without the overflow of exp at large z.
    z = height / m
    return np.asarray(np.sqrt(m / g) * (z + np.log1p(np.sqrt(-np.expm1(-2 * z)))))
