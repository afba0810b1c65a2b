"""The non-parametric predictor mu-hat with rho = (psi, kappa) by generalised cross-validation (paper, Section 2.2).

Since I - R(rho) = kappa Phi^-1, the criterion is |Phi^-1 y|^2 / tr(Phi^-1)^2 up to a constant. It is
multi-modal and may run to interpolation, so it is searched globally on a log grid and then refined.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.correlation import Spectrum, compressed, correlation, spectrum_at, spectrum_over, squared_differences
from l2calib.errors import MethodError, Status
from l2calib.experiment import Experiment
from l2calib.quadrature import kronecker

_GRID_PER_INPUT = {1: 81, 2: 20, 3: 7}
_FINER = {2: 2}  # steps of the tabulated grid in one of the searched grid
_SCATTERED_PSI = 400
_NEWTON_STEPS = 8
_GROUPS = 6
_WORTH_GROUPING = 0.8


class _Group(NamedTuple):
    """Values of psi that need about as many eigenvectors."""

    vectors: Array  # (n, G s): side by side, so that one matrix product rotates y for all of them
    inverse_square: Array  # 1 / (kappa + lambda)^2, (G, s, K)


class SmootherTables(NamedTuple):
    """What every dataset of one design shares: T values of psi are tabulated, S of them searched."""

    spectrum: Spectrum  # T of them
    complete: Array  # whether a psi has all n eigenvectors, (T,)
    searched: Array  # their indices (S,)
    groups: tuple[_Group, ...]  # the searched psi in their order, without what fills shorter spectra up
    log_kappa: Array  # (K,)
    trace_square: Array  # (tr Phi^-1)^2, (S, K)
    among: Array  # squared differences of the design, (n, n, k)
    across: Array  # of nodes to design, (Q, n, k)
    functionals: Array  # from values at the nodes to coordinates in the model's span, (Q, m)


class Smooth(NamedTuple):
    """mu-hat for one y, in the eigenbasis of its psi."""

    spectrum: Spectrum
    psi_index: Array  # in the tabulated grid; minus one off it
    kappa: Array
    rotated: Array  # U' y, (s,)
    rest: Array  # the sum of squares of y along the eigenvectors that are left out
    criterion: Array  # log of the cross-validation score
    status: Array

    @property
    def psi(self) -> Array:
        return jnp.exp(self.spectrum.log_psi)

    @property
    def inverse_diagonal(self) -> Array:
        """The eigenvalues 1 / (kappa + lambda) of Phi^-1."""
        return 1 / (self.kappa + self.spectrum.eigenvalues)

    def in_span(self) -> Array:
        """mu-hat at the quadrature nodes, in the coordinates of the model's span there (m,)."""
        return (self.inverse_diagonal * self.rotated) @ self.spectrum.cross

    def at(self, points: np.ndarray, design: np.ndarray) -> Array:
        """mu-hat at points (N, k) of the unit cube, for the design that it was fitted on."""
        shrunk = self.inverse_diagonal * self.rotated
        return correlation(jnp.asarray(squared_differences(points, design)), self.psi) @ (
            self.spectrum.vectors @ shrunk
        )

    def at_design(self) -> Array:
        """mu-hat at the design points: R(rho) y."""
        shrunk = self.spectrum.eigenvalues * self.inverse_diagonal * self.rotated
        return self.spectrum.vectors @ shrunk

    def residuals(self, y: Array) -> Array:
        """y minus mu-hat at the design points, kappa Phi^-1 y: exact also where mu-hat all but interpolates."""
        vectors = self.spectrum.vectors
        kept = vectors @ (self.kappa * self.inverse_diagonal * self.rotated)
        return kept + jnp.where(self.rest > 0, y - vectors @ self.rotated, 0.0)

    def span_map(self) -> Array:
        """The matrix (n, m) that takes y to mu-hat in the coordinates of the model's span, for this rho."""
        return self.spectrum.vectors @ (self.inverse_diagonal[:, None] * self.spectrum.cross)

    def sigma2(self) -> Array:
        """sigma2-hat: residual sum of squares over tr (I - R)^2."""
        kept = self.kappa * self.inverse_diagonal
        return (jnp.sum((kept * self.rotated) ** 2) + self.rest) / (jnp.sum(kept**2) + self.spectrum.left_out)

    def process_variance(self) -> Array:
        """y' Phi^-1 y / n, the maximum likelihood estimate of the process variance given rho."""
        square = jnp.sum(self.inverse_diagonal * self.rotated**2) + self.rest / self.kappa
        return square / self.spectrum.vectors.shape[0]


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

    def __post_init__(self) -> None:
        for name, (low, high) in (("psi", self.psi_bounds), ("kappa", self.kappa_bounds)):
            if not 0 < low < high < np.inf:
                raise MethodError(f"the bounds of {name} must satisfy 0 < low < high: received ({low}, {high}).")

    def prepare(self, experiment: Experiment, with_model: bool = False) -> SmootherTables:
        """Factorise C_XX over the grid of psi and tabulate the criterion's parts.

        The spectra keep every eigenvector in which mu-hat's coordinates have a part; `with_model`, those of the model
        at the design as well.
        """
        return _tables(self, experiment, with_model)

    def working_set(self, experiment: Experiment) -> int:
        """About how many numbers the fit of one dataset needs at once."""
        n, points = experiment.observations, len(self.searched(experiment.x.shape[1]))
        return 2 * points * (n + self.kappa_points) + n * (n + experiment.node_span.dimension)

    def psi_grid(self, inputs: int) -> np.ndarray:
        """The values of psi (T, k) that are tabulated."""
        low, high = np.log(self.psi_bounds)
        if inputs in _GRID_PER_INPUT:
            axis = np.linspace(low, high, _tabulated_per_input(inputs))
            grid = np.stack(np.meshgrid(*[axis] * inputs, indexing="ij"), -1)
            return np.asarray(np.exp(grid.reshape(-1, inputs)))
        return np.asarray(np.exp(low + (high - low) * kronecker(_SCATTERED_PSI, inputs)))

    def searched(self, inputs: int) -> np.ndarray:
        """The indices (S,) of those where every dataset looks."""
        if inputs not in _FINER:
            return np.arange(len(self.psi_grid(inputs)))
        per_input = _tabulated_per_input(inputs)
        index = np.arange(per_input**inputs).reshape([per_input] * inputs)
        return np.asarray(index[(slice(None, None, _FINER[inputs]),) * inputs].ravel())

    def fit(self, tables: SmootherTables, y: Array) -> Smooth:
        """Choose rho for one y."""
        rotated = [_rotated(group, y) for group in tables.groups]
        rest = left_out_square(tables.complete[tables.searched], _explained(rotated), y)
        numerator = jnp.concatenate(
            [jnp.einsum("ps,psk->pk", u**2, g.inverse_square) for u, g in zip(rotated, tables.groups, strict=True)]
        )
        numerator += rest[:, None] * jnp.exp(-2 * tables.log_kappa)
        offset, profile = _parabola_over_kappa(numerator / tables.trace_square)
        best = jnp.argmin(profile)
        step = tables.log_kappa[1] - tables.log_kappa[0]
        start = tables.log_kappa[0] + step * offset[best]
        index = tables.searched[best]
        chosen = self._polish(tables, tables.spectrum.at(index), index, _pick(tables, rotated, best), rest[best], start)
        inputs = tables.among.shape[-1]
        if inputs in _FINER or moves_off_grid(inputs):
            if inputs in _FINER:
                moved = self._on_finer_grid(tables, index, y, jnp.log(chosen.kappa))
            else:
                moved = self._off_grid(tables, index, _towards(profile, best, inputs), y, jnp.log(chosen.kappa))
            better = moved.criterion < chosen.criterion
            chosen = jax.tree.map(lambda new, old: jnp.where(better, new, old), moved, chosen)
        return chosen._replace(status=self._status(chosen))

    def _polish(
        self, tables: SmootherTables, spectrum: Spectrum, index: Array, rotated: Array, rest: Array, start: Array
    ) -> Smooth:
        """Newton's method for log kappa at one psi, kept within one cell of its start and within the bounds."""
        low, high = np.log(self.kappa_bounds)
        cell = tables.log_kappa[1] - tables.log_kappa[0]
        squared, eigenvalues = rotated**2, spectrum.eigenvalues

        def score(log_kappa: Array) -> Array:
            kappa = jnp.exp(log_kappa)
            inverse = 1 / (kappa + eigenvalues)
            trace = jnp.sum(inverse) + spectrum.left_out / kappa
            return jnp.log(jnp.sum(squared * inverse**2) + rest / kappa**2) - 2 * jnp.log(trace)

        def newton(_: int, log_kappa: Array) -> Array:
            slope, bend = jax.grad(score)(log_kappa), jax.grad(jax.grad(score))(log_kappa)
            step = jnp.where(bend > 0, slope / jnp.where(bend > 0, bend, 1.0), jnp.sign(slope) * cell / 4)
            moved = log_kappa - jnp.clip(step, -cell / 2, cell / 2)
            return jnp.clip(moved, jnp.maximum(low, start - cell), jnp.minimum(high, start + cell))

        log_kappa = jax.lax.fori_loop(0, _NEWTON_STEPS, newton, jnp.clip(start, low, high))
        return Smooth(spectrum, index, jnp.exp(log_kappa), rotated, rest, score(log_kappa), jnp.asarray(0))

    def _on_finer_grid(self, tables: SmootherTables, index: Array, y: Array, log_kappa: Array) -> Smooth:
        """The best psi among those that are tabulated around one, corners included."""
        inputs = tables.among.shape[-1]
        per_input = _tabulated_per_input(inputs)
        strides = per_input ** np.arange(inputs)[::-1]
        place = index // strides % per_input
        steps = np.stack(np.meshgrid(*[np.arange(-1, 2)] * inputs, indexing="ij"), -1).reshape(-1, inputs)
        steps = steps[np.any(steps != 0, axis=1)]

        def look(step: Array) -> Smooth:
            there = jnp.sum(strides * jnp.clip(place + step, 0, per_input - 1))
            spectrum = tables.spectrum.at(there)
            rotated = spectrum.vectors.T @ y
            rest = left_out_square(tables.complete[there], jnp.sum(rotated**2), y)
            return self._polish(tables, spectrum, there, rotated, rest, log_kappa)

        found = jax.vmap(look)(jnp.asarray(steps))
        best = jnp.argmin(found.criterion)
        nearby: Smooth = jax.tree.map(lambda array: array[best], found)
        return nearby

    def _off_grid(self, tables: SmootherTables, index: Array, shift: Array, y: Array, log_kappa: Array) -> Smooth:
        """Move psi by `shift` (k,) cells and factorise there."""
        cell = (np.log(self.psi_bounds[1]) - np.log(self.psi_bounds[0])) / (_GRID_PER_INPUT[shift.size] - 1)
        psi = jnp.exp(tables.spectrum.log_psi[index] + cell * shift)
        moved = spectrum_at(psi, tables.among, tables.across, tables.functionals)
        nowhere, nothing = jnp.asarray(-1), jnp.asarray(0.0)
        return self._polish(tables, moved, nowhere, moved.vectors.T @ y, nothing, log_kappa)

    def _status(self, smooth: Smooth) -> Array:
        near, cell = 1e-6, np.log(self.kappa_bounds[1] / self.kappa_bounds[0]) / (self.kappa_points - 1)
        log_psi, log_kappa = smooth.spectrum.log_psi, jnp.log(smooth.kappa)
        (psi_low, psi_high), (low, high) = np.log(self.psi_bounds), np.log(self.kappa_bounds)
        at_bound = jnp.any((log_psi < psi_low + near) | (log_psi > psi_high - near))
        # psi is chosen from a grid, so a ridge that runs to the bound of kappa ends within a cell of it.
        at_bound |= (log_kappa < low + cell) | (log_kappa > high - cell)
        return jnp.where(at_bound, int(Status.GCV_AT_BOUND), 0)


