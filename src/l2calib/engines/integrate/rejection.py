"""Independent draws from an integrated posterior: rejection against the piecewise constant density of its points."""

from __future__ import annotations

from typing import NamedTuple

from l2calib.numerics.arrays import Array, jax
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.points import Target


class Uniforms(NamedTuple):
    """Numbers between zero and one, all that N candidates need of chance."""

    pick: AnyArray  # (N,): a point
    cell: AnyArray  # (N, p): a place in its cell
    accept: AnyArray  # (N,)

    @classmethod
    def of_key(cls, key: Array, number: int, dimension: int) -> Uniforms:
        """By JAX."""
        shapes = (number,), (number, dimension), (number,)
        keys = jax.random.split(key, 3)
        return cls(*(jax.random.uniform(each, shape) for each, shape in zip(keys, shapes, strict=True)))

    def points(self, weights: AnyArray) -> AnyArray:
        """The indices of points, each as often as it is heavy (K,)."""
        xp = namespace_of(weights)
        below = xp.cumsum(weights)
        return xp.searchsorted(below, below[-1] * (1 - self.pick))

    def accepted(self, target: Target, z: AnyArray, log_ratio: AnyArray) -> AnyArray:
        """Which candidates z (N, p) are draws, by the ratio of the density to that of their cells."""
        xp = namespace_of(log_ratio)
        limit = log_ratio - xp.max(log_ratio)
        # A share is at most one, so it takes away what it should after the ratio has been made one at the most.
        return xp.log(self.accept) < (limit if target.log_share is None else limit + target.log_share(z))
