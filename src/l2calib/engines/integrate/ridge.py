"""Charts: a posterior seen along one of its parameters, the outer one.

At equally spaced values of the outer coordinate, the knots, the other parameters have a centre and a factor of their
own, which follow the ridge of the posterior by continuation. That is what a skew posterior and a banana need, and a
rule of few points then does for the integral across the ridge. The outer coordinate is stretched by a hyperbolic sine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from l2calib.engines.integrate.across import Rule
from l2calib.engines.modes import climb, laplace, newton_step
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.small_matrices import cholesky

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

    def stretch(self, centre: Array, scale: Array) -> Array:
        """What to multiply the coordinate by: more than one if the last knot would be too near."""
        if not self.far:
            return jnp.ones_like(centre)
        farthest = self.bend * jnp.arcsinh((_END + jnp.abs(centre)) / (self.bend * scale))
        return jnp.maximum(farthest / self.reach, 1.0)


class Chart(NamedTuple):
    """The map of one mode along its ridge. The outer parameter and the knots are known where it is used."""

    centre: Array  # of the outer parameter
    scale: Array
    stretch: Array
    inner_centres: Array  # (K, d), at the knots
    inner_factors: Array  # (K, d, d)

    def outer_at(self, knots: Knots, coordinate: Array | np.ndarray) -> Array:
        """The outer parameter."""
        return self.centre + self.scale * knots.bend * jnp.sinh(self.stretch * coordinate / knots.bend)

    def _log_slope(self, knots: Knots, coordinate: Array | np.ndarray) -> Array:
        """Of the outer parameter in its coordinate."""
        return jnp.log(self.scale * self.stretch) + jnp.log(jnp.cosh(self.stretch * coordinate / knots.bend))

    def around_knots(self, knots: Knots, rule: Rule, outer: Array) -> tuple[Array, Array]:
        """The rule's points at every knot, z (p, K, R), and the logs of their weights (K, R).

        The points are the last axis: what is computed of thousands of them is vectorised along it.
        """
        factors = jnp.moveaxis(self.inner_factors, 0, -1)  # (d, d, K)
        d = factors.shape[0]
        inner = [
            self.inner_centres[:, i, None] + sum(factors[i, j, :, None] * rule.points[j] for j in range(i + 1))
            for i in range(d)
        ]
        z_outer = jnp.broadcast_to(self.outer_at(knots, knots.values)[:, None], inner[0].shape)
        log_slope = self._log_slope(knots, knots.values) + np.log(knots.spacing)
        log_slope += jnp.sum(jnp.log(jnp.stack([factors[i, i] for i in range(d)])), axis=0)
        return jnp.stack(joined(z_outer, inner, outer)), log_slope[:, None] + rule.log_weights

    def at(self, knots: Knots, rule: Rule, coordinates: Array, outer: Array) -> tuple[Array, Array]:
        """z (p,) and log |dz / d coordinates| at coordinates (p,) of a lattice, interpolated between the knots."""
        first, rest = coordinates[0], coordinates[1:]
        log_slope = self._log_slope(knots, first)
        position = jnp.clip(first / knots.spacing + knots.half, 0.0, 2.0 * knots.half)
        left = jnp.minimum(jnp.floor(position).astype(int), 2 * knots.half - 1)
        share = position - left
        centre = (1 - share) * self.inner_centres[left] + share * self.inner_centres[left + 1]
        factor = (1 - share) * self.inner_factors[left] + share * self.inner_factors[left + 1]
        bend = rule.bend
        log_slope += jnp.sum(jnp.log(jnp.diag(factor))) + jnp.sum(jnp.log(jnp.cosh(rest / bend)))
        inner = centre + factor @ (bend * jnp.sinh(rest / bend))
        return jnp.stack(joined(self.outer_at(knots, first), list(inner), outer)), log_slope


def joined(z_outer: Array, inner: list[Array], outer: Array) -> list[Array]:
    """The parameters in order, from the outer one's value and the others'."""
    p = len(inner) + 1
    places = []
    for position in range(p):
        before = inner[position] if position < p - 1 else z_outer
        after = inner[position - 1] if position > 0 else z_outer
        places.append(jnp.where(position == outer, z_outer, jnp.where(position < outer, before, after)))
    return places


def _straight(centre: Array, factor: Array, outer: Array, knots: Knots) -> Chart:
    """The ridge of a Gaussian with this centre and covariance factor, seen along the outer parameter."""
    position = jnp.arange(centre.size - 1)
    others = jnp.where(position < outer, position, position + 1)
    covariance = factor @ factor.T
    variance = covariance[outer, outer]
    slope = covariance[others, outer] / variance
    inner = covariance[jnp.ix_(others, others)] - variance * jnp.outer(slope, slope)
    sd, number = jnp.sqrt(variance), knots.values.size
    factors = jnp.broadcast_to(cholesky(inner), (number, *inner.shape))
    chart = Chart(centre[outer], sd, knots.stretch(centre[outer], sd), jnp.zeros((number, 0)), factors)
    offsets = chart.outer_at(knots, knots.values) - centre[outer]
    return chart._replace(inner_centres=centre[others] + offsets[:, None] * slope)


def ridge_chart(
    log_density: Callable[[Array], Array], centre: Array, factor: Array, outer: Array, knots: Knots
) -> Chart:
    """The chart that follows the ridge: at every knot, near the conditional mode, with the curvature there.

    One Newton step from where the last two knots point is mostly near enough, since a rule's points need not be centred
    exactly. Far out on a banana it may lead astray, so knots that go far climb.
    """
    straight = _straight(centre, factor, outer, knots)
    middle = straight.inner_centres[knots.half]
    values = jnp.asarray(knots.values)

    def walk(side: Array) -> tuple[Array, Array]:
        def advance(carry: tuple[Array, Array], step: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            last, before = carry
            z_outer = straight.outer_at(knots, values[knots.half + side * step])

            def conditional(inner: Array) -> Array:
                return log_density(jnp.stack(joined(z_outer, list(inner), outer)))

            start = 2 * last - before
            reached = climb(conditional, start, _RIDGE_STEPS) if knots.far else newton_step(conditional, start)
            summit, inner_factor, _ = laplace(reached)
            return (summit, last), (summit, inner_factor)

        # The first knot away from the middle starts on the straight chart; the others extrapolate the walk.
        towards = straight.inner_centres[knots.half + side] - middle
        _, (centres, factors) = jax.lax.scan(advance, (middle, middle - towards), jnp.arange(1, knots.half + 1))
        return centres, factors

    centres, factors = jax.vmap(walk)(jnp.asarray([-1, 1]))
    return straight._replace(
        inner_centres=jnp.concatenate([centres[0, ::-1], middle[None], centres[1]]),
        inner_factors=jnp.concatenate([factors[0, ::-1], straight.inner_factors[:1], factors[1]]),
    )