@functools.lru_cache(maxsize=2)
def _tables(smoother: GCV, experiment: Experiment, with_model: bool) -> SmootherTables:
    x, nodes = experiment.x_unit, experiment.quadrature.nodes
    functionals = experiment.node_span.functionals
    spectrum = spectrum_over(smoother.psi_grid(x.shape[1]), x, nodes, functionals)
    sizes = np.full(len(spectrum.log_psi), len(x))
    if not moves_off_grid(x.shape[1]):  # what is factorised off the grid has all of its eigenvectors
        seen = experiment.design_span.basis if with_model else np.zeros((len(x), 0))
        spectrum, sizes = compressed(spectrum, seen)
    searched = smoother.searched(x.shape[1])
    if x.shape[1] in _FINER:  # by size, so that groups of them can do with short spectra
        searched = searched[np.argsort(sizes[searched], kind="stable")]
    low, high = np.log(smoother.kappa_bounds)
    log_kappa = np.linspace(low, high, smoother.kappa_points)
    inverse = 1 / (np.exp(log_kappa) + np.asarray(spectrum.eigenvalues)[searched][:, :, None])
    trace = inverse.sum(axis=1) + spectrum.left_out / np.exp(log_kappa)
    groups = _groups(np.asarray(spectrum.vectors)[searched], sizes[searched], inverse**2)
    return SmootherTables(
        spectrum,
        jnp.asarray(sizes == len(x)),
        jnp.asarray(searched),
        groups,
        jnp.asarray(log_kappa),
        jnp.asarray(trace**2),
        jnp.asarray(squared_differences(x, x)),
        jnp.asarray(squared_differences(nodes, x)),
        jnp.asarray(functionals),
    )


