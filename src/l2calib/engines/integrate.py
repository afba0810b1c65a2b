"""Deterministic integration of low-dimensional posteriors.

The modes are found by Newton's method. One parameter alone has one lattice for all of its modes. Several parameters
have a lattice for every mode, in the coordinates of the mode's own chart; a smooth partition of unity (the share of
each fitted Gaussian in their mixture) divides the posterior among the charts, so overlapping modes are counted once.
Uniform lattices integrate smooth densities with an error that falls exponentially in 1/spacing. The error is estimated
from half of the same points, from the decay of the mass towards the edges, from how well different charts agree and
from the modes that were left out; a posterior that does not meet the tolerance moves to the next level.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.axes import Stretched
from l2calib.engines.charts import CurvedChart, Knots, StraightChart, curved_chart
from l2calib.engines.halving import halving_errors
from l2calib.engines.line import line_draws, line_points
from l2calib.engines.modes import Modes, Survey, survey_modes
from l2calib.errors import MethodError, Status
from l2calib.minimise import smallest
from l2calib.posterior import Marginal, Points, Target, lattice_marginal

MAXIMUM_DIMENSION = 4
_SLOWEST_FALL = 0.9


class _Level(NamedTuple):
    """How hard to try: curved charts look at every parameter in turn, a straight one serves all parameters at once."""

    modes: int
    curved: bool
    bend: float  # of the hyperbolic sine, in standard deviations
    spacing: float
    half: int
    inner_spacing: float
    reach: float


def _straight(bend: float, spacing: float, steps: int) -> _Level:
    return _Level(1, False, bend, spacing, steps, spacing, (steps + 0.01) * spacing)


def _curved(modes: int, spacing: float, half: int, inner_spacing: float, reach: float) -> _Level:
    return _Level(modes, True, 2.0, spacing, half, inner_spacing, reach)


class _LineLevel(NamedTuple):
    """How hard to try with one parameter."""

    modes: int
    points: int


_LINE_LEVELS = (_LineLevel(1, 20), _LineLevel(5, 128), _LineLevel(8, 320), _LineLevel(8, 1536))
_LEVELS = {
    2: (
        _straight(3.0, 0.75, 7),
        _curved(1, 0.28, 36, 0.35, 9.6),
        _curved(4, 0.28, 36, 0.35, 9.6),
        _curved(5, 0.25, 44, 0.25, 10.5),
    ),
    3: (
        _straight(2.5, 0.65, 8),
        _straight(2.0, 0.5, 11),
        _curved(1, 0.42, 22, 0.6, 7.5),
        _curved(1, 0.35, 26, 0.5, 8.0),
        _curved(3, 0.4, 22, 0.6, 7.0),
    ),
    4: (
        _straight(2.5, 0.75, 6),
        _curved(1, 0.5, 14, 0.8, 5.6),
        _curved(2, 0.5, 14, 0.8, 5.6),
    ),
}
_SCAN_SPACING = {1: 0.25, 2: 0.6, 3: 1.0, 4: 1.2}
_SCAN_REACH = {1: 5.0, 2: 4.6, 3: 4.2, 4: 4.0}
_SUMMITS = {1: 1, 2: 2, 3: 1, 4: 1}


class _Lattice(NamedTuple):
    """Lattice coordinates (N, p), the outer one first; the half used for the error; the outermost shell."""

    coordinates: np.ndarray
    even: np.ndarray
    shells: np.ndarray  # (S, 2, N): towards every edge, the outermost shell and the one before it
    cell: np.ndarray  # (p,)


@functools.cache
def _lattice(dimension: int, level: int) -> _Lattice:
    chosen = _LEVELS[dimension][level]
    outer = np.arange(-chosen.half, chosen.half + 1)
    most = int(chosen.reach / chosen.inner_spacing)
    axes = [outer] + [np.arange(-most, most + 1)] * (dimension - 1)
    index = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, dimension)
    cell = np.array([chosen.spacing] + [chosen.inner_spacing] * (dimension - 1))
    coordinates = index * cell
    radius = np.linalg.norm(coordinates[:, 1:] if chosen.curved else coordinates, axis=1)
    inside = radius <= chosen.reach
    index, coordinates, radius = index[inside], coordinates[inside], radius[inside]
    shells = [_outermost(radius, chosen.reach, 1.0)]
    if chosen.curved:
        shells += [_outermost(side * index[:, 0], chosen.half, 2) for side in (-1, 1)]
    return _Lattice(coordinates, index.sum(axis=1) % 2 == 0, np.stack(shells).astype(float), cell)


def _outermost(distance: np.ndarray, edge: float, width: float) -> np.ndarray:
    return np.stack([distance > edge - width, (distance > edge - 2 * width) & (distance <= edge - width)])


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
    """One lattice over all modes, with one parameter as the outer one."""

    z: Array  # (M, N, p)
    log_weights: Array  # (M, N)
    charts: CurvedChart | StraightChart  # M of them

    @property
    def weights(self) -> Array:
        flat = self.log_weights.ravel()
        weights = jnp.exp(flat - jnp.max(flat))
        return weights / jnp.sum(weights)

    @property
    def log_mass(self) -> Array:
        return jax.scipy.special.logsumexp(self.log_weights)


@dataclass(frozen=True)
class Integrate:
    """Lattice integration for up to four parameters.

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
        return chosen.modes * len(_lattice(dimension, level).coordinates) * (dimension if chosen.curved else 1)

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
        return points._replace(error=jnp.where(jnp.isnan(error), jnp.inf, error), status=status)

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
    return Points(line.z[:, None], line.weights, marginals, error, mass_error, jnp.asarray(0), None)


