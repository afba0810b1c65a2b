"""Deterministic integration of low-dimensional posteriors.

The modes are found by Newton's method. One parameter alone has one lattice for all of its modes. Several parameters
take turns: a mode's chart is integrated along one parameter on equally spaced knots, and across the ridge, at every
knot, by a rule of few points. A smooth partition of unity (the share of each fitted Gaussian in their mixture)
divides the posterior among the modes, so overlapping modes are counted once. Every parameter's marginal comes from its
own turn. The error is estimated from the points themselves (see `errors`) and from the modes that were left out; a
posterior that does not meet the tolerance moves on to a level with finer knots or more modes, whichever it lacks.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from l2calib.engines.integrate.levels import LEVELS, LINE_LEVELS, MAXIMUM_DIMENSION
from l2calib.engines.integrate.line import line_draws, line_points
from l2calib.engines.integrate.turns import draws_along_ridges, not_nan, points_along_ridges
from l2calib.engines.modes import Modes, Survey, survey_modes
from l2calib.errors import MethodError, Status
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.minimise import smallest
from l2calib.posterior.points import Points, Target

_FAR_ERROR = 0.5  # in posterior standard deviations: above it, only knots that go far help
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
        return len(LINE_LEVELS if dimension == 1 else LEVELS[dimension])

    def evaluations(self, dimension: int, level: int) -> int:
        """How often the density is evaluated at a level."""
        if dimension == 1:
            return LINE_LEVELS[level].points
        chosen = LEVELS[dimension][level]
        return chosen.modes * dimension * chosen.knots.values.size * chosen.rule.log_weights.size

    def next_level(self, dimension: int, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """What to try where a level did not suffice, by its error and by what the modes that it left out would move.

        The level itself where no other could do better. Where the error is large, the posterior's tails are too long
        for anything but knots that go far.
        """
        if dimension == 1:
            return np.full(error.shape, min(level + 1, len(LINE_LEVELS) - 1))
        tried, later = LEVELS[dimension][level], list(enumerate(LEVELS[dimension]))[level + 1 :]
        wider = next((i for i, each in later if each.modes > tried.modes), level)
        finer = [(i, each) for i, each in later if each.modes >= tried.modes and each.knots != tried.knots]
        farther = [(i, each) for i, each in finer if each.knots.far]
        by_error = [candidates[0][0] if candidates else level for candidates in (finer, farther)]
        return np.where(missed > self.tolerance, wider, np.where(error > _FAR_ERROR, by_error[1], by_error[0]))

    def survey(self, target: Target) -> Survey:
        """The modes that the method's starts and a scan of the whole prior lead to."""
        z, neighbours = _scan_lattice(target.starts.shape[1])
        log_density = jax.vmap(lambda point: not_nan(target.log_density(point)))(jnp.asarray(z))
        higher = jnp.max(log_density[neighbours], axis=1) > log_density
        summits = jnp.asarray(z)[smallest(jnp.where(higher, jnp.inf, -log_density), _SUMMITS[z.shape[1]])]
        return survey_modes(target.log_density, jnp.concatenate([target.starts, summits]))

    def points(self, target: Target, survey: Survey, level: int, key: Array) -> Points:
        """Weighted points at one level of refinement, with their own error estimate."""
        p = target.starts.shape[1]
        modes, missed = survey.largest(LINE_LEVELS[level].modes if p == 1 else LEVELS[p][level].modes)
        points = _on_a_line(target, modes, level) if p == 1 else points_along_ridges(target, modes, level)
        error = jnp.maximum(points.error, missed)
        status = jnp.where(jnp.isfinite(points.weights).all(), 0, int(Status.NOT_FINITE))
        return points._replace(error=jnp.where(jnp.isnan(error), jnp.inf, error), missed=missed, status=status)

    def draws(self, target: Target, survey: Survey, level: int, key: Array, number: int) -> tuple[Array, Array]:
        """Candidates z (number, p) spread over the cells of the lattice, and whether each is accepted.

        The accepted ones are independent draws from the posterior: rejection against the lattice's own
        piecewise constant density.
        """
        if target.starts.shape[1] == 1:
            modes, _ = survey.largest(LINE_LEVELS[level].modes)
            line = line_points(target.log_density, modes, LINE_LEVELS[level].points)
            z, accept = line_draws(target.log_density, line, key, number)
            return z[:, None], accept
        return draws_along_ridges(target, survey, level, key, number)


def _on_a_line(target: Target, modes: Modes, level: int) -> Points:
    line = line_points(target.log_density, modes, LINE_LEVELS[level].points)
    error, mass_error = line.errors()
    marginals = jax.tree.map(lambda array: array[None], line.marginal())
    return Points(line.z[:, None], line.weights, error, marginals=marginals, mass_error=mass_error)
