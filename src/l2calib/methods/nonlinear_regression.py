"""Bayesian non-linear regression (paper, Section 2.3.1), with sigma2 integrated out under the prior 1/sigma2."""

from __future__ import annotations

from dataclasses import dataclass

from l2calib.arrays import Array, jnp
from l2calib.experiment import Experiment
from l2calib.losses import OLS, loss_candidates
from l2calib.methods.method import Fit
from l2calib.minimise import Candidates, global_minima, squared_loss

_KEPT_MINIMA = 3


@dataclass(frozen=True)
class NonlinearRegression:
    """y_i ~ N(eta(x_i, theta), sigma2): the model taken as if it were exact."""

    @property
    def name(self) -> str:
        return "nlm"

    def prepare(self, experiment: Experiment) -> Candidates:
        return loss_candidates(OLS(), experiment)

    def fit(self, experiment: Experiment, shared: Candidates, y: Array, key: Array) -> Fit:
        n, p = experiment.observations, experiment.parameters
        minima = global_minima(shared, experiment.eta_design, jnp.ones(n), y, experiment.prior, _KEPT_MINIMA)
        return Fit(
            theta_hat=minima.theta,
            starts=minima.thetas,
            status=minima.status,
            gamma=None,
            sigma2=minima.losses[0] / (n - p),
            psi=None,
            kappa=None,
            detail=y,
        )

    def working_set(self, experiment: Experiment, evaluations: int) -> int:
        return evaluations * experiment.observations

    def first_level(self, parameters: int) -> int:
        """One mode is the rule; a posterior with more moves up by itself."""
        return 0

    def log_density(self, experiment: Experiment, shared: Candidates, fit: Fit, theta: Array) -> Array:
        n = experiment.observations
        residual_square = squared_loss(experiment.eta_design, jnp.ones(n), fit.detail, theta)
        return -n / 2 * jnp.log(residual_square) + experiment.prior.log_density(theta)
