"""Deterministic integration of low-dimensional posteriors.

The modes are found by Newton's method and each gets a lattice in the coordinates of its own chart. A smooth partition
of unity (the share of each fitted Gaussian in their mixture) divides the posterior among the charts, so overlapping
modes are counted once. Uniform lattices integrate smooth densities with an error that falls exponentially in
1/spacing. The error is estimated from half of the same points, from the mass in the outermost shell and from how well
different charts agree; a posterior that does not meet the tolerance moves to the next level.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.engines.charts import Chart, Knots, curved_chart, straight_chart
from l2calib.engines.modes import Modes, Survey, survey_modes
from l2calib.errors import MethodError, Status
from l2calib.posterior import Marginal, Points, Target, moments

MAXIMUM_DIMENSION = 4
_MASS_WORTH_A_MODE = 1e-5
_DENSITY_AT_THE_ENDS = 0.058  # of a standard normal at its 2.5% quantile
_STRAIGHT = 1e6
_BENT = 2.0
_BENDS = 0.5
_FILTER_WIDTH = 1.25


class _Level(NamedTuple):
    """How hard to try: curved charts look at every parameter in turn, a straight one serves all parameters at once."""

    modes: int
    curved: bool
    spacing: float
    half: int
    inner_spacing: float
    reach: float


_LEVELS = {
    1: (
        _Level(1, True, 0.5, 9, 1.0, 0.0),
        _Level(4, True, 0.4, 16, 1.0, 0.0),
        _Level(6, True, 0.25, 40, 1.0, 0.0),
        _Level(8, True, 0.1, 110, 1.0, 0.0),
    ),
    2: (
        _Level(1, False, 0.6, 10, 0.6, 6.0),
        _Level(1, True, 0.35, 26, 0.35, 6.3),
        _Level(4, True, 0.35, 26, 0.35, 6.3),
        _Level(5, True, 0.2, 48, 0.2, 8.0),
    ),
    3: (
        _Level(1, False, 0.8, 7, 0.8, 5.6),
        _Level(1, True, 0.45, 18, 0.55, 5.0),
        _Level(3, True, 0.45, 18, 0.55, 5.0),
        _Level(3, True, 0.3, 26, 0.4, 5.5),
    ),
    4: (
        _Level(1, False, 1.0, 5, 1.0, 5.2),
        _Level(1, True, 0.5, 14, 0.8, 4.3),
        _Level(2, True, 0.5, 14, 0.7, 4.6),
    ),
}
_SCAN_SPACING = {1: 0.25, 2: 0.6, 3: 1.0, 4: 1.2}
_SCAN_REACH = {1: 5.0, 2: 4.6, 3: 4.2, 4: 4.0}
_SUMMITS = {1: 1, 2: 2, 3: 1, 4: 1}


class _Lattice(NamedTuple):
    """Lattice coordinates (N, p), the outer one first; the half used for the error; the outermost shell."""

    coordinates: np.ndarray
    even: np.ndarray
    shell: np.ndarray
    cell: np.ndarray  # (p,)
    expected_shell: float  # the shell's mass if the posterior were the fitted Gaussian


@functools.cache
def _lattice(dimension: int, level: int) -> _Lattice:
    chosen = _LEVELS[dimension][level]
    outer = np.arange(-chosen.half, chosen.half + 1)
    most = int(chosen.reach / chosen.inner_spacing)
    axes = [outer] + [np.arange(-most, most + 1)] * (dimension - 1)
    index = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, dimension)
    cell = np.array([chosen.spacing] + [chosen.inner_spacing] * (dimension - 1))
    coordinates = index * cell
    ball = coordinates if not chosen.curved else coordinates[:, 1:]
    squared = (ball**2).sum(axis=1)
    inside = squared <= chosen.reach**2 if ball.size else np.ones(len(index), dtype=bool)
    index, coordinates, squared = index[inside], coordinates[inside], squared[inside]
    shell = np.abs(index[:, 0]) >= chosen.half - 1
    if dimension > 1:
        shell = shell | (squared > (chosen.reach - 1.0) ** 2)
    bend = _knots(chosen).bend
    stretched = bend * np.sinh(coordinates / bend)
    gaussian = np.exp(-(stretched**2).sum(axis=1) / 2) * np.cosh(coordinates / bend).prod(axis=1)
    expected = float(gaussian[shell].sum() / gaussian.sum())
    return _Lattice(coordinates, index.sum(axis=1) % 2 == 0, shell, cell, expected)


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
    charts: Chart  # M of them

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
        if dimension not in _LEVELS:
            raise MethodError(
                f"integration serves up to {MAXIMUM_DIMENSION} parameters: received {dimension}; use the NUTS engine."
            )
        return len(_LEVELS[dimension])

    def survey(self, target: Target) -> Survey:
        """The modes that the method's starts and a scan of the whole prior lead to."""
        z, neighbours = _scan_lattice(target.starts.shape[1])
        log_density = jax.vmap(lambda point: _not_nan(target.log_density(point)))(jnp.asarray(z))
        higher = jnp.max(log_density[neighbours], axis=1) > log_density
        _, top = jax.lax.top_k(jnp.where(higher, -jnp.inf, log_density), _SUMMITS[z.shape[1]])
        summits = jnp.asarray(z)[jnp.where(higher[top], jnp.argmax(log_density), top)]
        return survey_modes(target.log_density, jnp.concatenate([target.starts, summits]))

    def first_level(self, survey: Survey) -> Array:
        """A straight chart is not worth trying on a posterior that bends."""
        p = survey.centres.shape[1]
        return jnp.where((survey.curvature > _BENDS) & (not _LEVELS[p][0].curved), 1, 0)

    def points(self, target: Target, survey: Survey, level: int, key: Array) -> Points:
        """Weighted points at one level of refinement, with their own error estimate."""
        p = target.starts.shape[1]
        chosen, lattice = _LEVELS[p][level], _lattice(p, level)
        modes, missed = survey.largest(chosen.modes)
        outers = jnp.arange(p if chosen.curved else 1)
        runs = jax.vmap(lambda outer: _run(target, modes, outer, level))(outers)

        def run_of(outer: int) -> _Run:
            picked: _Run = jax.tree.map(lambda array: array[outer], runs)
            return picked

        marginals = tuple(_marginal(run_of(j if chosen.curved else 0), j, level) for j in range(p))
        first = run_of(0)
        moments_move = jnp.max(jax.vmap(lambda run: _half_error(run, lattice))(runs))
        log_masses = jax.vmap(lambda run: run.log_mass)(runs)
        beyond = jnp.max(jax.vmap(lambda run: run.weights @ np.tile(lattice.shell, chosen.modes))(runs))
        excess = jnp.maximum(beyond - 10 * lattice.expected_shell, 0.0)
        # Mass that is lost or counted twice moves a 95% interval's end by this much over the density there.
        mass_error = (jnp.max(jnp.abs(jnp.expm1(log_masses - log_masses[0]))) + excess) / _DENSITY_AT_THE_ENDS
        error = jnp.maximum(moments_move, mass_error)
        trusted = (missed <= _MASS_WORTH_A_MODE) & (level >= self.first_level(survey)) & jnp.isfinite(error)
        error = jnp.where(trusted, error, jnp.inf)
        status = jnp.where(error <= self.tolerance, 0, int(Status.INACCURATE))
        status = jnp.where(jnp.isfinite(first.weights).all(), status, int(Status.NOT_FINITE))
        return Points(first.z.reshape(-1, p), first.weights, marginals, error, status, None)

    def draws(self, target: Target, survey: Survey, level: int, key: Array, number: int) -> tuple[Array, Array]:
        """Candidates z (number, p) spread over the cells of the lattice, and whether each is accepted.

        The accepted ones are independent draws from the posterior: rejection against the lattice's own
        piecewise constant density.
        """
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
    return Knots(chosen.half, chosen.spacing, _BENT if chosen.curved else _STRAIGHT)


