"""Importance sampling that learns where the mass is (decision 14).

For posteriors that nothing fits: ridges that bend, edges of the prior, mass that is cut off where theta is no
minimiser. The first points follow the Gaussians that a method knows of, wider ones and the prior; the next ones kernels
at the points that weigh most so far, each with the covariance of the points around it, so that a ridge that bends is
followed along its bend. Every point is weighed by the mixture of all rounds (Owen and Zhou 2000; Cornuet and others
2012).
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
from l2calib.numerics.small_matrices import cholesky, diagonal, forward, lower_solve
from l2calib.numerics.spread import kronecker
from l2calib.posterior.moments import moments
from l2calib.posterior.points import PROBABILITIES, Points, Target, sample_quantiles

_FREEDOM = 4  # of the t distributions that points follow: tails as heavy as any that nine observations leave
_NEAR, _WIDE, _PRIOR = (0.6, 1.2), (0.25, 2.5), (0.15, 1.2)  # shares and inflations; on the line the prior's sd is one
_KERNELS = 128
_KERNEL_SHARE, _WHOLE, _BEYOND = 0.84, (0.12, 1.4), (0.04, 1.2)
_LEARNT_FROM = 1024  # points, as likely to be taken as they weigh
_NEIGHBOURS = 0.02  # of them, by which a kernel gets its covariance
_ENOUGH = 4  # effective neighbours per parameter, at least
# Kernels are wider than their neighbourhoods, one of four by much, so that ends of ridges are found.
_WIDTHS = (1.1, 1.1, 1.1, 3.0)
_FEWEST = 16  # effective points per parameter, below which weights are tempered before they guide the next points
_TEMPERS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04, 0.02, 0.01, 0.005, 0.002)
_LEAST_SPREAD = 1e-6  # of a covariance, relative
_LINE_LIMIT = 8.0  # of z: beyond, a normal distribution function has no digits left
_BLOCK = 64  # points at once, which leave room in the caches; the rounds are multiples of it
_SMALL = 4  # parameters
# How many rounds there are, and points of each, by effort: few parameters and more.
_ROUNDS, _ROUNDS_BEYOND = ((7, 768), (9, 1920)), ((7, 1536), (9, 3072))
EFFORTS = len(_ROUNDS)


class _Deviates(NamedTuple):
    """Of N points: uniform ones to choose a bell by, and t ones (N, p)."""

    label: np.ndarray
    t: np.ndarray


@functools.cache
def _deviates(p: int, rounds: int, number: int) -> _Deviates:
    """Those of all rounds, along the first axis."""
    unit = kronecker(rounds * number, p + 2)
    length = np.sqrt(_FREEDOM / (2 * gammaincinv(_FREEDOM / 2, unit[:, 1])))
    t = ndtri(unit[:, 2:]) * length[:, None]
    return _Deviates(unit[:, 0].reshape(rounds, number), t.reshape(rounds, number, p))


class _Bells(NamedTuple):
    """A mixture of t distributions: centres (K, p), factors (K, p, p), and shares (K,) with a sum of one."""

    centres: AnyArray
    factors: AnyArray
    shares: AnyArray

    def at(self, deviates: _Deviates) -> AnyArray:
        """Points (N, p) with this distribution."""
        xp = namespace_of(self.centres)
        below = xp.cumsum(self.shares)
        chosen = xp.minimum(xp.searchsorted(below, deviates.label * below[-1]), below.size - 1)
        return self.centres[chosen] + xp.sum(self.factors[chosen] * deviates.t[:, None, :], axis=2)

    def filled_up(self, number: int) -> _Bells:
        """So many bells, the last of them without a share."""
        xp, (own, p) = namespace_of(self.shares), self.centres.shape
        more = number - own
        return _Bells(
            xp.concatenate([self.centres, xp.zeros((more, p))]),
            xp.concatenate([self.factors, xp.broadcast_to(xp.eye(p), (more, p, p))]),
            xp.concatenate([self.shares, xp.zeros(more)]),
        )

    def density(self, z: AnyArray) -> AnyArray:
        """At rows z (N, p), where N is a multiple of the block."""
        xp, p = namespace_of(z), z.shape[1]
        height = self.shares / xp.prod(diagonal(self.factors), axis=1)

        def of_block(rows: AnyArray) -> AnyArray:
            white = forward(self.factors[:, None], [rows[:, i] - self.centres[:, i][:, None] for i in range(p)])
            return height @ _bell(sum(each**2 for each in white), p)

        return loops_of(z).map(of_block, z.reshape(-1, _BLOCK, p)).reshape(-1)


def _bell(square: AnyArray, p: int) -> AnyArray:
    """The density of a standard t distribution, by squared distances."""
    constant = math.exp(math.lgamma((_FREEDOM + p) / 2) - math.lgamma(_FREEDOM / 2)) / (_FREEDOM * math.pi) ** (p / 2)
    narrow = 1 / (1 + square / _FREEDOM)
    odd = namespace_of(square).sqrt(narrow) if p % 2 else 1.0  # a root and products cost less than a power
    return constant * odd * narrow ** ((_FREEDOM + p) // 2)


class _Seen(NamedTuple):
    """The points of R rounds, along the first axis, N in each; those of rounds to come weigh nothing."""

    z: AnyArray  # (R, N, p)
    log_density: AnyArray  # (R, N)
    log_share: AnyArray  # (R, N)
    expected: AnyArray  # how many points there were to be per volume (R, N)
    bells: _Bells  # (R, K, ...)

    @property
    def log_weights(self) -> AnyArray:
        """Of all points (R N,)."""
        log_weights = self.log_density + self.log_share - namespace_of(self.z).log(self.expected)
        return not_nan(log_weights).reshape(-1)

    @property
    def points(self) -> AnyArray:
        """All of them (R N, p)."""
        return self.z.reshape(-1, self.z.shape[2])


def number_of_points(p: int, effort: int) -> int:
    """How many points there are."""
    rounds, number = _sizes(p, effort)
    return rounds * number


def _sizes(p: int, effort: int) -> tuple[int, int]:
    return (_ROUNDS if p <= _SMALL else _ROUNDS_BEYOND)[effort]


@np.errstate(all="ignore")
def points_by_importance(target: Target, modes: Modes, effort: int = 0) -> Points:
    """Weighted points; `modes` are Gaussians that together look like the posterior, as far as that is known."""
    xp, p = namespace_of(modes.centres), modes.centres.shape[1]
    rounds, number = _sizes(p, effort)
    bells = max(2 * len(modes.centres) + 1, _KERNELS + 2)
    first, deviates = _first(modes).filled_up(bells), _Deviates(*map(xp.asarray, _deviates(p, rounds, number)))

    def visit(index: AnyArray, seen: _Seen) -> _Seen:
        learnt = _learnt(seen.points, _tempered(seen.log_weights, p)).filled_up(bells)
        own = _Bells(*(xp.where(index == 0, *each) for each in zip(first, learnt, strict=True)))
        z, log_density, log_share = _look(target, own.at(_Deviates(*(each[index] for each in deviates))))
        here = np.arange(rounds) == index

        def put(all_rounds: AnyArray, one: AnyArray) -> AnyArray:
            return xp.where(here.reshape(-1, *[1] * one.ndim), one, all_rounds)

        every = _Bells(*(put(*each) for each in zip(seen.bells, own, strict=True)))
        expected = seen.expected + number * own.density(seen.points).reshape(rounds, number)
        together = _Bells(*(each.reshape(-1, *each.shape[2:]) for each in every))
        return _Seen(
            put(seen.z, z),
            put(seen.log_density, log_density),
            put(seen.log_share, log_share),
            put(expected, number * together.density(z)),
            every,
        )

    nowhere = _Bells(
        xp.zeros((rounds, bells, p)),
        xp.broadcast_to(xp.eye(p), (rounds, bells, p, p)),
        xp.zeros((rounds, bells)),
    )
    nothing = xp.zeros((rounds, number))
    seen = _Seen(xp.zeros((rounds, number, p)), nothing - np.inf, nothing, nothing + 1.0, nowhere)
    seen = loops_of(modes.centres).fori_loop(0, rounds, visit, seen)
    weights, z = softmax(seen.log_weights), seen.points
    error = _error(z, weights)
    kept = xp.where(weights > 0, weights * xp.exp(seen.log_share.reshape(-1)), 0.0)
    return Points(
        z=z,
        weights=weights,
        error=xp.where(xp.isnan(error), np.inf, error),
        doubt=1 - xp.sum(kept),
        status=xp.where(xp.all(xp.isfinite(weights)), 0, int(Status.NOT_FINITE)),
    )


def _look(target: Target, z: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Rows z (N, p), and the log density and the log share there: a mixture writes all its terms for every row."""
    xp = namespace_of(z)
    inside = xp.all(xp.abs(z) < _LINE_LIMIT, axis=1)  # there is nothing outside
    z = xp.where(inside[:, None], z, 0.0)

    def both(rows: AnyArray) -> AnyArray:
        if target.log_density_and_share is not None:
            return xp.stack(target.log_density_and_share(rows))
        return xp.stack([target.log_density(rows), xp.zeros(_BLOCK)])

    found = loops_of(z).map(both, z.reshape(-1, _BLOCK, z.shape[1]))
    log_density, log_share = (not_nan(found[:, i].reshape(-1)) for i in (0, 1))
    return z, xp.where(inside, log_density, -np.inf), log_share


