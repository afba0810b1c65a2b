"""Global minimisation of a squared loss over a support, for one dataset and vmappable.

A loss |v - c(theta)|^2, with v and the model in the coordinates of a span, is first evaluated on a fixed set of
candidates, which is one matrix product for a whole batch; the lowest local minima of that scan are then polished by a
bounded Newton method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.spatial import cKDTree

from l2calib.errors import Status
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.derivatives import jet
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.numerics.small_matrices import solve
from l2calib.numerics.spread import kronecker

_CANDIDATES = {1: 512, 2: 1024, 3: 2048}
_CANDIDATES_BEYOND = 4096
_NEWTON_STEPS = {1: 6, 2: 10}
_NEWTON_STEPS_BEYOND = 12
_FEW_STEPS = {1: 2, 2: 4, 3: 5}
_SHORTLISTED = 64
_STEP_TOLERANCE = 1e-6
LOSS_ROUNDING = 1e-13  # of a loss, relative to it


Coordinates = Callable[[Array], Array]  # of the model: theta (p,) -> (m,)


@runtime_checkable
class RowsOfCoordinates(Protocol):
    """The same at rows of theta (T, p) in NumPy: (T, m)."""

    def values(self, thetas: AnyArray, /) -> AnyArray: ...


class Support(Protocol):
    """Where theta may be: bounds (p,), if need be infinite, a scale for every parameter, and how to spread points."""

    low: np.ndarray
    high: np.ndarray
    scale: np.ndarray

    @property
    def dimension(self) -> int: ...

    def quantile(self, probability: np.ndarray) -> np.ndarray: ...


class Candidates(NamedTuple):
    """The scan: thetas (T, p), the model's coordinates there (T, m), their square (T,), and each point's neighbours."""

    thetas: Array
    coordinates: Array
    square: Array
    neighbours: Array


class Minima(NamedTuple):
    """Local minima, the lowest first."""

    thetas: Array  # (K, p)
    losses: Array  # (K,), without what lies outside the model's span
    status: Array  # of the lowest

    @property
    def theta(self) -> Array:
        return self.thetas[0]


class Derivatives(NamedTuple):
    """A squared loss at one theta."""

    value: Array
    gradient: Array
    hessian: Array
    gauss_newton: Array
    jacobian: Array  # of the coordinates, (m, p)


def derivatives(model: Coordinates, values: Array, theta: Array) -> Derivatives:
    """The loss with its exact gradient and full Hessian."""
    modelled, jacobian, curvature = jet(model)(theta)
    residual = values - modelled
    gauss_newton = 2 * jacobian.T @ jacobian
    hessian = gauss_newton - 2 * jnp.einsum("m,mij->ij", residual, curvature)
    return Derivatives(jnp.sum(residual**2), -2 * jacobian.T @ residual, hessian, gauss_newton, jacobian)


def candidates(support: Support, model: Coordinates | RowsOfCoordinates) -> Candidates:
    """Tabulate the model on points spread evenly over the support."""
    p = support.dimension
    number = _CANDIDATES.get(p, _CANDIDATES_BEYOND)
    unit = (np.arange(number)[:, None] + 0.5) / number if p == 1 else kronecker(number, p)
    thetas = support.quantile(unit)
    # In NumPy: by itself every small operation of JAX is a program to compile.
    rows: Callable[[AnyArray], AnyArray] = model.values if isinstance(model, RowsOfCoordinates) else jax.vmap(model)
    modelled = np.asarray(rows(thetas))
    finite = np.isfinite(modelled).all(axis=1)
    modelled = np.where(finite[:, None], modelled, 0.0)
    square = np.where(finite, np.sum(modelled**2, axis=1), np.inf)
    _, neighbours = cKDTree(unit).query(unit, k=1 + (2 if p == 1 else 4 * p))
    return Candidates(*jax.device_put((thetas, modelled, square, neighbours[:, 1:])))


def scan(table: Candidates, values: AnyArray) -> AnyArray:
    """The loss at every candidate (T,)."""
    return table.square - 2 * table.coordinates @ values + namespace_of(values).sum(values**2)


def lowest_candidates(table: Candidates, values: AnyArray, keep: int) -> AnyArray:
    """The indices of the `keep` lowest local minima of the scan, the lowest again if there are fewer."""
    xp, losses = namespace_of(values), scan(table, values)
    is_lowest_around = losses <= xp.min(losses[table.neighbours], axis=1)
    return smallest(xp.where(is_lowest_around, losses, np.inf), keep)


def global_minima(table: Candidates, model: Coordinates, values: Array, support: Support, keep: int) -> Minima:
    """The `keep` lowest local minima within the support, repeated if there are fewer."""
    starts = lowest_candidates(table, values, keep)
    steps = _NEWTON_STEPS.get(support.dimension, _NEWTON_STEPS_BEYOND)
    return polish(table.thetas[starts], model, values, support, steps)


def shortlist(table: Candidates, model: Coordinates, values: Array, minima: Minima) -> Candidates:
    """The local minima of one dataset's loss and the candidates where that loss is lowest.

    Resamples and draws vary about the dataset, so their minima are sought from these alone.
    """
    _, low = jax.lax.top_k(-scan(table, values), _SHORTLISTED)
    modelled = jnp.concatenate([jax.vmap(model)(minima.thetas), table.coordinates[low]])
    square = jnp.concatenate([jnp.sum(modelled[: len(minima.thetas)] ** 2, axis=1), table.square[low]])
    return Candidates(jnp.concatenate([minima.thetas, table.thetas[low]]), modelled, square, table.neighbours[low])


def nearest_minimum(table: Candidates, model: Coordinates, values: Array, support: Support) -> Minima:
    """The minimum below the best candidate: for thousands of resamples or draws of one dataset."""
    best = jnp.argmin(scan(table, values))
    steps = _FEW_STEPS.get(support.dimension, _NEWTON_STEPS_BEYOND)
    return polish(table.thetas[best][None], model, values, support, steps)


def scan_maxima(table: Candidates, values: Array, keep: int) -> Array:
    """The `keep` highest local maxima of the scan (keep, p), repeated if there are fewer."""
    losses = jnp.where(jnp.isfinite(table.square), scan(table, values), -jnp.inf)
    is_highest_around = losses >= jnp.max(losses[table.neighbours], axis=1)
    return table.thetas[smallest(jnp.where(is_highest_around, -losses, jnp.inf), keep)]


def smallest(values: AnyArray, keep: int) -> AnyArray:
    """The indices of the `keep` smallest values, the smallest again where the others are infinite.

    One pass for each: in a batch, that takes a fifth of the time that sorting for the few first does.
    """
    xp = namespace_of(values)
    picked: list[AnyArray] = []
    for _ in range(keep):
        index = xp.argmin(values)
        first = picked[0] if picked else index
        picked.append(xp.where(xp.isfinite(values[index]), index, first))
        values = xp.where(np.arange(values.size) == index, np.inf, values)
    return xp.stack(picked)


def polish(starts: Array, model: Coordinates, values: Array, support: Support, steps: int) -> Minima:
    """Newton's method from every start (K, p); the results sorted by their loss."""

    def descend(start: Array) -> tuple[Array, Array, Array]:
        return _bounded_newton(start, model, values, support, steps)

    thetas, losses, status = jax.vmap(descend)(starts)
    order = jnp.argsort(losses)
    return Minima(thetas[order], losses[order], status[order[0]])


