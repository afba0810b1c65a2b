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
from l2calib.engines.integrate.line import draws_on_a_line, points_on_a_line
from l2calib.engines.integrate.rejection import Uniforms
from l2calib.engines.integrate.shares import not_nan
from l2calib.engines.integrate.turns import draws_along_ridges, points_along_ridges
from l2calib.engines.modes import survey_modes
from l2calib.errors import MethodError, Status
from l2calib.numerics.arrays import Array
from l2calib.numerics.minimise import smallest
from l2calib.numerics.modes import Survey
from l2calib.numerics.namespace import AnyArray, namespace_of
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

    def far_level(self, dimension: int) -> int:
        """The first level whose knots go to the ends of the prior."""
        return next(i for i, each in enumerate(LEVELS[dimension]) if each.knots.far)

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

    # What XLA keeps to itself, NumPy warns of: points beyond the support, and matrices that are not definite.
    @np.errstate(all="ignore")
    def survey(self, target: Target) -> Survey:
        """The modes that the method's starts and a scan of the whole prior lead to."""
        xp = namespace_of(target.starts)
        lattice, neighbours = _scan_lattice(target.starts.shape[1])
        z = xp.asarray(lattice)
        log_density = not_nan(target.log_density(z))
        higher = xp.max(log_density[neighbours], axis=1) > log_density
        summits = z[smallest(xp.where(higher, np.inf, -log_density), _SUMMITS[z.shape[1]])]
        found = survey_modes(target, xp.concatenate([target.starts, summits]))
        if target.log_share is None:
            return found
        return found._replace(log_mass=found.log_mass + not_nan(target.log_share(found.centres)))

    @np.errstate(all="ignore")
    def points(self, target: Target, survey: Survey, level: int, key: Array | None = None) -> Points:
        """Weighted points at one level of refinement, with their own error estimate."""
        p = target.starts.shape[1]
        modes, missed = survey.largest(self._modes(p, level))
        if p == 1:
            points = points_on_a_line(target, modes, LINE_LEVELS[level].points)
        else:
            points = points_along_ridges(target, modes, level)
        xp = namespace_of(points.weights)
        error = xp.maximum(points.error, missed)
        status = xp.where(xp.all(xp.isfinite(points.weights)), 0, int(Status.NOT_FINITE))
        return points._replace(error=xp.where(xp.isnan(error), np.inf, error), missed=missed, status=status)

    @np.errstate(all="ignore")
    def draws(self, target: Target, survey: Survey, level: int, uniforms: Uniforms) -> tuple[AnyArray, AnyArray]:
        """Candidates z (N, p) spread over the cells of the lattice, and whether each is accepted.

        The accepted ones are independent draws from the posterior: rejection against the lattice's own
        piecewise constant density.
        """
        p = target.starts.shape[1]
        modes, _ = survey.largest(self._modes(p, level))
        if p == 1:
            return draws_on_a_line(target, modes, LINE_LEVELS[level].points, uniforms)
        return draws_along_ridges(target, modes, level, uniforms)

    def _modes(self, dimension: int, level: int) -> int:
        return LINE_LEVELS[level].modes if dimension == 1 else LEVELS[dimension][level].modes
