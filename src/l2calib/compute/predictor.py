"""Prediction: the calibrated model, the system mu and the bias between them, at new inputs.

Given theta, what the responses have beyond the model is a Gaussian process plus errors, whichever method theta comes
from: methods differ by their posterior of theta alone. At one input the bias is then a mixture of normal distributions,
one for every draw. See docs/decisions/0009.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits

from l2calib.display.numbers import named
from l2calib.errors import ModelError
from l2calib.posterior.band import Band, Bands
from l2calib.problem.experiment import Experiment
from l2calib.process.bias import Bias, draw_bias
from l2calib.process.correlation import squared_differences
from l2calib.process.spectrum import Sites

DRAWS = 1000
_MOST_OBSERVATIONS = 500  # a chosen few say enough of a smooth bias, and a factorisation costs their cube
_STRATA = 4  # of the normal distribution of each draw
_POINTS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Predictor:
    """S draws of all that mu depends on."""

    experiment: Experiment
    theta: np.ndarray  # (S, p)
    design: np.ndarray  # of the residuals that the bias is drawn from, in the unit cube
    biases: tuple[Bias, ...]
    normal: np.ndarray  # standard normal deviates (S, strata), spread evenly

    def bands(self, x: np.ndarray, level: float) -> Bands:
        """At points x (N, k) in physical units; not a number where the model is not finite."""
        with threadpool_limits(1, user_api="blas"):
            parts = [self._bands(x[i : i + _POINTS_AT_ONCE], level) for i in range(0, len(x), _POINTS_AT_ONCE)]
        joined = [[np.concatenate(pieces) for pieces in zip(*same, strict=True)] for same in zip(*parts, strict=True)]
        return Bands(*(Band(*pieces) for pieces in joined))

    def _bands(self, x: np.ndarray, level: float) -> Bands:
        model = modelled(self.experiment, x, self.theta)
        model = np.where(np.isfinite(model).all(axis=0), model, np.nan)
        mean, sd = self.bias(x)
        tails = [(1 - level) / 2, (1 + level) / 2]
        spread = mean[:, None] + sd[:, None] * self.normal[:, :, None]
        around = (model[:, None] + spread).reshape(-1, len(x))
        return Bands(
            Band(model.mean(axis=0), *np.quantile(model, tails, axis=0)),
            Band((model + mean).mean(axis=0), *np.quantile(around, tails, axis=0)),
            Band(mean.mean(axis=0), *np.quantile(spread.reshape(around.shape), tails, axis=0)),
        )

    def bias(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (S, N) of the bias at points x, for every draw."""
        squared = squared_differences(self.experiment.box.to_unit(x), self.design)
        mean, variance = np.empty((2, len(self.theta), len(x)))
        for each in self.biases:
            mean[each.draws], variance[each.draws] = each.at(squared)
        return mean, np.sqrt(variance)


def predictor(experiment: Experiment, y: np.ndarray, theta: np.ndarray, rng: np.random.Generator) -> Predictor:
    """Draw what the bias depends on for every theta (S, p) of a posterior."""
    chosen = np.arange(len(y))
    if len(y) > _MOST_OBSERVATIONS:
        chosen = np.sort(rng.choice(chosen, _MOST_OBSERVATIONS, replace=False))
    model = modelled(experiment, experiment.x[chosen], theta)
    check_finite(experiment, experiment.x[chosen], np.isfinite(model).all(axis=0))
    sites = Sites(experiment.x_unit[chosen], experiment.whitening[chosen])
    biases = draw_bias(sites, sites.whitening * (y[chosen] - model), rng)
    shift = rng.permutation(len(theta)) + 0.5
    strata = (np.arange(_STRATA) + shift[:, None] / len(theta)) / _STRATA
    return Predictor(experiment, theta, sites.x, biases, special.ndtri(strata))


def modelled(experiment: Experiment, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The model at points x (N, k) for draws theta (S, p): (S, N)."""
    return experiment.model.values(x, theta)


def check_finite(experiment: Experiment, x: np.ndarray, finite: np.ndarray) -> None:
    """Raise ModelError unless the model is finite at all points x (N, k)."""
    if not finite.all():
        point = x[int(np.argmin(finite))]
        where = named(experiment.box.names, point)
        raise ModelError(
            f"the model is not finite at {where} for some parameters of the posterior; "
            "mend it there, or leave that point out."
        )
