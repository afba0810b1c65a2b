"""The asymptotic scaling (paper, Section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

from l2calib.errors import Status
from l2calib.losses import Loss, is_flat, loss_derivatives, matched_gamma, score_covariance
from l2calib.numerics.arrays import Array, jnp
from l2calib.problem.experiment import Experiment
from l2calib.scalings.scaling import Fitted


@dataclass(frozen=True)
class Asymptotic:
    """Match the limit of E[Lambda] to p, the expectation of a likelihood-ratio statistic."""

    @property
    def suffix(self) -> str:
        return ""

    def gamma(self, loss: Loss, experiment: Experiment, fitted: Fitted, key: Array) -> tuple[Array, Array]:
        at = loss_derivatives(loss, experiment, fitted.values, fitted.minima.theta)
        W = score_covariance(loss, fitted.smooth, at, fitted.smooth.sigma2())
        return matched_gamma(at.hessian, W), jnp.where(is_flat(at), int(Status.FLAT_LOSS), 0)
