"""The non-parametric predictor mu-hat and generalised cross-validation, densely."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from tests.oracles.correlation import correlation

if TYPE_CHECKING:
    from tests.oracles.arrays import Array


@dataclass(frozen=True)
class Fit:
    """mu-hat for one dataset, with rho = (psi, kappa) held."""

    x: Array
    y: Array
    psi: Array
    kappa: float

    @property
    def phi(self) -> Array:
        return self.kappa * np.eye(len(self.x)) + correlation(self.x, self.x, self.psi)

    @property
    def hat_matrix(self) -> Array:
        """R = C Phi^-1."""
        return correlation(self.x, self.x, self.psi) @ np.linalg.inv(self.phi)

    @property
    def sigma2(self) -> float:
        residual = np.eye(len(self.x)) - self.hat_matrix
        return float(np.sum((residual @ self.y) ** 2) / np.trace(residual @ residual))

    @property
    def gcv(self) -> float:
        residual = np.eye(len(self.x)) - self.hat_matrix
        return float(np.sum((residual @ self.y) ** 2) / (np.trace(residual) / len(self.x)) ** 2)

    def predict(self, points: Array) -> Array:
        return correlation(points, self.x, self.psi) @ np.linalg.solve(self.phi, self.y)


def best_fit(
    x: Array,
    y: Array,
    psi_bounds: tuple[float, float],
    kappa_bounds: tuple[float, float],
    per_axis: int = 40,
    polish: int = 6,
) -> Fit:
    """The GCV optimum in the box of rho: every point of a log grid, then a polish.

    The criterion is multi-modal, so the best ``polish`` local minima of the grid
    are all refined.
    """
    k = x.shape[1]
    bounds = [tuple(np.log(psi_bounds))] * k + [tuple(np.log(kappa_bounds))]
    axes = [np.linspace(a, b, per_axis) for a, b in bounds]

    def criterion(log_rho: Array) -> float:
        rho = np.exp(log_rho)
        return Fit(x, y, rho[:k], float(rho[k])).gcv

    values = np.array([criterion(np.array(point)) for point in product(*axes)])
    cube = values.reshape([per_axis] * (k + 1))
    starts = sorted(_local_minima(cube), key=lambda index: float(cube[index]))[:polish]
    ends = [
        minimize(
            criterion,
            np.array([axis[i] for axis, i in zip(axes, index, strict=True)]),
            method="Nelder-Mead",
            bounds=bounds,
            options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 1000},
        )
        for index in starts
    ]
    rho = np.exp(min(ends, key=lambda end: float(end.fun)).x)
    return Fit(x, y, rho[:k], float(rho[k]))


def _local_minima(cube: Array) -> list[tuple[int, ...]]:
    padded = np.pad(cube, 1, constant_values=np.inf)
    centre = tuple(slice(1, -1) for _ in cube.shape)
    lowest = np.ones(cube.shape, dtype=bool)
    for axis in range(cube.ndim):
        for shift in (-1, 1):
            lowest &= cube <= np.roll(padded, shift, axis=axis)[centre]
    return [tuple(int(i) for i in index) for index in np.argwhere(lowest)]
