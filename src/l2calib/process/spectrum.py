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


def spectrum_over(
    correlation: Correlation, psi: np.ndarray, x: np.ndarray, nodes: np.ndarray, functionals: np.ndarray
) -> Spectrum:
    """Factorise C_XX for every row of psi (P, k), with functionals (Q, m) of a function's values at the nodes."""
    return _tabulated(psi, x, functionals, _factorised(correlation, psi, x, nodes, functionals))[0]


def compressed_spectrum_over(
    correlation: Correlation,
    psi: np.ndarray,
    x: np.ndarray,
    nodes: np.ndarray,
    functionals: np.ndarray,
    seen: np.ndarray,
) -> tuple[Spectrum, np.ndarray]:
    """The spectra without the eigenvectors of zero eigenvalues that neither the cross nor `seen` (n, l) have a part in.

    Also returns how many vectors each psi needs; shorter spectra are filled up with zero vectors.
    """
    parts = (_compressed(*part, seen) for part in _factorised(correlation, psi, x, nodes, functionals))
    return _tabulated(psi, x, functionals, parts)


_Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # at one psi: eigenvalues (s,), vectors (n, s), cross (s, m)


def _factorised(
    correlation: Correlation, psi: np.ndarray, x: np.ndarray, nodes: np.ndarray, functionals: np.ndarray
) -> Iterator[_Part]:
    among, across = squared_differences(x, x), squared_differences(nodes, x)
    for row in psi:
        eigenvalues, u = np.linalg.eigh(correlation(among, row))
        yield np.maximum(eigenvalues, 0.0), u, u.T @ (correlation(across, row).T @ functionals)


def _tabulated(
    psi: np.ndarray, x: np.ndarray, functionals: np.ndarray, parts: Iterable[_Part]
) -> tuple[Spectrum, np.ndarray]:
    """The parts side by side, and their sizes. A table may be half a gigabyte: each part goes to its place at once."""
    number, n, m = len(psi), len(x), functionals.shape[1]
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


def node_correlations(
    correlation: Correlation, nodes: np.ndarray, psi: np.ndarray, functionals: np.ndarray
) -> np.ndarray:
    """F' C_DD F of functionals F (Q, m), for every row of psi (P, k): (P, m, m)."""
    differences = squared_differences(nodes, nodes)
    return np.stack([functionals.T @ correlation(differences, row) @ functionals for row in psi])


def spectrum_at(correlation: Correlation, psi: Array, among: Array, across: Array, functionals: Array) -> Spectrum:
    """The same at one traced psi (k,), from the squared differences of the design and of nodes to design."""
    eigenvalues, u = jnp.linalg.eigh(correlation(among, psi))
    cross = u.T @ (correlation(across, psi).T @ functionals)
    return Spectrum(jnp.log(psi), jnp.maximum(eigenvalues, 0.0), u, cross)


def left_out_square(complete: Array, explained: Array, square: Array) -> Array:
    """For every psi, complete or not, what of y's sum of squares is along the eigenvectors that are left out."""
    # Where nothing is left out, the difference is rounding, which a small kappa would magnify.
    return jnp.where(complete, 0.0, jnp.maximum(square - explained, 0.0))
