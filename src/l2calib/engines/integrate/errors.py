"""How far an integrated posterior may be off: told by its own points.

By half of the knots, by half of the points across, by how well the turns, one for every parameter, agree on the mass,
and by how it falls towards the edges.
"""

from __future__ import annotations

import functools

import numpy as np

from l2calib.engines.integrate.across import Rule
from l2calib.engines.integrate.ridge import Knots
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.posterior.moments import moments

_SLOWEST_FALL = 0.9
_NOTHING = 1e-100  # of a mass; XLA turns quotients of quotients into products, so its square must not vanish
_BY_COARSENESS = 20.0  # times what half of the points across change: on skew densities, up to ten were seen
_LARGEST_DISAGREEMENT = 0.05


def halving_errors(z: Array, weights: Array, even: np.ndarray) -> tuple[Array, Array]:
    """Of the means and standard deviations of z (N, p), in sd, and of the mass, by Richardson's rule.

    `even` marks every second point. The rule is the one for errors that fall with the third power of the spacing: on
    smooth densities they fall exponentially, which is faster.
    """
    half = jnp.where(even, weights, 0.0)
    (mean, sd), (half_mean, half_sd) = moments(z, weights), moments(z, half / jnp.sum(half))
    moved = jnp.max(jnp.maximum(jnp.abs(half_mean - mean), jnp.abs(half_sd - sd)) / sd)
    gain = 8 ** (1 / z.shape[1]) - 1
    return moved / gain, jnp.abs(2 * jnp.sum(half) - 1) / gain


def turn_errors(knots: Knots, rule: Rule, z: Array, weights: Array, log_masses: Array) -> tuple[Array, Array]:
    """Of the worst marginal's moments, in sd, and of the probabilities.

    z (p, M, K) is each turn's parameter at the knots of M modes, weights are (p, M, K, R), log_masses (p,).
    """
    errors, mass_errors = jax.vmap(functools.partial(_halving_errors, knots, rule))(z, weights)
    far_errors, far_mass_errors = jax.vmap(functools.partial(_errors_of_reach, rule))(z, weights)
    mass_errors += far_mass_errors + jax.vmap(_mass_beyond_knots)(jnp.sum(weights, axis=3))
    return jnp.max(jnp.maximum(errors, far_errors)), _disagreement(rule, weights, log_masses) + jnp.max(mass_errors)


def _disagreement(rule: Rule, weights: Array, log_masses: Array) -> Array:
    """Of the turns on the mass, as far as the rule across does not explain it.

    What the rule's own coarseness does to the mass is much the same at all knots and moves nothing; the rest may.
    """
    half_across = jnp.sum(jnp.where(rule.even, weights, 0.0), axis=(1, 2, 3))
    coarse = jnp.max(jnp.abs(jnp.log(2 * half_across)))
    allowed = jnp.minimum(_BY_COARSENESS * coarse, _LARGEST_DISAGREEMENT)
    unexplained = jnp.maximum(jnp.abs(log_masses - log_masses[0]) - allowed, 0.0)
    return jnp.max(jnp.expm1(unexplained))


def _halving_errors(knots: Knots, rule: Rule, z: Array, weights: Array) -> tuple[Array, Array]:
    """Of one marginal's moments, in sd, and probabilities, from half of the points; z is (M, K), weights (M, K, R).

    A coarse level drops every second knot, and then every second point across. A fine one drops every second point of
    the whole lattice: half of its knots alone would say far more than the error is.
    """
    along = jnp.sum(weights, axis=2)
    odd_knot = (np.arange(z.shape[1]) - knots.half) % 2 == 1
    across = rule.points.shape[0]
    if knots.far:
        half = jnp.sum(jnp.where(odd_knot[:, None] ^ rule.even, weights, 0.0), axis=2)
        error, carried, gain = *_moved(z, along, half), 8 ** (1 / (across + 1)) - 1
        return error / gain, (carried + jnp.abs(2 * jnp.sum(half) - 1)) / gain
    error, mass_error = halving_errors(z.reshape(-1, 1), along.ravel(), np.tile(~odd_knot, z.shape[0]))
    half, gain = jnp.sum(jnp.where(rule.even, weights, 0.0), axis=2), 8 ** (1 / across) - 1
    moved, carried = _moved(z, along, half)
    return jnp.maximum(error, moved / gain), mass_error + carried / gain


def _moved(z: Array, along: Array, part: Array) -> tuple[Array, Array]:
    """How far a part of the points would move a marginal's moments, in sd, and its distribution function."""
    share = part / jnp.maximum(jnp.sum(part), _NOTHING)
    (mean, sd), (part_mean, part_sd) = moments(z.ravel(), along.ravel()), moments(z.ravel(), share.ravel())
    moved = jnp.maximum(jnp.abs(part_mean - mean), jnp.abs(part_sd - sd)) / sd
    return moved, jnp.sum(jnp.max(jnp.abs(jnp.cumsum(share - along, axis=1)), axis=1))


def _mass_beyond_knots(weights: Array) -> Array:
    """The mass past the ends of the knots (M, K), if knot after knot goes on falling by the last ratio that was seen.

    The tails of the posterior fall faster than that in stretched coordinates, so this errs upwards.
    """
    over_modes = jnp.sum(weights, axis=0)
    last, before = over_modes[jnp.asarray([0, -1])], over_modes[jnp.asarray([1, -2])]
    ratio = jnp.minimum(last / jnp.maximum(before, _NOTHING), _SLOWEST_FALL)
    return jnp.sum(last * ratio / (1 - ratio))


def _errors_of_reach(rule: Rule, z: Array, weights: Array) -> tuple[Array, Array]:
    """Of one marginal's moments, in sd, and probabilities: what is too far from the ridge for the rule would do.

    Told by what the rule's outermost shell of points does, and by how fast the mass falls from shell to shell.
    """
    last, before, second = (jnp.sum(jnp.where(shell, weights, 0.0)) for shell in rule.outer_shells)
    fall, fall_before = last / jnp.maximum(before, _NOTHING), before / jnp.maximum(second, _NOTHING)
    ratio = jnp.minimum(fall * jnp.minimum(fall / jnp.maximum(fall_before, _NOTHING), 1.0), _SLOWEST_FALL)
    along = jnp.sum(weights, axis=2)
    trimmed = jnp.sum(jnp.where(rule.outer_shells[0], 0.0, weights), axis=2)
    moved, carried = _moved(z, along, trimmed)
    beyond = ratio / (1 - ratio)
    return moved * beyond, carried * beyond
