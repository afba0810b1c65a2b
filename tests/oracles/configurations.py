"""The paper's four configurations (Section 4.2) and data simulated from them.

Models take inputs of shape (n, k) and parameters of shape (..., p) and return
(..., n), so that one call serves one theta or a grid of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy import cos, pi, sin
from scipy.stats import qmc

from tests.oracles.losses import l2_loss, minimise
from tests.oracles.quadrature import Quadrature, gauss_legendre

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracles.arrays import Array

Levels = Literal["midpoints", "endpoints"]


@dataclass(frozen=True)
class Configuration:
    """A physical process, a model of it, a uniform prior and an error variance."""

    k: int
    lower: Array
    upper: Array
    mu: Callable[[Array], Array]
    eta: Callable[[Array, Array], Array]
    gradient: Callable[[Array, Array], Array]
    sigma2: float

    @property
    def p(self) -> int:
        return self.lower.size

    @property
    def quadrature(self) -> Quadrature:
        return gauss_legendre(80 if self.k == 1 else 24, self.k)

    def target(self) -> Array:
        """theta_L2, by a dense search of the box and a polish."""
        rule = self.quadrature
        truth = self.mu(rule.nodes)
        return minimise(lambda t: l2_loss(self.eta, rule, truth, t), self.lower, self.upper)

    def discrepancy(self) -> float:
        """The squared L2 distance of model and process at theta_L2."""
        rule = self.quadrature
        return float(l2_loss(self.eta, rule, self.mu(rule.nodes), self.target()))


def _wave(theta1: Array, theta2: Array, x: Array) -> Array:
    level = 7 * sin(2 * pi * theta1 - pi) ** 2
    return level + 2 * (2 * pi * theta2 - pi) ** 2 * sin(2 * pi * x - pi)


def _wave_gradient(theta1: float, theta2: float, x: Array) -> list[Array]:
    level = 14 * pi * sin(4 * pi * theta1 - 2 * pi)
    slope = 8 * pi * (2 * pi * theta2 - pi)
    return [np.full(x.shape, level), slope * sin(2 * pi * x - pi)]


def _eta1(x: Array, theta: Array) -> Array:
    return _wave(theta[..., :1], theta[..., 1:2], x[:, 0])


def _eta4(x: Array, theta: Array) -> Array:
    return _eta1(x, theta) + 6 * theta[..., 2:3] * (x[:, 1] - 0.5)


def _gradient1(x: Array, theta: Array) -> Array:
    return np.stack(_wave_gradient(theta[0], theta[1], x[:, 0]), axis=-1)


def _gradient4(x: Array, theta: Array) -> Array:
    columns = _wave_gradient(theta[0], theta[1], x[:, 0])
    return np.stack([*columns, 6 * (x[:, 1] - 0.5)], axis=-1)


def _mu4(x: Array) -> Array:
    exact = _eta4(x, np.array([0.2, 0.3, 0.8]))
    return exact + cos(2 * pi * x[:, 0] - pi) + 2 * (x[:, 1] ** 2 - x[:, 1] + 1 / 6)


def _tenth_of_variance(mu: Callable[[Array], Array], rule: Quadrature) -> float:
    values = mu(rule.nodes)
    mean = rule.weights @ values
    return float(rule.weights @ (values - mean) ** 2) / 10


@cache
def configuration(number: int) -> Configuration:
    """Configuration 1, 2, 3 or 4."""
    if number == 1:
        return Configuration(
            k=1,
            lower=np.zeros(2),
            upper=np.array([0.25, 0.5]),
            mu=lambda x: _eta1(x, np.array([0.2, 0.3])),
            eta=_eta1,
            gradient=_gradient1,
            sigma2=0.2**2,
        )
    if number == 2:
        return Configuration(
            k=1,
            lower=np.zeros(1),
            upper=np.array([3.0]),
            mu=lambda x: 5 * x[:, 0] * cos(15 * x[:, 0] / 2) + 5 * x[:, 0],
            eta=lambda x, theta: sin(5 * theta * x[:, 0]) + 5 * x[:, 0],
            gradient=lambda x, theta: 5 * x * cos(5 * theta * x),
            sigma2=0.2**2,
        )
    if number == 3:
        return Configuration(
            k=1,
            lower=np.array([2.0]),
            upper=np.array([5.0]),
            mu=lambda x: 4 * x[:, 0] + x[:, 0] * sin(5 * x[:, 0]),
            eta=lambda x, theta: theta * x[:, 0],
            gradient=lambda x, theta: x.copy(),
            sigma2=0.02**2,
        )
    return Configuration(
        k=2,
        lower=np.zeros(3),
        upper=np.array([0.25, 0.5, 1.0]),
        mu=_mu4,
        eta=_eta4,
        gradient=_gradient4,
        sigma2=_tenth_of_variance(_mu4, gauss_legendre(40, 2)),
    )


@cache
def design(n: int, k: int, levels: Levels = "midpoints", candidates: int = 500) -> Array:
    """A space-filling Latin hypercube: the most spread of many random ones."""
    if k == 1:
        column = (np.arange(n) + 0.5) / n if levels == "midpoints" else np.linspace(0, 1, n)
        return column[:, None]
    rng = np.random.default_rng(20240229)
    designs = [np.column_stack([rng.permutation(n) for _ in range(k)]) for _ in range(candidates)]
    best = min(designs, key=lambda rows: float(qmc.discrepancy((rows + 0.5) / n)))
    return (best + 0.5) / n if levels == "midpoints" else best / (n - 1)


def simulate(number: int, n: int, seed: int, levels: Levels = "midpoints") -> tuple[Array, Array]:
    """One dataset (x, y) with normal errors."""
    chosen = configuration(number)
    x = design(n, chosen.k, levels)
    noise = np.random.default_rng(seed).standard_normal(n)
    return x, chosen.mu(x) + np.sqrt(chosen.sigma2) * noise
