"""Integration over several parameters, which take turns: in its own, each is followed along the ridge of every mode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.engines.integrate.errors import turn_errors
from l2calib.engines.integrate.levels import LEVELS, Level
from l2calib.engines.integrate.ridge import Chart, ridge_chart
from l2calib.engines.modes import Modes, Survey
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.posterior.axes import Stretched
from l2calib.posterior.points import Points, Target
from l2calib.posterior.series import Marginal, lattice_marginal

_BLOCK = 40_000  # numbers that leave room in the caches


class _Run(NamedTuple):
    """One turn: M modes seen along one parameter."""

    z: Array  # (p, M, K, R)
    log_weights: Array  # (M, K, R)
    charts: Chart  # M of them

    @property
    def weights(self) -> Array:
        weights = jnp.exp(self.log_weights - jnp.max(self.log_weights))
        return weights / jnp.sum(weights)

    @property
    def log_mass(self) -> Array:
        return jax.scipy.special.logsumexp(self.log_weights)


def points_along_ridges(target: Target, modes: Modes, level: int) -> Points:
    """Weighted points with the marginals of all parameters, each from its own turn."""
    p = target.starts.shape[1]
    chosen = LEVELS[p][level]
    runs = jax.vmap(lambda outer: _run(target, modes, outer, chosen))(jnp.arange(p))
    weights = jax.vmap(lambda run: run.weights)(runs)  # (p, M, K, R)
    along = jnp.sum(weights, axis=3)
    z_along = jax.vmap(jax.vmap(lambda chart: chart.outer_at(chosen.knots, chosen.knots.values)))(runs.charts)
    error, mass_error = turn_errors(
        chosen.knots, chosen.rule, z_along, weights, jax.vmap(lambda run: run.log_mass)(runs)
    )

    def marginal(z: Array, weights: Array, charts: Chart) -> Marginal:
        reach = chosen.knots.reach
        axis = Stretched(charts.centre, chosen.knots.bend * charts.scale, charts.stretch * reach / chosen.knots.bend)
        return lattice_marginal(z, weights, axis, Stretched.step(chosen.knots.spacing, reach))

    marginals = jax.vmap(marginal)(z_along, along, runs.charts)
    z, weight = runs.z[0].reshape(p, -1).T, weights[0].ravel()
    return Points(z, weight, error, marginals=marginals, mass_error=mass_error)


def _run(target: Target, modes: Modes, outer: Array, chosen: Level) -> _Run:
    def build(centre: Array, factor: Array) -> Chart:
        return ridge_chart(target.log_density, centre, factor, outer, chosen.knots)

    charts = jax.vmap(build)(modes.centres, modes.factors)
    z, log_weights = jax.vmap(lambda chart: chart.around_knots(chosen.knots, chosen.rule, outer), out_axes=(1, 0))(
        charts
    )
    shape = z.shape[1:]
    log_weights += _in_blocks(target, z.reshape(z.shape[0], -1)).reshape(shape)
    if chosen.modes > 1:
        shares = jax.vmap(modes.log_shares, 1, 1)(z.reshape(z.shape[0], -1)).reshape(chosen.modes, *shape)
        log_weights += jnp.moveaxis(jnp.diagonal(shares, axis1=0, axis2=1), -1, 0)
    usable = jnp.isfinite(z)
    return _Run(jnp.where(usable, z, 0.0), jnp.where(usable.all(axis=0), not_nan(log_weights), -jnp.inf), charts)


def _in_blocks(target: Target, z: Array) -> Array:
    """The log density at points (p, N); that of a mixture block by block, since it writes all terms for every point."""
    together = jax.vmap(target.log_density, 1)
    number, block = z.shape[1], max(1, _BLOCK // target.terms)
    if number <= 2 * block:
        return jnp.asarray(together(z))
    blocks = -(-number // block)
    padded = jnp.pad(z, ((0, 0), (0, blocks * block - number)), mode="edge").reshape(-1, blocks, block)
    found = jax.lax.map(together, jnp.moveaxis(padded, 1, 0))
    return jnp.asarray(found).ravel()[:number]


def not_nan(value: Array) -> Array:
    """The value, minus infinity where it is no number."""
    return jnp.where(jnp.isnan(value), -jnp.inf, value)


def draws_along_ridges(target: Target, survey: Survey, level: int, key: Array, number: int) -> tuple[Array, Array]:
    """See `Integrate.draws`."""
    p = target.starts.shape[1]
    chosen = LEVELS[p][level]
    modes, _ = survey.largest(chosen.modes)
    outer = jnp.asarray(0)
    run = _run(target, modes, outer, chosen)
    pick_key, cell_key, accept_key = jax.random.split(key, 3)
    picked = jax.random.choice(pick_key, run.log_weights.size, (number,), p=run.weights.ravel())
    mode, knot, point = jnp.unravel_index(picked, run.log_weights.shape)
    cell = np.array([chosen.knots.spacing, *[chosen.rule.spacing] * (p - 1)])
    jitter = jax.random.uniform(cell_key, (number, p), minval=-0.5, maxval=0.5) * cell
    at_knots = jnp.asarray(chosen.knots.values)[knot]
    coordinates = jnp.column_stack([at_knots, jnp.asarray(chosen.rule.coordinates)[point]]) + jitter

    def weigh(coordinates: Array, which: Array) -> tuple[Array, Array]:
        chart = jax.tree.map(lambda array: array[which], run.charts)
        z, log_slope = chart.at(chosen.knots, chosen.rule, coordinates, outer)
        log_weight = target.log_density(z) + log_slope + modes.log_shares(z)[which]
        return z, not_nan(log_weight + np.sum(np.log(cell)))

    z, log_weight = jax.vmap(weigh)(coordinates, mode)
    log_ratio = log_weight - run.log_weights.ravel()[picked]
    accept = jnp.log(jax.random.uniform(accept_key, (number,))) < log_ratio - jnp.max(log_ratio)
    return z, accept
