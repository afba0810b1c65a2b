"""Marginal posteriors of an integration as short Fourier series (decision 2).

The points of an integration lattice sample a smooth density: seen along one parameter, each lattice is summed into a
series, cut where the lattice's own frequency begins, and the quantiles and densities are those of the series.
"""

from __future__ import annotations

from typing import NamedTuple

from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.posterior.axes import Axis
from l2calib.posterior.moments import moments

_CUT_WIDTH = 0.1
_QUANTILE_TOLERANCE = 1e-9
_FINE_WAVES = 8
_QUANTILE_STEPS = 60


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


def lattice_quantiles(marginal: Marginal, probabilities: Array) -> tuple[Array, Array]:
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
        start = _Search(
            low=low,
            high=high,
            t=guess,
            step=jnp.asarray(jnp.inf),
            density=jnp.asarray(0.0),
            taken=jnp.asarray(0),
        )
        found = jax.lax.while_loop(unsettled, advance, start)
        return found.t, found.density

    return jax.vmap(find)(probabilities)