def _run(target: Target, modes: Modes, outer: Array, level: int) -> _Run:
    p = target.starts.shape[1]
    chosen, lattice = _LEVELS[p][level], _lattice(p, level)
    knots = _knots(chosen)

    def build(centre: Array, factor: Array) -> Chart:
        if chosen.curved:
            return curved_chart(target.log_density, centre, factor, outer, knots)
        return straight_chart(centre, factor, outer, knots)

    charts = jax.vmap(build)(modes.centres, modes.factors)

    def weigh(chart: Chart, which: Array) -> tuple[Array, Array]:
        def point(coordinates: Array) -> tuple[Array, Array]:
            return _weigh(target.log_density, modes, chart, which, coordinates, outer, knots)

        return jax.vmap(point)(jnp.asarray(lattice.coordinates))

    z, log_weights = jax.vmap(weigh)(charts, jnp.arange(chosen.modes))
    return _Run(z, log_weights + np.sum(np.log(lattice.cell)), charts)


def _weigh(
    log_density: Callable[[Array], Array],
    modes: Modes,
    chart: Chart,
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


def _half_error(run: _Run, lattice: _Lattice) -> Array:
    """The largest change of a mean or sd, in sd, when only half of the lattice is used."""
    z, weights = run.z.reshape(-1, run.z.shape[-1]), run.weights
    half = weights * np.tile(lattice.even, run.z.shape[0])
    mean, sd = moments(z, weights)
    half_mean, half_sd = moments(z, half / jnp.sum(half))
    return jnp.max(jnp.maximum(jnp.abs(half_mean - mean), jnp.abs(half_sd - sd)) / sd)


def _marginal(run: _Run, parameter: int, level: int) -> Marginal:
    """One parameter's lattices: the knots of its own curved charts, or the straight lattice seen along it."""
    number, size, p = run.z.shape
    chosen = _LEVELS[p][level]
    weights = run.weights.reshape(number, size)
    if chosen.curved:
        knots = _knots(chosen)
        knot = np.rint(_lattice(p, level).coordinates[:, 0] / chosen.spacing).astype(int) + chosen.half
        weights = jnp.zeros((number, 2 * chosen.half + 1)).at[:, knot].add(weights)
        offsets = jax.vmap(lambda chart: chart.centre + chart.offset(knots.values, knots.bend))(run.charts)
        z, centre, scale, bend = offsets, run.charts.centre, run.charts.scale, _BENT
        reach = chosen.half * chosen.spacing
    else:
        z = run.z[:, :, parameter]
        centre, bend, reach = run.z[:, size // 2, parameter], _STRAIGHT, chosen.reach
        scale = jnp.max(jnp.abs(z - centre[:, None]), axis=1) / reach
    return Marginal(
        z=z.ravel(),
        weights=weights.ravel(),
        owner=jnp.repeat(jnp.arange(number), z.shape[1]),
        centre=centre,
        bend=bend * scale,
        reach=reach * scale,
        width=_FILTER_WIDTH * (chosen.spacing if chosen.curved else max(chosen.spacing, chosen.inner_spacing)) * scale,
        frequencies=jnp.arange(1, int(2.2 * reach / chosen.spacing) + 1),
    )
