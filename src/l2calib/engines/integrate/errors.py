"""How far an integrated posterior may be off: told by its own points.

By half of the knots, by half of the points across, by how well the turns, one for every parameter, agree on the mass,
and by how it falls towards the edges.
"""

from __future__ import annotations

import numpy as np

from l2calib.engines.integrate.across import Rule
from l2calib.engines.integrate.ridge import Knots
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.moments import moments

THIRD, SIXTH = 3, 6  # with which power of the spacing errors fall at least
_SLOWEST_FALL = 0.9
_NOTHING = 1e-100  # of a mass; XLA turns quotients of quotients into products, so its square must not vanish
_BY_COARSENESS = 20.0  # times what half of the points across change: on skew densities, up to ten were seen
_LARGEST_DISAGREEMENT = 0.05


def halving_errors(z: AnyArray, weights: AnyArray, even: np.ndarray, order: int = THIRD) -> tuple[AnyArray, AnyArray]:
    """Of the mean and standard deviation of points z (..., N), in sd, and of the mass, by Richardson's rule.

    `even` marks every second point. The rule is the one for errors that fall with the third power of the spacing: on
    smooth densities they fall exponentially, which is faster.
    """
    xp = namespace_of(weights)
    half = xp.where(even, weights, 0.0)
    total = xp.sum(half, axis=-1)
    moved, gain = _moments_moved(z, weights, half / total[..., None]), 2**order - 1
    return moved / gain, xp.abs(2 * total - 1) / gain


def turn_errors(
    knots: Knots, rule: Rule, z: AnyArray, weights: AnyArray, log_masses: AnyArray, order: int = THIRD
) -> tuple[AnyArray, AnyArray]:
    """Of the worst marginal's moments, in sd, and of the probabilities.

    z (T, M, K) is each turn's parameter at the knots of M modes, weights are (T, M, K, R), log_masses (T,). `order` is
    Richardson's, by which half of the points tell the error.
    """
    xp = namespace_of(weights)
    errors, mass_errors = _halving_errors(knots, rule, z, weights, order)
    far_errors, far_mass_errors = _errors_of_reach(rule, z, weights)
    mass_errors = mass_errors + far_mass_errors + _mass_beyond_knots(xp.sum(weights, axis=3))
    return xp.max(xp.maximum(errors, far_errors)), _disagreement(rule, weights, log_masses) + xp.max(mass_errors)


def _disagreement(rule: Rule, weights: AnyArray, log_masses: AnyArray) -> AnyArray:
    """Of the turns on the mass, as far as the rule across does not explain it.

    What the rule's own coarseness does to the mass is much the same at all knots and moves nothing; the rest may.
    """
    xp = namespace_of(weights)
    half_across = xp.sum(xp.where(rule.even, weights, 0.0), axis=(1, 2, 3))
    coarse = xp.max(xp.abs(xp.log(2 * half_across)))
    allowed = xp.minimum(_BY_COARSENESS * coarse, _LARGEST_DISAGREEMENT)
    unexplained = xp.maximum(xp.abs(log_masses - log_masses[0]) - allowed, 0.0)
    return xp.max(xp.expm1(unexplained))


def _halving_errors(knots: Knots, rule: Rule, z: AnyArray, weights: AnyArray, order: int) -> tuple[AnyArray, AnyArray]:
    """Of each turn's moments, in sd, and probabilities, from half of the points.

    A coarse level drops every second knot, and then every second point across. A fine one drops every second point of
    the whole lattice: half of its knots alone would say far more than the error is.
    """
    xp = namespace_of(weights)
    turns, modes, number = z.shape
    along = xp.sum(weights, axis=3)
    odd_knot = (np.arange(number) - knots.half) % 2 == 1
    across = rule.points.shape[0]
    if knots.far:
        half = xp.sum(xp.where(odd_knot[:, None] ^ rule.even, weights, 0.0), axis=3)
        error, carried, gain = *_moved(z, along, half), 2 ** (order / (across + 1)) - 1
        return error / gain, (carried + xp.abs(2 * xp.sum(half, axis=(1, 2)) - 1)) / gain
    every_second = np.tile(~odd_knot, modes)
    error, mass_error = halving_errors(z.reshape(turns, -1), along.reshape(turns, -1), every_second, order)
    half, gain = xp.sum(xp.where(rule.even, weights, 0.0), axis=3), 2 ** (order / across) - 1
    moved, carried = _moved(z, along, half)
    return xp.maximum(error, moved / gain), mass_error + carried / gain


def _moved(z: AnyArray, along: AnyArray, part: AnyArray) -> tuple[AnyArray, AnyArray]:
    """How far a part of the points (T, M, K) would move each turn's moments, in sd, and its distribution function."""
    xp, turns = namespace_of(along), z.shape[0]
    share = part / xp.maximum(xp.sum(part, axis=(1, 2), keepdims=True), _NOTHING)
    moved = _moments_moved(*(each.reshape(turns, -1) for each in (z, along, share)))
    return moved, xp.sum(xp.max(xp.abs(xp.cumsum(share - along, axis=2)), axis=2), axis=1)


def _moments_moved(z: AnyArray, weights: AnyArray, others: AnyArray) -> AnyArray:
    """How far other weights (..., N) would move the moments of z, in sd."""
    xp = namespace_of(weights)
    (mean, sd), (other_mean, other_sd) = moments(z, weights), moments(z, others)
    return xp.maximum(xp.abs(other_mean - mean), xp.abs(other_sd - sd)) / sd


def _mass_beyond_knots(weights: AnyArray) -> AnyArray:
    """Of each turn (T, M, K) past the ends of its knots, if knot after knot goes on falling by the last ratio seen.

    The tails of the posterior fall faster than that in stretched coordinates, so this errs upwards.
    """
    xp = namespace_of(weights)
    over_modes = xp.sum(weights, axis=1)
    last, before = over_modes[:, np.array([0, -1])], over_modes[:, np.array([1, -2])]
    ratio = xp.minimum(last / xp.maximum(before, _NOTHING), _SLOWEST_FALL)
    return xp.sum(last * ratio / (1 - ratio), axis=1)


def _errors_of_reach(rule: Rule, z: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Of each turn's moments, in sd, and probabilities: what is too far from the ridge for the rule would do.

    Told by what the rule's outermost shell of points does, and by how fast the mass falls from shell to shell.
    """
    xp = namespace_of(weights)
    last, before, second = (xp.sum(xp.where(shell, weights, 0.0), axis=(1, 2, 3)) for shell in rule.outer_shells)
    fall, fall_before = last / xp.maximum(before, _NOTHING), before / xp.maximum(second, _NOTHING)
    ratio = xp.minimum(fall * xp.minimum(fall / xp.maximum(fall_before, _NOTHING), 1.0), _SLOWEST_FALL)
    along = xp.sum(weights, axis=3)
    trimmed = xp.sum(xp.where(rule.outer_shells[0], 0.0, weights), axis=3)
    moved, carried = _moved(z, along, trimmed)
    beyond = ratio / (1 - ratio)
    return moved * beyond, carried * beyond
