"""The array library of the numeric core: JAX, always in float64."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

jax.config.update("jax_enable_x64", True)

__all__ = ["Array", "adoptable_zeros", "jax", "jnp"]

_ALIGNMENT = 64  # bytes: what JAX's CPU backend asks of memory that it uses where it is


def adoptable_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros for a large table that is filled in place and then given to JAX, which need not copy it."""
    size, item = math.prod(shape), np.dtype(float).itemsize
    room = np.zeros(size + _ALIGNMENT // item)
    start = -room.ctypes.data % _ALIGNMENT // item
    return room[start : start + size].reshape(shape)
