"""Deterministic integration of low-dimensional posteriors.

The modes are found by Newton's method. One parameter alone has one lattice for all of its modes. Several parameters
take turns: a mode's chart is integrated along one parameter on equally spaced knots, and across the ridge, at every
knot, by a rule of few points. A smooth partition of unity (the share of each fitted Gaussian in their mixture)
divides the posterior among the modes, so overlapping modes are counted once. Every parameter's marginal comes from its
own turn. The error is estimated from the points themselves (see `turn_errors`) and from the modes that were left out; a
posterior that does not meet the tolerance moves on to a level with finer knots or more modes, whichever it lacks.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.axes import Stretched
from l2calib.engines.charts import Chart, Knots, ridge_chart
from l2calib.engines.line import line_draws, line_points
from l2calib.engines.modes import Modes, Survey, survey_modes
from l2calib.engines.rules import Rule, lattice
from l2calib.engines.turn_errors import turn_errors
from l2calib.errors import MethodError, Status
from l2calib.minimise import smallest
from l2calib.posterior import Marginal, Points, Target, lattice_marginal

MAXIMUM_DIMENSION = 4
_BLOCK = 40_000  # numbers that leave room in the caches
_BEND = 2.0  # of the hyperbolic sines, in standard deviations
_FAR_BEND = 1.4  # as many points reach farther; it takes finer knots
_FAR_ERROR = 0.5  # in posterior standard deviations: above it, only knots that go far help


class _Level(NamedTuple):
    """How hard to try: how many modes, the knots along every parameter, and the rule across."""

    modes: int
    knots: Knots
    rule: Rule


def _level(
    dimension: int,
    modes: int,
    spacing: float,
    half: int,
    inner_spacing: float,
    reach: float,
    bend: float = _BEND,
    far: bool = False,
) -> _Level:
    return _Level(modes, Knots(half, spacing, bend, far), lattice(dimension - 1, inner_spacing, reach, bend))


class _LineLevel(NamedTuple):
    """How hard to try with one parameter."""

    modes: int
    points: int


_LINE_LEVELS = (_LineLevel(1, 20), _LineLevel(5, 128), _LineLevel(8, 320), _LineLevel(8, 1536))
_LEVELS = {
    2: (
        _level(2, 1, 0.5, 14, 1.2, 4.9),
        _level(2, 1, 0.22, 44, 0.35, 9.1, _FAR_BEND, far=True),
        _level(2, 4, 0.22, 44, 0.35, 9.1, _FAR_BEND, far=True),
        _level(2, 1, 0.18, 60, 0.25, 10.0, _FAR_BEND, far=True),
        _level(2, 5, 0.18, 60, 0.25, 10.0, _FAR_BEND, far=True),
    ),
    3: (
        _level(3, 1, 0.5, 14, 1.4, 4.3),
        _level(3, 1, 0.45, 16, 1.1, 5.6),
        _level(3, 1, 0.3, 26, 0.9, 6.3),
        _level(3, 1, 0.22, 38, 0.7, 7.4, _FAR_BEND, far=True),
        _level(3, 3, 0.22, 38, 0.7, 7.4, _FAR_BEND, far=True),
        _level(3, 1, 0.16, 52, 0.6, 8.4, _FAR_BEND, far=True),
        _level(3, 3, 0.16, 52, 0.6, 8.4, _FAR_BEND, far=True),
    ),
    4: (
        _level(4, 1, 0.6, 12, 1.4, 4.3),
        _level(4, 1, 0.5, 20, 0.8, 5.6, far=True),
        _level(4, 2, 0.5, 20, 0.8, 5.6, far=True),
    ),
}
_SCAN_SPACING = {1: 0.25, 2: 0.6, 3: 1.0, 4: 1.2}
_SCAN_REACH = {1: 5.0, 2: 4.6, 3: 4.2, 4: 4.0}
_SUMMITS = {1: 1, 2: 2, 3: 1, 4: 1}


@functools.cache
def _scan_lattice(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, p) over the prior and the indices of their neighbours (N, 2p), a point's own where it has none."""
    spacing, reach = _SCAN_SPACING[dimension], _SCAN_REACH[dimension]
    most = int(reach / spacing)
    index = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    index = index[(index**2).sum(axis=1) * spacing**2 <= reach**2]
    rank = {tuple(row): i for i, row in enumerate(index.tolist())}
    steps = np.vstack([np.eye(dimension, dtype=int), -np.eye(dimension, dtype=int)])
    neighbours = [[rank.get(tuple(row + step), i) for step in steps] for i, row in enumerate(index)]
    return spacing * index, np.array(neighbours)


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