def _groups(vectors: np.ndarray, sizes: np.ndarray, inverse_square: np.ndarray) -> tuple[_Group, ...]:
    """Cut the values of psi into stretches, if most of them then need far fewer eigenvectors than the longest."""
    stretches = np.array_split(np.arange(sizes.size), _GROUPS)
    if sum(part.size * sizes[part].max() for part in stretches) > _WORTH_GROUPING * sizes.size * sizes.max():
        stretches = [np.arange(sizes.size)]
    groups = []
    for part in stretches:
        s = sizes[part].max()
        side_by_side = np.moveaxis(vectors[part][:, :, :s], 0, 1).reshape(vectors.shape[1], -1)
        groups.append(_Group(*jax.device_put((side_by_side, inverse_square[part][:, :s]))))
    return tuple(groups)


def _rotated(group: _Group, y: Array) -> Array:
    """U' y for every psi of a group (G, s)."""
    return (y @ group.vectors).reshape(group.inverse_square.shape[:2])


def _explained(rotated: list[Array]) -> Array:
    """The sums of squares of y along the eigenvectors that are kept (P,)."""
    return jnp.concatenate([jnp.sum(u**2, axis=1) for u in rotated])


def left_out_square(complete: Array, explained: Array, y: Array) -> Array:
    """For every psi, complete or not, the sum of squares of y along the eigenvectors that are left out."""
    # Where nothing is left out, the difference is rounding, which a small kappa would magnify.
    return jnp.where(complete, 0.0, jnp.maximum(jnp.sum(y**2) - explained, 0.0))


