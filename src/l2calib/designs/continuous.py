"""The continuous step: points leave their levels and move freely in the unit cube (docs/decisions/0007)."""

from __future__ import annotations

import numpy as np

from l2calib.designs.criterion import log_mean_product


def move_freely(design: np.ndarray) -> np.ndarray:
    """A local minimum of the criterion near the design, or the design where none better is found.

    Filling [0, 1] with a column lowers the criterion, so the range of each column is part of the objective, which then
    needs no bounds and does not feel a column's position and scale.
    """
    n, k = design.shape
    if n == 1:
        return design
    from scipy.optimize import minimize

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = scale_free_criterion(flat.reshape(n, k))
        return value, slope.ravel()

    steps = max(20, min(2000, 200_000_000 // (n**2 * k)))
    found = minimize(objective, design.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxcor": 20})
    moved = found.x.reshape(n, k)
    lowest, highest = moved.min(axis=0), moved.max(axis=0)
    moved = (moved - lowest) / (highest - lowest)
    return moved[moved[:, 0].argsort()] if log_mean_product(moved) < log_mean_product(design) else design


def scale_free_criterion(points: np.ndarray) -> tuple[float, np.ndarray]:
    """k log psi of the columns stretched to [0, 1], and its slopes (n, k)."""
    n, k = points.shape
    differences = points.T[:, :, None] - points.T[:, None, :]
    differences[:, np.arange(n), np.arange(n)] = 1.0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = -2 * np.log(np.abs(differences)).sum(axis=0)
        np.fill_diagonal(exponents, -np.inf)
        peak = exponents.max()
        closeness = np.exp(exponents - peak)
        total = closeness.sum()
        slopes = -4 * np.einsum("ij,lij->il", closeness / total, 1 / differences)
    columns, lowest, highest = np.arange(k), points.argmin(axis=0), points.argmax(axis=0)
    ranges = points[highest, columns] - points[lowest, columns]
    slopes[highest, columns] += 2 / ranges
    slopes[lowest, columns] -= 2 / ranges
    return float(peak + np.log(total / (n * (n - 1))) + 2 * np.log(ranges).sum()), slopes
