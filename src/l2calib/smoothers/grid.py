"""The grid of psi that smoothers search, and what every dataset of one design shares on it (decision 4).

Every psi_j has its own scale. With one input the grid is fine and final, with two it is tabulated twice as fine as it
is searched, with three it is left by one step of refinement, and from four inputs on it is a scattered set.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.spread import kronecker
from l2calib.problem.response import Response
from l2calib.process.correlation import Correlation
from l2calib.process.spectrum import (
    Differences,
    Functionals,
    Sites,
    Spectrum,
    compressed_spectrum_over,
    spectrum_over,
)

_GRID_PER_INPUT = {1: 81, 2: 20, 3: 7}
_FINER = {2: 2}  # steps of the tabulated grid in one of the searched grid
_SCATTERED_PSI = 400
_GROUPS = 6
_WORTH_GROUPING = 0.8


@dataclass(frozen=True)
class PsiGrid:
    """The values of psi for so many inputs, within bounds."""

    bounds: tuple[float, float]
    inputs: int

    @property
    def is_finer(self) -> bool:
        """Whether more values are tabulated than searched."""
        return self.inputs in _FINER

    @property
    def is_left(self) -> bool:
        """Whether psi is refined away from what is tabulated."""
        return self.inputs in _GRID_PER_INPUT and self.inputs > 1 and not self.is_finer

    @property
    def searched_per_input(self) -> int:
        return _GRID_PER_INPUT[self.inputs]

    @property
    def tabulated_per_input(self) -> int:
        return _FINER.get(self.inputs, 1) * (self.searched_per_input - 1) + 1

    @property
    def cell(self) -> float:
        """The distance in log psi between neighbours that are searched."""
        return float((np.log(self.bounds[1]) - np.log(self.bounds[0])) / (self.searched_per_input - 1))

    def values(self) -> np.ndarray:
        """Those that are tabulated (T, k)."""
        low, high = np.log(self.bounds)
        if self.inputs in _GRID_PER_INPUT:
            axis = np.linspace(low, high, self.tabulated_per_input)
            grid = np.stack(np.meshgrid(*[axis] * self.inputs, indexing="ij"), -1)
            return np.asarray(np.exp(grid.reshape(-1, self.inputs)))
        return np.asarray(np.exp(low + (high - low) * kronecker(_SCATTERED_PSI, self.inputs)))

    def searched(self) -> np.ndarray:
        """The indices (S,) of those where every dataset looks."""
        if not self.is_finer:
            return np.arange(len(self.values()))
        per_input = self.tabulated_per_input
        index = np.arange(per_input**self.inputs).reshape([per_input] * self.inputs)
        return np.asarray(index[(slice(None, None, _FINER[self.inputs]),) * self.inputs].ravel())


class Group(NamedTuple):
    """Values of psi that need about as many eigenvectors, without what fills shorter spectra up."""

    place: Array  # among those that are tabulated, (G,)
    complete: Array  # (G,)
    inverse_square: Array  # 1 / (kappa + lambda)^2, (G, s, K)
    trace_square: Array  # (tr Phi^-1)^2, (G, K)


class SmootherTables(NamedTuple):
    """What every dataset of one design shares: T values of psi are tabulated, S of them searched."""

    spectrum: Spectrum  # T of them
    complete: Array  # whether a psi has all n eigenvectors, (T,)
    searched: Array  # their indices (S,)
    groups: tuple[Group, ...]  # the searched psi in their order
    log_kappa: Array  # (K,)
    differences: Differences  # of the design, and of nodes to design


def keeps_model(response: Response, asked: bool) -> bool:
    """Whether tables keep the eigenvectors in which the model has a part, asked for or not.

    With several inputs hardly any can be left out and a table is large, so one serves all methods.
    """
    return asked or response.inputs > 1


@functools.lru_cache(maxsize=2)
def tables_over(
    grid: PsiGrid,
    correlation: Correlation,
    kappa_bounds: tuple[float, float],
    kappa_points: int,
    response: Response,
    with_model: bool,
) -> SmootherTables:
    """Factorise C_XX over the grid; `with_model`, the spectra keep the eigenvectors in which the model has a part."""
    sites, functionals = Sites.of(response), Functionals.of(response)
    psi, n = grid.values(), response.observations
    if grid.is_left:  # what is factorised off the grid has all of its eigenvectors
        spectrum, sizes = spectrum_over(correlation, psi, sites, functionals), np.full(len(psi), n)
    else:
        seen = response.design_span.basis if with_model else np.zeros((n, 0))
        spectrum, sizes = compressed_spectrum_over(correlation, psi, sites, functionals, seen)
    searched = grid.searched()
    if grid.is_finer:  # by size, so that groups of them can do with short spectra
        searched = searched[np.argsort(sizes[searched], kind="stable")]
    low, high = np.log(kappa_bounds)
    log_kappa = np.linspace(low, high, kappa_points)
    inverse = 1 / (np.exp(log_kappa) + np.asarray(spectrum.eigenvalues)[searched][:, :, None])
    trace = inverse.sum(axis=1) + spectrum.left_out / np.exp(log_kappa)
    complete = sizes == n
    return SmootherTables(
        spectrum,
        jnp.asarray(complete),
        jnp.asarray(searched),
        tuple(
            Group(*jax.device_put((searched[part], complete[searched[part]], square, trace[part] ** 2)))
            for part, square in _stretches(sizes[searched], inverse**2)
        ),
        jnp.asarray(log_kappa),
        Differences.of(sites, functionals),
    )


def forget_tables() -> None:
    """Free the memory of the tables that were prepared so far."""
    tables_over.cache_clear()


def _stretches(sizes: np.ndarray, inverse_square: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The values of psi, in stretches if most of them then need far fewer eigenvectors than the longest."""
    stretches = np.array_split(np.arange(sizes.size), _GROUPS)
    if sum(part.size * sizes[part].max() for part in stretches) > _WORTH_GROUPING * sizes.size * sizes.max():
        stretches = [np.arange(sizes.size)]
    return [(part, inverse_square[part][:, : sizes[part].max()]) for part in stretches]
