"""Kernel estimates of densities from draws: normal bells, as wide as Silverman's rule says, or in the tails wider."""

from __future__ import annotations

import numpy as np

from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.moments import moments

_JITTER = 1e-12  # relative, for parameters that move together exactly
_PILOT = 128  # places of a first estimate
_WIDEST = 3.0  # of a bell in the tails, times the usual width: few draws there would show one by one


def _bells(grid: AnyArray, draws: AnyArray, width: AnyArray | float) -> AnyArray:
    """The normal density (P, N) of every draw (N,) at the points of a grid (P,)."""
    away = (grid[:, None] - draws) / width
    return namespace_of(away).exp(-(away**2) / 2) / (width * np.sqrt(2 * np.pi))


def density_on_line(z: AnyArray, weights: AnyArray, grid: AnyArray) -> AnyArray:
    """From weighted draws z (N,): the density on a grid (P,), with bells that widen where it is low (Abramson 1982)."""
    xp, (mean, sd) = namespace_of(z), moments(z, weights)
    width = 1.06 * sd * (weights**2).sum() ** 0.2
    places = mean + 8 * sd * xp.linspace(-1.0, 1.0, _PILOT)
    first = xp.interp(z, places, _bells(places, z, width) @ weights)
    typical = xp.exp(weights @ xp.log(xp.maximum(first, 1e-300)))
    wider = xp.clip(xp.sqrt(typical / xp.maximum(first, 1e-300)), 1.0, _WIDEST)
    return _bells(grid, z, width * wider) @ weights


def joint_density(z: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """From draws z (N, 2): the density on a grid (P, P, 2) that leans as the draws do."""
    covariance = np.cov(z.T)
    centre, root = z.mean(axis=0), np.linalg.cholesky(covariance + np.diag(_JITTER * np.diag(covariance)))
    white, width = np.linalg.solve(root, (z - centre).T), len(z) ** (-1 / 6)
    axes = [np.linspace(each.min() - 3 * width, each.max() + 3 * width, points) for each in white]
    first, second = (_bells(axis, each, width) for axis, each in zip(axes, white, strict=True))
    grid = centre + np.stack(np.meshgrid(*axes, indexing="ij"), -1) @ root.T
    return grid, first @ second.T / (len(z) * np.diag(root).prod())
