"""The L2 and OLS losses (paper, Section 2.2): both are weighted squared losses in values that are linear in y.

    L2:  values mu-hat(chi_q),  weights omega_q,  model at the quadrature nodes;
    OLS: values y_i,            weights 1,        model at the design points.

Fed with mu itself, or with a drawn mu, the L2 loss is L_L2(theta) or L_L2[theta, mu]: one loss, one minimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from l2calib.arrays import Array, jnp
from l2calib.experiment import Experiment
from l2calib.minimise import Candidates, Derivatives, Minima, candidates, derivatives, global_minima, squared_loss
from l2calib.small_matrices import cholesky, solve
from l2calib.smoother import Smooth

_KEPT_MINIMA = 3
_FLAT = 1e-9


class Loss(Protocol):
    """A squared loss: where the model is compared, with what weights, and with which values."""

    @property
    def name(self) -> str: ...

    def eta(self, experiment: Experiment) -> Callable[[Array], Array]: ...

    def weights(self, experiment: Experiment) -> Array: ...

    def values(self, smooth: Smooth, y: Array) -> Array: ...

    def resampled_values(self, smooth: Smooth, resamples: Array) -> Array: ...

    def score_root(self, smooth: Smooth, weighted_jacobian: Array) -> Array: ...


@dataclass(frozen=True)
class L2:
    """The squared L2 distance between mu-hat and the model, by quadrature."""

    @property
    def name(self) -> str:
        return "l2"

    def eta(self, experiment: Experiment) -> Callable[[Array], Array]:
        return experiment.eta_nodes

    def weights(self, experiment: Experiment) -> Array:
        return experiment.weights

    def values(self, smooth: Smooth, y: Array) -> Array:
        return smooth.at_nodes()

    def resampled_values(self, smooth: Smooth, resamples: Array) -> Array:
        """mu-hat at the nodes for responses (B, n), rho kept: (B, Q)."""
        return resamples @ smooth.node_map().T

    def score_root(self, smooth: Smooth, weighted_jacobian: Array) -> Array:
        """D Phi^-1 up to a rotation: the score is -2 times this times y, plus what does not depend on y."""
        return (smooth.spectrum.cross @ weighted_jacobian).T * smooth.inverse_diagonal


@dataclass(frozen=True)
class OLS:
    """The sum of squared residuals."""

    @property
    def name(self) -> str:
        return "ols"

    def eta(self, experiment: Experiment) -> Callable[[Array], Array]:
        return experiment.eta_design

    def weights(self, experiment: Experiment) -> Array:
        return jnp.ones(experiment.observations)

    def values(self, smooth: Smooth, y: Array) -> Array:
        return y

    def resampled_values(self, smooth: Smooth, resamples: Array) -> Array:
        return resamples

    def score_root(self, smooth: Smooth, weighted_jacobian: Array) -> Array:
        return weighted_jacobian.T


def loss_candidates(loss: Loss, experiment: Experiment) -> Candidates:
    """The model tabulated for the global scan of this loss."""
    return candidates(experiment.prior, loss.eta(experiment), loss.weights(experiment))


def loss_value(loss: Loss, experiment: Experiment, values: Array, theta: Array) -> Array:
    """The loss at theta (p,)."""
    return squared_loss(loss.eta(experiment), loss.weights(experiment), values, theta)


def loss_derivatives(loss: Loss, experiment: Experiment, values: Array, theta: Array) -> Derivatives:
    """The loss at theta with gradient, full Hessian V and the model's Jacobian."""
    return derivatives(loss.eta(experiment), loss.weights(experiment), values, theta)


def loss_minima(
    loss: Loss, experiment: Experiment, table: Candidates, values: Array, keep: int = _KEPT_MINIMA
) -> Minima:
    """The lowest local minima of the loss over the prior's support."""
    return global_minima(table, loss.eta(experiment), loss.weights(experiment), values, experiment.prior, keep)


def score_covariance(loss: Loss, experiment: Experiment, smooth: Smooth, at: Derivatives, sigma2: Array) -> Array:
    """W = var of the gradient of the loss: 4 sigma2 times the Gram matrix of the score's root."""
    root = loss.score_root(smooth, loss.weights(experiment)[:, None] * at.jacobian)
    return 4 * sigma2 * root @ root.T


def matched_gamma(V: Array, W: Array) -> Array:
    """gamma = p / tr(V^-1 W): the expected loss ratio then matches that of a likelihood."""
    return V.shape[0] / jnp.trace(solve(V, W))


def is_flat(at: Derivatives) -> Array:
    """Whether the Hessian V fails to be positive definite, relative to the model's own slopes."""
    slopes = jnp.sqrt(jnp.diag(at.gauss_newton))
    pivots = jnp.diag(cholesky(at.hessian / jnp.outer(slopes, slopes)))
    return ~jnp.all(pivots**2 > _FLAT)
