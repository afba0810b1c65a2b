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

PROBABILITIES = (0.025, 0.5, 0.975)
_FILTER_ORDER = 8
_SPAN_MARGIN = 1.1
_QUANTILE_TOLERANCE = 1e-9
_QUANTILE_STEPS = 60


class Target(NamedTuple):
    """What an engine sees: a log density on the line and where to look for its modes."""

    log_density: Callable[[Array], Array]  # z (p,) -> scalar
    starts: Array  # (S, p)


class Marginal(NamedTuple):
    """One parameter's points on L lattices, uniform in x = bend asinh((z - centre) / bend)."""

    z: Array  # (N,)
    weights: Array  # (N,), summing to one
    owner: Array  # (N,) which lattice a point belongs to
    centre: Array  # (L,)
    bend: Array  # (L,)
    reach: Array  # (L,) half the extent in x
    width: Array  # (L,) spacing in x
    frequencies: Array  # (K,) 1, 2, ..., K

    def coordinate(self, z: Array, lattice: Array | slice) -> Array:
        """x of z on some lattices."""
        bend = self.bend[lattice]
        return bend * jnp.arcsinh((z - self.centre[lattice]) / bend)


class Points(NamedTuple):
    """Weighted points of a posterior, with weights that sum to one, and the marginals of an integration."""

    z: Array  # (N, p)
    weights: Array  # (N,)
    marginals: tuple[Marginal, ...] | None  # None for draws
    error: Array  # numerical error in posterior standard deviations
    status: Array
    diagnostics: dict[str, Array] | None  # of Markov chains


class Summary(NamedTuple):
    """Per parameter: mean, sd and the quantiles at PROBABILITIES."""

    mean: Array  # (p,)
    sd: Array  # (p,)
    quantiles: Array  # (p, 3)


