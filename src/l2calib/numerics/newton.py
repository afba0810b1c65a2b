"""Newton's method, damped: the one way up to a maximum of a function of rows, or down to a minimum of its negative.

It works on the line, where a prior is about standard normal (see `Prior`), so that one length of step serves all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from l2calib.numerics.namespace import AnyArray, loops_of, namespace_of
from l2calib.numerics.small_matrices import cholesky, diagonal, inverse, on_diagonal, quadratic_form, solve

_SETTLED = 1e-10  # squared Newton step in standard deviations
_LINE_LIMIT = 8.0  # of z: beyond, a normal distribution function has no digits left
_WIDEST_SD = 1.5  # of a Gaussian: the prior's is about one
_FINEST_SCALE = 1e-5  # of differences: a narrower posterior is one point
_COARSEST_SCALE = 0.5  # where the density is straight, its curvature promises far too much

# Rows z (N, d) and scales (N, d) to the log density's value (N,), slope (N, d) and bend (N, d, d).
Look: TypeAlias = Callable[[AnyArray, AnyArray], tuple[AnyArray, AnyArray, AnyArray]]


class Summit(NamedTuple):
    """Where climbs ended: z (N, d), log density (N,), minus its Hessian, and the squared Newton steps left, in sd."""

    z: AnyArray
    value: AnyArray
    precision: AnyArray
    decrement: AnyArray


class _Climb(NamedTuple):
    """N climbs, which take their steps together; one that has settled stays where it is."""

    z: AnyArray
    proposal: AnyArray
    value: AnyArray
    slope: AnyArray
    precision: AnyArray
    scale: AnyArray
    damping: AnyArray
    moving: AnyArray
    taken: AnyArray


def climb(look: Look, start: AnyArray, scale: AnyArray, steps: int) -> Summit:
    """Damped Newton ascents on the line from rows (N, d); `scale` (N, d) is for the first look."""
    xp = namespace_of(start)

    def propose(z: AnyArray, slope: AnyArray, precision: AnyArray, damping: AnyArray) -> AnyArray:
        size = xp.abs(diagonal(precision)) + 1.0
        newton = solve(precision + on_diagonal(damping[:, None] * size), slope)
        return _moved(z, newton, slope / size)

    def unsettled(state: _Climb) -> AnyArray:
        return (state.taken <= steps) & xp.any(state.moving)

    def step(state: _Climb) -> _Climb:
        seen, seen_slope, seen_bend = look(state.proposal, state.scale)
        accept = state.moving & (seen >= state.value)
        accept_row, accept_matrix = accept[:, None], accept[:, None, None]
        z, value = xp.where(accept_row, state.proposal, state.z), xp.where(accept, seen, state.value)
        slope = xp.where(accept_row, seen_slope, state.slope)
        precision = xp.where(accept_matrix, -seen_bend, state.precision)
        eased = xp.where(state.damping < 1e-6, 0.0, state.damping / 30)
        damping = xp.where(accept, eased, xp.maximum(8 * state.damping, 1e-2))
        proposal = propose(z, slope, precision, damping)
        moving = state.moving & (xp.abs(quadratic_form(precision, proposal - z)) > _SETTLED)
        return _Climb(z, proposal, value, slope, precision, _scale_of(precision), damping, moving, state.taken + 1)

    # The first pass only looks at the start: in JAX the density is traced once, inside the loop.
    rows, d = start.shape
    nothing = _Climb(
        z=start,
        proposal=start,
        value=xp.full(rows, -np.inf, dtype=float),
        slope=xp.zeros((rows, d)),
        precision=xp.broadcast_to(xp.eye(d), (rows, d, d)),
        scale=scale,
        damping=xp.zeros(rows),
        moving=xp.ones(rows, dtype=bool),
        taken=xp.asarray(0),
    )
    end = loops_of(start).while_loop(unsettled, step, nothing)
    decrement = xp.sum(end.slope * solve(end.precision, end.slope), axis=-1)
    return Summit(end.z, end.value, end.precision, xp.where(xp.isnan(decrement), np.inf, decrement))


def newton_step(look: Look, start: AnyArray, scale: AnyArray) -> Summit:
    """One step of Newton's ascent from rows (N, d); the curvature is that of the start."""
    xp = namespace_of(start)
    value, slope, bend = look(start, scale)
    moved = _moved(start, solve(-bend, slope), slope / (xp.abs(diagonal(bend)) + 1.0))
    return Summit(xp.where(xp.isfinite(moved), moved, start), value, -bend, xp.zeros_like(value))


def _moved(z: AnyArray, newton: AnyArray, gradient: AnyArray) -> AnyArray:
    """Rows z after Newton's step, or the gradient's where there is none, neither of them too long."""
    xp = namespace_of(z)
    move = xp.where(xp.all(xp.isfinite(newton), axis=-1, keepdims=True), newton, gradient)
    return xp.clip(z + xp.clip(move, -1.0, 1.0), -_LINE_LIMIT, _LINE_LIMIT)


def _scale_of(precision: AnyArray) -> AnyArray:
    """The sds (N, d) of a Gaussian along each coordinate, the others held, as far as differences can go by them."""
    xp = namespace_of(precision)
    return xp.clip(1 / xp.sqrt(xp.abs(diagonal(precision))), _FINEST_SCALE, _COARSEST_SCALE)


def scale_at(summit: Summit) -> AnyArray:
    """For the next look nearby."""
    return _scale_of(summit.precision)


def laplace(summit: Summit) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The Gaussians with the curvature of the log density at summits: centres, covariance factors, log masses."""
    xp = namespace_of(summit.z)
    covariance = inverse(summit.precision)
    factor = cholesky(covariance)
    sd = 1 / xp.sqrt(xp.maximum(xp.abs(diagonal(summit.precision)), 1e-6))
    usable = xp.all(xp.isfinite(factor), axis=(-2, -1)) & xp.all(diagonal(covariance) <= _WIDEST_SD**2, axis=-1)
    factor = xp.where(usable[..., None, None], factor, on_diagonal(xp.minimum(sd, _WIDEST_SD)))
    return summit.z, factor, summit.value + xp.sum(xp.log(diagonal(factor)), axis=-1)
