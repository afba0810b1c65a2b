"""The non-parametric predictor mu-hat with rho = (psi, kappa) by generalised cross-validation (paper, Section 2.2).

Since I - R(rho) = kappa Phi^-1, the criterion is |Phi^-1 y|^2 / tr(Phi^-1)^2 up to a constant. It is
multi-modal and may run to interpolation, so it is searched globally on a log grid and then refined.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from l2calib.errors import MethodError, Status
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.vmapping import computed_together, one_after_the_other
from l2calib.problem.response import Response
from l2calib.process.correlation import Correlation, SquaredExponential
from l2calib.process.smooth import Smooth
from l2calib.process.spectrum import Spectrum, left_out_square, spectrum_at
from l2calib.smoothers.grid import (
    Group,
    PsiGrid,
    SmootherTables,
    keeps_model,
    tables_over,
)

_NEWTON_STEPS = 8
_LEAST_FREEDOM = 8.0  # a variance estimated from fewer degrees of freedom has a relative standard error above one half


class Choice(NamedTuple):
    """rho for one y: psi on the grid, kappa, and how many cells off the grid psi may lie better."""

    psi_index: Array
    log_kappa: Array
    shift: Array  # (k,)


class _Candidate(NamedTuple):
    """One rho with what is known of y there, but for the eigenvectors, which are many."""

    psi_index: Array
    log_kappa: Array
    rotated: Array
    rest: Array
    criterion: Array

    def on(self, spectrum: Spectrum) -> Smooth:
        kappa = jnp.exp(self.log_kappa)
        return Smooth(
            spectrum=spectrum,
            psi_index=self.psi_index,
            kappa=kappa,
            rotated=self.rotated,
            rest=self.rest,
            criterion=self.criterion,
            status=jnp.asarray(0),
        )


_T = TypeVar("_T", _Candidate, Smooth)


def _better(one: _T, other: _T) -> _T:
    """The one with the lower score."""
    lower = one.criterion < other.criterion
    chosen: _T = jax.tree.map(lambda new, old: jnp.where(lower, new, old), one, other)
    return chosen


@dataclass(frozen=True)
class GCV:
    """Smoothing by generalised cross-validation within bounds on psi and kappa.

    Every psi_j has its own scale. For one input the grid over psi is fine (a sixteenth of a decade) and final; for two
    inputs the best psi is compared with its neighbours on a grid twice as fine; for three a quadratic through the
    neighbours moves psi off the grid and C_XX is factorised there; from four inputs on psi is the best of a scattered
    set. kappa is always continuous.
    """

    psi_bounds: tuple[float, float] = (1e-2, 1e3)
    kappa_bounds: tuple[float, float] = (1e-8, 1e2)
    kappa_points: int = 41
    correlation: Correlation = field(default_factory=SquaredExponential)

    def __post_init__(self) -> None:
        for name, (low, high) in (("psi", self.psi_bounds), ("kappa", self.kappa_bounds)):
            if not 0 < low < high < np.inf:
                raise MethodError(f"the bounds of {name} must satisfy 0 < low < high: received ({low}, {high}).")

    def prepare(self, response: Response, with_model: bool = False) -> SmootherTables:
        """Factorise C_XX over the grid of psi and tabulate the criterion's parts.

        The spectra keep every eigenvector in which mu-hat's coordinates have a part; `with_model`, those of the model
        at the design as well.
        """
        keeps = keeps_model(response, with_model)
        grid = self.grid(response.inputs)
        return tables_over(grid, self.correlation, self.kappa_bounds, self.kappa_points, response, keeps)

    def working_set(self, response: Response) -> int:
        """About how many numbers the fit of one dataset needs at once."""
        n, points = response.observations, len(self.grid(response.inputs).searched())
        return 3 * points + n * (n + response.node_span.dimension)

    def grid(self, inputs: int) -> PsiGrid:
        """The values of psi that are tabulated and searched."""
        return PsiGrid(self.psi_bounds, inputs)

    def fit(self, tables: SmootherTables, y: Array, choice: Choice | None = None) -> Smooth:
        """mu-hat for one y; `choice`, if it is known already."""
        psi_index, log_kappa, shift = self.choose(tables, y) if choice is None else choice
        found = _seen(tables, psi_index, log_kappa, y)
        smooth = found.on(tables.spectrum.at(psi_index))
        if self.grid(shift.size).is_left:
            smooth = _better(self._off_grid(tables, found, shift, y), smooth)
        return smooth._replace(status=self._status(smooth))

    def choose(self, tables: SmootherTables, y: Array) -> Choice:
        """rho for one y, among those that are tabulated."""
        found, grid = _search(tables, y), self.grid(tables.differences.inputs)
        best = jnp.argmin(found.profile)
        start = _seen(tables, tables.searched[best], found.log_kappa[best], y)
        chosen = self._polish(tables, tables.spectrum.eigenvalues[start.psi_index], start)
        if grid.is_finer:
            chosen = _better(self._on_finer_grid(tables, chosen, y), chosen)
        shift = _towards(found.profile, best, grid) if grid.is_left else jnp.zeros(grid.inputs)
        return Choice(chosen.psi_index, chosen.log_kappa, shift)

    def _polish(self, tables: SmootherTables, eigenvalues: Array, start: _Candidate) -> _Candidate:
        """Newton's method for log kappa at one psi, kept within one cell of its start and within the bounds."""
        low, high = np.log(self.kappa_bounds)
        cell = tables.log_kappa[1] - tables.log_kappa[0]
        score = functools.partial(_score, eigenvalues, tables.spectrum.left_out, start.rotated**2, start.rest)

        def newton(_: int, log_kappa: Array) -> Array:
            slope, bend = jax.grad(score)(log_kappa), jax.grad(jax.grad(score))(log_kappa)
            step = jnp.where(bend > 0, slope / jnp.where(bend > 0, bend, 1.0), jnp.sign(slope) * cell / 4)
            moved = log_kappa - jnp.clip(step, -cell / 2, cell / 2)
            first = start.log_kappa
            return jnp.clip(moved, jnp.maximum(low, first - cell), jnp.minimum(high, first + cell))

        log_kappa = jax.lax.fori_loop(0, _NEWTON_STEPS, newton, jnp.clip(start.log_kappa, low, high))
        return start._replace(log_kappa=log_kappa, criterion=score(log_kappa))

    def _on_finer_grid(self, tables: SmootherTables, chosen: _Candidate, y: Array) -> _Candidate:
        """The best psi among those that are tabulated around one, corners included."""
        inputs = tables.differences.inputs
        per_input = self.grid(inputs).tabulated_per_input
        strides = per_input ** np.arange(inputs)[::-1]
        place = chosen.psi_index // strides % per_input
        steps = np.stack(np.meshgrid(*[np.arange(-1, 2)] * inputs, indexing="ij"), -1).reshape(-1, inputs)
        steps = steps[np.any(steps != 0, axis=1)]
        around = jnp.sum(strides * jnp.clip(place + steps, 0, per_input - 1), axis=1)
        starts = _seen_at(tables, around, jnp.full(len(steps), chosen.log_kappa), y)
        found = jax.vmap(functools.partial(self._polish, tables))(tables.spectrum.eigenvalues[around], starts)
        best = jnp.argmin(found.criterion)
        nearby: _Candidate = jax.tree.map(lambda array: array[best], found)
        return nearby

    def _off_grid(self, tables: SmootherTables, chosen: _Candidate, shift: Array, y: Array) -> Smooth:
        """Move psi by `shift` (k,) cells and factorise there."""
        cell = self.grid(shift.size).cell
        psi = jnp.exp(tables.spectrum.log_psi[chosen.psi_index] + cell * shift)
        moved = spectrum_at(self.correlation, psi, tables.differences)
        start = chosen._replace(psi_index=jnp.asarray(-1), rotated=moved.vectors.T @ y, rest=jnp.asarray(0.0))
        return self._polish(tables, moved.eigenvalues, start).on(moved)

    def _status(self, smooth: Smooth) -> Array:
        near, cell = 1e-6, np.log(self.kappa_bounds[1] / self.kappa_bounds[0]) / (self.kappa_points - 1)
        log_psi, log_kappa = smooth.spectrum.log_psi, jnp.log(smooth.kappa)
        (psi_low, psi_high), (low, high) = np.log(self.psi_bounds), np.log(self.kappa_bounds)
        at_bound = jnp.any((log_psi < psi_low + near) | (log_psi > psi_high - near))
        # psi is chosen from a grid, so a ridge that runs to the bound of kappa ends within a cell of it.
        at_bound |= (log_kappa < low + cell) | (log_kappa > high - cell)
        status = jnp.where(at_bound, int(Status.GCV_AT_BOUND), 0)
        return status | jnp.where(smooth.freedom() < _LEAST_FREEDOM, int(Status.NEAR_INTERPOLATION), 0)


