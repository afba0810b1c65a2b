"""Points spread evenly over the unit cube."""

from __future__ import annotations

import numpy as np


def kronecker(number: int, dimension: int) -> np.ndarray:
    """`number` evenly spread points in the unit cube: multiples of the generalised golden ratio, modulo one."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimension + 1))
    steps = root ** -np.arange(1, dimension + 1)
    points: np.ndarray = (0.5 + np.outer(np.arange(1, number + 1), steps)) % 1.0
    return points