def _on_charts(target: Target, modes: Modes, level: int) -> Points:
    p = target.starts.shape[1]
    chosen, lattice = _LEVELS[p][level], _lattice(p, level)
    outers = jnp.arange(p if chosen.curved else 1)
    runs = jax.vmap(lambda outer: _run(target, modes, outer, level))(outers)
    first: _Run = jax.tree.map(lambda array: array[0], runs)
    even = np.tile(lattice.even, chosen.modes)
    errors, mass_errors = jax.vmap(lambda run: halving_errors(run.z.reshape(-1, p), run.weights, even))(runs)
    log_masses = jax.vmap(lambda run: run.log_mass)(runs)
    beyond = jax.vmap(lambda run: _mass_beyond(run, lattice))(runs)
    mass_error = jnp.max(jnp.abs(jnp.expm1(log_masses - log_masses[0]))) + jnp.max(mass_errors + beyond)
    error, marginals = jnp.max(errors), _marginals(runs, modes, level)
    return Points(first.z.reshape(-1, p), first.weights, marginals, error, mass_error, jnp.asarray(0), None)


def _draws_on_charts(target: Target, survey: Survey, level: int, key: Array, number: int) -> tuple[Array, Array]:
    p = target.starts.shape[1]
    chosen, lattice = _LEVELS[p][level], _lattice(p, level)
    modes, _ = survey.largest(chosen.modes)
    outer = jnp.asarray(0)
    run = _run(target, modes, outer, level)
    knots = _knots(chosen)
    pick_key, cell_key, accept_key = jax.random.split(key, 3)
    picked = jax.random.choice(pick_key, run.weights.size, (number,), p=run.weights)
    mode, point = jnp.divmod(picked, len(lattice.coordinates))
    jitter = jax.random.uniform(cell_key, (number, p), minval=-0.5, maxval=0.5) * lattice.cell

    def weigh(coordinates: Array, which: Array) -> tuple[Array, Array]:
        chart = jax.tree.map(lambda array: array[which], run.charts)
        return _weigh(target.log_density, modes, chart, which, coordinates, outer, knots)

    z, log_weight = jax.vmap(weigh)(jnp.asarray(lattice.coordinates)[point] + jitter, mode)
    log_ratio = log_weight - run.log_weights.ravel()[picked]
    accept = jnp.log(jax.random.uniform(accept_key, (number,))) < log_ratio - jnp.max(log_ratio)
    return z, accept


