"""Random-walk Metropolis for Kennedy-O'Hagan: what the paper did.

Each iteration builds the n x n covariance and factorises it. The proposal is
adapted during burn-in to the chain's own covariance, then held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

from tests.oracles.kennedy_ohagan import KAPPA_PRIOR, PSI_PRIOR, KennedyOHagan, log_hyperprior

if TYPE_CHECKING:
    from tests.oracles.arrays import Array


@dataclass(frozen=True)
class Chain:
    """Draws of theta, log psi and log kappa, in columns, after burn-in."""

    draws: Array
    accepted: float


class DenseTarget:
    """log_posterior of the model with distances and derivatives kept, LAPACK called direct."""

    def __init__(self, model: KennedyOHagan) -> None:
        x, nodes = model.x, model.rule.nodes
        self.model = model
        self.p, self.n = model.lower.size, len(x)
        self.squares_xx = (x[:, None] - x[None]) ** 2
        self.squares_xd = (x[:, None] - nodes[None]) ** 2
        self.squares_dd = (nodes[:, None] - nodes[None]) ** 2
        slope = model.gradient(nodes, model.theta_hat)
        self.weighted = model.rule.weights[:, None] * slope

    def __call__(self, point: Array) -> float:
        model, p = self.model, self.p
        theta, log_psi, log_kappa = point[:p], point[p:-1], float(point[-1])
        if (theta < model.lower).any() or (theta > model.upper).any():
            return -np.inf
        psi = np.exp(log_psi)
        dense = np.exp(-self.squares_xx @ psi)
        if model.orthogonal == "estimate":
            h = np.exp(-self.squares_xd @ psi) @ self.weighted
            H = self.weighted.T @ np.exp(-self.squares_dd @ psi) @ self.weighted
            dense -= h @ np.linalg.solve(H, h.T)
        dense /= np.exp(log_kappa)
        dense[np.diag_indices(self.n)] += 1
        factor, info = lapack.dpotrf(dense, lower=1, clean=0)
        if info:
            return -np.inf
        residual = model.y - model.eta(model.x, theta)
        whitened, _ = lapack.dtrtrs(factor, residual, lower=1)
        value = -np.log(np.diag(factor)).sum() - self.n / 2 * np.log(whitened @ whitened)
        return float(value) + log_hyperprior(log_psi, log_kappa)


def metropolis(model: KennedyOHagan, iterations: int, burn_in: int, seed: int) -> Chain:
    """``iterations`` kept draws after ``burn_in`` adapted ones."""
    target = DenseTarget(model)
    rng = np.random.default_rng(seed)
    k = model.x.shape[1]
    scales = np.concatenate([(model.upper - model.lower) / 20, np.full(k + 1, 0.5)])
    point = np.concatenate([model.theta_hat, np.full(k, PSI_PRIOR[0]), [KAPPA_PRIOR[0]]])
    size = point.size
    root = np.diag(scales) * 2.38 / np.sqrt(size)
    draws = np.empty((burn_in + iterations, size))
    value, accepted = target(point), 0
    for i in range(burn_in + iterations):
        proposal = point + root @ rng.standard_normal(size)
        proposed = target(proposal)
        if np.log(rng.random()) < proposed - value:
            point, value = proposal, proposed
            accepted += i >= burn_in
        draws[i] = point
        if i < burn_in and i >= 200 and i % 100 == 0:
            covariance = np.cov(draws[i // 2 : i].T) + np.diag((1e-4 * scales) ** 2)
            root = np.linalg.cholesky(covariance) * 2.38 / np.sqrt(size)
    return Chain(draws[burn_in:], accepted / iterations)
