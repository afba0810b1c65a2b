"""The answers without a posterior: estimates with their sandwich covariance, and the target of a known system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from l2calib.display.words import reason_of
from l2calib.errors import CalibrationFailed, MethodError, ModelError, Status
from l2calib.losses import (
    L2,
    Loss,
    is_flat,
    loss_candidates,
    loss_derivatives,
    loss_minima,
    matched_gamma,
    score_covariance,
)
from l2calib.numerics.arrays import Array, jnp
from l2calib.numerics.compile import quickly_compiled
from l2calib.numerics.minimise import Candidates, Derivatives, Minima
from l2calib.problem.data import Box
from l2calib.problem.experiment import Experiment
from l2calib.problem.measure import Quadrature, default_quadrature
from l2calib.problem.problem import Problem
from l2calib.process.spectrum import Sites
from l2calib.smoothers.gcv import GCV
from l2calib.smoothers.grid import SmootherTables


@dataclass(frozen=True)
class Estimate:
    """theta-hat of a loss, with the covariance V^-1 W V^-1 of its sampling distribution."""

    names: tuple[str, ...]
    theta_hat: np.ndarray
    covariance: np.ndarray
    V: np.ndarray
    W: np.ndarray
    loss: float
    sigma2: float
    status: Status

    @property
    def standard_errors(self) -> np.ndarray:
        return np.sqrt(np.diag(self.covariance))

    def as_dict(self) -> dict[str, float]:
        """theta-hat by parameter."""
        return dict(zip(self.names, self.theta_hat.tolist(), strict=True))


def estimate(problem: Problem, loss: Loss | None = None, smoother: GCV | None = None) -> Estimate:
    """The minimiser of a loss (L2 by default) and its standard errors."""
    if not isinstance(problem, Problem):
        raise MethodError(f"what is estimated must be a Problem: received a {type(problem).__name__}; build one.")
    if isinstance(loss, str | type):
        raise MethodError(f"the loss is not one: received {loss!r}; give L2() or OLS().")
    chosen, experiment = loss or L2(), problem.experiment
    gcv = smoother or GCV()

    def fit(tables: SmootherTables, table: Candidates, y: Array) -> tuple[_Minimum, Array, Array, Array, Array]:
        smooth = gcv.fit(tables, y)
        found = _minimum(chosen, experiment, table, chosen.values(experiment, smooth, y))
        mu_hat = smooth.at(gcv.correlation, experiment.quadrature.nodes, Sites.of(experiment))
        W = score_covariance(chosen, smooth, found.at, smooth.sigma2())
        return found, W, chosen.outside(experiment, mu_hat, y), smooth.sigma2(), smooth.status

    # One program: by itself every small operation of JAX is one to compile.
    tables, table = gcv.prepare(experiment), loss_candidates(chosen, experiment)
    found, W, outside, sigma2, status = quickly_compiled(fit)(tables, table, jnp.asarray(experiment.whiten(problem.y)))
    found.check()
    inverse = np.linalg.inv(found.at.hessian)
    return Estimate(
        names=experiment.prior.names,
        theta_hat=np.asarray(found.minima.theta),
        covariance=inverse @ W @ inverse,
        V=np.asarray(found.at.hessian),
        W=np.asarray(W),
        loss=float(found.minima.losses[0] + outside),
        sigma2=float(sigma2),
        status=Status(int(found.minima.status | status)),
    )


class _Minimum(NamedTuple):
    """The lowest minima of a loss, and the loss at the lowest."""

    minima: Minima
    at: Derivatives
    flat: Array

    def check(self) -> None:
        """Raise CalibrationFailed where there is none to speak of."""
        if bool(self.flat):
            raise CalibrationFailed(Status.FLAT_LOSS.sentences()[0])


def _minimum(loss: Loss, experiment: Experiment, table: Candidates, values: Array) -> _Minimum:
    minima = loss_minima(loss, experiment, table, values)
    at = loss_derivatives(loss, experiment, values, minima.theta)
    return _Minimum(minima, at, is_flat(at))


@dataclass(frozen=True)
class L2Target:
    """theta_L2 of a known system mu, and what follows from it for large n."""

    names: tuple[str, ...]
    theta: np.ndarray
    discrepancy: float  # the squared L2 distance at theta_L2
    V: np.ndarray  # Hessian of the squared L2 distance
    slopes: np.ndarray  # integral of the products of the model's slopes
    status: Status

    def gamma(self, sigma2: float) -> float:
        """The limit of the OLS scaling, for errors of variance sigma2; n times it is the limit for the L2 loss."""
        if not sigma2 > 0:
            raise MethodError(f"the variance of the errors must be positive: received {sigma2}.")
        return float(matched_gamma(jnp.asarray(self.V), jnp.asarray(4 * sigma2 * self.slopes)))

    def general_bayes_sd(self, n: int, sigma2: float) -> np.ndarray:
        """Posterior standard deviations of general Bayes at large n, by the normal limit."""
        return np.sqrt(np.diag(np.linalg.inv(n * self.gamma(sigma2) * self.V)))

    def nonlinear_regression_sd(self, n: int, sigma2: float) -> np.ndarray:
        """The same for non-linear regression, which adds the discrepancy to the error variance."""
        return np.sqrt(np.diag(np.linalg.inv(n * self.V / (2 * (sigma2 + self.discrepancy)))))


def target(
    model: Callable[..., Any],
    mu: Callable[..., Any],
    inputs: Mapping[str, tuple[float, float]],
    prior: Mapping[str, object],
    quadrature: Quadrature | None = None,
) -> L2Target:
    """theta_L2 of a model and a known system mu, a function of the same named inputs."""
    box = Box(inputs)
    rule = quadrature or default_quadrature(len(box.names))
    nodes = box.from_unit(rule.nodes)
    experiment = Experiment(model, inputs, nodes, prior, rule)
    loss = L2()

    def fit(table: Candidates, system: Array) -> tuple[_Minimum, Array]:
        found = _minimum(loss, experiment, table, experiment.node_span.project(system))
        return found, experiment.node_span.outside(system)

    table, system = loss_candidates(loss, experiment), jnp.asarray(system_values(mu, box, nodes))
    found, outside = quickly_compiled(fit)(table, system)
    found.check()
    return L2Target(
        names=experiment.prior.names,
        theta=np.asarray(found.minima.theta),
        discrepancy=float(found.minima.losses[0] + outside),
        V=np.asarray(found.at.hessian),
        slopes=np.asarray(found.at.gauss_newton) / 2,
        status=Status(int(found.minima.status)),
    )


def system_values(mu: Callable[..., Any], box: Box, x: np.ndarray) -> np.ndarray:
    """mu at the points x (N, k), in physical units: (N,); ModelError where it gives no such values."""
    try:
        values = np.asarray(mu(**{name: jnp.asarray(x[:, j]) for j, name in enumerate(box.names)}), dtype=float)
    except (Exception, SystemExit) as error:  # the function is the user's, so anything may come out of it
        raise ModelError(
            f"the system mu cannot be evaluated: {reason_of(error):.200}; "
            f"give a function of {', '.join(box.names)} that is written with jax.numpy."
        ) from error
    if values.shape not in ((), (len(x),)) or not np.isfinite(values).all():
        raise ModelError(
            f"the system mu returns shape {values.shape} or values that are not finite at {len(x)} inputs; "
            f"it must return one finite value for each, shape ({len(x)},)."
        )
    return np.array(np.broadcast_to(values, (len(x),)))
