"""Bayesian non-linear regression (paper, Section 2.3.1), with sigma2 integrated out under the prior 1/sigma2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from l2calib.losses import OLS, loss_candidates, loss_minima, loss_value
from l2calib.methods.method import Density, Fit, Prepared, Workload
from l2calib.numerics.arrays import Array, jnp
from l2calib.numerics.minimise import Candidates
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.problem.span import ModelCoordinates
from l2calib.smoothers.gcv import Choice


class _Responses(NamedTuple):
    """y in the span of the model, and the sum of squares that no theta explains."""

    values: Array
    outside: Array


class _View(NamedTuple):
    """The model at the design, and n."""

    model: ModelCoordinates
    observations: float


@dataclass(frozen=True)
class NonlinearRegression:
    """y_i ~ N(eta(x_i, theta), sigma2): the model taken as if it were exact."""

    @property
    def name(self) -> str:
        return "nlm"

    @property
    def smoothing(self) -> None:
        return None

    def prepare(self, experiment: Experiment) -> Prepared[Candidates, _View]:
        view = _View(experiment.design_span.coordinates, float(experiment.observations))
        return Prepared(loss_candidates(OLS(), experiment), view)

    def fit(
        self, experiment: Experiment, shared: Candidates, y: Array, *, key: Array, choice: Choice | None = None
    ) -> Fit[_Responses]:
        n, p = experiment.observations, experiment.parameters
        span = experiment.design_span
        responses = _Responses(span.project(y), span.outside(y))
        minima = loss_minima(OLS(), experiment, shared, responses.values)
        return Fit(
            theta_hat=minima.theta,
            starts=minima.thetas,
            status=minima.status,
            sigma2=(minima.losses[0] + responses.outside) / (n - p),
            detail=responses,
        )

    def posterior(self, prior: Prior, view: _View, fit: Fit[_Responses]) -> Density:
        def log_density(theta: Array) -> Array:
            residual_square = loss_value(view.model, fit.detail.values, theta) + fit.detail.outside
            return -view.observations / 2 * jnp.log(residual_square) + prior.log_density(theta)

        return Density(log_density)

    def workload(self, experiment: Experiment) -> Workload:
        return Workload(experiment.observations, per_evaluation=16 * experiment.design_span.dimension)
