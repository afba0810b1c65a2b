"""The spectrum of C_XX over psi (paper, Section 2.2).

One design serves every dataset: C_XX(psi) = U diag(lambda) U' is factorised once for each psi of a grid, and
every Phi(psi, kappa) = kappa I + C_XX(psi) is diagonal in U. Most eigenvalues of a smooth process are zero to rounding;
of their eigenvectors only those are kept that something looks at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from l2calib.numerics.arrays import Array, adoptable_zeros, jax, jnp
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.problem.response import Response
from l2calib.process.correlation import Correlation, squared_differences

_ZERO_EIGENVALUE = 1e-15  # relative to the largest: what rounding leaves of a zero


class Spectrum(NamedTuple):
    """C_XX(psi) = U diag(lambda) U' for P values of psi, and U' C_XD(psi) F for functionals F at the nodes."""

    log_psi: Array  # (P, k)
    eigenvalues: Array  # (P, s)
    vectors: Array  # (P, n, s), eigenvectors in columns; the n - s that are left out have eigenvalue and cross zero
    cross: Array  # U' C_XD F, (P, s, m)

    @property
    def left_out(self) -> int:
        """n - s."""
        return int(self.vectors.shape[-2] - self.vectors.shape[-1])

    def at(self, index: Array) -> Spectrum:
        """The spectrum at one psi (or at several, for an array of indices)."""
        return Spectrum(*(field[index] for field in self))


class Sites(NamedTuple):
    """Where a process is observed: points (n, k) of the unit cube, and by what an observation is whitened (n,)."""

    x: np.ndarray
    whitening: np.ndarray

    @classmethod
    def of(cls, response: Response) -> Sites:
        return cls(response.x_unit, response.whitening)


class Functionals(NamedTuple):
    """m linear functionals of a function: a matrix (Q, m) that is applied to its values at nodes (Q, k)."""

    nodes: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(cls, response: Response) -> Functionals:
        """The coordinates in the span of the model at the quadrature nodes."""
        return cls(response.quadrature.nodes, response.node_span.functionals)

    @classmethod
    def none(cls, inputs: int) -> Functionals:
        return cls(np.empty((0, inputs)), np.empty((0, 0)))


def spectrum_over(correlation: Correlation, psi: np.ndarray, sites: Sites, functionals: Functionals) -> Spectrum:
    """Factorise C_XX for every row of psi (P, k)."""
    return _tabulated(psi, sites, functionals, _factorised(correlation, psi, sites, functionals))[0]


def compressed_spectrum_over(
    correlation: Correlation, psi: np.ndarray, sites: Sites, functionals: Functionals, seen: np.ndarray
) -> tuple[Spectrum, np.ndarray]:
    """The spectra without the eigenvectors of zero eigenvalues that neither the cross nor `seen` (n, l) have a part in.

    Also returns how many vectors each psi needs; shorter spectra are filled up with zero vectors.
    """
    parts = (_compressed(*part, seen) for part in _factorised(correlation, psi, sites, functionals))
    return _tabulated(psi, sites, functionals, parts)


_Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # at one psi: eigenvalues (s,), vectors (n, s), cross (s, m)


def _factorised(correlation: Correlation, psi: np.ndarray, sites: Sites, functionals: Functionals) -> Iterator[_Part]:
    (x, whitening), (nodes, matrix) = sites, functionals
    among, across = squared_differences(x, x), squared_differences(nodes, x)
    both = np.outer(whitening, whitening)
    for row in psi:
        eigenvalues, u = np.linalg.eigh(both * correlation(among, row))
        yield np.maximum(eigenvalues, 0.0), u, u.T @ ((whitening * correlation(across, row)).T @ matrix)


def _tabulated(
    psi: np.ndarray, sites: Sites, functionals: Functionals, parts: Iterable[_Part]
) -> tuple[Spectrum, np.ndarray]:
    """The parts side by side, and their sizes. A table may be half a gigabyte: each part goes to its place at once."""
    number, n, m = len(psi), len(sites.x), functionals.matrix.shape[1]
    values, columns, rows = np.zeros((number, n)), adoptable_zeros((number, n, n)), np.zeros((number, n, m))
    sizes = np.zeros(number, dtype=int)
    for i, (own_values, own_columns, own_rows) in enumerate(parts):
        sizes[i] = own = own_values.size
        values[i, :own], columns[i, :, :own], rows[i, :own] = own_values, own_columns, own_rows
    s = sizes.max()
    return Spectrum(*jax.device_put((np.log(psi), values[:, :s], columns[:, :, :s], rows[:, :s]))), sizes


def _compressed(eigenvalues: np.ndarray, vectors: np.ndarray, cross: np.ndarray, seen: np.ndarray) -> _Part:
    zero = eigenvalues <= _ZERO_EIGENVALUE * eigenvalues.max()
    watched = np.hstack([cross[zero], vectors[:, zero].T @ seen])
    if zero.sum() <= watched.shape[1]:
        return eigenvalues, vectors, cross
    turned, _ = np.linalg.qr(watched)
    return (
        np.concatenate([eigenvalues[~zero], np.zeros(turned.shape[1])]),
        np.hstack([vectors[:, ~zero], vectors[:, zero] @ turned]),
        np.vstack([cross[~zero], turned.T @ cross[zero]]),
    )


def node_correlations(correlation: Correlation, psi: np.ndarray, functionals: Functionals) -> np.ndarray:
    """F' C_DD F of functionals F, for every row of psi (P, k): (P, m, m)."""
    nodes, matrix = functionals
    differences = squared_differences(nodes, nodes)
    return np.stack([matrix.T @ correlation(differences, row) @ matrix for row in psi])


class Differences(NamedTuple):
    """Sites and functionals as a traced psi needs them."""

    among: Array  # squared differences of the sites, (n, n, k)
    across: Array  # of nodes to sites, (Q, n, k)
    whitening: Array  # (n,)
    matrix: Array  # (Q, m)

    @classmethod
    def of(cls, sites: Sites, functionals: Functionals) -> Differences:
        among, across = squared_differences(sites.x, sites.x), squared_differences(functionals.nodes, sites.x)
        return cls(*map(jnp.asarray, (among, across, sites.whitening, functionals.matrix)))

    @property
    def inputs(self) -> int:
        """k."""
        return int(self.among.shape[-1])


def spectrum_at(correlation: Correlation, psi: Array, differences: Differences) -> Spectrum:
    """The same at one traced psi (k,)."""
    among, across, whitening, matrix = differences
    eigenvalues, u = jnp.linalg.eigh(whitening[:, None] * whitening * correlation(among, psi))
    cross = u.T @ ((whitening * correlation(across, psi)).T @ matrix)
    return Spectrum(jnp.log(psi), jnp.maximum(eigenvalues, 0.0), u, cross)


def left_out_square(complete: AnyArray, explained: AnyArray, square: AnyArray) -> AnyArray:
    """For every psi, complete or not, what of y's sum of squares is along the eigenvectors that are left out."""
    # Where nothing is left out, the difference is rounding, which a small kappa would magnify.
    xp = namespace_of(explained)
    return xp.where(complete, 0.0, xp.maximum(square - explained, 0.0))
