"""The bias given one residual, with dense matrices: psi and kappa on a fine grid, sigma2 integrated out.

Given (psi, kappa) the bias at a point is Student's t with n degrees of freedom; over the grid it is a mixture of them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, stats

from tests.oracles.correlation import correlation
from tests.oracles.kennedy_ohagan import KAPPA_PRIOR, PSI_PRIOR, log_hyperprior, log_marginal_likelihood

if TYPE_CHECKING:
    from tests.oracles.arrays import Array


def conditional(x: Array, residual: Array, at: Array, psi: Array, kappa: float) -> tuple[Array, Array]:
    """Mean of the bias at points, and its variance for a process of variance one."""
    phi = correlation(x, x, psi) + kappa * np.eye(len(x))
    cross = correlation(at, x, psi)
    left = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(phi, cross.T))
    return cross @ np.linalg.solve(phi, residual), left


@dataclass(frozen=True)
class BiasPosterior:
    """The mixture at one point: weights, locations and scales of t distributions with n degrees of freedom."""

    weights: Array
    location: Array
    scale: Array
    degrees: int

    def mean(self) -> float:
        return float(self.weights @ self.location)

    def sd(self) -> float:
        variance = self.scale**2 * self.degrees / (self.degrees - 2) + (self.location - self.mean()) ** 2
        return float(np.sqrt(self.weights @ variance))

    def quantile(self, probability: float) -> float:
        def below(value: float) -> float:
            return float(self.weights @ stats.t.cdf((value - self.location) / self.scale, self.degrees)) - probability

        reach = 20 * self.sd()
        return float(optimize.brentq(below, self.mean() - reach, self.mean() + reach))

    def density(self, value: float) -> float:
        standard = (value - self.location) / self.scale
        return float(self.weights @ (stats.t.pdf(standard, self.degrees) / self.scale))


def bias_posterior(x: Array, residual: Array, at: Array, per_axis: int) -> BiasPosterior:
    """At one point `at` (k,), with `per_axis` values of every log psi and of log kappa over four prior sds."""
    standard = np.linspace(-4, 4, per_axis)
    log_weights, location, scale = [], [], []
    for place in itertools.product(standard, repeat=x.shape[1] + 1):
        log_psi = PSI_PRIOR[0] + PSI_PRIOR[1] * np.array(place[:-1])
        log_kappa = KAPPA_PRIOR[0] + KAPPA_PRIOR[1] * place[-1]
        psi, kappa = np.exp(log_psi), float(np.exp(log_kappa))
        dense = correlation(x, x, psi)
        log_likelihood = log_marginal_likelihood(dense, kappa, residual[None])[0]
        log_weights.append(log_hyperprior(log_psi, log_kappa) + log_likelihood)
        mean, left = conditional(x, residual, at[None], psi, kappa)
        quadratic = residual @ np.linalg.solve(dense + kappa * np.eye(len(x)), residual)
        location.append(mean[0])
        scale.append(np.sqrt(max(left[0], 0) * quadratic / len(x)))
    weights = np.exp(np.array(log_weights) - max(log_weights))
    kept = weights > 1e-12 * weights.max()
    return BiasPosterior(
        weights[kept] / weights[kept].sum(), np.array(location)[kept], np.array(scale)[kept], degrees=len(x)
    )
