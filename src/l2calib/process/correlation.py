"""The correlation function c of a Gaussian process on the unit cube (paper, Section 2.2): each formula once.

A correlation is evaluated on squared differences (N, M, k) between two sets of points, in NumPy or in JAX, whichever
its arguments are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from l2calib.errors import MethodError
from l2calib.numerics.arrays import Array
from l2calib.numerics.namespace import namespace_of

AnyArray = TypeVar("AnyArray", np.ndarray, Array)


class Correlation(Protocol):
    """A stationary correlation function with a scale psi_j for every input."""

    def __hash__(self) -> int: ...

    @property
    def suffix(self) -> str:
        """What it adds to the name of a method, nothing if it is the usual one."""
        ...

    def __call__(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        """c (N, M) of points whose squared differences are (N, M, k)."""
        ...

    def slopes(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        """The derivatives of c by every log psi_j: (N, M, k)."""
        ...


@dataclass(frozen=True)
class SquaredExponential:
    """c(x, x'; psi) = exp(-sum_j psi_j (x_j - x'_j)^2)."""

    suffix = ""

    def __call__(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        distance = squared @ psi
        correlated: AnyArray = namespace_of(distance).exp(-distance)
        return correlated

    def slopes(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        by_psi: AnyArray = -psi * squared * self(squared, psi)[..., None]
        return by_psi


@dataclass(frozen=True)
class Matern:
    """Of smoothness nu, 3/2 or 5/2: c = f(a) exp(-a) with a^2 = 4 nu sum_j psi_j (x_j - x'_j)^2.

    psi means what it means for the squared exponential, which is the limit of nu.
    """

    smoothness: float = 2.5

    def __post_init__(self) -> None:
        if self.smoothness not in (1.5, 2.5):
            raise MethodError(f"the smoothness of a Matern correlation is 1.5 or 2.5: received {self.smoothness}.")

    @property
    def suffix(self) -> str:
        return f"+matern{2 * self.smoothness:.0f}2"

    def __call__(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        a, falling = self._at(squared @ psi)
        polynomial = 1 + a if self.smoothness == 1.5 else 1 + a + a**2 / 3
        correlated: AnyArray = polynomial * falling
        return correlated

    def slopes(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        a, falling = self._at(squared @ psi)
        by_distance = -3 * falling if self.smoothness == 1.5 else -5 / 3 * (1 + a) * falling
        by_psi: AnyArray = psi * squared * by_distance[..., None]
        return by_psi

    def _at(self, distance: AnyArray) -> tuple[AnyArray, AnyArray]:
        xp = namespace_of(distance)
        a = xp.sqrt(4 * self.smoothness * xp.maximum(distance, 0.0))
        return a, xp.exp(-a)


def squared_differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(x_j - x'_j)^2 for all pairs of rows and every input: (len(a), len(b), k)."""
    return np.asarray((a[:, None, :] - b[None, :, :]) ** 2)
