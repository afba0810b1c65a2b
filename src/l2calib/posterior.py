"""A posterior is a set of weighted points; everything that is reported of it is computed here.

Points live on the line, in the coordinates z of `Prior.from_line`, where every posterior is smooth. The points of an
integration lattice sample a smooth density: seen along one parameter, each lattice is summed into a short Fourier
series, cut where the lattice's own frequency begins, and the quantiles and densities are those of the series. Draws
belong to no lattice: their quantiles are those of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.axes import Axis

PROBABILITIES = (0.025, 0.5, 0.975)
_CUT_WIDTH = 0.1
_QUANTILE_TOLERANCE = 1e-9
_FINE_WAVES = 8
_QUANTILE_STEPS = 60
_JITTER = 1e-12  # relative, for parameters that move together exactly


class Target(NamedTuple):
    """What an engine sees: a log density on the line and where to look for its modes."""

    log_density: Callable[[Array], Array]  # z (p,) -> scalar
    starts: Array  # (S, p)
    terms: int  # how many densities it is a mixture of


class Marginal(NamedTuple):
    """One parameter's points and the Fourier series of their density, one for every lattice."""

    z: Array  # (L, N)
    weights: Array  # (L, N), summing to one
    axis: Axis
    cosine: Array  # (L, K)
    sine: Array  # (L, K)
    blur: Array  # what the series may miss of a probability

    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation of z."""
        return moments(self.z.ravel(), self.weights.ravel())

    def evaluate(self, z: Array) -> tuple[Array, Array]:
        """Distribution function and density at z."""
        k = jnp.arange(1, self.cosine.shape[1] + 1)
        mass = jnp.sum(self.weights, axis=1)
        position, slope = (value[:, 0] for value in self.axis.position(z[None, None]))
        inside = (position > 0.0) & (position < 1.0)
        position = jnp.clip(position, 0.0, 1.0)
        cosines, sines = _waves(2 * jnp.pi * position[:, None], self.cosine.shape[1])
        waves = self.cosine * sines + self.sine * (1 - cosines)
        below = mass * position + jnp.sum(waves / (jnp.pi * k), axis=1)
        height = mass + 2 * jnp.sum(self.cosine * cosines + self.sine * sines, axis=1)
        return jnp.sum(below), jnp.sum(jnp.where(inside, slope * height, 0.0))


def lattice_marginal(z: Array, weights: Array, axis: Axis, step: float) -> Marginal:
    """Sum the points (L, N) of every lattice into its Fourier series, cut where the lattice's own frequency begins."""
    angle = 2 * jnp.pi * axis.position(z)[0]
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    k = jnp.arange(1, int((1 + 2 * _CUT_WIDTH) / (2 * step)) + 1)

    def advance(wave: tuple[Array, Array], _: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        c, s = wave
        return (c * cosine - s * sine, s * cosine + c * sine), (jnp.sum(weights * c, 1), jnp.sum(weights * s, 1))

    _, (cosines, sines) = jax.lax.scan(advance, (cosine, sine), k)
    frequency = 2 * step * k  # one where the lattice cannot tell waves apart
    kept = jax.scipy.special.erfc((frequency - 1) / _CUT_WIDTH) / 2
    # The waves behind the cut are as large as what lies beyond and as what is folded back from there; phases vary.
    behind = jnp.where(frequency > 1, (cosines.T**2 + sines.T**2) / (jnp.pi * k) ** 2, 0.0)
    return Marginal(z, weights, axis, kept * cosines.T, kept * sines.T, jnp.sqrt(jnp.sum(behind)))


class Points(NamedTuple):
    """Weighted points of a posterior, with weights that sum to one, and the marginals of an integration."""

    z: Array  # (N, p)
    weights: Array  # (N,)
    marginals: Marginal | None  # of all parameters, along the first axis of its arrays; None for draws
    error: Array  # numerical error of the moments, in posterior standard deviations
    mass_error: Array  # probability that may have been lost or counted twice
    missed: Array  # what modes that were left out would move, in posterior standard deviations
    status: Array
    diagnostics: dict[str, Array] | None  # of Markov chains


class Summary(NamedTuple):
    """Per parameter: mean, sd and the quantiles at PROBABILITIES; and the largest numerical error of them all."""

    mean: Array  # (p,)
    sd: Array  # (p,)
    quantiles: Array  # (p, 3)
    error: Array  # in posterior standard deviations


def moments(values: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of weighted rows (N, ...)."""
    mean = weights @ values
    return mean, jnp.sqrt(weights @ (values - mean) ** 2)


def summarise(points: Points, from_line: Callable[[Array], Array]) -> Summary:
    """The posterior summary of theta = from_line(z)."""
    probabilities = jnp.asarray(PROBABILITIES)
    if points.marginals is None:
        mean, sd = moments(from_line(points.z), points.weights)
        return Summary(mean, sd, from_line(quantiles(points, probabilities)).T, points.error)
    # All parameters at once: the search for quantiles is traced and compiled for one of them.
    z, density = jax.vmap(_lattice_quantiles, (0, None))(points.marginals, probabilities)
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
    return jax.vmap(_lattice_quantiles, (0, None), 1)(points.marginals, probabilities)[0]


def _sample_quantiles(z: Array, weights: Array, probabilities: Array) -> Array:
    order = jnp.argsort(z)
    mass = jnp.cumsum(weights[order]) - weights[order] / 2
    return jnp.interp(probabilities, mass, z[order])


def _waves(angle: Array, number: int) -> tuple[Array, Array]:
    """cos(k angle) and sin(k angle) for k = 1, ..., number: products of one of each, which cost most."""
    one = jnp.cos(angle[..., 0]), jnp.sin(angle[..., 0])
    fine = _powers(one, _FINE_WAVES + 1)
    coarse = _powers(fine.pop(), number // _FINE_WAVES + 1)
    products = [_product(high, low) for high in coarse for low in fine][1 : number + 1]
    return jnp.stack([c for c, _ in products], -1), jnp.stack([s for _, s in products], -1)


_Wave = tuple[Array, Array]


def _product(one: _Wave, other: _Wave) -> _Wave:
    """The wave whose angle is the sum."""
    return one[0] * other[0] - one[1] * other[1], one[1] * other[0] + one[0] * other[1]


def _powers(wave: _Wave, number: int) -> list[_Wave]:
    """Waves of 0, 1, ..., number - 1 times the angle."""
    powers = [(jnp.ones_like(wave[0]), jnp.zeros_like(wave[1])), wave]
    while len(powers) < number:
        half = len(powers) // 2
        powers.append(_product(powers[half], powers[len(powers) - half]))
    return powers[:number]


class _Search(NamedTuple):
    low: Array
    high: Array
    t: Array
    step: Array
    density: Array
    taken: Array


def _lattice_quantiles(marginal: Marginal, probabilities: Array) -> tuple[Array, Array]:
    """Quantiles on the line and the density there: Newton's method inside a shrinking bracket."""
    mean, sd = marginal.moments()
    low, high = marginal.axis.ends()

    def find(probability: Array) -> tuple[Array, Array]:
        def unsettled(state: _Search) -> Array:
            return (jnp.abs(state.step) > _QUANTILE_TOLERANCE * sd) & (state.taken < _QUANTILE_STEPS)

        def advance(state: _Search) -> _Search:
            low, high, t, *_ = state
            below, density = marginal.evaluate(t)
            low, high = jnp.where(below < probability, t, low), jnp.where(below < probability, high, t)
            newton = t - (below - probability) / jnp.where(density > 0, density, 1.0)
            inside = (density > 0) & (newton >= low) & (newton <= high)
            moved = jnp.where(inside, newton, (low + high) / 2)
            return _Search(low, high, moved, moved - t, density, state.taken + 1)

        guess = jnp.clip(mean + sd * jax.scipy.special.ndtri(probability), low, high)
        start = _Search(low, high, guess, jnp.asarray(jnp.inf), jnp.asarray(0.0), jnp.asarray(0))
        found = jax.lax.while_loop(unsettled, advance, start)
        return found.t, found.density

    return jax.vmap(find)(probabilities)


def marginal_density(points: Points, parameter: Array, grid: Array) -> Array:
    """The density of one coordinate z_j on a grid: the lattices' series, or a kernel estimate from draws."""
    if points.marginals is not None:
        marginal: Marginal = jax.tree.map(lambda array: array[parameter], points.marginals)
        return jnp.maximum(jax.vmap(lambda t: marginal.evaluate(t)[1])(grid), 0.0)
    effective = 1 / jnp.sum(points.weights**2)
    _, sd = moments(points.z, points.weights)
    width = 1.06 * sd[parameter] * effective**-0.2
    bells = jnp.exp(-(((grid[:, None] - points.z[:, parameter]) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    return jnp.asarray(bells @ points.weights)


def joint_density(z: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """A kernel estimate from draws z (N, 2): the density on a grid (P, P, 2) that leans as the draws do."""
    covariance = np.cov(z.T)
    centre, root = z.mean(axis=0), np.linalg.cholesky(covariance + np.diag(_JITTER * np.diag(covariance)))
    white, width = np.linalg.solve(root, (z - centre).T), len(z) ** (-1 / 6)
    axes = [np.linspace(each.min() - 3 * width, each.max() + 3 * width, points) for each in white]
    bells = [np.exp(-(((axis[:, None] - each) / width) ** 2) / 2) for axis, each in zip(axes, white, strict=True)]
    grid = centre + np.stack(np.meshgrid(*axes, indexing="ij"), -1) @ root.T
    return grid, bells[0] @ bells[1].T / (2 * np.pi * width**2 * len(z) * np.diag(root).prod())
