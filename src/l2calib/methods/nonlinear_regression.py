"""Bayesian non-linear regression (paper, Section 2.3.1), with sigma2 integrated out under the prior 1/sigma2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from l2calib.arrays import Array, jnp
from l2calib.experiment import Experiment
from l2calib.losses import OLS, loss_candidates, loss_minima, loss_value
from l2calib.methods.method import Fit
from l2calib.minimise import Candidates
from l2calib.prior import Prior
from l2calib.smoother import Choice
from l2calib.span import ModelCoordinates


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

    def prepare(self, experiment: Experiment) -> Candidates:
        return loss_candidates(OLS(), experiment)

    def fit(
        self, experiment: Experiment, shared: Candidates, y: Array, key: Array, choice: Choice | None = None
    ) -> Fit:
        n, p = experiment.observations, experiment.parameters
        span = experiment.design_span
        responses = _Responses(span.project(y), span.outside(y))
        minima = loss_minima(OLS(), experiment, shared, responses.values)
        return Fit(
            theta_hat=minima.theta,
            starts=minima.thetas,
            status=minima.status,
            gamma=None,
            sigma2=(minima.losses[0] + responses.outside) / (n - p),
            psi=None,
            kappa=None,
            detail=responses,
        )

    def fitting_set(self, experiment: Experiment) -> int:
        return experiment.observations

    def looking_set(self, experiment: Experiment, evaluations: int) -> int:
        return 16 * evaluations * experiment.design_span.dimension

    def first_level(self, parameters: int) -> int:
        """One mode is the rule; a posterior with more moves up by itself."""
        return 0

    def view(self, experiment: Experiment) -> _View:
        return _View(experiment.design_span.coordinates, float(experiment.observations))

    def log_density(self, prior: Prior, view: _View, fit: Fit, theta: Array) -> Array:
        residual_square = loss_value(view.model, fit.detail.values, theta) + fit.detail.outside
        return -view.observations / 2 * jnp.log(residual_square) + prior.log_density(theta)

    def terms(self, fit: Fit) -> int:
        return 1