@dataclass(frozen=True)
class Integrate:
    """Integration for up to four parameters.

    `tolerance` is the largest numerical error, in posterior standard deviations, that is accepted without a status.
    """

    tolerance: float = 5e-3

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise MethodError(f"the tolerance must be positive: received {self.tolerance}.")

    @property
    def name(self) -> str:
        return "integrate"

    def levels(self, dimension: int) -> int:
        """How many levels of refinement there are."""
        if dimension > MAXIMUM_DIMENSION:
            raise MethodError(
                f"integration serves up to {MAXIMUM_DIMENSION} parameters: received {dimension}; use the NUTS engine."
            )
        return len(_LINE_LEVELS if dimension == 1 else _LEVELS[dimension])

    def evaluations(self, dimension: int, level: int) -> int:
        """How often the density is evaluated at a level."""
        if dimension == 1:
            return _LINE_LEVELS[level].points
        chosen = _LEVELS[dimension][level]
        return chosen.modes * dimension * chosen.knots.values.size * chosen.rule.log_weights.size

    def next_level(self, dimension: int, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """What to try where a level did not suffice, by its error and by what the modes that it left out would move.

        The level itself where no other could do better. Where the error is large, the posterior's tails are too long
        for anything but knots that go far.
        """
        if dimension == 1:
            return np.full(error.shape, min(level + 1, len(_LINE_LEVELS) - 1))
        tried, later = _LEVELS[dimension][level], list(enumerate(_LEVELS[dimension]))[level + 1 :]
        wider = next((i for i, each in later if each.modes > tried.modes), level)
        finer = [(i, each) for i, each in later if each.modes >= tried.modes and each.knots != tried.knots]
        farther = [(i, each) for i, each in finer if each.knots.far]
        by_error = [candidates[0][0] if candidates else level for candidates in (finer, farther)]
        return np.where(missed > self.tolerance, wider, np.where(error > _FAR_ERROR, by_error[1], by_error[0]))

    def survey(self, target: Target) -> Survey:
        """The modes that the method's starts and a scan of the whole prior lead to."""
        z, neighbours = _scan_lattice(target.starts.shape[1])
        log_density = jax.vmap(lambda point: _not_nan(target.log_density(point)))(jnp.asarray(z))
        higher = jnp.max(log_density[neighbours], axis=1) > log_density
        summits = jnp.asarray(z)[smallest(jnp.where(higher, jnp.inf, -log_density), _SUMMITS[z.shape[1]])]
        return survey_modes(target.log_density, jnp.concatenate([target.starts, summits]))

    def points(self, target: Target, survey: Survey, level: int, key: Array) -> Points:
        """Weighted points at one level of refinement, with their own error estimate."""
        p = target.starts.shape[1]
        modes, missed = survey.largest(_LINE_LEVELS[level].modes if p == 1 else _LEVELS[p][level].modes)
        points = _on_a_line(target, modes, level) if p == 1 else _on_charts(target, modes, level)
        error = jnp.maximum(points.error, missed)
        status = jnp.where(jnp.isfinite(points.weights).all(), 0, int(Status.NOT_FINITE))
        return points._replace(error=jnp.where(jnp.isnan(error), jnp.inf, error), missed=missed, status=status)

    def draws(self, target: Target, survey: Survey, level: int, key: Array, number: int) -> tuple[Array, Array]:
        """Candidates z (number, p) spread over the cells of the lattice, and whether each is accepted.

        The accepted ones are independent draws from the posterior: rejection against the lattice's own
        piecewise constant density.
        """
        if target.starts.shape[1] == 1:
            modes, _ = survey.largest(_LINE_LEVELS[level].modes)
            line = line_points(target.log_density, modes, _LINE_LEVELS[level].points)
            z, accept = line_draws(target.log_density, line, key, number)
            return z[:, None], accept
        return _draws_on_charts(target, survey, level, key, number)


def _on_a_line(target: Target, modes: Modes, level: int) -> Points:
    line = line_points(target.log_density, modes, _LINE_LEVELS[level].points)
    error, mass_error = line.errors()
    marginals = jax.tree.map(lambda array: array[None], line.marginal())
    return Points(line.z[:, None], line.weights, marginals, error, mass_error, jnp.asarray(0.0), jnp.asarray(0), None)


def _on_charts(target: Target, modes: Modes, level: int) -> Points:
    p = target.starts.shape[1]
    chosen = _LEVELS[p][level]
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
    return Points(z, weight, marginals, error, mass_error, jnp.asarray(0.0), jnp.asarray(0), None)


def _run(target: Target, modes: Modes, outer: Array, chosen: _Level) -> _Run:
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
    return _Run(jnp.where(usable, z, 0.0), jnp.where(usable.all(axis=0), _not_nan(log_weights), -jnp.inf), charts)


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


def _not_nan(value: Array) -> Array:
    return jnp.where(jnp.isnan(value), -jnp.inf, value)


def _draws_on_charts(target: Target, survey: Survey, level: int, key: Array, number: int) -> tuple[Array, Array]:
    p = target.starts.shape[1]
    chosen = _LEVELS[p][level]
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
        return z, _not_nan(log_weight + np.sum(np.log(cell)))

    z, log_weight = jax.vmap(weigh)(coordinates, mode)
    log_ratio = log_weight - run.log_weights.ravel()[picked]
    accept = jnp.log(jax.random.uniform(accept_key, (number,))) < log_ratio - jnp.max(log_ratio)
    return z, accept
