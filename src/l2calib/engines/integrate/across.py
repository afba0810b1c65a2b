"""The rule for the integral across a ridge: points around it, in conditional standard deviations."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np


class Rule(NamedTuple):
    """A stretched lattice within a ball: the integral of f over R^d is the sum of exp(log_weights) f(points).

    The hyperbolic sine takes few points far into the tails, and the error falls exponentially in 1/spacing.
    """

    spacing: float
    bend: float
    coordinates: np.ndarray  # (R, d), before they are stretched
    points: np.ndarray  # (d, R)
    log_weights: np.ndarray  # (R,)
    even: np.ndarray  # (R,), every second point
    outer_shells: np.ndarray  # (3, R), the points farthest out, those one spacing further in, and two


@functools.cache
def lattice(dimension: int, spacing: float, reach: float, bend: float) -> Rule:
    """The points of a cubic lattice within `reach` of the origin."""
    most = int(reach / spacing)
    index = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    index = index[np.linalg.norm(spacing * index, axis=1) <= reach]
    coordinates = spacing * index
    log_weights = np.log(np.cosh(coordinates / bend)).sum(axis=1) + dimension * np.log(spacing)
    points = (bend * np.sinh(coordinates / bend)).T
    distance = np.linalg.norm(coordinates, axis=1)
    steps_in = np.floor((distance.max() - distance) / spacing + 1e-9)
    shells = steps_in == np.arange(3)[:, None]
    return Rule(spacing, bend, coordinates, points, log_weights, index.sum(axis=1) % 2 == 0, shells)
