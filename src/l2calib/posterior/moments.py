"""Moments of weighted points."""

from __future__ import annotations

from l2calib.numerics.arrays import Array, jnp


def moments(values: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of weighted rows (N, ...)."""
    mean = weights @ values
    return mean, jnp.sqrt(weights @ (values - mean) ** 2)
