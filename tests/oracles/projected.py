"""Projected L2 calibration, one scipy minimisation per drawn mu (Section 2.3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from tests.oracles.correlation import correlation
from tests.oracles.losses import Model, l2_loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracles.arrays import Array
    from tests.oracles.quadrature import Quadrature
    from tests.oracles.smoother import Fit


def draw_process(fit: Fit, rule: Quadrature, variance: float, draws: int, seed: int) -> Array:
    """Draws of mu at the nodes from its Gaussian process posterior."""
    cross = correlation(rule.nodes, fit.x, fit.psi)
    prior = correlation(rule.nodes, rule.nodes, fit.psi)
    covariance = prior - cross @ np.linalg.solve(fit.phi, cross.T)
    jitter = 1e-10 * np.eye(len(covariance))
    factor = np.linalg.cholesky((covariance + covariance.T) / 2 + jitter)
    z = np.random.default_rng(seed).standard_normal((draws, len(covariance)))
    return np.asarray(fit.predict(rule.nodes) + np.sqrt(variance) * z @ factor.T)


def projected_l2(
    eta: Model,
    gradient: Callable[[Array, Array], Array],
    rule: Quadrature,
    processes: Array,
    lower: Array,
    upper: Array,
    starts_per_axis: int = 5,
) -> Array:
    """The minimiser of L[theta, mu] for every drawn mu, from several starts each."""
    fractions = (np.arange(starts_per_axis) + 0.5) / starts_per_axis
    axes = [a + fractions * (b - a) for a, b in zip(lower, upper, strict=True)]
    starts = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, lower.size)
    bounds = list(zip(lower, upper, strict=True))

    def minimiser(mu: Array) -> Array:
        def value(theta: Array) -> float:
            return float(l2_loss(eta, rule, mu, theta))

        def slope(theta: Array) -> Array:
            weighted = rule.weights * (mu - eta(rule.nodes, theta))
            return np.asarray(-2 * weighted @ gradient(rule.nodes, theta))

        best = sorted(starts, key=value)[:3]
        options = {"ftol": 1e-15, "gtol": 1e-10}
        ends = [minimize(value, start, jac=slope, method="L-BFGS-B", bounds=bounds, options=options) for start in best]
        return np.asarray(min(ends, key=lambda end: float(end.fun)).x)

    return np.stack([minimiser(mu) for mu in processes])
