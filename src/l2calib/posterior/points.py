"""A posterior is a set of weighted points; everything that is reported of it is computed here.

Points live on the line, in the coordinates z of `Prior.from_line`, where every posterior is smooth. Those of an
integration have marginals as series; draws belong to no lattice: their quantiles are those of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.posterior.kernel_density import density_on_line
from l2calib.posterior.moments import moments
from l2calib.posterior.series import Marginal, lattice_quantiles

PROBABILITIES = (0.025, 0.5, 0.975)


class Target(NamedTuple):
    """What an engine sees: a log density on the line and where to look for its modes."""

    log_density: Callable[[Array], Array]  # z (p,) -> scalar
    starts: Array  # (S, p)
    terms: int  # how many densities it is a mixture of


class Points(NamedTuple):
    """Weighted points of a posterior, with weights that sum to one, and the marginals of an integration."""

    z: Array  # (N, p)
    weights: Array  # (N,)
    error: Array  # numerical error of the moments, in posterior standard deviations
    marginals: Marginal | None = None  # of all parameters, along the first axis of its arrays; None for draws
    mass_error: Array | float = 0.0  # probability that may have been lost or counted twice
    missed: Array | float = 0.0  # what modes that were left out would move, in posterior standard deviations
    status: Array | int = 0
    diagnostics: dict[str, Array] | None = None  # of Markov chains


class Summary(NamedTuple):
    """Per parameter: mean, sd and the quantiles at PROBABILITIES; and the largest numerical error of them all."""

    mean: Array  # (p,)
    sd: Array  # (p,)
    quantiles: Array  # (p, 3)
    error: Array  # in posterior standard deviations


def summarise(points: Points, from_line: Callable[[Array], Array]) -> Summary:
    """The posterior summary of theta = from_line(z)."""
    probabilities = jnp.asarray(PROBABILITIES)
    if points.marginals is None:
        mean, sd = moments(from_line(points.z), points.weights)
        return Summary(mean, sd, from_line(quantiles(points, probabilities)).T, points.error)
    # All parameters at once: the search for quantiles is traced and compiled for one of them.
    z, density = jax.vmap(lattice_quantiles, (0, None))(points.marginals, probabilities)
    _, line_sd = jax.vmap(Marginal.moments)(points.marginals)
    by_parameter = points.marginals.z.shape[0], -1
    theta = from_line(points.marginals.z.reshape(by_parameter).T)
    mean, sd = jax.vmap(moments, (1, 0))(theta, points.marginals.weights.reshape(by_parameter))
    at_the_ends = jnp.minimum(density[:, 0], density[:, -1]) * line_sd
    errors = (points.mass_error + points.marginals.blur) / at_the_ends
    return Summary(mean, sd, from_line(z.T).T, jnp.maximum(points.error, jnp.max(errors)))


def quantiles(points: Points, probabilities: Array) -> Array:
    """Marginal quantiles on the line (len(probabilities), p)."""
    if points.marginals is None:
        return jax.vmap(_sample_quantiles, (1, None, None), 1)(points.z, points.weights, probabilities)
    return jax.vmap(lattice_quantiles, (0, None), 1)(points.marginals, probabilities)[0]


def _sample_quantiles(z: Array, weights: Array, probabilities: Array) -> Array:
    order = jnp.argsort(z)
    mass = jnp.cumsum(weights[order]) - weights[order] / 2
    return jnp.interp(probabilities, mass, z[order])


def marginal_density(points: Points, parameter: int, grid: Array) -> Array:
    """The density of one coordinate z_j on a grid: the lattices' series, or a kernel estimate from draws."""
    if points.marginals is not None:
        marginal: Marginal = jax.tree.map(lambda array: array[parameter], points.marginals)
        return jnp.maximum(jax.vmap(lambda t: marginal.evaluate(t)[1])(grid), 0.0)
    return density_on_line(points.z[:, parameter], points.weights, grid)
