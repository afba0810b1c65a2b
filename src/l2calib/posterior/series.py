"""Marginal posteriors of an integration as short Fourier series (decision 2).

The points of an integration lattice sample a smooth density: seen along one parameter, each lattice is summed into a
series, cut where the lattice's own frequency begins, and the quantiles and densities are those of the series.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from l2calib.numerics.namespace import AnyArray, loops_of, namespace_of
from l2calib.posterior.axes import Axis
from l2calib.posterior.moments import moments

_CUT_WIDTH = 0.1
_QUANTILE_TOLERANCE = 1e-9
_FINE_WAVES = 8
_QUANTILE_STEPS = 60


class Marginal(NamedTuple):
    """A parameter's points and the Fourier series of their density, one for every lattice.

    Of several parameters, they are the first axis of all arrays.
    """

    z: AnyArray  # (..., L, N)
    weights: AnyArray  # (..., L, N), with a sum of one for each parameter
    axis: Axis
    cosine: AnyArray  # (..., L, K)
    sine: AnyArray  # (..., L, K)
    blur: AnyArray  # (...): what the series may miss of a probability

    def of(self, parameter: int | AnyArray) -> Marginal:
        """That of one parameter."""
        axis = type(self.axis)(*(part[parameter] for part in self.axis))
        return Marginal(axis=axis, **{name: part[parameter] for name, part in self._asdict().items() if name != "axis"})

    def flat(self) -> tuple[AnyArray, AnyArray]:
        """The points of all lattices together, and their weights: (..., L N)."""
        together = *self.z.shape[:-2], -1
        return self.z.reshape(together), self.weights.reshape(together)

    def moments(self) -> tuple[AnyArray, AnyArray]:
        """Mean and standard deviation of z (...)."""
        return moments(*self.flat())

    def evaluate(self, z: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Distribution function and density at z (..., Q)."""
        xp = namespace_of(self.z)
        k = np.arange(1, self.cosine.shape[-1] + 1)
        mass = xp.sum(self.weights, axis=-1)[..., None]
        position, slope = self.axis.position(z[..., None, :])
        inside = (position > 0.0) & (position < 1.0)
        position = xp.clip(position, 0.0, 1.0)
        cosines, sines = _waves(2 * np.pi * position, k.size)  # (..., L, Q, K)
        cosine, sine = self.cosine[..., None, :], self.sine[..., None, :]
        below = mass * position + xp.sum((cosine * sines + sine * (1 - cosines)) / (np.pi * k), axis=-1)
        height = mass + 2 * xp.sum(cosine * cosines + sine * sines, axis=-1)
        return xp.sum(below, axis=-2), xp.sum(xp.where(inside, slope * height, 0.0), axis=-2)


def lattice_marginal(z: AnyArray, weights: AnyArray, axis: Axis, step: float) -> Marginal:
    """Sum the points (..., L, N) of every lattice into its series, cut where the lattice's own frequency begins."""
    xp = namespace_of(z)
    angle = 2 * np.pi * axis.position(z)[0]
    cosine, sine = xp.cos(angle), xp.sin(angle)
    k = np.arange(1, int((1 + 2 * _CUT_WIDTH) / (2 * step)) + 1)

    def advance(wave: _Wave, _: AnyArray) -> tuple[_Wave, _Wave]:
        c, s = wave
        return _product(wave, (cosine, sine)), (xp.sum(weights * c, axis=-1), xp.sum(weights * s, axis=-1))

    _, sums = loops_of(z).scan(advance, (cosine, sine), k)
    cosines, sines = (xp.moveaxis(each, 0, -1) for each in sums)  # (..., L, K)
    frequency = 2 * step * k  # one where the lattice cannot tell waves apart
    kept = special.erfc((frequency - 1) / _CUT_WIDTH) / 2
    # The waves behind the cut are as large as what lies beyond and as what is folded back from there; phases vary.
    behind = xp.where(frequency > 1, (cosines**2 + sines**2) / (np.pi * k) ** 2, 0.0)
    blur = xp.sqrt(xp.sum(behind, axis=(-2, -1)))
    return Marginal(z, weights, axis, kept * cosines, kept * sines, blur)


def _waves(angle: AnyArray, number: int) -> tuple[AnyArray, AnyArray]:
    """cos(k angle) and sin(k angle) for k = 1, ..., number: products of one of each, which cost most."""
    xp = namespace_of(angle)
    fine = _powers((xp.cos(angle), xp.sin(angle)), _FINE_WAVES + 1)
    coarse = _powers(fine.pop(), number // _FINE_WAVES + 1)
    products = [_product(high, low) for high in coarse for low in fine][1 : number + 1]
    return xp.stack([c for c, _ in products], -1), xp.stack([s for _, s in products], -1)


_Wave = tuple[AnyArray, AnyArray]


def _product(one: _Wave, other: _Wave) -> _Wave:
    """The wave whose angle is the sum."""
    return one[0] * other[0] - one[1] * other[1], one[1] * other[0] + one[0] * other[1]


def _powers(wave: _Wave, number: int) -> list[_Wave]:
    """Waves of 0, 1, ..., number - 1 times the angle."""
    xp = namespace_of(wave[0])
    powers = [(xp.ones_like(wave[0]), xp.zeros_like(wave[1])), wave]
    while len(powers) < number:
        half = len(powers) // 2
        powers.append(_product(powers[half], powers[len(powers) - half]))
    return powers[:number]


class _Search(NamedTuple):
    low: AnyArray
    high: AnyArray
    t: AnyArray
    density: AnyArray
    moving: AnyArray
    taken: AnyArray


def lattice_quantiles(marginal: Marginal, probabilities: np.ndarray) -> tuple[AnyArray, AnyArray]:
    """Quantiles on the line (..., Q) and the density there: Newton's method inside a shrinking bracket.

    A search that has settled stays where it is until the last one has.
    """
    mean, sd = (each[..., None] for each in marginal.moments())
    low, high = (each[..., None] for each in marginal.axis.ends())
    xp = namespace_of(mean)

    def unsettled(state: _Search) -> AnyArray:
        return xp.any(state.moving) & (state.taken < _QUANTILE_STEPS)

    def advance(state: _Search) -> _Search:
        low, high, t, before, moving, taken = state
        below, density = marginal.evaluate(t)
        low, high = xp.where(below < probabilities, t, low), xp.where(below < probabilities, high, t)
        newton = t - (below - probabilities) / xp.where(density > 0, density, 1.0)
        inside = (density > 0) & (newton >= low) & (newton <= high)
        moved = xp.where(inside, newton, (low + high) / 2)
        return _Search(
            low=low,
            high=high,
            t=xp.where(moving, moved, t),
            density=xp.where(moving, density, before),
            moving=moving & (xp.abs(moved - t) > _QUANTILE_TOLERANCE * sd),
            taken=taken + 1,
        )

    guess = xp.clip(mean + sd * special.ndtri(probabilities), low, high)
    start = _Search(
        low=xp.broadcast_to(low, guess.shape),
        high=xp.broadcast_to(high, guess.shape),
        t=guess,
        density=xp.zeros_like(guess),
        moving=xp.ones_like(guess, dtype=bool),
        taken=xp.asarray(0),
    )
    found = loops_of(guess).while_loop(unsettled, advance, start)
    return found.t, found.density
