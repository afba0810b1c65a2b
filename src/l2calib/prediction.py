"""Prediction: the calibrated model, the system mu and the bias between them, at new inputs.

Given theta, what the responses have beyond the model is a Gaussian process plus errors, whichever method theta comes
from: methods differ by their posterior of theta alone. psi and kappa are drawn from their posterior given theta on a
lattice, under the priors of Kennedy-O'Hagan and with sigma2 integrated out, and sigma2 given them. At one input the
bias is then a mixture of normal distributions, one for every draw. See docs/decisions/0009.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from l2calib.arrays import jax, jnp
from l2calib.compilation import quickly_compiled
from l2calib.correlation import spectrum_over, squared_differences
from l2calib.errors import ModelError
from l2calib.experiment import Experiment
from l2calib.methods import KennedyOHagan
from l2calib.quadrature import kronecker

DRAWS = 1000
_PSI_PER_INPUT = {1: 31, 2: 13}
_SCATTERED_PSI = 256
_PSI_REACH = 3.0  # in standard deviations of the prior of log psi
_KAPPA_BOUNDS = (1e-8, 1e4)
_KAPPA_POINTS = 71
_LOOKED_AT = 16  # draws by which the values of psi that carry the mass are chosen
_CAPTURED = 0.999
_KEPT_PSI = 24
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


class _Lattice(NamedTuple):
    psi: np.ndarray  # (P, k)
    log_weight: np.ndarray  # log prior of psi, up to a constant (P,)
    eigenvalues: np.ndarray  # of C_XX(psi), (P, n)
    vectors: np.ndarray  # (P, n, n)
    kappa: np.ndarray  # (K,)
    log_kappa_weight: np.ndarray  # (K,)


class _Shared(NamedTuple):
    """Draws with the same psi, in the eigenbasis of C_XX(psi)."""

    draws: np.ndarray  # their indices (G,)
    psi: np.ndarray  # (k,)
    vectors: np.ndarray  # (n, n)
    inverse: np.ndarray  # 1 / (kappa + lambda), (G, n)
    shrunk: np.ndarray  # U' r / (kappa + lambda), (G, n)
    variance: np.ndarray  # of the process, sigma2 / kappa (G,)


@dataclass(frozen=True, eq=False)
class Predictor:
    """S draws of all that mu depends on."""

    experiment: Experiment
    theta: np.ndarray  # (S, p)
    groups: tuple[_Shared, ...]
    normal: np.ndarray  # standard normal deviates (S, strata), spread evenly

    def bands(self, x: np.ndarray, level: float) -> Bands:
        """At points x (N, k) in physical units."""
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
        for group in self.groups:
            cross = np.exp(-squared @ group.psi) @ group.vectors
            mean[group.draws] = group.shrunk @ cross.T
            left = np.maximum(1 - group.inverse @ (cross**2).T, 0.0)
            variance[group.draws] = group.variance[:, None] * left
        return mean, np.sqrt(variance)


def predictor(experiment: Experiment, y: np.ndarray, theta: np.ndarray, rng: np.random.Generator) -> Predictor:
    """Draw psi, kappa and sigma2 for every theta (S, p) of a posterior."""
    lattice = _lattice(experiment)
    residuals = y - modelled(experiment, experiment.x, theta)
    some = residuals[:: max(1, len(theta) // _LOOKED_AT)]
    everywhere = _log_mass(lattice, np.arange(len(lattice.log_weight)), some)[0]
    chosen = _heaviest(special.softmax(everywhere, axis=(0, 2)).sum(axis=(1, 2)))
    log_mass, quadratic = _log_mass(lattice, chosen, residuals)
    at_psi, at_kappa = _drawn(np.swapaxes(log_mass, 0, 1), rng)
    number = np.arange(len(theta))
    variance = quadratic[at_psi, number, at_kappa] / rng.chisquare(len(y), len(theta))
    kappa = lattice.kappa[at_kappa]
    groups = []
    for position, index in enumerate(chosen):
        draws = np.flatnonzero(at_psi == position)
        if draws.size:
            groups.append(_group(lattice, index, draws, kappa[draws], residuals[draws], variance[draws]))
    strata = (np.arange(_STRATA) + rng.permutation(number + 0.5)[:, None] / len(theta)) / _STRATA
    return Predictor(experiment, theta, tuple(groups), special.ndtri(strata))


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


@functools.lru_cache(maxsize=2)
def _lattice(experiment: Experiment) -> _Lattice:
    x, priors = experiment.x_unit, KennedyOHagan()
    psi, log_weight = _psi_points(x.shape[1], priors)
    nothing = np.empty((0, x.shape[1])), np.empty((0, 0))
    spectrum = spectrum_over(psi, x, *nothing)
    kappa = np.geomspace(*_KAPPA_BOUNDS, _KAPPA_POINTS)
    log_kappa_weight = np.asarray(priors.kappa_prior.log_density(jnp.asarray(kappa))) + np.log(kappa)
    eigenvalues, vectors = np.asarray(spectrum.eigenvalues), np.asarray(spectrum.vectors)
    return _Lattice(psi, log_weight, eigenvalues, vectors, kappa, log_kappa_weight)


def _psi_points(inputs: int, priors: KennedyOHagan) -> tuple[np.ndarray, np.ndarray]:
    """Values of psi (P, k) with their log weights: a lattice, or with many inputs points that follow the prior."""
    if inputs not in _PSI_PER_INPUT:
        psi = priors.psi_prior.quantile(kronecker(_SCATTERED_PSI, inputs))
        return psi, np.zeros(len(psi))
    low, high = np.log(priors.psi_prior.quantile(special.ndtr(np.array([-_PSI_REACH, _PSI_REACH]))))
    axis = np.linspace(low, high, _PSI_PER_INPUT[inputs])
    log_psi = np.stack(np.meshgrid(*[axis] * inputs, indexing="ij"), -1).reshape(-1, inputs)
    log_density = np.asarray(priors.psi_prior.log_density(jnp.asarray(np.exp(log_psi)))) + log_psi
    return np.exp(log_psi), log_density.sum(axis=1)


def _log_mass(lattice: _Lattice, chosen: np.ndarray, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log posterior (W, R, K) of the chosen psi and all kappa given residuals (R, n), and r' Phi^-1 r."""
    inverse = 1 / (lattice.kappa + lattice.eigenvalues[chosen][:, :, None])
    quadratic = (residuals @ lattice.vectors[chosen]) ** 2 @ inverse
    log_determinant = -np.log(inverse).sum(axis=1)
    log_prior = lattice.log_weight[chosen][:, None] + lattice.log_kappa_weight
    n = residuals.shape[1]
    return (log_prior - log_determinant / 2)[:, None] - n / 2 * np.log(quadratic), quadratic


def _heaviest(mass: np.ndarray) -> np.ndarray:
    """The fewest indices that carry nearly all of the mass."""
    order = np.argsort(-mass)
    enough = int(np.searchsorted(np.cumsum(mass[order]), _CAPTURED * mass.sum())) + 1
    return order[: min(enough, _KEPT_PSI)]


def _drawn(log_mass: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One cell (w, k) of each table (S, W, K), by its mass."""
    flat = log_mass.reshape(len(log_mass), -1)
    below = np.cumsum(special.softmax(flat, axis=1), axis=1)
    cell = np.sum(below < rng.uniform(size=(len(flat), 1)) * below[:, -1:], axis=1)
    at_psi, at_kappa = np.unravel_index(cell, log_mass.shape[1:])
    return at_psi, at_kappa


def _group(
    lattice: _Lattice, index: int, draws: np.ndarray, kappa: np.ndarray, residuals: np.ndarray, variance: np.ndarray
) -> _Shared:
    vectors = lattice.vectors[index]
    inverse = 1 / (kappa[:, None] + lattice.eigenvalues[index])
    return _Shared(draws, lattice.psi[index], vectors, inverse, inverse * (residuals @ vectors), variance)
