"""Bands: what a posterior says of a function, point by point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Band(NamedTuple):
    """A posterior mean and an equal-tailed interval at every point (N,)."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Bands(NamedTuple):
    """The model eta(x; theta), the system mu(x), and the bias mu(x) - eta(x; theta)."""

    model: Band
    system: Band
    bias: Band
