"""Charts: a posterior seen along one of its parameters, the outer one.

At equally spaced values of the outer coordinate, the knots, the other parameters have a centre and a factor of their
own, which follow the ridge of the posterior by continuation. That is what a skew posterior and a banana need, and a
rule of few points then does for the integral across the ridge. The outer coordinate is stretched by a hyperbolic sine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.engines.integrate.across import Rule
from l2calib.numerics.modes import Modes
from l2calib.numerics.namespace import AnyArray, loops_of, namespace_of
from l2calib.numerics.newton import climb, laplace, newton_step, scale_at
from l2calib.numerics.small_matrices import cholesky, diagonal
from l2calib.posterior.points import Target

_RIDGE_STEPS = 4
_END = 5.0  # of the prior, on the line


class Knots(NamedTuple):
    """Equally spaced values of the outer coordinate: -half, ..., half times the spacing."""

    half: int
    spacing: float
    bend: float
    far: bool  # whether they go to the ends of the prior, and climb on the way

    @property
    def values(self) -> np.ndarray:
        return self.spacing * np.arange(-self.half, self.half + 1)

    @property
    def reach(self) -> float:
        return self.half * self.spacing

    def stretch(self, centre: AnyArray, scale: AnyArray) -> AnyArray:
        """What to multiply the coordinate by: more than one if the last knot would be too near."""
        xp = namespace_of(centre)
        if not self.far:
            return xp.ones_like(centre)
        farthest = self.bend * xp.arcsinh((_END + xp.abs(centre)) / (self.bend * scale))
        return xp.maximum(farthest / self.reach, 1.0)


class Outer(NamedTuple):
    """The outer parameter of charts, in a coordinate whose array is broadcast against these."""

    centre: AnyArray
    scale: AnyArray
    stretch: AnyArray

    def at(self, knots: Knots, coordinate: AnyArray) -> AnyArray:
        xp = namespace_of(self.centre)
        return self.centre + self.scale * knots.bend * xp.sinh(self.stretch * coordinate / knots.bend)

    def log_slope(self, knots: Knots, coordinate: AnyArray) -> AnyArray:
        xp = namespace_of(self.centre)
        return xp.log(self.scale * self.stretch) + xp.log(xp.cosh(self.stretch * coordinate / knots.bend))


class Charts(NamedTuple):
    """The maps of M modes along their ridges in T turns, each with an outer parameter of its own."""

    turns: np.ndarray  # (T,): the outer parameters
    outer: Outer  # (T, M, 1)
    inner_centres: AnyArray  # (T, M, K, d), at the knots
    inner_factors: AnyArray  # (T, M, K, d, d)

    def around_knots(self, knots: Knots, rule: Rule) -> tuple[list[AnyArray], AnyArray]:
        """The rule's points at every knot, p arrays (T, M, K, R), and the logs of their weights.

        The points are the last axis: what is computed of thousands of them is vectorised along it.
        """
        xp, d = namespace_of(self.inner_centres), self.inner_centres.shape[-1]
        inner = []
        for i in range(d):
            coordinate = self.inner_centres[..., i, None]
            for j in range(i + 1):
                coordinate = coordinate + self.inner_factors[..., i, j, None] * rule.points[j]
            inner.append(coordinate)
        z_outer = self.outer.at(knots, knots.values)[..., None]
        log_slope = self.outer.log_slope(knots, knots.values) + np.log(knots.spacing)
        log_slope = log_slope + xp.sum(xp.log(diagonal(self.inner_factors)), axis=-1)
        z = joined(z_outer, inner, self.turns[:, None, None, None])
        return z, log_slope[..., None] + rule.log_weights

    def at(self, knots: Knots, rule: Rule, coordinates: AnyArray, mode: AnyArray) -> tuple[AnyArray, AnyArray]:
        """z (N, p) and log |dz / d coordinates| (N,) in the first turn's charts of some modes (N,).

        The coordinates (N, p) are those of a lattice, interpolated between the knots.
        """
        xp = namespace_of(self.inner_centres)
        first, rest = coordinates[:, 0], coordinates[:, 1:]
        outer = Outer(*(part[0, mode, 0] for part in self.outer))
        position = xp.clip(first / knots.spacing + knots.half, 0.0, 2.0 * knots.half)
        left = xp.minimum(xp.floor(position).astype(int), 2 * knots.half - 1)
        share = position - left

        def between(at_knots: AnyArray) -> AnyArray:
            part = share.reshape(-1, *[1] * (at_knots.ndim - 3))
            return (1 - part) * at_knots[0, mode, left] + part * at_knots[0, mode, left + 1]

        factor, bend = between(self.inner_factors), rule.bend
        log_slope = outer.log_slope(knots, first) + xp.sum(xp.log(diagonal(factor)), axis=-1)
        log_slope = log_slope + xp.sum(xp.log(xp.cosh(rest / bend)), axis=-1)
        stretched = bend * xp.sinh(rest / bend)
        inner = between(self.inner_centres) + xp.sum(factor * stretched[:, None, :], axis=-1)
        z = joined(outer.at(knots, first), [inner[:, i] for i in range(inner.shape[1])], self.turns[0])
        return xp.stack(z, axis=-1), log_slope


def joined(z_outer: AnyArray, inner: list[AnyArray], outer: np.ndarray) -> list[AnyArray]:
    """The parameters in order, from the outer one's value and the others'; which it is may vary."""
    xp, p = namespace_of(z_outer), len(inner) + 1
    places = []
    for position in range(p):
        before = inner[position] if position < p - 1 else z_outer
        after = inner[position - 1] if position > 0 else z_outer
        places.append(xp.where(position == outer, z_outer, xp.where(position < outer, before, after)))
    return places


def _others(turns: np.ndarray, p: int) -> np.ndarray:
    """The inner parameters of every turn (T, d)."""
    return np.array([[j for j in range(p) if j != turn] for turn in turns])


def straight_charts(modes: Modes, turns: np.ndarray, knots: Knots) -> Charts:
    """The ridges of the Gaussians themselves."""
    xp, others = namespace_of(modes.factors), _others(turns, modes.centres.shape[1])
    # Modes come first where numbers are picked by the turn.
    covariance = modes.factors @ xp.swapaxes(modes.factors, 1, 2)
    variance = covariance[:, turns, turns]
    slope = covariance[:, others, turns[:, None]] / variance[..., None]
    inner = covariance[:, others[:, :, None], others[:, None, :]]
    inner = inner - variance[..., None, None] * slope[..., :, None] * slope[..., None, :]
    centre, sd, slope, inner, inner_centre = (
        xp.swapaxes(each, 0, 1)
        for each in (modes.centres[:, turns], xp.sqrt(variance), slope, inner, modes.centres[:, others])
    )
    centre, sd = centre[..., None], sd[..., None]
    outer = Outer(centre, sd, knots.stretch(centre, sd))
    offsets = outer.at(knots, knots.values) - centre
    factors = cholesky(inner)[:, :, None]
    return Charts(
        turns,
        outer,
        inner_centre[:, :, None] + offsets[..., None] * slope[:, :, None],
        xp.broadcast_to(factors, (*factors.shape[:2], knots.values.size, *factors.shape[3:])),
    )


def ridge_charts(target: Target, modes: Modes, turns: np.ndarray, knots: Knots) -> Charts:
    """The charts that follow the ridges: at every knot, near the conditional mode, with the curvature there.

    One Newton step from where the last two knots point is mostly near enough, since a rule's points need not be centred
    exactly. Far out on a banana it may lead astray, so knots that go far climb.
    """
    xp, p, half = namespace_of(modes.centres), modes.centres.shape[1], knots.half
    straight, others = straight_charts(modes, turns, knots), _others(turns, p)
    middle = straight.inner_centres[:, :, half : half + 1]
    # The first knot away from the middle starts on the straight chart; the others extrapolate the walk.
    nearest = straight.inner_centres[:, :, half - 1 : half + 2 : 2]  # (T, M, 2, d): to both sides
    shape = nearest.shape
    z_outer = straight.outer.at(knots, knots.values)
    z_outer = xp.stack([z_outer[..., half - 1 :: -1], z_outer[..., half + 1 :]], axis=-1)
    scale = xp.swapaxes(modes.conditional_sd[:, others], 0, 1)[:, :, None]
    # All walks, of every turn, mode and side, are rows that advance together.
    rows_per_turn = shape[1] * shape[2]
    turn_of_row = np.repeat(turns, rows_per_turn)
    directions = np.repeat(np.eye(p)[others], rows_per_turn, axis=0)

    def advance(
        carry: tuple[AnyArray, AnyArray, AnyArray], z_outer: AnyArray
    ) -> tuple[tuple[AnyArray, AnyArray, AnyArray], tuple[AnyArray, AnyArray]]:
        last, before, scale = carry

        def look(inner: AnyArray, scale: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
            z = joined(z_outer, [inner[:, i] for i in range(p - 1)], turn_of_row)
            return target.jet(xp.stack(z, axis=-1), scale, directions)

        start = 2 * last - before
        reached = climb(look, start, scale, _RIDGE_STEPS) if knots.far else newton_step(look, start, scale)
        summit, factor, _ = laplace(reached)
        return (summit, last, scale_at(reached)), (summit, factor)

    rows = [xp.broadcast_to(each, shape).reshape(-1, p - 1) for each in (middle, 2 * middle - nearest, scale)]
    walk = xp.moveaxis(z_outer, 2, 0).reshape(half, -1)
    _, (centres, factors) = loops_of(middle).scan(advance, tuple(rows), walk)

    def from_end_to_end(found: AnyArray, in_the_middle: AnyArray) -> AnyArray:
        sides = xp.moveaxis(found.reshape(half, *shape[:3], *found.shape[2:]), 0, 2)  # (T, M, K, 2, ...)
        return xp.concatenate([sides[:, :, ::-1, 0], in_the_middle, sides[:, :, :, 1]], axis=2)

    return straight._replace(
        inner_centres=from_end_to_end(centres, middle),
        inner_factors=from_end_to_end(factors, straight.inner_factors[:, :, :1]),
    )
