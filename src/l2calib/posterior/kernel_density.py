"""Kernel estimates of densities from draws: normal bells, as wide as Silverman's rule says."""

from __future__ import annotations

import numpy as np

from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.moments import moments

_JITTER = 1e-12  # relative, for parameters that move together exactly


def _bells(grid: AnyArray, draws: AnyArray, width: AnyArray | float) -> AnyArray:
    """The normal density (P, N) of every draw (N,) at the points of a grid (P,)."""
    away = (grid[:, None] - draws) / width
    return namespace_of(away).exp(-(away**2) / 2) / (width * np.sqrt(2 * np.pi))


def density_on_line(z: AnyArray, weights: AnyArray, grid: AnyArray) -> AnyArray:
    """From weighted draws z (N,): the density on a grid (P,)."""
    _, sd = moments(z, weights)
    effective = 1 / (weights**2).sum()
    return _bells(grid, z, 1.06 * sd * effective**-0.2) @ weights


def joint_density(z: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """From draws z (N, 2): the density on a grid (P, P, 2) that leans as the draws do."""
    covariance = np.cov(z.T)
    centre, root = z.mean(axis=0), np.linalg.cholesky(covariance + np.diag(_JITTER * np.diag(covariance)))
    white, width = np.linalg.solve(root, (z - centre).T), len(z) ** (-1 / 6)
    axes = [np.linspace(each.min() - 3 * width, each.max() + 3 * width, points) for each in white]
    first, second = (_bells(axis, each, width) for axis, each in zip(axes, white, strict=True))
    grid = centre + np.stack(np.meshgrid(*axes, indexing="ij"), -1) @ root.T
    return grid, first @ second.T / (len(z) * np.diag(root).prod())
