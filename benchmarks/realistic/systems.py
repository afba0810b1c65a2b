"""What a system does that its model does not know of: smooth deviations, forgotten mechanisms, and a mild kink.

A system is the model at its true parameters changed by one of these. What changes it by an amount that grows with its
`strength`, which is later set to what the distance to the model is meant to be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

Shape = Callable[[np.ndarray], np.ndarray]  # of points (N, k) of the unit cube: (N,)


@dataclass(frozen=True)
class Deviation:
    """mu from the model's values at the points u of the unit cube; `kink` is the input with one, and its place."""

    kind: str
    apply: Callable[[np.ndarray, np.ndarray, float], np.ndarray]  # (u, eta, strength) -> mu
    kink: tuple[int, float] | None = None


def no_deviation() -> Deviation:
    return Deviation("none", lambda _, eta, __: eta)


def random_deviation(rng: np.random.Generator, inputs: int, lowest: float, extent: float) -> Deviation:
    """One kind or another, each as often; the model's true values begin at `lowest` and span `extent`."""
    kind = KINDS[rng.integers(len(KINDS))]
    if kind == "inhibition":
        return Deviation(kind, _inhibition(rng, inputs))
    if kind == "saturation":
        return Deviation(kind, lambda _, eta, strength: eta / (1 + strength * (eta - lowest) / extent))
    kink = (int(rng.integers(inputs)), float(rng.uniform(0.25, 0.75))) if kind == "kink" else None
    shape = _bend(*kink) if kink else _ADDED[kind](rng, inputs)
    sign = rng.choice((-1.0, 1.0))
    return Deviation(kind, lambda u, eta, strength: eta + sign * strength * extent * shape(u), kink)


def _waves(rng: np.random.Generator, inputs: int) -> Shape:
    """A few waves, of up to two periods per input, the longer ones larger."""
    frequencies = np.array([f for f in np.ndindex(*(5,) * inputs) if 0 < sum(f) <= 4], dtype=float)
    weights = rng.standard_normal(len(frequencies)) / (1 + frequencies.sum(axis=1)) ** 1.5
    phases = rng.uniform(0, 2 * np.pi, frequencies.shape)

    def shape(u: np.ndarray) -> np.ndarray:
        waves = np.cos(np.pi * frequencies * u[:, None] + phases)
        return np.asarray(waves.prod(axis=2) @ weights)

    return shape


def _polynomial(rng: np.random.Generator, inputs: int) -> Shape:
    """Chebyshev polynomials of degree one to five, the lower ones larger."""
    degrees = np.stack(np.indices((6,) * inputs)).sum(axis=0)
    scales = np.where((degrees > 0) & (degrees <= 5), 1 / np.maximum(degrees, 1.0) ** 1.5, 0.0)
    coefficients = rng.standard_normal(degrees.shape) * scales
    if inputs == 1:
        return lambda u: np.asarray(chebyshev.chebval(2 * u[:, 0] - 1, coefficients))
    return lambda u: np.asarray(chebyshev.chebval2d(2 * u[:, 0] - 1, 2 * u[:, 1] - 1, coefficients))


def _bump(rng: np.random.Generator, inputs: int) -> Shape:
    centre, width = rng.uniform(0.1, 0.9, inputs), rng.uniform(0.1, 0.25, inputs) * np.sqrt(inputs)
    return lambda u: np.asarray(np.exp(-np.square((u - centre) / width).sum(axis=1)))


def _background(rng: np.random.Generator, inputs: int) -> Shape:
    """A constant that nobody subtracted, and a drift."""
    drift = rng.uniform(-1, 1, inputs)
    return lambda u: np.asarray(1 + u @ drift)


def _bend(axis: int, place: float) -> Shape:
    """A slope that changes at one place."""
    return lambda u: np.asarray(np.maximum(0, u[:, axis] - place))


def _inhibition(rng: np.random.Generator, inputs: int) -> Callable[[np.ndarray, np.ndarray, float], np.ndarray]:
    """Something slows down as one input grows."""
    axis, power = int(rng.integers(inputs)), float(rng.choice((1.0, 2.0, 3.0)))
    return lambda u, eta, strength: eta / (1 + strength * u[:, axis] ** power)


_ADDED: dict[str, Callable[[np.random.Generator, int], Shape]] = {
    "waves": _waves,
    "polynomial": _polynomial,
    "bump": _bump,
    "background": _background,
}
KINDS = (*_ADDED, "kink", "inhibition", "saturation")