class _Found(NamedTuple):
    """For every psi that is searched: the best kappa and its log score (S,)."""

    log_kappa: Array
    profile: Array


@computed_together
def _search(tables: SmootherTables, responses: Array) -> _Found:
    """Look at all psi and kappa, for responses (N, n).

    One psi after the other for all datasets: its eigenvectors and their products with y then stay in the caches.
    """
    square = jnp.sum(responses**2, axis=1)
    penalty = jnp.exp(-2 * tables.log_kappa)[:, None]
    step = tables.log_kappa[1] - tables.log_kappa[0]

    def look(group: Group) -> _Found:
        place, complete, inverse_square, trace_square = group
        vectors = tables.spectrum.vectors[place][:, : inverse_square.shape[0]]
        squared = (responses @ vectors) ** 2
        rest = left_out_square(complete, jnp.sum(squared, axis=1), square)
        numerator = (squared @ inverse_square).T + rest * penalty
        offset, profile = _parabola_over_kappa(numerator / trace_square[:, None])
        return _Found(tables.log_kappa[0] + step * offset, profile)

    parts = [jax.lax.map(look, group) for group in tables.groups]
    return _Found(*(jnp.concatenate(fields).T for fields in zip(*parts, strict=True)))


def _score(eigenvalues: Array, left_out: int, squared: Array, rest: Array, log_kappa: Array) -> Array:
    """The log of the cross-validation score, for the squares of U' y."""
    kappa = jnp.exp(log_kappa)
    inverse = 1 / (kappa + eigenvalues)
    trace = jnp.sum(inverse) + left_out / kappa
    return jnp.log(jnp.sum(squared * inverse**2) + rest / kappa**2) - 2 * jnp.log(trace)