def _bounded_newton(
    start: Array, model: Coordinates, values: Array, support: Support, steps: int
) -> tuple[Array, Array, Array]:
    """Levenberg-damped Newton steps on the free parameters, clipped to the support."""
    low, high, scale = jnp.asarray(support.low), jnp.asarray(support.high), jnp.asarray(support.scale)
    # The model may not exist on the boundary itself (a division by zero), so the walls stand just inside it.
    wall_low, wall_high = low + 1e-9 * scale, high - 1e-9 * scale

    def propose(theta: Array, at: Derivatives, damping: Array) -> tuple[Array, Array]:
        held = ((theta <= wall_low) & (at.gradient > 0)) | ((theta >= wall_high) & (at.gradient < 0))
        free = jnp.where(held, 0.0, 1.0)
        mask = free[:, None] * free[None, :]
        diagonal = jnp.diag(at.gauss_newton) + 1e-30
        ridge = jnp.diag(jnp.where(held, diagonal, damping * diagonal))
        gradient = free * at.gradient
        newton = -solve(mask * at.hessian + ridge, gradient)
        fallback = -solve(mask * at.gauss_newton + ridge + jnp.diag(1e-10 * diagonal), gradient)
        downhill = jnp.isfinite(newton).all() & (jnp.sum(newton * gradient) <= 0)
        step = jnp.where(downhill, newton, fallback)
        step = jnp.clip(step, -0.5 * scale, 0.5 * scale)
        return jnp.clip(theta + step, wall_low, wall_high), held

    def iterate(_: int, state: tuple[Array, Array, Derivatives, Array]) -> tuple[Array, Array, Derivatives, Array]:
        theta, proposal, at, damping = state
        there = derivatives(model, values, proposal)
        # Near the minimum the losses differ by less than their rounding, and the step is right all the same.
        accept = there.value <= at.value * (1 + LOSS_ROUNDING)
        theta, at = jax.tree.map(lambda a, b: jnp.where(accept, a, b), (proposal, there), (theta, at))
        damping = jnp.where(accept, jnp.where(damping < 1e-6, 0.0, damping / 30), jnp.maximum(8 * damping, 1e-3))
        return theta, propose(theta, at, damping)[0], at, damping

    # The first pass only looks at the start: the model is traced once, inside the loop.
    p, m = start.size, values.size
    unseen = Derivatives(
        value=jnp.asarray(jnp.inf),
        gradient=jnp.zeros(p),
        hessian=jnp.eye(p),
        gauss_newton=jnp.eye(p),
        jacobian=jnp.zeros((m, p)),
    )
    state = (start, start, unseen, jnp.asarray(0.0))
    theta, _, at, _ = jax.lax.fori_loop(0, steps + 1, iterate, state)
    target, held = propose(theta, at, jnp.asarray(0.0))
    moving = jnp.max(jnp.abs(target - theta) / scale) > _STEP_TOLERANCE
    status = jnp.where(jnp.any(held), int(Status.MINIMUM_ON_BOUNDARY), 0)
    status |= jnp.where(moving | ~jnp.isfinite(at.value), int(Status.NOT_CONVERGED), 0)
    return theta, at.value, status
