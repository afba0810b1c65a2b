"""The modes of a posterior: found by Newton's method from several starts, each with its fitted Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from l2calib.arrays import Array, jax, jnp
from l2calib.jets import jet
from l2calib.small_matrices import cholesky, lower_solve, solve

_NEWTON_STEPS = 8
_LINE_LIMIT = 8.0
_WIDEST_SD = 1.5


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

    def log_shares(self, z: Array, reach: float) -> Array:
        """Log partition of unity at one z: one entry per mode, and last what lies beyond the modes' reach."""
        log_all = jnp.append(self.log_bells(z), jnp.max(self.log_peak) - reach**2 / 2)
        return log_all - jax.scipy.special.logsumexp(log_all)


def find_modes(log_density: Callable[[Array], Array], starts: Array, keep: int) -> tuple[Modes, Array]:
    """Climb from every start, fit a Gaussian at each summit, and keep the `keep` largest distinct ones.

    Also returns the mass, relative to the largest, of the largest one that was not kept.
    """
    centres, factors, log_mass = jax.vmap(lambda start: _laplace(*_climb(log_density, start)))(starts)
    log_mass = jnp.where(jnp.isnan(log_mass), -jnp.inf, log_mass)
    remaining, kept = log_mass, []
    for _ in range(keep):
        best = jnp.argmax(remaining)
        best = jnp.where(jnp.isfinite(remaining[best]), best, jnp.argmax(log_mass))
        kept.append(best)
        white = jax.vmap(lower_solve, (None, 0))(factors[best], centres - centres[best])
        remaining = jnp.where(jnp.sum(white**2, axis=1) < 4.0, -jnp.inf, remaining)
    index = jnp.stack(kept)
    missed = jnp.exp(jnp.max(remaining) - jnp.max(log_mass))
    return Modes(centres[index], factors[index], log_mass[index]), jnp.where(jnp.isnan(missed), 0.0, missed)


def _climb(log_density: Callable[[Array], Array], start: Array) -> tuple[Array, Array, Array]:
    """Damped Newton ascent on the line: the summit, the log density and minus its Hessian there."""
    look = jet(log_density)

    def propose(z: Array, slope: Array, precision: Array, damping: Array) -> Array:
        size = jnp.abs(jnp.diag(precision)) + 1.0
        newton = solve(precision + jnp.diag(damping * size), slope)
        move = jnp.where(jnp.isfinite(newton).all(), newton, slope / size)
        return jnp.clip(z + jnp.clip(move, -1.0, 1.0), -_LINE_LIMIT, _LINE_LIMIT)

    def step(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        z, proposal, value, slope, precision, damping = state
        seen, seen_slope, seen_bend = look(proposal)
        accept = seen >= value
        z, value = jnp.where(accept, proposal, z), jnp.where(accept, seen, value)
        slope, precision = jnp.where(accept, seen_slope, slope), jnp.where(accept, -seen_bend, precision)
        damping = jnp.where(accept, jnp.where(damping < 1e-6, 0.0, damping / 30), jnp.maximum(8 * damping, 1e-2))
        return z, propose(z, slope, precision, damping), value, slope, precision, damping

    p = start.size
    # The first pass only looks at the start: the density is traced once, inside the loop.
    state = (start, start, jnp.asarray(-jnp.inf), jnp.zeros(p), jnp.eye(p), jnp.asarray(0.0))
    z, _, value, _, precision, _ = jax.lax.fori_loop(0, _NEWTON_STEPS + 1, step, state)
    return z, value, precision


def _laplace(z: Array, value: Array, precision: Array) -> tuple[Array, Array, Array]:
    """The Gaussian with the curvature of the log density at z: centre, covariance factor, log mass."""
    covariance = solve(precision, jnp.eye(z.size))
    factor = cholesky(covariance)
    sd = jnp.minimum(1 / jnp.sqrt(jnp.maximum(jnp.abs(jnp.diag(precision)), 1e-6)), _WIDEST_SD)
    too_wide = jnp.any(jnp.diag(covariance) > _WIDEST_SD**2)
    factor = jnp.where(jnp.isfinite(factor).all() & ~too_wide, factor, jnp.diag(sd))
    return z, factor, value + jnp.sum(jnp.log(jnp.diag(factor)))
