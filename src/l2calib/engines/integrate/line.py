"""Integration over one parameter: one lattice that is dense where the modes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from l2calib.engines.integrate.errors import halving_errors
from l2calib.engines.modes import Modes
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.posterior.axes import Mixture, cell_middles
from l2calib.posterior.series import Marginal, lattice_marginal

LogDensity = Callable[[Array], Array]


class LinePoints(NamedTuple):
    """Points z (N,) at the middles of equal cells of a mixture's axis, and the log density in its position."""

    axis: Mixture
    z: Array
    log_weights: Array

    @property
    def weights(self) -> Array:
        return jax.nn.softmax(self.log_weights)

    def marginal(self) -> Marginal:
        return lattice_marginal(self.z[None], self.weights[None], self.axis, 1 / self.z.size)

    def errors(self) -> tuple[Array, Array]:
        """Of the moments, in standard deviations, and of the mass."""
        error, mass_error = halving_errors(self.z[:, None], self.weights, np.arange(self.z.size) % 2 == 0)
        return error, mass_error + self.weights[0] + self.weights[-1]


def line_points(log_density: LogDensity, modes: Modes, number: int) -> LinePoints:
    """Look at the density at `number` points."""
    axis = Mixture.of_modes(modes.centres[:, 0], modes.factors[:, 0, 0], modes.log_mass)
    z, log_weights = _weigh(log_density, axis, jnp.asarray(cell_middles(number)))
    return LinePoints(axis, z, log_weights)


def line_draws(log_density: LogDensity, points: LinePoints, key: Array, number: int) -> tuple[Array, Array]:
    """Candidates z (number,) spread over the cells, and whether rejection against the cells' density keeps them."""
    pick_key, cell_key, accept_key = jax.random.split(key, 3)
    cells = points.z.size
    picked = jax.random.choice(pick_key, cells, (number,), p=points.weights)
    position = (picked + jax.random.uniform(cell_key, (number,))) / cells
    z, log_weights = _weigh(log_density, points.axis, position)
    log_ratio = log_weights - points.log_weights[picked]
    return z, jnp.log(jax.random.uniform(accept_key, (number,))) < log_ratio - jnp.max(log_ratio)


def _weigh(log_density: LogDensity, axis: Mixture, position: Array) -> tuple[Array, Array]:
    z = axis.at(position[None])[0]
    log_slope = jnp.log(axis.position(z[None])[1][0])
    log_weights = jax.vmap(log_density)(z[:, None]) - log_slope
    return z, jnp.where(jnp.isnan(log_weights), -jnp.inf, log_weights)
