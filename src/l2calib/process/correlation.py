"""The correlation function c of a Gaussian process on the unit cube (paper, Section 2.2): each formula once.

A correlation is evaluated on squared differences (N, M, k) between two sets of points, in NumPy or in JAX, whichever
its arguments are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from l2calib.numerics.arrays import Array
from l2calib.numerics.namespace import namespace_of

AnyArray = TypeVar("AnyArray", np.ndarray, Array)


class Correlation(Protocol):
    """A stationary correlation function with a scale psi_j for every input."""

    def __hash__(self) -> int: ...

    def __call__(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        """c (N, M) of points whose squared differences are (N, M, k)."""
        ...

    def slopes(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        """The derivatives of c by every log psi_j: (N, M, k)."""
        ...


@dataclass(frozen=True)
class SquaredExponential:
    """c(x, x'; psi) = exp(-sum_j psi_j (x_j - x'_j)^2)."""

    def __call__(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        distance = squared @ psi
        correlated: AnyArray = namespace_of(distance).exp(-distance)
        return correlated

    def slopes(self, squared: AnyArray, psi: AnyArray) -> AnyArray:
        by_psi: AnyArray = -psi * squared * self(squared, psi)[..., None]
        return by_psi


def squared_differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(x_j - x'_j)^2 for all pairs of rows and every input: (len(a), len(b), k)."""
    return np.asarray((a[:, None, :] - b[None, :, :]) ** 2)
