"""A function with its first and second derivatives, in one forward pass.

Parameters are few, so forward mode twice is cheap, and it traces and compiles the function once.
"""

from __future__ import annotations

from collections.abc import Callable

from l2calib.numerics.arrays import Array, jax


def jet(function: Callable[[Array], Array]) -> Callable[[Array], tuple[Array, Array, Array]]:
    """The map from theta (p,) to value (...), gradient (..., p) and Hessian (..., p, p)."""

    def with_value(theta: Array) -> tuple[Array, Array]:
        value = function(theta)
        return value, value

    def with_slope(theta: Array) -> tuple[Array, tuple[Array, Array]]:
        slope, value = jax.jacfwd(with_value, has_aux=True)(theta)
        return slope, (value, slope)

    def evaluate(theta: Array) -> tuple[Array, Array, Array]:
        bend, (value, slope) = jax.jacfwd(with_slope, has_aux=True)(theta)
        return value, slope, bend

    return evaluate