def _tempered(log_weights: AnyArray, p: int) -> AnyArray:
    """Weights (N,) to learn from: a few points that outweigh all others would hide where they are not."""
    xp = namespace_of(log_weights)
    several = xp.stack([softmax(temper * log_weights) for temper in _TEMPERS])
    enough = 1 / xp.sum(several**2, axis=1) > _FEWEST * p
    chosen = xp.where(xp.any(enough), xp.argmax(enough), len(_TEMPERS) - 1)
    return xp.where(xp.isfinite(several[chosen]), several[chosen], 0.0)


def _first(modes: Modes) -> _Bells:
    """Around the modes, wider, and over the prior."""
    xp, p = namespace_of(modes.centres), modes.centres.shape[1]
    own = softmax(modes.log_mass / 2)  # a light mode may have a long tail
    return _Bells(
        xp.concatenate([modes.centres, modes.centres, xp.zeros((1, p))]),
        xp.concatenate([_NEAR[1] * modes.factors, _WIDE[1] * modes.factors, _PRIOR[1] * xp.eye(p)[None]]),
        xp.concatenate([_NEAR[0] * own, _WIDE[0] * own, xp.full(1, _PRIOR[0])]),
    )


def _learnt(z: AnyArray, weights: AnyArray) -> _Bells:
    """Kernels at weighted points, each with the covariance of its neighbours; all of them as a whole, and the prior."""
    xp, (points, p) = namespace_of(z), z.shape
    effective = 1 / xp.sum(weights**2)
    mean = weights @ z
    spread = z - mean
    covariance = (spread * weights[:, None]).T @ spread
    covariance = covariance + _LEAST_SPREAD * covariance * xp.eye(p) + _LEAST_SPREAD**2 * xp.eye(p)
    factor = cholesky(covariance)
    below = xp.cumsum(weights)
    levels = below[-1] * (np.arange(_LEARNT_FROM) + 0.5) / _LEARNT_FROM
    near = z[xp.minimum(xp.searchsorted(below, levels), points - 1)]
    centres = near[:: _LEARNT_FROM // _KERNELS]
    away = near - centres[:, None]  # (K, L, p)
    square = xp.sum(lower_solve(factor[None, None], away) ** 2, axis=2)
    share = xp.clip(_ENOUGH * p / effective, _NEIGHBOURS, 1.0)
    width = xp.sort(square, axis=1)[:, xp.asarray(share * (_LEARNT_FROM - 1), dtype=int)]
    width = xp.maximum(width, _LEAST_SPREAD)[:, None]
    closeness = xp.exp(-square / width / 2)
    neighbours = xp.sum(closeness, axis=1) ** 2 / xp.sum(closeness**2, axis=1)
    neighbours = neighbours * xp.minimum(1.0, effective / _LEARNT_FROM)
    closeness = closeness / xp.sum(closeness, axis=1)[:, None]
    local = xp.swapaxes(away * closeness[:, :, None], 1, 2) @ away
    # A few neighbours tell no covariance.
    sure = (neighbours / (neighbours + p / 10))[:, None, None]
    rest = (1 - sure) * xp.minimum(width, 1.0)[:, :, None] / 2 + _LEAST_SPREAD
    widths = np.resize(_WIDTHS, _KERNELS)[:, None, None]
    factors = widths * cholesky(sure * local + rest * covariance)
    sound = xp.all(xp.isfinite(factors), axis=(1, 2))
    kernels = xp.full(_KERNELS, _KERNEL_SHARE / _KERNELS)
    return _Bells(
        xp.concatenate([centres, mean[None], xp.zeros((1, p))]),
        xp.concatenate(
            [xp.where(sound[:, None, None], factors, factor), _WHOLE[1] * factor[None], _BEYOND[1] * xp.eye(p)[None]]
        ),
        xp.concatenate([kernels, xp.asarray([_WHOLE[0], _BEYOND[0]])]),
    )


def _error(z: AnyArray, weights: AnyArray) -> AnyArray:
    """The largest standard error of moments and quantiles, in posterior sd, as if all points were independent."""
    xp, probabilities = namespace_of(z), np.asarray(PROBABILITIES)
    mean, sd = moments(z.T, weights)
    white = (z - mean) / sd

    def deviation(values: AnyArray) -> AnyArray:
        return xp.sqrt(weights**2 @ (values - weights @ values) ** 2)

    first, second = deviation(white), deviation(white**2) / 2
    below = [deviation(xp.where(z < end, 1.0, 0.0)) for end in sample_quantiles(z, weights, probabilities)]
    of_ends = probabilities_to_sd(z, weights, xp.stack(below, axis=1), sd)
    return xp.maximum(xp.max(xp.maximum(first, second)), xp.max(of_ends))


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