def _knots(chosen: _Level) -> Knots:
    return Knots(chosen.half, chosen.spacing, chosen.bend)


def _run(target: Target, modes: Modes, outer: Array, level: int) -> _Run:
    p = target.starts.shape[1]
    chosen, lattice = _LEVELS[p][level], _lattice(p, level)
    knots = _knots(chosen)

    def build(centre: Array, factor: Array) -> CurvedChart | StraightChart:
        if chosen.curved:
            return curved_chart(target.log_density, centre, factor, outer, knots)
        return StraightChart(centre, factor)

    charts = jax.vmap(build)(modes.centres, modes.factors)

    def weigh(chart: CurvedChart | StraightChart, which: Array) -> tuple[Array, Array]:
        def point(coordinates: Array) -> tuple[Array, Array]:
            return _weigh(target.log_density, modes, chart, which, coordinates, outer, knots)

        return jax.vmap(point)(jnp.asarray(lattice.coordinates))

    z, log_weights = jax.vmap(weigh)(charts, jnp.arange(chosen.modes))
    return _Run(z, log_weights + np.sum(np.log(lattice.cell)), charts)


def _weigh(
    log_density: Callable[[Array], Array],
    modes: Modes,
    chart: CurvedChart | StraightChart,
    which: Array,
    coordinates: Array,
    outer: Array,
    knots: Knots,
) -> tuple[Array, Array]:
    """z of one lattice point and the log of its share of the posterior density in lattice coordinates."""
    z, log_slope = chart.to_line(coordinates, outer, knots)
    log_weight = _not_nan(log_density(z) + log_slope + modes.log_shares(z)[which])
    return jnp.where(jnp.isfinite(z), z, modes.centres[which]), log_weight


def _not_nan(value: Array) -> Array:
    return jnp.where(jnp.isnan(value), -jnp.inf, value)


def _mass_beyond(run: _Run, lattice: _Lattice) -> Array:
    """The mass past the lattice's edges, if shell after shell goes on falling by the last ratio that was seen.

    The tails of the posterior fall faster than that in stretched coordinates, so this errs upwards.
    """
    last, before = jnp.moveaxis(lattice.shells @ run.weights.reshape(run.z.shape[:2]).sum(axis=0), 1, 0)
    ratio = jnp.minimum(last / jnp.maximum(before, 1e-300), _SLOWEST_FALL)
    return jnp.sum(last * ratio / (1 - ratio))


def _at_knots(knots: Knots, chart: CurvedChart) -> Array:
    """The outer parameter at the knots of its chart."""
    return chart.centre + chart.offset(knots.values, knots.bend)


def _marginals(runs: _Run, modes: Modes, level: int) -> Marginal:
    """Every parameter's lattices: the knots of its own curved charts, or the straight lattice seen along it."""
    number, size, p = runs.z.shape[1:]
    chosen = _LEVELS[p][level]
    weights = jax.vmap(lambda run: run.weights.reshape(number, size))(runs)
    if chosen.curved:
        knots = _knots(chosen)
        knot = np.rint(_lattice(p, level).coordinates[:, 0] / chosen.spacing).astype(int) + chosen.half
        weights = jnp.zeros((p, number, 2 * chosen.half + 1)).at[:, :, knot].add(weights)
        z = jax.vmap(jax.vmap(functools.partial(_at_knots, knots)))(cast("CurvedChart", runs.charts))
        reach = chosen.half * chosen.spacing
    else:
        weights = jnp.broadcast_to(weights, (p, number, size))
        z = jnp.moveaxis(runs.z[0], 2, 0)
        reach = chosen.reach  # the stretched ball is widest along its axes

    def marginal(z: Array, weights: Array, centre: Array, sd: Array) -> Marginal:
        axis = Stretched(centre, chosen.bend * sd, jnp.full(number, reach / chosen.bend))
        return lattice_marginal(z, weights, axis, Stretched.step(chosen.spacing, reach))

    return jax.vmap(marginal)(z, weights, modes.centres.T, jnp.linalg.norm(modes.factors, axis=2).T)
