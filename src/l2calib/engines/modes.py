"""The modes of a posterior: found by Newton's method from several starts, each with its fitted Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.derivatives import jet
from l2calib.numerics.small_matrices import cholesky, lower_solve, solve

_NEWTON_STEPS = 12
_SETTLED = 1e-10  # squared Newton step in standard deviations
_LINE_LIMIT = 8.0
_WIDEST_SD = 1.5
_ARRIVED = 0.05
_DENSITY_AT_THE_ENDS = 0.058  # of a standard normal at its 2.5% quantile


class Modes(NamedTuple):
    """Fitted Gaussians: centres (M, p), lower factors of their covariances (M, p, p), log masses (M,)."""

    centres: Array
    factors: Array
    log_mass: Array

    @property
    def log_peak(self) -> Array:
        return self.log_mass - jnp.sum(jnp.log(jnp.diagonal(self.factors, axis1=1, axis2=2)), axis=1)

    def log_bells(self, z: Array) -> Array:
        """Log height of every Gaussian at one z (M,)."""
        white = jax.vmap(lower_solve)(self.factors, z - self.centres)
        return self.log_peak - jnp.sum(white**2, axis=1) / 2

    def log_shares(self, z: Array) -> Array:
        """Log partition of unity at one z: the share of each Gaussian in their mixture."""
        log_bells = self.log_bells(z)
        return log_bells - jax.scipy.special.logsumexp(log_bells)


class Summit(NamedTuple):
    """Where a climb ended: z, the log density, minus its Hessian, and the squared Newton step left, in sd."""

    z: Array
    value: Array
    precision: Array
    decrement: Array


class Survey(NamedTuple):
    """All summits that were found, each with its Gaussian."""

    centres: Array  # (S, p)
    factors: Array  # (S, p, p)
    log_mass: Array  # (S,), minus infinity for what is no mode

    def largest(self, keep: int) -> tuple[Modes, Array]:
        """The `keep` largest distinct modes, and how far the others would move the moments and the interval, in sd.

        Where there are fewer, copies of the largest without mass fill the places.
        """
        remaining, kept, log_mass, distances = self.log_mass, [], [], []
        for _ in range(keep):
            best = jnp.argmax(remaining)
            log_mass.append(remaining[best])
            best = jnp.where(jnp.isfinite(remaining[best]), best, jnp.argmax(self.log_mass))
            kept.append(best)
            white = jax.vmap(lower_solve, (None, 0))(self.factors[best], self.centres - self.centres[best])
            distances.append(jnp.sum(white**2, axis=1))
            remaining = jnp.where(distances[-1] < 4.0, -jnp.inf, remaining)
        index = jnp.stack(kept)
        mass, squared = jnp.exp(remaining - jnp.max(self.log_mass)), distances[0]
        # Its own mass at a 95% interval's end, the mean, the standard deviation.
        missed = jnp.max(mass * jnp.maximum(1 / _DENSITY_AT_THE_ENDS, jnp.sqrt(squared) + squared / 2))
        chosen = Modes(self.centres[index], self.factors[index], jnp.stack(log_mass))
        return chosen, jnp.where(jnp.isnan(missed), 0.0, missed)


def survey_modes(log_density: Callable[[Array], Array], starts: Array) -> Survey:
    """Climb from every start and fit a Gaussian at each summit."""
    summits = jax.vmap(lambda start: climb(log_density, start, _NEWTON_STEPS))(starts)
    centres, factors, log_mass = jax.vmap(laplace)(summits)
    log_mass = jnp.where(jnp.isnan(log_mass), -jnp.inf, log_mass)
    # A climb that was cut short on a slope is no mode; it only counts when there is nothing better.
    arrived = summits.decrement < _ARRIVED
    log_mass = jnp.where(arrived | ~jnp.any(arrived), log_mass, -jnp.inf)
    return Survey(centres, factors, log_mass)


class _Climb(NamedTuple):
    z: Array
    proposal: Array
    value: Array
    slope: Array
    precision: Array
    damping: Array
    taken: Array


def climb(log_density: Callable[[Array], Array], start: Array, steps: int) -> Summit:
    """Damped Newton ascent on the line."""
    look = jet(log_density)

    def propose(z: Array, slope: Array, precision: Array, damping: Array) -> Array:
        size = jnp.abs(jnp.diag(precision)) + 1.0
        newton = solve(precision + jnp.diag(damping * size), slope)
        move = jnp.where(jnp.isfinite(newton).all(), newton, slope / size)
        return jnp.clip(z + jnp.clip(move, -1.0, 1.0), -_LINE_LIMIT, _LINE_LIMIT)

    def unsettled(state: _Climb) -> Array:
        move = state.proposal - state.z
        return (state.taken <= steps) & ((state.taken == 0) | (jnp.abs(move @ state.precision @ move) > _SETTLED))

    def step(state: _Climb) -> _Climb:
        z, proposal, value, slope, precision, damping, taken = state
        seen, seen_slope, seen_bend = look(proposal)
        accept = seen >= value
        z, value = jnp.where(accept, proposal, z), jnp.where(accept, seen, value)
        slope, precision = jnp.where(accept, seen_slope, slope), jnp.where(accept, -seen_bend, precision)
        damping = jnp.where(accept, jnp.where(damping < 1e-6, 0.0, damping / 30), jnp.maximum(8 * damping, 1e-2))
        return _Climb(z, propose(z, slope, precision, damping), value, slope, precision, damping, taken + 1)

    p = start.size
    # The first pass only looks at the start: the density is traced once, inside the loop.
    nothing = _Climb(
        z=start,
        proposal=start,
        value=jnp.asarray(-jnp.inf),
        slope=jnp.zeros(p),
        precision=jnp.eye(p),
        damping=jnp.asarray(0.0),
        taken=jnp.asarray(0),
    )
    end = jax.lax.while_loop(unsettled, step, nothing)
    decrement = jnp.sum(end.slope * solve(end.precision, end.slope))
    return Summit(end.z, end.value, end.precision, jnp.where(jnp.isnan(decrement), jnp.inf, decrement))


def newton_step(log_density: Callable[[Array], Array], start: Array) -> Summit:
    """One step of Newton's ascent; the curvature is that of the start."""
    value, slope, bend = jet(log_density)(start)
    newton = solve(-bend, slope)
    size = jnp.abs(jnp.diag(bend)) + 1.0
    move = jnp.where(jnp.isfinite(newton).all(), newton, slope / size)
    moved = jnp.clip(start + jnp.clip(move, -1.0, 1.0), -_LINE_LIMIT, _LINE_LIMIT)
    return Summit(jnp.where(jnp.isfinite(moved), moved, start), value, -bend, jnp.asarray(0.0))


def laplace(summit: Summit) -> tuple[Array, Array, Array]:
    """The Gaussian with the curvature of the log density at a summit: centre, covariance factor, log mass."""
    z, value, precision, _ = summit
    covariance = solve(precision, jnp.eye(z.size))
    factor = cholesky(covariance)
    sd = jnp.minimum(1 / jnp.sqrt(jnp.maximum(jnp.abs(jnp.diag(precision)), 1e-6)), _WIDEST_SD)
    too_wide = jnp.any(jnp.diag(covariance) > _WIDEST_SD**2)
    factor = jnp.where(jnp.isfinite(factor).all() & ~too_wide, factor, jnp.diag(sd))
    return z, factor, value + jnp.sum(jnp.log(jnp.diag(factor)))
