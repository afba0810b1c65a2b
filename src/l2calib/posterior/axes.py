"""Axes: monotone maps from the line to (0, 1) on which the points of an integration are equally spaced.

The points of a lattice sample a smooth density. Seen along one parameter, in the position on its axis, that density
is periodic, so that a short Fourier series holds all that the lattice knows of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.numerics.namespace import AnyArray, loops_of, namespace_of, softmax

_MARGIN = 1.1
_BREADTH = 1.0
_BROAD_SHARE = 0.15
_MODE_SCALE = 2.0
_INVERSION_STEPS = 40
_FARTHEST = 1e3


class Stretched(NamedTuple):
    """L lattices, each uniform in asinh((z - centre) / bend) from -reach to reach."""

    centre: AnyArray  # (..., L)
    bend: AnyArray  # (..., L)
    reach: AnyArray  # (..., L)

    @staticmethod
    def step(spacing: float, reach: float) -> float:
        """The distance between neighbours on the axis."""
        return spacing / (2 * _MARGIN * reach)

    def position(self, z: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Positions (..., L, N) of points z (..., L, N), or (..., 1, N) for all lattices, and their slopes."""
        xp = namespace_of(z)
        away = (z - self.centre[..., None]) / self.bend[..., None]
        span = 2 * _MARGIN * self.reach[..., None]
        slope = 1 / (xp.sqrt(1 + away**2) * self.bend[..., None] * span)
        return xp.arcsinh(away) / span + 0.5, slope

    def ends(self) -> tuple[AnyArray, AnyArray]:
        """The interval outside which there is nothing."""
        xp = namespace_of(self.centre)
        extent = self.bend * xp.sinh(_MARGIN * self.reach)
        return xp.min(self.centre - extent, axis=-1), xp.max(self.centre + extent, axis=-1)


class Mixture(NamedTuple):
    """One lattice for all modes of one parameter: uniform in the distribution function of a mixture of t distributions.

    Every mode has a component, and a broad one over the whole prior sees to what lies between and beyond them. The t
    distribution with two degrees of freedom has tails that reach far enough, and it needs nothing but a square root.
    """

    centre: AnyArray  # (..., M)
    scale: AnyArray  # (..., M)
    share: AnyArray  # (..., M)

    @classmethod
    def of_modes(cls, centre: AnyArray, sd: AnyArray, log_mass: AnyArray) -> Mixture:
        """Points follow the square root of the mass of M modes (M,): small ones deserve more than their share.

        One mode alone needs no broad component.
        """
        only = cls(centre, _MODE_SCALE * sd, softmax(log_mass / 2))
        if centre.size == 1:
            return only
        xp = namespace_of(centre)
        return cls(
            xp.append(only.centre, 0.0),
            xp.append(only.scale, _BREADTH),
            xp.append((1 - _BROAD_SHARE) * only.share, _BROAD_SHARE),
        )

    def position(self, z: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Positions (..., 1, N) of points z (..., 1, N), and their slopes."""
        xp = namespace_of(self.centre)
        # The points are the last axis, not the components: what is computed of many is vectorised along it.
        centre, scale, share = (part[..., None, :, None] for part in self)
        away = (z[..., None, :] - centre) / scale
        root = xp.sqrt(2 + away**2)
        slope = xp.sum(share / scale / root**3, axis=-2)
        return xp.sum(share * (0.5 + away / (2 * root)), axis=-2), slope

    def at(self, position: AnyArray) -> AnyArray:
        """The points z (N,) of one mixture at some positions (N,): Newton's method inside a shrinking bracket."""
        xp = namespace_of(self.centre)
        # A mixture's quantile lies between the quantiles of its components.
        centred = 2 * position - 1
        quantile = np.sqrt(2.0) * centred / namespace_of(position).sqrt(1 - centred**2)
        quantiles = self.centre[:, None] + self.scale[:, None] * quantile
        if self.centre.size == 1:
            return quantiles[0]
        low, high = xp.min(quantiles, axis=0), xp.max(quantiles, axis=0)

        def improve(_: int, state: tuple[AnyArray, AnyArray, AnyArray]) -> tuple[AnyArray, AnyArray, AnyArray]:
            low, high, z = state
            below, slope = (part[0] for part in self.position(z[None]))
            low, high = xp.where(below < position, z, low), xp.where(below < position, high, z)
            newton = z - (below - position) / slope
            return low, high, xp.where((newton > low) & (newton < high), newton, (low + high) / 2)

        _, _, found = loops_of(low).fori_loop(0, _INVERSION_STEPS, improve, (low, high, (low + high) / 2))
        return found

    def ends(self) -> tuple[AnyArray, AnyArray]:
        """The interval outside which there is nothing."""
        farthest = namespace_of(self.centre).full_like(self.centre[..., 0], _FARTHEST)
        return -farthest, farthest


Axis = Stretched | Mixture


def cell_middles(number: int) -> np.ndarray:
    """The middles of equal cells of (0, 1)."""
    return (np.arange(number) + 0.5) / number
