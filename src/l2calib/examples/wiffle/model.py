"""The time a ball takes to fall, with drag proportional to the square of its velocity."""

import jax.numpy as jnp
from jax import Array


def fall_time(height: Array, g: Array, m: Array) -> Array:
    """Return seconds: g is nominally gravity (m/s2), m gathers mass and drag (m)."""
    return jnp.sqrt(m / g) * jnp.arccosh(jnp.exp(height / m))
