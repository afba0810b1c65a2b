"""The squared exponential correlation c, its spectrum over psi, and c_P as a low-rank downdate (paper, Section 2.3.2).

One design serves every dataset: C_XX(psi) = U diag(lambda) U' is factorised once for each psi of a grid, and
every Phi(psi, kappa) = kappa I + C_XX(psi) is diagonal in U. Most eigenvalues of a smooth process are zero to rounding;
of their eigenvectors only those are kept that something looks at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from l2calib.arrays import Array, adoptable_zeros, jax, jnp
from l2calib.small_matrices import cholesky, lower_solve

_RELATIVE_FLOOR = 1e-12
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


def squared_differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(x_j - x'_j)^2 for all pairs of rows and every input: (len(a), len(b), k)."""
    return np.asarray((a[:, None, :] - b[None, :, :]) ** 2)


def correlation(squared: Array, psi: Array) -> Array:
    """c(x, x'; psi) = exp(-sum_j psi_j (x_j - x'_j)^2)."""
    return jnp.exp(-squared @ psi)


def spectrum_over(psi: np.ndarray, x: np.ndarray, nodes: np.ndarray, functionals: np.ndarray) -> Spectrum:
    """Factorise C_XX for every row of psi (P, k), with functionals (Q, m) of a function's values at the nodes."""
    return _tabulated(psi, x, functionals, _factorised(psi, x, nodes, functionals))[0]


def compressed_spectrum_over(
    psi: np.ndarray, x: np.ndarray, nodes: np.ndarray, functionals: np.ndarray, seen: np.ndarray
) -> tuple[Spectrum, np.ndarray]:
    """The spectra without the eigenvectors of zero eigenvalues that neither the cross nor `seen` (n, l) have a part in.

    Also returns how many vectors each psi needs; shorter spectra are filled up with zero vectors.
    """
    parts = (_compressed(*part, seen) for part in _factorised(psi, x, nodes, functionals))
    return _tabulated(psi, x, functionals, parts)


_Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # at one psi: eigenvalues (s,), vectors (n, s), cross (s, m)


def _factorised(psi: np.ndarray, x: np.ndarray, nodes: np.ndarray, functionals: np.ndarray) -> Iterator[_Part]:
    among, across = squared_differences(x, x), squared_differences(nodes, x)
    for row in psi:
        eigenvalues, u = np.linalg.eigh(np.exp(-among @ row))
        yield np.maximum(eigenvalues, 0.0), u, u.T @ (np.exp(-across @ row).T @ functionals)


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


def node_correlations(nodes: np.ndarray, psi: np.ndarray, functionals: np.ndarray) -> np.ndarray:
    """F' C_DD F of functionals F (Q, m), for every row of psi (P, k): (P, m, m)."""
    differences = squared_differences(nodes, nodes)
    return np.stack([functionals.T @ np.exp(-differences @ row) @ functionals for row in psi])


def spectrum_at(psi: Array, among: Array, across: Array, functionals: Array) -> Spectrum:
    """The same at one traced psi (k,), from the squared differences of the design and of nodes to design."""
    eigenvalues, u = jnp.linalg.eigh(correlation(among, psi))
    cross = u.T @ (correlation(across, psi).T @ functionals)
    return Spectrum(jnp.log(psi), jnp.maximum(eigenvalues, 0.0), u, cross)


class Downdate(NamedTuple):
    """(kappa I + C_P) in the basis U, where C_P = C - C_XD F H^-1 F' C_DX.

    With D = kappa + lambda and b = U' C_XD F it is D - b H^-1 b', so that its inverse and determinant cost
    O(n p^2): everything needed is D^-1, G = D^-1 b and the inverse square root of the Schur complement.
    """

    inverse_diagonal: Array  # D^-1, (n,)
    projector: Array  # L^-1 b' D^-1, (p, n), with L L' = H - b' D^-1 b
    log_determinant: Array

    def quadratic(self, rotated: Array) -> Array:
        """r' (kappa I + C_P)^-1 r for the rotated residual U' r."""
        return self.inverse_diagonal @ rotated**2 + jnp.sum((self.projector @ rotated) ** 2)


def downdate(eigenvalues: Array, kappa: Array, b: Array, big_h: Array) -> Downdate:
    """The downdated matrix for one (psi, kappa); `big_h` is H = F' C_DD F (p, p) and `b` is U' C_XD F (n, p)."""
    diagonal = kappa + eigenvalues
    scaled = b / diagonal[:, None]
    # The Schur complement is a posterior variance: positive, but below rounding when the design determines the
    # integrals of the bias exactly (kappa -> 0, psi -> 0). The floor keeps it positive definite there.
    floor = _RELATIVE_FLOOR * jnp.diag(big_h)
    root = cholesky(big_h - b.T @ scaled + jnp.diag(floor), floor)
    h_root = cholesky(big_h + jnp.diag(floor), floor)
    log_determinant = (
        jnp.sum(jnp.log(diagonal)) + 2 * jnp.sum(jnp.log(jnp.diag(root))) - 2 * jnp.sum(jnp.log(jnp.diag(h_root)))
    )
    return Downdate(1 / diagonal, lower_solve(root, scaled.T), log_determinant)
