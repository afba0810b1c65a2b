"""Importance sampling that learns where the mass is (decision 14).

For posteriors that nothing fits: ridges that bend, edges of the prior, mass that is cut off where theta is no
minimiser. The first points follow the Gaussians that a method knows of, wider ones and the prior; the next ones a
kernel estimate of the posterior that the points so far have shown. Every point is weighed by the mixture of all of them
(Owen and Zhou 2000; Cornuet and others 2012).

Points are spread evenly, not drawn, and taken eight ways apart: how far the eighths differ is the error.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtri

from l2calib.engines.integrate.shares import not_nan
from l2calib.errors import Status
from l2calib.numerics.modes import Modes
from l2calib.numerics.namespace import AnyArray, loops_of, namespace_of, softmax
from l2calib.numerics.small_matrices import cholesky, diagonal, lower_solve
from l2calib.numerics.spread import kronecker
from l2calib.posterior.moments import moments
from l2calib.posterior.points import PROBABILITIES, Points, Target, sample_quantiles

_FREEDOM = 4  # of the t distributions that points follow: tails as heavy as any that nine observations leave
_NEAR, _WIDE, _PRIOR = (0.6, 1.2), (0.25, 2.5), (0.15, 1.2)  # shares and inflations; on the line the prior's sd is one
_GROUPS = 3  # of points, by the mode that is nearest, with a covariance of their own
_KERNELS = 256
_KERNEL_SHARE, _WHOLE, _BEYOND = 0.75, (0.2, 1.3), (0.05, 1.2)
_BANDWIDTHS = (0.25, 1.0)
_TEMPERS = (1.0, 0.7, 0.5, 0.35, 0.25)
_FEWEST = 16  # effective points per parameter, below which weights are tempered before they guide the next points
_LEAST_SPREAD = 0.05  # of a group's points beside the Gaussian at its mode
_REPLICATES = 8
_LINE_LIMIT = 8.0  # of z: beyond, a normal distribution function has no digits left
_BLOCK = 20_000  # terms at once, which leave room in the caches
_ROUNDS = {2: (512, 768, 1024), 3: (768, 1024, 1536), 4: (1024, 1536, 2048)}  # points of each, by parameters
_ROUNDS_BEYOND = (1536, 2048, 3072, 4096)


class _Deviates(NamedTuple):
    """Of N points: uniform ones to choose a bell by, and t ones (N, p)."""

    label: np.ndarray
    t: np.ndarray

    def part(self, begin: int, end: int) -> _Deviates:
        return _Deviates(self.label[begin:end], self.t[begin:end])


@functools.cache
def _deviates(p: int, first: int, number: int) -> _Deviates:
    unit = kronecker(first + number, p + 2)[first:]
    length = np.sqrt(_FREEDOM / (2 * gammaincinv(_FREEDOM / 2, unit[:, 1])))
    return _Deviates(unit[:, 0], ndtri(unit[:, 2:]) * length[:, None])


class _Bells(NamedTuple):
    """A mixture of t distributions: centres (K, p), factors (K, p, p), and shares (K,)."""

    centres: AnyArray
    factors: AnyArray
    shares: AnyArray

    def at(self, deviates: _Deviates) -> AnyArray:
        """Points (N, p) with this distribution."""
        xp = namespace_of(self.centres)
        below = xp.cumsum(self.shares)
        chosen = xp.minimum(xp.searchsorted(below, deviates.label * below[-1]), below.size - 1)
        return self.centres[chosen] + xp.sum(self.factors[chosen] * deviates.t[:, None, :], axis=2)

    def density(self, z: AnyArray) -> AnyArray:
        """At rows z (N, p)."""
        xp = namespace_of(z)
        white = lower_solve(self.factors[:, None], z - self.centres[:, None])
        height = self.shares / xp.prod(diagonal(self.factors), axis=1)
        return height @ _bell(xp.sum(white**2, axis=2), z.shape[1])


class _Kernels(NamedTuple):
    """The same with few factors (M, p, p), each of which many kernels share; `group` (K,) says whose they are."""

    centres: AnyArray
    factors: AnyArray
    group: AnyArray

    def at(self, deviates: _Deviates) -> AnyArray:
        xp = namespace_of(self.centres)
        return _Bells(self.centres, self.factors[self.group], xp.full(len(self.group), 1 / _KERNELS)).at(deviates)

    def density(self, z: AnyArray) -> AnyArray:
        xp, total = namespace_of(z), 0.0
        for index in range(len(self.factors)):
            factor = self.factors[index][None]
            rows, centres = lower_solve(factor, z), lower_solve(factor, self.centres)
            square = xp.sum(rows**2, axis=1)[:, None] + xp.sum(centres**2, axis=1) - 2 * rows @ centres.T
            share = xp.where(self.group == index, 1 / _KERNELS, 0.0) / xp.prod(diagonal(factor))
            total = total + _bell(xp.maximum(square, 0.0), z.shape[1]) @ share
        return total


def _bell(square: AnyArray, p: int) -> AnyArray:
    """The density of a standard t distribution, by squared distances."""
    constant = math.exp(math.lgamma((_FREEDOM + p) / 2) - math.lgamma(_FREEDOM / 2)) / (_FREEDOM * math.pi) ** (p / 2)
    narrow = 1 / (1 + square / _FREEDOM)
    odd = namespace_of(square).sqrt(narrow) if p % 2 else 1.0  # a root and products cost less than a power
    return constant * odd * narrow ** ((_FREEDOM + p) // 2)


class _Round(NamedTuple):
    """So many points: a share of them from the first mixture, the rest from the second."""

    first: _Bells | _Kernels
    second: _Bells
    share: float
    number: int

    @property
    def _split(self) -> int:
        return round(self.share * self.number)

    def at(self, deviates: _Deviates) -> AnyArray:
        first = self.first.at(deviates.part(0, self._split))
        second = self.second.at(deviates.part(self._split, self.number))
        return namespace_of(first).concatenate([first, second])

    def expected(self, z: AnyArray) -> AnyArray:
        """How many points there are to be per volume, at z."""
        return self._split * self.first.density(z) + (self.number - self._split) * self.second.density(z)


class _Seen(NamedTuple):
    """Points that were evaluated: (N, p), the log density (N,) and the log share (N,)."""

    z: AnyArray
    log_density: AnyArray
    log_share: AnyArray


def round_sizes(p: int) -> tuple[int, ...]:
    """How many points there are in every round."""
    return _ROUNDS.get(p, _ROUNDS_BEYOND)


@np.errstate(all="ignore")
def points_by_importance(target: Target, modes: Modes) -> Points:
    """Weighted points; `modes` are Gaussians that together look like the posterior, as far as that is known."""
    xp, p = namespace_of(modes.centres), modes.centres.shape[1]
    rounds: list[_Round] = []
    seen: list[_Seen] = []
    for number in round_sizes(p):
        before = sum(each.number for each in rounds)
        if rounds:
            together = _joined(seen)
            rounds.append(_learnt(modes, together.z, _tempered(_log_weights(together, rounds), p), number))
        else:
            rounds.append(_first(modes, number))
        seen.append(_look(target, rounds[-1].at(_deviates(p, before, number))))
    together = _joined(seen)
    weights = softmax(_log_weights(together, rounds))
    z = xp.where(xp.isfinite(together.z), together.z, 0.0)
    error, mass_error = _errors(z, weights)
    kept = xp.where(weights > 0, weights * xp.exp(together.log_share), 0.0)
    return Points(
        z=z,
        weights=weights,
        error=_or_infinite(xp.maximum(error, mass_error)),
        doubt=1 - xp.sum(kept),
        status=xp.where(xp.all(xp.isfinite(weights)), 0, int(Status.NOT_FINITE)),
    )


def _or_infinite(error: AnyArray) -> AnyArray:
    xp = namespace_of(error)
    return xp.where(xp.isnan(error), np.inf, error)


def _joined(seen: list[_Seen]) -> _Seen:
    return _Seen(*(namespace_of(parts[0]).concatenate(parts) for parts in zip(*seen, strict=True)))


def _look(target: Target, z: AnyArray) -> _Seen:
    """The log density and the log share at rows z, block by block: a mixture writes all its terms for every row."""
    xp, number = namespace_of(z), len(z)
    size = max(32, _BLOCK // target.terms)
    inside = xp.all(xp.abs(z) < _LINE_LIMIT, axis=1)  # there is nothing outside
    z = xp.where(inside[:, None], z, 0.0)
    blocks = -(-number // size)
    padded = z[np.minimum(np.arange(blocks * size), number - 1)].reshape(blocks, size, -1)

    def both(rows: AnyArray) -> AnyArray:
        if target.log_density_and_share is not None:
            return xp.stack(target.log_density_and_share(rows))
        return xp.stack([target.log_density(rows), xp.zeros(size)])

    found = loops_of(z).map(both, padded)
    log_density, log_share = (not_nan(found[:, i].reshape(-1)[:number]) for i in (0, 1))
    return _Seen(z, xp.where(inside, log_density, -np.inf), log_share)


def _log_weights(seen: _Seen, rounds: list[_Round]) -> AnyArray:
    """By the mixture of all rounds (N,)."""
    expected = sum(each.expected(seen.z) for each in rounds)
    return not_nan(seen.log_density + seen.log_share - namespace_of(seen.z).log(expected))


def _tempered(log_weights: AnyArray, p: int) -> AnyArray:
    """Weights (N,) to learn from: a few points that outweigh all others would hide where they are not."""
    xp = namespace_of(log_weights)
    several = xp.stack([softmax(temper * log_weights) for temper in _TEMPERS])
    enough = 1 / xp.sum(several**2, axis=1) > _FEWEST * p
    chosen = xp.where(xp.any(enough), xp.argmax(enough), len(_TEMPERS) - 1)
    return xp.where(xp.isfinite(several[chosen]), several[chosen], 0.0)


def _first(modes: Modes, number: int) -> _Round:
    """Around the modes, wider, and over the prior."""
    xp, p = namespace_of(modes.centres), modes.centres.shape[1]
    share = softmax(modes.log_mass / 2)  # a light mode may have a long tail
    wide, prior = _WIDE[0] / (1 - _NEAR[0]), _PRIOR[0] / (1 - _NEAR[0])
    around = _Bells(
        xp.concatenate([modes.centres, xp.zeros((1, p))]),
        xp.concatenate([_WIDE[1] * modes.factors, _PRIOR[1] * xp.eye(p)[None]]),
        xp.concatenate([wide * share, xp.full(1, prior)]),
    )
    return _Round(_Bells(modes.centres, _NEAR[1] * modes.factors, share), around, _NEAR[0], number)


def _learnt(modes: Modes, z: AnyArray, weights: AnyArray, number: int) -> _Round:
    """A kernel estimate of weighted points, group by group, with each group as a whole, and the prior."""
    xp, (points, p) = namespace_of(z), z.shape
    groups, _ = modes.apart(_GROUPS)
    away = lower_solve(groups.factors[:, None], z - groups.centres[:, None])
    distance = xp.sum(away**2, axis=2) + xp.where(xp.isfinite(groups.log_mass), 0.0, np.inf)[:, None]
    group = xp.argmin(distance, axis=0)
    own = xp.where(np.arange(_GROUPS)[:, None] == group, weights, 0.0)  # (M, N)
    mass = xp.sum(own, axis=1)
    share = own / xp.maximum(mass, 1e-300)[:, None]
    centre = share @ z
    spread = z - centre[:, None]
    covariance = xp.swapaxes(spread * share[:, :, None], 1, 2) @ spread
    fitted = groups.factors @ xp.swapaxes(groups.factors, 1, 2)
    # A group of few points tells no covariance.
    effective = mass**2 / xp.maximum(xp.sum(own**2, axis=1), 1e-300)
    sure = effective / (effective + 4.0 * p)
    covariance = sure[:, None, None] * covariance + (1 - sure + _LEAST_SPREAD)[:, None, None] * fitted
    factors = cholesky(covariance)
    factors = xp.where(xp.all(xp.isfinite(factors), axis=(1, 2))[:, None, None], factors, groups.factors)
    width = xp.clip((4 / ((p + 2) * xp.maximum(effective, 1.0))) ** (1 / (p + 4)), *_BANDWIDTHS)
    below = xp.cumsum(weights)
    index = xp.minimum(xp.searchsorted(below, below[-1] * (np.arange(_KERNELS) + 0.5) / _KERNELS), points - 1)
    around = _Bells(
        xp.concatenate([centre, xp.zeros((1, p))]),
        xp.concatenate([_WHOLE[1] * factors, _BEYOND[1] * xp.eye(p)[None]]),
        xp.concatenate([_WHOLE[0] * mass / xp.sum(mass), xp.full(1, _BEYOND[0])]) / (_WHOLE[0] + _BEYOND[0]),
    )
    return _Round(_Kernels(z[index], width[:, None, None] * factors, group[index]), around, _KERNEL_SHARE, number)


def _errors(z: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The standard errors of moments and of quantiles, in sd: from how far eighths of the points differ."""
    xp, (number, p) = namespace_of(z), z.shape
    size = number // _REPLICATES
    mean, sd = moments(z.T, weights)
    white = ((z - mean) / sd)[: size * _REPLICATES].reshape(size, _REPLICATES, p)
    own = weights[: size * _REPLICATES].reshape(size, _REPLICATES)
    own = (own / xp.sum(own, axis=0))[:, :, None]
    ends = ((sample_quantiles(z, weights, np.asarray(PROBABILITIES)) - mean) / sd).T  # (p, Q)

    def deviation(values: AnyArray) -> AnyArray:
        """The standard error of a mean over the replicates, the first axis."""
        away = values - xp.mean(values, axis=0)
        return xp.sqrt(xp.sum(away**2, axis=0) / (_REPLICATES * (_REPLICATES - 1)))

    first, second = deviation(xp.sum(own * white, axis=0)), deviation(xp.sum(own * white**2, axis=0)) / 2
    below = deviation(xp.sum(own[..., None] * (white[..., None] < ends), axis=0))  # (p, Q)
    return xp.max(xp.maximum(first, second)), xp.max(probabilities_to_sd(z, weights, below, sd))


def probabilities_to_sd(z: AnyArray, weights: AnyArray, errors: AnyArray, sd: AnyArray) -> AnyArray:
    """What errors (p, Q) of the probabilities below the quantiles move these, in posterior standard deviations (p,)."""
    xp, p, probabilities = namespace_of(z), z.shape[1], np.asarray(PROBABILITIES)
    # By the distance over which the weights carry as much on either side.
    step = xp.minimum(xp.maximum(errors, 0.005), 0.4 * np.minimum(probabilities, 1 - probabilities))
    near = [
        xp.stack([xp.interp(probabilities + sign * step[j], *_distribution(z[:, j], weights)) for j in range(p)])
        for sign in (-1.0, 1.0)
    ]
    slope = (near[1] - near[0]) / (2 * step) / sd[:, None]
    return errors * slope


def _distribution(values: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Probabilities and values, in order."""
    xp = namespace_of(values)
    order = xp.argsort(values)
    return xp.cumsum(weights[order]) - weights[order] / 2, values[order]
