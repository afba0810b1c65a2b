"""Prediction: the calibrated model, the system mu and the bias between them, at new inputs.

Given theta, what the responses have beyond the model is a Gaussian process plus errors, whichever method theta comes
from: methods differ by their posterior of theta alone. At one input the bias is then a mixture of normal distributions,
one for every draw. See docs/decisions/0009.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special
from threadpoolctl import threadpool_limits

from l2calib.arrays import jax
from l2calib.bias import Bias, draw_bias
from l2calib.compilation import quickly_compiled
from l2calib.correlation import squared_differences
from l2calib.errors import ModelError
from l2calib.experiment import Experiment

DRAWS = 1000
_STRATA = 4  # of the normal distribution of each draw
_POINTS_AT_ONCE = 1024


class Band(NamedTuple):
    """A posterior mean and an equal-tailed interval at every point (N,)."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Bands(NamedTuple):
    """The model eta(x; theta), the system mu(x), and the bias mu(x) - eta(x; theta)."""

    model: Band
    system: Band
    bias: Band


@dataclass(frozen=True, eq=False)
class Predictor:
    """S draws of all that mu depends on."""

    experiment: Experiment
    theta: np.ndarray  # (S, p)
    biases: tuple[Bias, ...]
    normal: np.ndarray  # standard normal deviates (S, strata), spread evenly

    def bands(self, x: np.ndarray, level: float) -> Bands:
        """At points x (N, k) in physical units."""
        with threadpool_limits(1, user_api="blas"):
            parts = [self._bands(x[i : i + _POINTS_AT_ONCE], level) for i in range(0, len(x), _POINTS_AT_ONCE)]
        joined = [[np.concatenate(pieces) for pieces in zip(*same, strict=True)] for same in zip(*parts, strict=True)]
        return Bands(*(Band(*pieces) for pieces in joined))

    def _bands(self, x: np.ndarray, level: float) -> Bands:
        model = modelled(self.experiment, x, self.theta)
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
        box = self.experiment.box
        squared = squared_differences(box.to_unit(x), self.experiment.x_unit)
        mean, variance = np.empty((2, len(self.theta), len(x)))
        for each in self.biases:
            mean[each.draws], variance[each.draws] = each.at(squared)
        return mean, np.sqrt(variance)


def predictor(experiment: Experiment, y: np.ndarray, theta: np.ndarray, rng: np.random.Generator) -> Predictor:
    """Draw what the bias depends on for every theta (S, p) of a posterior."""
    biases = draw_bias(experiment, y - modelled(experiment, experiment.x, theta), rng)
    shift = rng.permutation(len(theta)) + 0.5
    strata = (np.arange(_STRATA) + shift[:, None] / len(theta)) / _STRATA
    return Predictor(experiment, theta, biases, special.ndtri(strata))


def modelled(experiment: Experiment, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The model at points x (N, k) for draws theta (S, p): (S, N); ModelError where it is not finite."""
    values = np.asarray(_model_of_draws(experiment)(x, theta))
    if not np.isfinite(values).all():
        point = x[int(np.argmin(np.isfinite(values).all(axis=0)))]
        where = ", ".join(f"{name} = {value:g}" for name, value in zip(experiment.box.names, point, strict=True))
        raise ModelError(f"the model is not finite at {where} for parameters that the posterior holds for possible.")
    return values


@functools.lru_cache(maxsize=8)
def _model_of_draws(experiment: Experiment) -> Any:
    return quickly_compiled(jax.vmap(experiment.model, (None, 0)))
