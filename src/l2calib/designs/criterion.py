"""The maximum projection criterion psi of Joseph, Gul and Ba (2015): smaller is better."""

from __future__ import annotations

import numpy as np

from l2calib.errors import DataError

_PAIRS_AT_ONCE = 4_000_000


def maxpro_criterion(design: np.ndarray) -> float:
    """{mean over pairs i < j of prod_l 1 / (x_il - x_jl)^2}^(1/k), infinite where two points share a coordinate."""
    try:
        points = np.asarray(design, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"a design must be an array of numbers: received {design!r:.60}.") from None
    if points.ndim != 2 or len(points) < 2 or points.shape[1] < 1:
        raise DataError(
            f"the criterion needs a design (n, k) of at least two points: received an array of shape {points.shape}."
        )
    if not np.isfinite(points).all():
        raise DataError("the design has coordinates that are not finite; remove those points.")
    return float(np.exp(log_mean_product(points) / points.shape[1]))


def log_mean_product(points: np.ndarray) -> float:
    """k log psi; by logarithms, so that no number of inputs overflows, and by rows, so that no n exhausts memory."""
    n = len(points)
    rows = max(1, _PAIRS_AT_ONCE // n)
    logs = [_log_sum(points, np.arange(first, min(first + rows, n))) for first in range(0, n, rows)]
    return float(np.logaddexp.reduce(logs) - np.log(n * (n - 1)))


def _log_sum(points: np.ndarray, rows: np.ndarray) -> float:
    """The logarithm of the sum over all pairs of these rows with other points."""
    exponents = np.zeros((len(rows), len(points)))
    for column in points.T:
        distances = np.abs(np.subtract.outer(column[rows], column))
        distances[np.arange(len(rows)), rows] = 1.0
        with np.errstate(divide="ignore"):
            exponents -= 2 * np.log(distances)
    exponents[np.arange(len(rows)), rows] = -np.inf
    peak = float(exponents.max())
    return peak + float(np.log(np.exp(exponents - peak).sum())) if np.isfinite(peak) else peak
