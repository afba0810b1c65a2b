"""The array library of the numeric core: JAX, always in float64."""

import jax
import jax.numpy as jnp
from jax import Array

jax.config.update("jax_enable_x64", True)

__all__ = ["Array", "jax", "jnp"]