def _pick(tables: SmootherTables, rotated: list[Array], best: Array) -> Array:
    """U' y of one psi (s,), filled up with zeros."""
    size, first, picked = tables.spectrum.eigenvalues.shape[1], 0, jnp.zeros(tables.spectrum.eigenvalues.shape[1])
    for u in rotated:
        inside = (best >= first) & (best < first + u.shape[0])
        own = u[jnp.clip(best - first, 0, u.shape[0] - 1)]
        picked += jnp.pad(jnp.where(inside, own, 0.0), (0, size - u.shape[1]))
        first += u.shape[0]
    return picked


def moves_off_grid(inputs: int) -> bool:
    """Whether psi is refined away from what is tabulated."""
    return inputs in _GRID_PER_INPUT and inputs > 1 and inputs not in _FINER


def _tabulated_per_input(inputs: int) -> int:
    return _FINER.get(inputs, 1) * (_GRID_PER_INPUT[inputs] - 1) + 1


def _towards(profile: Array, best: Array, inputs: int) -> Array:
    """How many cells (k,) the minimum of the parabola through the neighbours is away, input by input."""
    per_input, shift = _GRID_PER_INPUT[inputs], []
    for j in range(inputs):
        stride = per_input ** (inputs - 1 - j)
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
    """For every psi, the position (in cells) and the log of the smallest score over kappa."""
    last, position = scores.shape[1] - 1, jnp.arange(scores.shape[1])
    index = jnp.argmin(scores, axis=1)

    def pick(column: Array) -> Array:
        # A masked sum: in a batch it is quicker than looking three entries up.
        return jnp.log(jnp.sum(jnp.where(position == column[:, None], scores, 0.0), axis=1))

    left, middle, right = pick(jnp.maximum(index - 1, 0)), pick(index), pick(jnp.minimum(index + 1, last))
    vertex = jnp.where((index > 0) & (index < last), _vertex(left, middle, right), 0.0)
    value = middle + vertex * (right - left) / 2 + vertex**2 * (left - 2 * middle + right) / 2
    return index + vertex, jnp.where(vertex == 0.0, middle, value)
