"""The likelihood of theta under a bias projected at theta, by dense algebra, and the posterior by brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp

from tests.oracles.quadrature import Quadrature

if TYPE_CHECKING:
    from tests.oracles.arrays import Array

RANK = 1e-9  # of a singular value of the slopes, relative to the largest: below, it is rounding


def squared_exponential(distance: Array) -> Array:
    return np.exp(-distance)


def matern32(distance: Array) -> Array:
    a = np.sqrt(6 * distance)
    return (1 + a) * np.exp(-a)


def matern52(distance: Array) -> Array:
    a = np.sqrt(10 * distance)
    return (1 + a + a**2 / 3) * np.exp(-a)


class Joint(NamedTuple):
    """The log likelihood with sigma2 integrated out, r' (kappa I + C_theta)^-1 r, and the mean of Z_theta at nodes."""

    log_likelihood: float
    quadratic: float
    bias: Array


@dataclass(frozen=True)
class ProjectedProcess:
    """A design, nodes, and a correlation as a function of sum_j psi_j (x_j - x'_j)^2."""

    x: Array
    rule: Quadrature
    correlation: Callable[[Array], Array]

    def c(self, a: Array, b: Array, psi: Array) -> Array:
        return self.correlation((a[:, None, :] - b[None, :, :]) ** 2 @ psi)

    def _orthonormal(self, at_design: Array, at_nodes: Array) -> tuple[Array, Array]:
        """A basis of the range of the slopes at the nodes, and the same functions at the design."""
        roots = np.sqrt(self.rule.weights)
        left, sizes, right = np.linalg.svd(roots[:, None] * at_nodes, full_matrices=False)
        kept = sizes > RANK * sizes[0]
        return left[:, kept] / roots[:, None], at_design @ (right[kept].T / sizes[kept])

    def covariance(self, psi: Array, at_design: Array, at_nodes: Array) -> Array:
        """C_theta (n, n)."""
        nodes = self.rule.nodes
        basis, t = self._orthonormal(at_design, at_nodes)
        weighted = self.rule.weights[:, None] * basis
        b = self.c(self.x, nodes, psi) @ weighted
        s = weighted.T @ self.c(nodes, nodes, psi) @ weighted
        return np.asarray(self.c(self.x, self.x, psi) - b @ t.T - t @ b.T + t @ s @ t.T)

    def joint(self, psi: Array, kappa: float, residual: Array, at_design: Array, at_nodes: Array) -> Joint:
        """For slopes (n, p) and (Q, p); C_theta as it is defined, from an orthonormal basis of their range."""
        nodes = self.rule.nodes
        basis, t = self._orthonormal(at_design, at_nodes)
        weighted = self.rule.weights[:, None] * basis
        covariance = self.covariance(psi, at_design, at_nodes) + kappa * np.eye(len(self.x))
        solved = np.linalg.solve(covariance, residual)
        quadratic = float(residual @ solved)
        seen = self.c(nodes, self.x, psi) @ solved - self.c(nodes, nodes, psi) @ (weighted @ (t.T @ solved))
        log_likelihood = -np.linalg.slogdet(covariance)[1] / 2 - len(residual) / 2 * np.log(quadratic)
        return Joint(float(log_likelihood), quadratic, seen - basis @ (weighted.T @ seen))


def log_volume(rule: Quadrature, at_nodes: Array) -> float:
    """Half the log determinant of M."""
    return float(np.log(np.linalg.svd(np.sqrt(rule.weights)[:, None] * at_nodes, compute_uv=False)).sum())


def without_process(residual: Array) -> float:
    """The limit of the log likelihood as kappa goes to infinity."""
    return float(-len(residual) / 2 * np.log(residual @ residual))


def mixed(log_terms: Array, log_weights: Array, none: float, probability: float) -> float:
    """The log of the likelihood with rho integrated, and no process with a probability of its own."""
    weights = log_weights - logsumexp(log_weights)
    return float(np.logaddexp(np.log1p(-probability) + logsumexp(log_terms + weights), np.log(probability) + none))
