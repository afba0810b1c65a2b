"""Charts: smooth maps from lattice coordinates to the line, fitted to one mode of a posterior.

Coordinates are stretched by a hyperbolic sine, so that few lattice points reach from the core far into the tails. A
chart singles out one parameter, the outer one. For every value of it the other parameters have a centre and a factor
of their own: on a straight chart they follow the fitted Gaussian; on a curved chart they follow the ridge
of the posterior, found by continuation, which is what a banana needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from l2calib.arrays import Array, jax, jnp
from l2calib.engines.modes import climb, laplace
from l2calib.small_matrices import cholesky

_RIDGE_STEPS = 4


class Knots(NamedTuple):
    """Equally spaced values of the outer coordinate: -half, ..., half times the spacing."""

    half: int
    spacing: float
    bend: float

    @property
    def values(self) -> Array:
        return self.spacing * jnp.arange(-self.half, self.half + 1)


class StraightChart(NamedTuple):
    """The map of one mode by its Gaussian alone; no parameter is singled out."""

    centre: Array  # (p,)
    factor: Array  # (p, p)

    def to_line(self, coordinates: Array, outer: Array, knots: Knots) -> tuple[Array, Array]:
        """z (p,) and log |dz / d coordinates|."""
        stretched = knots.bend * jnp.sinh(coordinates / knots.bend)
        log_slope = jnp.sum(jnp.log(jnp.diag(self.factor))) + jnp.sum(jnp.log(jnp.cosh(coordinates / knots.bend)))
        return self.centre + self.factor @ stretched, log_slope


class CurvedChart(NamedTuple):
    """The map of one mode along its ridge. The outer parameter and the knots are known where it is used."""

    centre: Array  # of the outer parameter
    scale: Array
    inner_centres: Array  # (K, p - 1), at the knots
    inner_factors: Array  # (K, p - 1, p - 1)

    def offset(self, coordinate: Array, bend: float) -> Array:
        """The outer parameter's distance from its centre."""
        return self.scale * bend * jnp.sinh(coordinate / bend)

    def to_line(self, coordinates: Array, outer: Array, knots: Knots) -> tuple[Array, Array]:
        """z (p,) and log |dz / d coordinates|; between knots the centre and the factor are interpolated."""
        first, rest = coordinates[0], coordinates[1:]
        z_outer = self.centre + self.offset(first, knots.bend)
        log_slope = jnp.log(self.scale) + jnp.log(jnp.cosh(first / knots.bend))
        position = jnp.clip(first / knots.spacing + knots.half, 0.0, 2.0 * knots.half)
        left = jnp.minimum(jnp.floor(position).astype(int), 2 * knots.half - 1)
        share = position - left
        centre = (1 - share) * self.inner_centres[left] + share * self.inner_centres[left + 1]
        factor = (1 - share) * self.inner_factors[left] + share * self.inner_factors[left + 1]
        log_slope += jnp.sum(jnp.log(jnp.diag(factor))) + jnp.sum(jnp.log(jnp.cosh(rest / knots.bend)))
        stretched = knots.bend * jnp.sinh(rest / knots.bend)
        return joined(z_outer, centre + factor @ stretched, outer), log_slope


def joined(z_outer: Array, inner: Array, outer: Array) -> Array:
    """z from the outer parameter's value and the others'."""
    position = jnp.arange(inner.size + 1)
    source = jnp.where(position == outer, 0, jnp.where(position < outer, position + 1, position))
    return jnp.concatenate([z_outer[None], inner])[source]


def _others(outer: Array, dimension: int) -> Array:
    """The indices of the other parameters, in order."""
    position = jnp.arange(dimension - 1)
    return jnp.where(position < outer, position, position + 1)


def _straight_ridge(centre: Array, factor: Array, outer: Array, knots: Knots) -> CurvedChart:
    """The ridge of a Gaussian with this centre and covariance factor, seen along the outer parameter."""
    others = _others(outer, centre.size)
    covariance = factor @ factor.T
    variance = covariance[outer, outer]
    slope = covariance[others, outer] / variance
    chart = CurvedChart(centre[outer], jnp.sqrt(variance), jnp.zeros((0, 0)), jnp.zeros((0, 0, 0)))
    offsets = chart.offset(knots.values, knots.bend)
    inner = covariance[jnp.ix_(others, others)] - variance * jnp.outer(slope, slope)
    inner_factor = cholesky(inner)
    return chart._replace(
        inner_centres=centre[others] + offsets[:, None] * slope,
        inner_factors=jnp.broadcast_to(inner_factor, (offsets.size, others.size, others.size)),
    )


def curved_chart(
    log_density: Callable[[Array], Array], centre: Array, factor: Array, outer: Array, knots: Knots
) -> CurvedChart:
    """The chart that follows the ridge: at every knot the conditional mode and curvature of the other parameters."""
    straight = _straight_ridge(centre, factor, outer, knots)
    offsets = straight.offset(knots.values, knots.bend)
    middle = straight.inner_centres[knots.half]

    def walk(side: Array) -> tuple[Array, Array]:
        def advance(carry: tuple[Array, Array], step: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            last, before = carry
            z_outer = straight.centre + offsets[knots.half + side * step]

            def conditional(inner: Array) -> Array:
                return log_density(joined(z_outer, inner, outer))

            summit, inner_factor, _ = laplace(climb(conditional, 2 * last - before, _RIDGE_STEPS))
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
