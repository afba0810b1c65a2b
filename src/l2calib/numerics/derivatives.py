"""A function with its first and second derivatives: exactly, in one forward pass, or from differences.

Parameters are few, so forward mode twice is cheap, and it traces and compiles the function once. What NumPy computes is
no program that could be differentiated: there, values at a few points around each row tell the derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

import numpy as np

from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.namespace import AnyArray, namespace_of

# Of a posterior sd. What a quartic adds to a second difference falls with the square of the step, to 1e-5 of it here;
# what the last digits of a log density add grows with its inverse, to 1e-4 if eight of them are right.
_STEP = 0.01


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


OfRows = Callable[[AnyArray], AnyArray]  # rows (N, p) -> (N,)


class Jet(Protocol):
    """At rows z (N, p): value (N,), slope (N, d) and bend (N, d, d) along directions (N, d, p), the axes if None.

    `scale` (N, d) says roughly over how long a step along each the function bends: of a log density, the sd.
    """

    def __call__(
        self, z: AnyArray, scale: AnyArray, directions: np.ndarray | None = None, /
    ) -> tuple[AnyArray, AnyArray, AnyArray]: ...


def jet_of_rows(function: OfRows) -> Jet:
    """The jet of a function of rows, each for itself: exact in JAX, where the scale plays no role."""

    def look(
        z: AnyArray, scale: AnyArray, directions: np.ndarray | None = None, /
    ) -> tuple[AnyArray, AnyArray, AnyArray]:
        if namespace_of(z) is np:
            return differences_of_rows(function)(z, scale, directions)

        # One shift for all rows: no row knows of another, so its derivatives are theirs.
        def shifted(shift: Array) -> Array:
            move = shift if directions is None else sum(shift[j] * directions[:, j] for j in range(shift.size))
            found: Array = function(z + move)
            return found

        return jet(shifted)(jnp.zeros(z.shape[1] if directions is None else directions.shape[1]))

    return look


@functools.cache
def _stencil(dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The S = 1 + 2 d^2 points (S, d) of central differences, and the weights of slopes (d, S) and bends (d, d, S)."""
    axes, number = np.eye(dimension), 1 + 2 * dimension**2
    points = [np.zeros(dimension)]
    slopes, bends = np.zeros((dimension, number)), np.zeros((dimension, dimension, number))
    for i in range(dimension):
        slopes[i, len(points) :][:2] = 0.5, -0.5
        bends[i, i, [0, len(points), len(points) + 1]] = -2.0, 1.0, 1.0
        points += [axes[i], -axes[i]]
    for i in range(dimension):
        for j in range(i):
            for_pair = slice(len(points), len(points) + 4)
            bends[i, j, for_pair] = bends[j, i, for_pair] = 0.25, 0.25, -0.25, -0.25
            points += [axes[i] + axes[j], -axes[i] - axes[j], axes[i] - axes[j], axes[j] - axes[i]]
    return np.array(points), slopes, bends


def differences_of_rows(function: OfRows) -> Jet:
    """The jet of a function of rows by central differences, from one call for all rows, in either library.

    A function whose exact derivatives would be a long program needs none where they only say where to look.
    """

    def look(
        z: AnyArray, scale: AnyArray, directions: np.ndarray | None = None, /
    ) -> tuple[AnyArray, AnyArray, AnyArray]:
        xp, (rows, p) = namespace_of(z), z.shape
        along = np.broadcast_to(np.eye(p), (rows, p, p)) if directions is None else directions
        points, slopes, bends = _stencil(along.shape[1])
        steps = _STEP * scale
        around = z[:, None] + xp.matmul(points * steps[:, None], along)  # (N, S, p)
        values = function(around.reshape(-1, p)).reshape(rows, len(points))
        value = values[:, 0]
        away = values - value[:, None]  # the digits that are the same all over are not summed
        bend = xp.tensordot(away, bends, (1, 2)) / (steps[:, :, None] * steps[:, None, :])
        return value, away @ slopes.T / steps, bend

    return look
