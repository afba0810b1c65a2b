"""Kennedy-O'Hagan calibration with dense matrices (paper, Section 2.3.2).

sigma2 has prior 1/sigma2 and is integrated out; psi_j ~ LogNormal(log 5, 1.5) and
kappa ~ LogNormal(log 0.05, 3), as densities of log psi and log kappa.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import logsumexp

from tests.oracles.correlation import correlation
from tests.oracles.posteriors import DEPTH, Summary, shrink, summarise

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracles.arrays import Array
    from tests.oracles.losses import Model
    from tests.oracles.quadrature import Quadrature

Orthogonal = Literal["estimate", "parameter", "none"]

PSI_PRIOR = (np.log(5.0), 1.5)
KAPPA_PRIOR = (np.log(0.05), 3.0)


def projected_correlation(x: Array, rule: Quadrature, gradient_at_nodes: Array, psi: Array) -> Array:
    """The matrix of c_P(x_i, x_j), from the paper's sums for h and H."""
    weighted = rule.weights[:, None] * gradient_at_nodes
    h = correlation(x, rule.nodes, psi) @ weighted
    H = weighted.T @ correlation(rule.nodes, rule.nodes, psi) @ weighted
    return np.asarray(correlation(x, x, psi) - h @ np.linalg.solve(H, h.T))


def log_marginal_likelihood(dense: Array, kappa: float, residuals: Array) -> Array:
    """sigma2 integrated out of N(r; 0, sigma2 (I + C / kappa)), per row of residuals."""
    n = len(dense)
    scaled = np.eye(n) + dense / kappa
    factor = np.linalg.cholesky(scaled)
    whitened = np.linalg.solve(factor, residuals.T)
    quadratic = (whitened**2).sum(axis=0)
    return np.asarray(-np.log(np.diag(factor)).sum() - n / 2 * np.log(quadratic))


def log_hyperprior(log_psi: Array, log_kappa: float) -> float:
    psi = -0.5 * ((log_psi - PSI_PRIOR[0]) / PSI_PRIOR[1]) ** 2
    kappa = -0.5 * ((log_kappa - KAPPA_PRIOR[0]) / KAPPA_PRIOR[1]) ** 2
    return float(psi.sum() + kappa)


@dataclass(frozen=True)
class KennedyOHagan:
    """The posterior of one dataset under a uniform prior on a box.

    ``theta_hat`` is where the derivative is frozen when ``orthogonal`` is "estimate".
    """

    x: Array
    y: Array
    eta: Model
    gradient: Callable[[Array, Array], Array]
    rule: Quadrature
    lower: Array
    upper: Array
    orthogonal: Orthogonal
    theta_hat: Array

    def correlations(self, theta: Array, psi: Array) -> Array:
        if self.orthogonal == "none":
            return correlation(self.x, self.x, psi)
        at = self.theta_hat if self.orthogonal == "estimate" else theta
        slope = self.gradient(self.rule.nodes, at)
        return projected_correlation(self.x, self.rule, slope, psi)

    def log_posterior(self, theta: Array, log_psi: Array, log_kappa: float) -> float:
        """Log density of (theta, log psi, log kappa), up to a constant."""
        if np.any(theta < self.lower) or np.any(theta > self.upper):
            return -np.inf
        correlations = self.correlations(theta, np.exp(log_psi))
        residual = (self.y - self.eta(self.x, theta))[None]
        value = log_marginal_likelihood(correlations, float(np.exp(log_kappa)), residual)[0]
        return float(value) + log_hyperprior(log_psi, log_kappa)

    def joint(self, log_psi: Array, log_kappa: Array, thetas: Array) -> Array:
        """Log posterior at every (log psi, log kappa, theta), for one input."""
        return np.stack([self._slice(float(one), log_kappa, thetas) for one in log_psi])

    def log_marginal(self, log_psi: Array, log_kappa: Array, thetas: Array) -> Array:
        """Log of the posterior summed over the grid of (log psi, log kappa), per theta."""
        return np.asarray(logsumexp(self.joint(log_psi, log_kappa, thetas), axis=(0, 1)))

    def _slice(self, log_psi: float, log_kappa: Array, thetas: Array) -> Array:
        psi = np.exp([log_psi])
        residuals = self.y - self.eta(self.x, thetas)
        if self.orthogonal == "parameter":
            dense = np.stack([self.correlations(theta, psi) for theta in thetas])
            likelihood = _log_marginal_likelihood_each
        else:
            dense = self.correlations(self.theta_hat, psi)
            likelihood = log_marginal_likelihood
        return np.stack(
            [
                likelihood(dense, float(np.exp(one)), residuals) + log_hyperprior(np.array([log_psi]), float(one))
                for one in log_kappa
            ]
        )


def _log_marginal_likelihood_each(dense: Array, kappa: float, residuals: Array) -> Array:
    """As above with one matrix per residual: a Cholesky factor of [[A, r], [r', c]].

    Its last pivot squared is c - r' A^-1 r, and A >= I makes c = 2 r'r enough.
    """
    n = dense.shape[-1]
    bordered = np.empty((len(dense), n + 1, n + 1))
    bordered[:, :n, :n] = np.eye(n) + dense / kappa
    bordered[:, n, :n] = bordered[:, :n, n] = residuals
    corner = 2 * (residuals**2).sum(axis=-1)
    bordered[:, n, n] = corner
    pivots = np.diagonal(np.linalg.cholesky(bordered), axis1=1, axis2=2)
    quadratic = corner - pivots[:, n] ** 2
    return np.asarray(-np.log(pivots[:, :n]).sum(axis=1) - n / 2 * np.log(quadratic))


def posterior_of_theta(model: KennedyOHagan, hyper_points: int = 32, theta_points: int | None = None) -> Summary:
    """theta's posterior with psi and kappa summed over a grid: one input, p <= 2.

    Wide grids find where the posterior lives; grids over that region give the answer.
    """
    p = model.lower.size
    theta_points = theta_points or {1: 401, 2: 101}[p]
    wide = (
        np.linspace(PSI_PRIOR[0] - 7.5, PSI_PRIOR[0] + 7.5, 13),
        np.linspace(KAPPA_PRIOR[0] - 13.5, KAPPA_PRIOR[0] + 15, 13),
    )
    # On the boundary itself a derivative may vanish and H be singular.
    inset = 1e-9 * (model.upper - model.lower)
    low, high = shrink(
        lambda thetas: model.log_marginal(*wide, thetas),
        model.lower + inset,
        model.upper - inset,
        {1: 301, 2: 31}[p],
    )
    axes = [np.linspace(a, b, {1: 41, 2: 15}[p]) for a, b in zip(low, high, strict=True)]
    thetas = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, p)
    narrow = _hyper_region(model, *wide, thetas, hyper_points)
    return summarise(
        lambda thetas: model.log_marginal(*narrow, thetas), low, high, points=theta_points, coarse=theta_points
    )


def _hyper_region(
    model: KennedyOHagan, log_psi: Array, log_kappa: Array, thetas: Array, points: int
) -> tuple[Array, Array]:
    """Grids over the part of (log psi, log kappa) that matters for any theta."""
    for _ in range(3):
        height = model.joint(log_psi, log_kappa, thetas).max(axis=-1)
        kept = np.argwhere(height > height.max() - DEPTH)
        first, last = kept.min(axis=0) - 1, kept.max(axis=0) + 1
        log_psi, log_kappa = (
            np.linspace(axis[max(a, 0)], axis[min(b, axis.size - 1)], points)
            for axis, a, b in zip((log_psi, log_kappa), first, last, strict=True)
        )
    return log_psi, log_kappa
