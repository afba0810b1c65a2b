"""The datasets that are timed, and what a sampler needs to know of each.

mu-hat, theta-hat and gamma come from the slow oracles, so that a competitor's target
is the posterior itself and not something the library computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from tests.oracles import losses, smoother
from tests.oracles.configurations import Configuration, configuration, design, simulate
from tests.oracles.quadrature import gauss_legendre
from tests.problems import MODELS

if TYPE_CHECKING:
    from tests.oracles.arrays import Array
    from tests.oracles.quadrature import Quadrature

jax.config.update("jax_enable_x64", True)

SEED = 20260101


@dataclass(frozen=True)
class Case:
    """One dataset of one configuration, with its general Bayes L2 posterior spelt out."""

    number: int
    x: Array
    y: Array
    rule: Quadrature
    values: Array
    theta_hat: Array
    gamma: float

    @property
    def configuration(self) -> Configuration:
        return configuration(self.number)

    def eta(self, x: Any, theta: Any) -> Any:
        """The model for JAX: inputs (n, k), one theta (p,)."""
        return MODELS[self.number](*jnp.asarray(x).T, *theta)

    def log_gibbs(self, theta: Any) -> Any:
        """-gamma times the L2 loss."""
        gap = self.values - self.eta(self.rule.nodes, theta)
        return -self.gamma * jnp.sum(self.rule.weights * gap**2)


@cache
def case(number: int, n: int) -> Case:
    """The dataset on which NUTS and Metropolis are timed."""
    chosen = configuration(number)
    x, y = simulate(number, n, SEED)
    fit = smoother.best_fit(x, y, (1e-2, 1e3), (1e-8, 1e2), per_axis=20 if chosen.k == 1 else 10, polish=3)
    rule = gauss_legendre(40 if chosen.k == 1 else 12, chosen.k)
    values = fit.predict(rule.nodes)

    def loss(theta: Array) -> Array:
        return losses.l2_loss(chosen.eta, rule, values, theta)

    theta_hat = losses.minimise(loss, chosen.lower, chosen.upper)
    V = losses.hessian(loss, theta_hat, 1e-3 * (chosen.upper - chosen.lower))
    slope = chosen.gradient(rule.nodes, theta_hat)
    W = losses.score_covariance_l2(slope, rule, x, fit.psi, fit.kappa, fit.sigma2)
    return Case(number, x, y, rule, values, theta_hat, losses.gamma(V, W))


def datasets(number: int, n: int, batch: int, run: int = 0) -> Array:
    """A batch of responses (batch, n) on the design of ``case``, others for every run."""
    chosen = configuration(number)
    noise = np.random.default_rng(SEED + 1 + run).standard_normal((batch, n))
    return np.asarray(chosen.mu(design(n, chosen.k)) + np.sqrt(chosen.sigma2) * noise)