def _seen(tables: SmootherTables, psi_index: Array, log_kappa: Array, y: Array) -> _Candidate:
    """One rho with what is known of y there."""
    seen = _seen_at(tables, psi_index[None], log_kappa[None], y)
    candidate: _Candidate = jax.tree.map(lambda array: array[0], seen)
    return candidate


def _seen_at(tables: SmootherTables, places: Array, log_kappa: Array, y: Array) -> _Candidate:
    """The same for several (I,)."""
    rotated = _rotations(tables.spectrum.vectors, places, y)
    rest = left_out_square(tables.complete[places], jnp.sum(rotated**2, axis=1), jnp.sum(y**2))
    score = jax.vmap(_score, (0, None, 0, 0, 0))
    left_out, eigenvalues = tables.spectrum.left_out, tables.spectrum.eigenvalues[places]
    return _Candidate(places, log_kappa, rotated, rest, score(eigenvalues, left_out, rotated**2, rest, log_kappa))


@one_after_the_other
def _rotations(vectors: Array, indices: Array, y: Array) -> Array:
    """U' y at several psi (I, s).

    One dataset after the other and one psi after the other: what a whole batch looks up at once fills no cache.
    """
    return jnp.asarray(jax.lax.map(lambda index: y @ vectors[index], indices))


def _towards(profile: Array, best: Array, grid: PsiGrid) -> Array:
    """How many cells (k,) the minimum of the parabola through the neighbours is away, input by input."""
    per_input, shift = grid.searched_per_input, []
    for j in range(grid.inputs):
        stride = per_input ** (grid.inputs - 1 - j)
        position = (best // stride) % per_input
        interior = (position > 0) & (position < per_input - 1)
        left, right = profile[jnp.maximum(best - stride, 0)], profile[jnp.minimum(best + stride, profile.size - 1)]
        shift.append(jnp.where(interior, _vertex(left, profile[best], right), 0.0))
    return jnp.stack(shift)


def _vertex(left: Array, middle: Array, right: Array) -> Array:
    """Where, in cells from the middle, the parabola through three equally spaced values is smallest."""
    bend = left - 2 * middle + right
    return jnp.where(bend > 0, jnp.clip((left - right) / (2 * jnp.where(bend > 0, bend, 1.0)), -1.0, 1.0), 0.0)


def _parabola_over_kappa(scores: Array) -> tuple[Array, Array]:
    """The position (in cells) and the log of the smallest score over kappa, the first axis."""
    last, position = scores.shape[0] - 1, jnp.arange(float(scores.shape[0]))[:, None]
    # Sums and minima under masks: in a batch they are quicker than argmin and than looking entries up.
    lowest = jnp.min(scores, axis=0)
    index = jnp.min(jnp.where(scores == lowest, position, jnp.inf), axis=0)

    def pick(row: Array) -> Array:
        return jnp.log(jnp.sum(jnp.where(position == row, scores, 0.0), axis=0))

    left, middle, right = pick(jnp.maximum(index - 1, 0)), jnp.log(lowest), pick(jnp.minimum(index + 1, last))
    vertex = jnp.where((index > 0) & (index < last), _vertex(left, middle, right), 0.0)
    value = middle + vertex * (right - left) / 2 + vertex**2 * (left - 2 * middle + right) / 2
    return index + vertex, jnp.where(vertex == 0.0, middle, value)
