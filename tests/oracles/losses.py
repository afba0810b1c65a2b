"""The L2 and OLS losses, their derivatives, and the asymptotic scaling.

Derivatives are Richardson-extrapolated central differences of the loss, so they
share nothing with automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from tests.oracles.arrays import Array
from tests.oracles.correlation import correlation

if TYPE_CHECKING:
    from tests.oracles.quadrature import Quadrature

Model = Callable[[Array, Array], Array]
Objective = Callable[[Array], Array]


def l2_loss(eta: Model, rule: Quadrature, values: Array, theta: Array) -> Array:
    """sum_q omega_q [values_q - eta(chi_q, theta)]^2, for theta of shape (..., p)."""
    return np.asarray((values - eta(rule.nodes, theta)) ** 2 @ rule.weights)


def ols_loss(eta: Model, x: Array, y: Array, theta: Array) -> Array:
    """sum_i [y_i - eta(x_i, theta)]^2, for theta of shape (..., p)."""
    return np.asarray(((y - eta(x, theta)) ** 2).sum(axis=-1))


def minimise(objective: Objective, lower: Array, upper: Array) -> Array:
    """The global minimum in a box: a dense grid, then a polish of its best point."""
    per_axis = {1: 20001, 2: 301, 3: 41}[lower.size]
    axes = [np.linspace(a, b, per_axis) for a, b in zip(lower, upper, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, lower.size)
    values = np.concatenate([objective(part) for part in np.array_split(grid, 64)])
    best = int(np.nanargmin(values))
    return polish(objective, grid[best], lower, upper)


def polish(objective: Objective, start: Array, lower: Array, upper: Array) -> Array:
    """A local minimum in a box, by a simplex on the scale of the box."""
    width = upper - lower
    found = minimize(
        lambda u: float(objective(lower + u * width)),
        (start - lower) / width,
        method="Nelder-Mead",
        bounds=[(0.0, 1.0)] * lower.size,
        options={"xatol": 1e-9, "fatol": 0.0, "maxiter": 4000},
    )
    return np.asarray(lower + found.x * width)


def hessian(objective: Objective, theta: Array, step: Array) -> Array:
    """Second derivatives by central differences, extrapolated twice."""
    coarse, middle, fine = (_differences(objective, theta, step * s) for s in (1, 0.5, 0.25))
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * second - first) / 15


def _differences(objective: Objective, theta: Array, step: Array) -> Array:
    p = theta.size
    moves = np.diag(step)
    out = np.empty((p, p))
    for i in range(p):
        for j in range(p):
            signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            corners = [float(objective(theta + a * moves[i] + b * moves[j])) for a, b in signs]
            plus, up, down, minus = corners
            out[i, j] = (plus - up - down + minus) / (4 * step[i] * step[j])
    return out


def score_covariance_l2(
    gradient_at_nodes: Array, rule: Quadrature, x: Array, psi: Array, kappa: float, sigma2: float
) -> Array:
    """W = 4 sigma2 D Phi^-1 Phi^-1 D', with D = sum_q omega_q d eta_q s_X(chi_q)'."""
    D = (rule.weights[:, None] * gradient_at_nodes).T @ correlation(rule.nodes, x, psi)
    inverse = np.linalg.inv(kappa * np.eye(len(x)) + correlation(x, x, psi))
    return np.asarray(4 * sigma2 * D @ inverse @ inverse @ D.T)


def score_covariance_ols(gradient_at_design: Array, sigma2: float) -> Array:
    """W = 4 sigma2 sum_i d eta_i d eta_i'."""
    return np.asarray(4 * sigma2 * gradient_at_design.T @ gradient_at_design)


def gamma(V: Array, W: Array) -> float:
    """p / tr(V^-1 W)."""
    return float(len(V) / np.trace(np.linalg.inv(V) @ W))