def moments(values: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of weighted rows (N, p)."""
    mean = weights @ values
    return mean, jnp.sqrt(weights @ (values - mean) ** 2)


def summarise(points: Points, from_line: Callable[[Array], Array]) -> Summary:
    """The posterior summary of theta = from_line(z)."""
    line_quantiles = quantiles(points, jnp.asarray(PROBABILITIES))
    if points.marginals is None:
        mean, sd = moments(from_line(points.z), points.weights)
    else:
        # from_line acts on every parameter by itself, so each marginal needs only its own column.
        p = points.z.shape[1]
        theta = [from_line(jnp.repeat(m.z[:, None], p, axis=1))[:, j] for j, m in enumerate(points.marginals)]
        pairs = [moments(t[:, None], m.weights) for t, m in zip(theta, points.marginals, strict=True)]
        mean, sd = (jnp.concatenate(column) for column in zip(*pairs, strict=True))
    return Summary(mean, sd, from_line(line_quantiles).T)


def quantiles(points: Points, probabilities: Array) -> Array:
    """Marginal quantiles on the line (len(probabilities), p)."""
    if points.marginals is None:
        return jax.vmap(_sample_quantiles, (1, None, None), 1)(points.z, points.weights, probabilities)
    columns = []
    for marginal in points.marginals:
        mean, sd = moments(marginal.z[:, None], marginal.weights)
        solve = jax.vmap(_solve_quantile, (None, None, None, 0))
        columns.append(solve(_series(marginal), mean[0], sd[0], probabilities))
    return jnp.stack(columns, axis=1)


def _sample_quantiles(z: Array, weights: Array, probabilities: Array) -> Array:
    order = jnp.argsort(z)
    mass = jnp.cumsum(weights[order]) - weights[order] / 2
    return jnp.interp(probabilities, mass, z[order])


class _Series(NamedTuple):
    """The marginal of one parameter: a Fourier series for every lattice, on the lattice's own span."""

    marginal: Marginal
    mass: Array  # (L,)
    cosine: Array  # (L, K)
    sine: Array  # (L, K)

    def evaluate(self, z: Array) -> tuple[Array, Array]:
        """Distribution function and density at z."""
        k = jnp.arange(1, self.cosine.shape[1] + 1)
        span = 2 * _SPAN_MARGIN * self.marginal.reach
        x = self.marginal.coordinate(z, slice(None))
        position = jnp.clip(x / span + 0.5, 0.0, 1.0)
        cosines, sines = _waves(2 * jnp.pi * position[:, None], self.cosine.shape[1])
        waves = self.cosine * sines + self.sine * (1 - cosines)
        below = self.mass * position + jnp.sum(waves / (jnp.pi * k), axis=1)
        height = self.mass + 2 * jnp.sum(self.cosine * cosines + self.sine * sines, axis=1)
        slope = 1 / jnp.sqrt(1 + ((z - self.marginal.centre) / self.marginal.bend) ** 2)
        inside = (position > 0.0) & (position < 1.0)
        return jnp.sum(below), jnp.sum(jnp.where(inside, slope * height / span, 0.0))

    def ends(self) -> tuple[Array, Array]:
        """The interval outside which there is nothing."""
        extent = self.marginal.bend * jnp.sinh(_SPAN_MARGIN * self.marginal.reach / self.marginal.bend)
        return jnp.min(self.marginal.centre - extent), jnp.max(self.marginal.centre + extent)


def _waves(angle: Array, number: int) -> tuple[Array, Array]:
    """cos(k angle) and sin(k angle) for k = 1, ..., number: angles are added, so few of them meet a sine."""
    fine, coarse = jnp.arange(8), 8 * jnp.arange(number // 8 + 1)
    ca, sa, cb, sb = jnp.cos(coarse * angle), jnp.sin(coarse * angle), jnp.cos(fine * angle), jnp.sin(fine * angle)
    cosines = ca[..., :, None] * cb[..., None, :] - sa[..., :, None] * sb[..., None, :]
    sines = sa[..., :, None] * cb[..., None, :] + ca[..., :, None] * sb[..., None, :]
    flat = (*angle.shape[:-1], -1)
    return cosines.reshape(flat)[..., 1 : number + 1], sines.reshape(flat)[..., 1 : number + 1]


def _series(marginal: Marginal) -> _Series:
    """Sum the points of every lattice into its Fourier series."""
    owner, k = marginal.owner, marginal.frequencies
    span = 2 * _SPAN_MARGIN * marginal.reach
    angle = 2 * jnp.pi * (marginal.coordinate(marginal.z, owner) / span[owner] + 0.5)
    belongs = (owner == jnp.arange(span.size)[:, None]) * marginal.weights  # (L, N)
    cosine, sine = jnp.cos(angle), jnp.sin(angle)

    def advance(wave: tuple[Array, Array], _: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        c, s = wave
        return (c * cosine - s * sine, s * cosine + c * sine), (belongs @ c, belongs @ s)

    _, (cosines, sines) = jax.lax.scan(advance, (cosine, sine), k)
    kept = _low_pass((2 * jnp.pi * k * (marginal.width / span)[:, None]) ** 2 / 2)
    return _Series(marginal, jnp.sum(belongs, axis=1), kept * cosines.T, kept * sines.T)


def _low_pass(s: Array) -> Array:
    """exp(-s) sum_{k<m} s^k/k!: one where the density has its content, zero at the lattice's frequency."""
    term, total = jnp.ones_like(s), jnp.ones_like(s)
    for k in range(1, _FILTER_ORDER):
        term = term * s / k
        total = total + term
    return jnp.exp(-s) * total


def _solve_quantile(series: _Series, mean: Array, sd: Array, probability: Array) -> Array:
    """Newton's method inside a shrinking bracket for F(t) = probability."""

    def unsettled(state: tuple[Array, Array, Array, Array, Array]) -> Array:
        step, count = state[3], state[4]
        return (jnp.abs(step) > _QUANTILE_TOLERANCE * sd) & (count < _QUANTILE_STEPS)

    def advance(state: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        low, high, t, _, count = state
        below, density = series.evaluate(t)
        low, high = jnp.where(below < probability, t, low), jnp.where(below < probability, high, t)
        newton = t - (below - probability) / jnp.where(density > 0, density, 1.0)
        inside = (density > 0) & (newton >= low) & (newton <= high)
        moved = jnp.where(inside, newton, (low + high) / 2)
        return low, high, moved, moved - t, count + 1

    guess = mean + sd * jax.scipy.special.ndtri(probability)
    low, high = series.ends()
    start = (low, high, jnp.clip(guess, low, high), jnp.asarray(jnp.inf), jnp.asarray(0))
    return jax.lax.while_loop(unsettled, advance, start)[2]


def marginal_density(points: Points, parameter: int, grid: Array) -> Array:
    """The density of one coordinate z_j on a grid: the lattices' series, or a kernel estimate from draws."""
    if points.marginals is not None:
        series = _series(points.marginals[parameter])
        return jnp.maximum(jax.vmap(lambda t: series.evaluate(t)[1])(grid), 0.0)
    effective = 1 / jnp.sum(points.weights**2)
    _, sd = moments(points.z, points.weights)
    width = 1.06 * sd[parameter] * effective**-0.2
    bells = jnp.exp(-(((grid[:, None] - points.z[:, parameter]) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    return jnp.asarray(bells @ points.weights)
