"""Integration over several parameters, which take turns: in its own, each is followed along the ridge of every mode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.engines.integrate.errors import turn_errors
from l2calib.engines.integrate.levels import LEVELS, Level
from l2calib.engines.integrate.rejection import Uniforms
from l2calib.engines.integrate.ridge import Charts, ridge_charts
from l2calib.engines.integrate.shares import doubt, not_nan
from l2calib.numerics.derivatives import OfRows
from l2calib.numerics.modes import Modes
from l2calib.numerics.namespace import AnyArray, log_sum_exp, loops_of, namespace_of, softmax
from l2calib.posterior.axes import Stretched
from l2calib.posterior.points import Points, Target
from l2calib.posterior.series import lattice_marginal

_BLOCK = 40_000  # numbers that leave room in the caches


class _Run(NamedTuple):
    """T turns: M modes seen along one parameter each."""

    z: AnyArray  # (p, T, M, K, R)
    log_weights: AnyArray  # (T, M, K, R)
    charts: Charts


def points_along_ridges(target: Target, modes: Modes, level: int) -> Points:
    """Weighted points with the marginals of all parameters, each from its own turn."""
    p = target.starts.shape[1]
    chosen = LEVELS[p][level]
    knots = chosen.knots
    z, log_weights, charts = _run(target, modes, np.arange(p), chosen)
    xp, together, unsure = namespace_of(z), log_weights.reshape(p, -1), 0.0
    if target.log_share is not None:
        log_share = not_nan(_in_blocks(target.log_share, target.terms, z.reshape(p, p, -1)))
        together, unsure = together + log_share, doubt(together[0], log_share[0])
    weights = softmax(together).reshape(log_weights.shape)
    along, z_along = xp.sum(weights, axis=3), charts.outer.at(knots, knots.values)
    error, mass_error = turn_errors(knots, chosen.rule, z_along, weights, log_sum_exp(together, axis=1))
    centre, scale, stretch = (part[..., 0] for part in charts.outer)
    axis = Stretched(centre, knots.bend * scale, stretch * knots.reach / knots.bend)
    return Points(
        z=z[:, 0].reshape(p, -1).T,
        weights=weights[0].reshape(-1),
        error=error,
        marginals=lattice_marginal(z_along, along, axis, Stretched.step(knots.spacing, knots.reach)),
        mass_error=mass_error,
        doubt=unsure,
    )


def _run(target: Target, modes: Modes, turns: np.ndarray, chosen: Level) -> _Run:
    charts = ridge_charts(target, modes, turns, chosen.knots)
    places, log_weights = charts.around_knots(chosen.knots, chosen.rule)
    xp, shape = namespace_of(log_weights), log_weights.shape
    z = xp.stack(places)
    log_density = _in_blocks(target.log_density, target.terms, z.reshape(len(z), len(turns), -1))
    log_weights = log_weights + log_density.reshape(shape)
    if chosen.modes > 1:
        own_shares = xp.diagonal(modes.log_shares(z), axis1=0, axis2=2)
        log_weights = log_weights + xp.moveaxis(own_shares, -1, 1)
    usable = xp.isfinite(z)
    log_weights = xp.where(xp.all(usable, axis=0), not_nan(log_weights), -np.inf)
    return _Run(xp.where(usable, z, 0.0), log_weights, charts)


def _in_blocks(function: OfRows, terms: int, z: AnyArray) -> AnyArray:
    """A function at points (p, T, N); that of a mixture block by block, since it writes all terms for every point."""
    xp = namespace_of(z)
    _, turns, number = z.shape

    def together(z: AnyArray) -> AnyArray:
        return function(xp.stack([each.reshape(-1) for each in z], axis=-1)).reshape(turns, -1)

    block = max(1, _BLOCK // terms)
    if number <= 2 * block:
        return together(z)
    blocks = -(-number // block)
    padded = xp.pad(z, ((0, 0), (0, 0), (0, blocks * block - number)), mode="edge").reshape(-1, turns, blocks, block)
    found = loops_of(z).map(together, xp.moveaxis(padded, 2, 0))
    return xp.moveaxis(found, 0, 1).reshape(turns, -1)[:, :number]


def draws_along_ridges(target: Target, modes: Modes, level: int, uniforms: Uniforms) -> tuple[AnyArray, AnyArray]:
    """See `Integrate.draws`."""
    p = target.starts.shape[1]
    chosen = LEVELS[p][level]
    run = _run(target, modes, np.arange(1), chosen)
    xp, heights = namespace_of(run.z), run.log_weights.reshape(-1)
    picked = uniforms.points(softmax(heights))
    mode, knot, point = xp.unravel_index(picked, run.log_weights.shape[1:])
    cell = np.array([chosen.knots.spacing, *[chosen.rule.spacing] * (p - 1)])
    middles = xp.asarray(chosen.knots.values)[knot], xp.asarray(chosen.rule.coordinates)[point]
    coordinates = xp.column_stack(middles) + (uniforms.cell - 0.5) * cell
    z, log_slope = run.charts.at(chosen.knots, chosen.rule, coordinates, mode)
    log_weights = target.log_density(z) + log_slope + np.sum(np.log(cell))
    if chosen.modes > 1:
        log_weights = log_weights + xp.take_along_axis(modes.log_shares(z.T), mode[None], axis=0)[0]
    return z, uniforms.accepted(target, z, not_nan(log_weights) - heights[picked])
