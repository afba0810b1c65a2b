"""Axes: monotone maps from the line to (0, 1) on which the points of an integration are equally spaced.

The points of a lattice sample a smooth density. Seen along one parameter, in the position on its axis, that density
is periodic, so that a short Fourier series holds all that the lattice knows of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.numerics.arrays import Array, jax, jnp

_MARGIN = 1.1
_BREADTH = 1.0
_BROAD_SHARE = 0.15
_MODE_SCALE = 2.0
_INVERSION_STEPS = 40
_FARTHEST = 1e3


class Stretched(NamedTuple):
    """L lattices, each uniform in asinh((z - centre) / bend) from -reach to reach."""

    centre: Array  # (L,)
    bend: Array  # (L,)
    reach: Array  # (L,)

    @staticmethod
    def step(spacing: float, reach: float) -> float:
        """The distance between neighbours on the axis."""
        return spacing / (2 * _MARGIN * reach)

    def position(self, z: Array) -> tuple[Array, Array]:
        """Positions (L, N) of points z (L, N), or (1, N) for all lattices, and their slopes."""
        away = (z - self.centre[:, None]) / self.bend[:, None]
        span = 2 * _MARGIN * self.reach[:, None]
        slope = 1 / (jnp.sqrt(1 + away**2) * self.bend[:, None] * span)
        return jnp.arcsinh(away) / span + 0.5, slope

    def ends(self) -> tuple[Array, Array]:
        """The interval outside which there is nothing."""
        extent = self.bend * jnp.sinh(_MARGIN * self.reach)
        return jnp.min(self.centre - extent), jnp.max(self.centre + extent)


class Mixture(NamedTuple):
    """One lattice for all modes of one parameter: uniform in the distribution function of a mixture of t distributions.

    Every mode has a component, and a broad one over the whole prior sees to what lies between and beyond them. The t
    distribution with two degrees of freedom has tails that reach far enough, and it needs nothing but a square root.
    """

    centre: Array  # (M,)
    scale: Array  # (M,)
    share: Array  # (M,)

    @classmethod
    def of_modes(cls, centre: Array, sd: Array, log_mass: Array) -> Mixture:
        """Points follow the square root of the mass: small modes deserve more than their share.

        One mode alone needs no broad component.
        """
        only = cls(centre, _MODE_SCALE * sd, jax.nn.softmax(log_mass / 2))
        if centre.size == 1:
            return only
        return cls(
            jnp.append(only.centre, 0.0),
            jnp.append(only.scale, _BREADTH),
            jnp.append((1 - _BROAD_SHARE) * only.share, _BROAD_SHARE),
        )

    def position(self, z: Array) -> tuple[Array, Array]:
        """Positions (1, N) of points z (1, N), and their slopes."""
        away = (z[..., None] - self.centre) / self.scale
        root = jnp.sqrt(2 + away**2)
        return (0.5 + away / (2 * root)) @ self.share, (1 / root**3) @ (self.share / self.scale)

    def at(self, position: Array) -> Array:
        """The points z at some positions: Newton's method inside a shrinking bracket."""
        # A mixture's quantile lies between the quantiles of its components.
        centred = 2 * position - 1
        quantile = jnp.sqrt(2.0) * centred / jnp.sqrt(1 - centred**2)
        quantiles = self.centre + self.scale * quantile[..., None]
        if self.centre.size == 1:
            return quantiles[..., 0]
        low, high = jnp.min(quantiles, axis=-1), jnp.max(quantiles, axis=-1)

        def improve(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            low, high, z = state
            below, slope = self.position(z)
            low, high = jnp.where(below < position, z, low), jnp.where(below < position, high, z)
            newton = z - (below - position) / slope
            return low, high, jnp.where((newton > low) & (newton < high), newton, (low + high) / 2)

        _, _, found = jax.lax.fori_loop(0, _INVERSION_STEPS, improve, (low, high, (low + high) / 2))
        return jnp.asarray(found)

    def ends(self) -> tuple[Array, Array]:
        """The interval outside which there is nothing."""
        return jnp.asarray(-_FARTHEST), jnp.asarray(_FARTHEST)


Axis = Stretched | Mixture


def cell_middles(number: int) -> np.ndarray:
    """The middles of equal cells of (0, 1)."""
    return (np.arange(number) + 0.5) / number
