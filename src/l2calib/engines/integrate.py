"""Deterministic integration of low-dimensional posteriors.

The modes are polished by Newton's method and each gets a lattice fitted to its curvature; one broad lattice covers
the prior. A smooth partition of unity (the share of each fitted Gaussian in their mixture) divides the posterior
among the lattices, so overlapping modes are counted once and what no mode explains is left to the broad lattice.
Uniform lattices integrate smooth densities with an error that falls exponentially in 1/spacing. The error is
estimated from half of the same points, and a posterior that does not meet the tolerance moves to the next level.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.engines.modes import Modes, find_modes
from l2calib.errors import MethodError, Status
from l2calib.posterior import Lattices, Points, Target, moments
from l2calib.small_matrices import cholesky

MAXIMUM_DIMENSION = 4
_MASS_WORTH_A_MODE = 1e-5


class _Level(NamedTuple):
    modes: int
    spacing: float  # relative to the first level's
    refits: int


_LEVELS = (_Level(1, 1.0, 0), _Level(4, 1.0, 0), _Level(5, 0.8, 3), _Level(6, 0.5, 4), _Level(6, 0.3, 6))
_SPACING = {1: 0.5, 2: 0.6, 3: 0.8, 4: 1.0}
_REACH = {1: 6.5, 2: 6.0, 3: 5.2, 4: 4.8}
_BROAD_SPACING = {1: 0.25, 2: 0.6, 3: 1.0, 4: 1.2}
_BROAD_REACH = {1: 5.0, 2: 4.6, 3: 4.2, 4: 4.0}
_SUMMITS = {1: 3, 2: 2, 3: 1, 4: 1}


class _Lattice(NamedTuple):
    """Points around the origin, which of them form the sublattice of the error estimate, and their spacing."""

    z: np.ndarray
    even: np.ndarray
    neighbours: np.ndarray  # (N, 2p) indices of adjacent points, a point itself where it has none
    spacing: float
    reach: float

    @classmethod
    def of(cls, dimension: int, spacing: float, reach: float) -> _Lattice:
        return cls(*_ball(dimension, spacing, reach), spacing, reach)


@functools.cache
def _ball(dimension: int, spacing: float, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    most = int(reach / spacing)
    index = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    index = index[(index**2).sum(axis=1) * spacing**2 <= reach**2]
    rank = {tuple(row): i for i, row in enumerate(index.tolist())}
    steps = np.vstack([np.eye(dimension, dtype=int), -np.eye(dimension, dtype=int)])
    neighbours = [[rank.get(tuple(row + step), i) for step in steps] for i, row in enumerate(index)]
    return spacing * index, index.sum(axis=1) % 2 == 0, np.array(neighbours)


@dataclass(frozen=True)
class Integrate:
    """Lattice integration for up to four parameters.

    `tolerance` is the largest numerical error, in posterior standard deviations, that is accepted without a status.
    """

    tolerance: float = 2e-3

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise MethodError(f"the tolerance must be positive: received {self.tolerance}.")

    @property
    def name(self) -> str:
        return "integrate"

    def levels(self, dimension: int) -> int:
        """How many levels of refinement there are."""
        return len(_LEVELS) if dimension <= 2 else len(_LEVELS) - 1

    def points(self, target: Target, level: int, key: Array) -> Points:
        """Weighted points at one level of refinement, with their own error estimate."""
        return self._integrate(target, level)[0]

    def draws(self, target: Target, level: int, key: Array, number: int) -> tuple[Array, Array]:
        """Candidates z (number, p) spread over the cells of the lattice, and whether each is accepted.

        The accepted ones are independent draws from the posterior: rejection against the lattice's own
        piecewise constant density.
        """
        points, modes, cells, owner = self._integrate(target, level)
        reach = _REACH[target.starts.shape[1]]
        pick_key, cell_key, accept_key = jax.random.split(key, 3)
        picked = jax.random.choice(pick_key, points.weights.size, (number,), p=points.weights)
        offsets = jax.random.uniform(cell_key, (number, points.z.shape[1]), minval=-0.5, maxval=0.5)
        candidates = points.z[picked] + jnp.einsum("nij,nj->ni", cells[picked], offsets)

        def log_share(z: Array, which: Array) -> Array:
            return _not_nan(target.log_density(z)) + modes.log_shares(z, reach)[which]

        log_ratio = jax.vmap(log_share)(candidates, owner[picked]) - jax.vmap(log_share)(points.z[picked], owner[picked])
        accept = jnp.log(jax.random.uniform(accept_key, (number,))) < log_ratio - jnp.max(log_ratio)
        return candidates, accept

    def _integrate(self, target: Target, level: int) -> tuple[Points, Modes, Array, Array]:
        p = target.starts.shape[1]
        chosen = _LEVELS[level]
        log_densities = jax.vmap(lambda z: _not_nan(target.log_density(z)))
        narrow = _Lattice.of(p, _SPACING[p] * chosen.spacing, _REACH[p])
        broad = _Lattice.of(p, _BROAD_SPACING[p] * min(1.0, 1.5 * chosen.spacing), _BROAD_REACH[p])
        broad_log = log_densities(jnp.asarray(broad.z))
        starts = jnp.concatenate([target.starts, _local_summits(broad, broad_log)])
        modes, missed = find_modes(target.log_density, starts, chosen.modes)

        def refit(_: int, fitted: Modes) -> Modes:
            z, weights, _error = _weigh(log_densities, fitted, narrow, broad, broad_log)
            return _refit(fitted, z, weights, narrow.reach)

        modes = jax.lax.fori_loop(0, chosen.refits, refit, modes)
        z, weights, error = _weigh(log_densities, modes, narrow, broad, broad_log)
        sizes = [narrow.z.shape[0]] * chosen.modes + [broad.z.shape[0]]
        owner = np.repeat(np.arange(chosen.modes + 1), sizes)
        shapes = jnp.concatenate([narrow.spacing * modes.factors, broad.spacing * jnp.eye(p)[None]])
        cells = shapes[owner]
        error = jnp.where(missed > _MASS_WORTH_A_MODE, jnp.inf, error)
        status = jnp.where(error <= self.tolerance, 0, int(Status.INACCURATE))
        status = jnp.where(jnp.isfinite(weights).all(), status, int(Status.NOT_FINITE))
        reaches = np.array([narrow.reach] * chosen.modes + [broad.reach])
        spacings = np.array([narrow.spacing] * chosen.modes + [broad.spacing])
        width = jnp.linalg.norm(shapes, axis=2)
        lattices = Lattices(
            owner=jnp.asarray(owner),
            centres=jnp.concatenate([modes.centres, jnp.zeros((1, p))]),
            reach=width * (reaches / spacings)[:, None],
            width=width,
            frequencies=jnp.arange(1, int(2.2 * np.max(reaches / spacings)) + 1),
        )
        return Points(z, weights, lattices, error, status, None), modes, cells, jnp.asarray(owner)


def _not_nan(value: Array) -> Array:
    return jnp.where(jnp.isnan(value), -jnp.inf, value)


def _local_summits(lattice: _Lattice, log_density: Array) -> Array:
    """The highest local maxima on a lattice (S, p), repeated if there are fewer."""
    higher = jnp.max(log_density[lattice.neighbours], axis=1) > log_density
    number = _SUMMITS[lattice.z.shape[1]]
    _, top = jax.lax.top_k(jnp.where(higher, -jnp.inf, log_density), number)
    return jnp.asarray(lattice.z)[jnp.where(higher[top], jnp.argmax(log_density), top)]


def _weigh(
    log_densities: Callable[[Array], Array], modes: Modes, narrow: _Lattice, broad: _Lattice, broad_log: Array
) -> tuple[Array, Array, Array]:
    """All lattice points, their weights, and the error estimated from the even sublattices."""
    p = narrow.z.shape[1]
    around = modes.centres[:, None, :] + jnp.einsum("mij,nj->mni", modes.factors, narrow.z)
    around_log = jax.vmap(log_densities)(around)
    shares = jax.vmap(lambda z: modes.log_shares(z, narrow.reach))
    own = jax.vmap(lambda m, z: shares(z)[:, m])(jnp.arange(around.shape[0]), around)
    log_cell = jnp.sum(jnp.log(jnp.diagonal(modes.factors, axis1=1, axis2=2)), axis=1) + p * np.log(narrow.spacing)
    narrow_weights = around_log + own + log_cell[:, None]
    broad_weights = broad_log + shares(jnp.asarray(broad.z))[:, -1] + p * np.log(broad.spacing)
    z = jnp.concatenate([around.reshape(-1, p), jnp.asarray(broad.z)])
    log_weights = jnp.concatenate([narrow_weights.ravel(), broad_weights])
    weights = jnp.exp(log_weights - jnp.max(log_weights))
    even = np.concatenate([np.tile(narrow.even, around.shape[0]), broad.even])
    half = weights * even
    mean, sd = moments(z, weights / jnp.sum(weights))
    half_mean, half_sd = moments(z, half / jnp.sum(half))
    error = jnp.max(jnp.maximum(jnp.abs(half_mean - mean), jnp.abs(half_sd - sd)) / sd)
    return z, weights / jnp.sum(weights), jnp.where(jnp.isnan(error), jnp.inf, error)


def _refit(modes: Modes, z: Array, weights: Array, reach: float) -> Modes:
    """Match every mode's mass, centre and covariance to the points that it is responsible for."""
    log_shares = jax.vmap(lambda point: modes.log_shares(point, reach)[:-1])(z)
    responsible = weights[:, None] * jax.nn.softmax(log_shares, axis=1)

    def match(share: Array, centre: Array, factor: Array) -> tuple[Array, Array, Array]:
        mass = jnp.sum(share)
        mean = share @ z / mass
        covariance = (z - mean).T @ (share[:, None] * (z - mean)) / mass
        fitted = cholesky(covariance)
        usable = (mass > 1e-12) & jnp.isfinite(fitted).all()
        new = (mean, fitted, jnp.log(mass))
        return jax.tree.map(lambda a, b: jnp.where(usable, a, b), new, (centre, factor, jnp.log(1e-12)))

    return Modes(*jax.vmap(match)(responsible.T, modes.centres, modes.factors))
