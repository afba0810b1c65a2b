"""Moments of weighted points."""

from __future__ import annotations

from l2calib.numerics.namespace import AnyArray, namespace_of


def moments(values: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Means and standard deviations of values (..., N), with weights (..., N) that sum to one."""
    xp = namespace_of(values)
    mean = xp.sum(weights * values, axis=-1)
    return mean, xp.sqrt(xp.sum(weights * (values - mean[..., None]) ** 2, axis=-1))
