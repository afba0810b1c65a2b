"""Moments and quantiles of a low-dimensional density by brute force.

A grid is laid over the box, shrunk to where the density lives, crowded to where
the mass is, and integrated with cubic splines. Halving its spacing moves the answers
by less than 1e-4 posterior standard deviations, with three parameters by less than 1e-3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from tests.oracles.arrays import Array

LogDensity = Callable[[Array], Array]

PROBABILITIES = np.array([0.025, 0.5, 0.975])

# exp(-25): what lies outside the box is below 1e-9 of the mass for the tails met here.
DEPTH = 25.0


@dataclass(frozen=True)
class Summary:
    """One entry per parameter; ``quantiles`` has rows 2.5, 50 and 97.5 per cent."""

    mean: Array
    sd: Array
    quantiles: Array


def summarise(
    log_density: LogDensity,
    lower: Array,
    upper: Array,
    points: int | None = None,
    coarse: int | None = None,
) -> Summary:
    """Summaries of exp(log_density) on a box in up to three dimensions."""
    p = lower.size
    points = points or {1: 4001, 2: 401, 3: 61}[p]
    coarse = coarse or {1: 20001, 2: 401, 3: 41}[p]
    low, high = shrink(log_density, lower, upper, coarse)
    axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
    for _ in range(2):
        densities = _marginals(log_density, axes)
        axes = [_crowd(axis, m) for axis, m in zip(axes, densities, strict=True)]
    densities = _marginals(log_density, axes)
    rows = [marginal_summary(axis, m) for axis, m in zip(axes, densities, strict=True)]
    return Summary(
        mean=np.array([row[0] for row in rows]),
        sd=np.array([row[1] for row in rows]),
        quantiles=np.array([row[2] for row in rows]).T,
    )


def _marginals(log_density: LogDensity, axes: list[Array]) -> list[Array]:
    values = _on_grid(log_density, axes)
    density = np.exp(values - values.max())
    return [_integrated_out(density, axes, kept) for kept in range(len(axes))]


def _integrated_out(density: Array, axes: list[Array], kept: int) -> Array:
    """The density along one axis, the others integrated out, the last of them first."""
    for other in reversed(range(len(axes))):
        if other != kept:
            density = CubicSpline(axes[other], density, axis=other).integrate(*axes[other][[0, -1]])
    return np.asarray(density)


def _crowd(axis: Array, density: Array) -> Array:
    """Move the points of an axis to where the density is, keeping half spread evenly."""
    root = np.sqrt(np.maximum(density, 0))
    steps = np.diff(axis)
    pieces = (root[1:] + root[:-1]) / 2 * steps
    monitor = np.cumsum(pieces / pieces.sum() + steps / steps.sum()) / 2
    even = np.linspace(0, 1, axis.size)
    return np.asarray(np.interp(even, np.concatenate([[0.0], monitor]), axis))


def shrink(log_density: LogDensity, lower: Array, upper: Array, points: int, rounds: int = 12) -> tuple[Array, Array]:
    """The box around every grid point within DEPTH of the highest."""
    low, high = lower.astype(float), upper.astype(float)
    for _ in range(rounds):
        axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
        values = _on_grid(log_density, axes)
        kept = np.argwhere(values > values.max() - DEPTH)
        first = np.maximum(kept.min(axis=0) - 1, 0)
        last = np.minimum(kept.max(axis=0) + 1, points - 1)
        before = high - low
        low = np.array([axis[i] for axis, i in zip(axes, first, strict=True)])
        high = np.array([axis[i] for axis, i in zip(axes, last, strict=True)])
        if np.all(high - low > 0.8 * before):
            return low, high
    return low, high


def marginal_summary(axis: Array, density: Array) -> tuple[float, float, Array]:
    """Mean, sd and quantiles of an unnormalised density on an increasing grid."""
    mass = CubicSpline(axis, density).integrate(axis[0], axis[-1])
    mean = CubicSpline(axis, density * axis).integrate(axis[0], axis[-1]) / mass
    centred = CubicSpline(axis, density * (axis - mean) ** 2)
    sd = np.sqrt(centred.integrate(axis[0], axis[-1]) / mass)
    cumulative = CubicSpline(axis, density / mass).antiderivative()
    ends = [_root(cumulative, axis, probability) for probability in PROBABILITIES]
    return float(mean), float(sd), np.array(ends)


def _root(cumulative: CubicSpline, axis: Array, probability: float) -> float:
    low, high = float(axis[0]), float(axis[-1])
    for _ in range(100):
        middle = (low + high) / 2
        if cumulative(middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _on_grid(log_density: LogDensity, axes: list[Array]) -> Array:
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    flat = grid.reshape(-1, len(axes))
    chunks = np.array_split(flat, max(1, len(flat) // 20000))
    values = np.concatenate([log_density(chunk) for chunk in chunks])
    return np.asarray(np.nan_to_num(values.reshape(grid.shape[:-1]), nan=-np.inf))
