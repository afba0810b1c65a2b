"""The L2 and OLS losses (paper, Section 2.2): both are weighted squared losses in values that are linear in y.

    L2:  values mu-hat(chi_q),  weights omega_q,  model at the quadrature nodes;
    OLS: values y_i,            weights 1,        model at the design points.

Values and model are held in the coordinates of the model's span, where a loss is a plain sum of squares. What a dataset
has outside the span adds a constant, which moves neither a minimum nor a posterior; `outside` tells it.
Fed with mu itself, or with a drawn mu, the L2 loss is L_L2(theta) or L_L2[theta, mu]: one loss, one minimiser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from l2calib.numerics.arrays import Array, jnp
from l2calib.numerics.minimise import (
    Candidates,
    Coordinates,
    Derivatives,
    Minima,
    candidates,
    derivatives,
    global_minima,
)
from l2calib.numerics.small_matrices import cholesky, solve
from l2calib.problem.experiment import Experiment
from l2calib.problem.response import Response
from l2calib.problem.span import Span
from l2calib.process.smooth import Smooth

_KEPT_MINIMA = 3
_FLAT = 1e-9


class Loss(Protocol):
    """A squared loss: the span in which the model is compared, and with which values (m,)."""

    @property
    def name(self) -> str: ...

    def span(self, response: Response) -> Span: ...

    def values(self, response: Response, smooth: Smooth, y: Array) -> Array: ...

    def outside(self, response: Response, mu_hat: Array, y: Array) -> Array:
        """What the loss has that no theta can change; mu-hat is given at the quadrature nodes."""
        ...

    def resampled_values(self, response: Response, smooth: Smooth, resamples: Array) -> Array: ...

    def score_root(self, smooth: Smooth, jacobian: Array) -> Array: ...


@dataclass(frozen=True)
class L2:
    """The squared L2 distance between mu-hat and the model, by quadrature."""

    @property
    def name(self) -> str:
        return "l2"

    def span(self, response: Response) -> Span:
        return response.node_span

    def values(self, response: Response, smooth: Smooth, y: Array) -> Array:
        return smooth.in_span()

    def outside(self, response: Response, mu_hat: Array, y: Array) -> Array:
        return jnp.asarray(response.node_span.outside(mu_hat))

    def resampled_values(self, response: Response, smooth: Smooth, resamples: Array) -> Array:
        """mu-hat for responses (B, n), rho kept: (B, m)."""
        return resamples @ smooth.span_map()

    def score_root(self, smooth: Smooth, jacobian: Array) -> Array:
        """D Phi^-1 up to a rotation: the score is -2 times this times y, plus what does not depend on y."""
        return (smooth.spectrum.cross @ jacobian).T * smooth.inverse_diagonal


@dataclass(frozen=True)
class OLS:
    """The sum of squared residuals."""

    @property
    def name(self) -> str:
        return "ols"

    def span(self, response: Response) -> Span:
        return response.design_span

    def values(self, response: Response, smooth: Smooth, y: Array) -> Array:
        return jnp.asarray(response.design_span.project(y))

    def outside(self, response: Response, mu_hat: Array, y: Array) -> Array:
        return jnp.asarray(response.design_span.outside(y))

    def resampled_values(self, response: Response, smooth: Smooth, resamples: Array) -> Array:
        return jnp.asarray(response.design_span.project(resamples))

    def score_root(self, smooth: Smooth, jacobian: Array) -> Array:
        """The model's slopes at the design, up to a rotation."""
        return jacobian.T


def loss_candidates(loss: Loss, experiment: Experiment) -> Candidates:
    """The model tabulated for the global scan of this loss."""
    return candidates(experiment.prior, loss.span(experiment).coordinates)


def loss_value(model: Coordinates, values: Array, theta: Array) -> Array:
    """The loss at theta (p,), up to a constant, for a model in the coordinates of the loss's span."""
    return jnp.sum((values - model(theta)) ** 2)


def loss_derivatives(loss: Loss, response: Response, values: Array, theta: Array) -> Derivatives:
    """The loss at theta with gradient, full Hessian V and the Jacobian of the model's coordinates."""
    return derivatives(loss.span(response).coordinates, values, theta)


def loss_minima(
    loss: Loss, experiment: Experiment, table: Candidates, values: Array, keep: int = _KEPT_MINIMA
) -> Minima:
    """The lowest local minima of the loss over the prior's support."""
    return global_minima(table, loss.span(experiment).coordinates, values, experiment.prior, keep)


def score_covariance(loss: Loss, smooth: Smooth, at: Derivatives, sigma2: Array) -> Array:
    """W = var of the gradient of the loss: 4 sigma2 times the Gram matrix of the score's root."""
    root = loss.score_root(smooth, at.jacobian)
    return 4 * sigma2 * root @ root.T


def matched_gamma(V: Array, W: Array) -> Array:
    """gamma = p / tr(V^-1 W): the expected loss ratio then matches that of a likelihood."""
    return V.shape[0] / jnp.trace(solve(V, W))


def is_flat(at: Derivatives) -> Array:
    """Whether the Hessian V fails to be positive definite, relative to the model's own slopes."""
    slopes = jnp.sqrt(jnp.diag(at.gauss_newton))
    pivots = jnp.diag(cholesky(at.hessian / jnp.outer(slopes, slopes)))
    return ~jnp.all(pivots**2 > _FLAT)
