"""The normal distribution: in NumPy that of SciPy, in JAX one for batches.

Batches want no branches, since all of them are computed. For x >= 0, Phi(-x) = exp(-x^2 / 2) R(x), and (x + a) R(x) is
a smooth function of (x - a) / (x + a), from -1 at zero to 1 at infinity: a polynomial, fitted when this module is
loaded. The relative error is about that of the exponential.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.namespace import AnyArray

_MIDDLE = 5.0
_DEGREE = 20
_NODES = 200
_FARTHEST = 40.0  # Phi(-40) is no longer a number above zero


def _fitted() -> np.ndarray:
    """The coefficients, lowest first."""
    t = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    x = _MIDDLE * (1 + t) / (1 - t)
    ratio = special.erfcx(x * np.sqrt(0.5)) / 2
    return np.asarray(chebyshev.cheb2poly(chebyshev.chebfit(t, (x + _MIDDLE) * ratio, _DEGREE)))


_COEFFICIENTS = _fitted()


def distribution_function(z: AnyArray) -> AnyArray:
    """Phi(z); of plain numbers, as JAX sees them."""
    return special.ndtr(z) if isinstance(z, np.ndarray | np.generic) else _for_batches(z)


@jax.custom_jvp
def _for_batches(z: Array) -> Array:
    x = jnp.minimum(jnp.abs(z), _FARTHEST)
    t = (x - _MIDDLE) / (x + _MIDDLE)
    ratio = jnp.full_like(t, _COEFFICIENTS[-1])
    for coefficient in _COEFFICIENTS[-2::-1]:
        ratio = ratio * t + coefficient
    below = jnp.exp(-(x**2) / 2) * ratio / (x + _MIDDLE)
    return jnp.where(z > 0, 1 - below, below)


@_for_batches.defjvp
def _derivative(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (z,), (change,) = primals, tangents
    return _for_batches(z), change * jnp.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def log_normal_density(z: AnyArray) -> AnyArray:
    """The log density of the standard normal distribution."""
    return -(z**2) / 2 - np.log(2 * np.pi) / 2
