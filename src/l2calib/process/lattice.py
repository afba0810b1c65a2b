"""The posterior of rho = (psi, kappa) on a lattice of their logarithms, and the part of it that carries the mass.

sigma2 is integrated out in closed form under the prior 1/sigma2, so that what is left of a residual r at one (psi,
kappa) is Q^(-n/2) with Q = r' (kappa I + C_P)^-1 r, and a determinant (paper, Section 2.3.2).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.namespace import AnyArray, largest, log_sum_exp, namespace_of, softmax
from l2calib.numerics.spread import kronecker
from l2calib.numerics.vmapping import computed_together
from l2calib.problem.distributions import Distribution, LogNormal
from l2calib.process.correlation import Correlation
from l2calib.process.spectrum import Functionals, Spectrum, left_out_square, node_correlations

PSI_PRIOR = LogNormal(math.log(5.0), 1.5)
KAPPA_PRIOR = LogNormal(math.log(0.05), 3.0)


@dataclass(frozen=True)
class HalfCauchyRatio:
    """Of kappa where tau / sigma = kappa^(-1/2), the process's sd in units of the error's, is half-Cauchy.

    Proper at both ends: no process and no error each have a density of their own to fall to.
    """

    scale: float = 1.0

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def log_density(self, value: AnyArray) -> AnyArray:
        xp = namespace_of(value)
        ratio = 1 / (value * self.scale**2)
        return xp.log(xp.sqrt(ratio) / value) - np.log(np.pi) - xp.log1p(ratio)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        upper = self.scale * np.tan(np.pi / 2 * (1 - np.asarray(probability)))  # of tau / sigma
        return np.asarray(upper**-2)


KAPPA_BOUNDS = (1e-8, 1e4)
KAPPA_POINTS = 71
PSI_BOUNDS = (1e-2, 1e3)
_PSI_PER_INPUT = {1: 41, 2: 16, 3: 8}  # a posterior of log psi has a standard deviation of a cell or more
_SCATTERED_PSI = 400


class Lattice(NamedTuple):
    """What every dataset of one design shares, for P values of psi and K of kappa."""

    spectrum: Spectrum
    complete: Array  # (P,)
    big_h: Array  # C_DD in the model's span at the nodes, (P, l, l)
    log_kappa: Array  # (K,)
    inverse: Array  # 1 / (kappa + lambda), (P, s, K)
    log_determinant: Array  # of kappa I + C, (P, K)
    log_prior: Array  # of (log psi, log kappa), (P, K)
    rotated_basis: Array  # U' times the basis of the model's span at the design, (P, s, m)


def kappa_lattice(points: int = KAPPA_POINTS) -> np.ndarray:
    """The logarithms of kappa (K,), equally spaced."""
    low, high = np.log(KAPPA_BOUNDS)
    return np.linspace(low, high, points)


def psi_lattice(inputs: int) -> np.ndarray:
    """Values of psi (P, k) to integrate over: a grid, or with many inputs a scattered set."""
    low, high = np.log(PSI_BOUNDS)
    if inputs not in _PSI_PER_INPUT:
        return np.asarray(np.exp(low + (high - low) * kronecker(_SCATTERED_PSI, inputs)))
    axis = np.linspace(low, high, _PSI_PER_INPUT[inputs])
    return np.asarray(np.exp(np.stack(np.meshgrid(*[axis] * inputs, indexing="ij"), -1).reshape(-1, inputs)))


def lattice_over(
    spectrum: Spectrum,
    complete: Array,
    functionals: Functionals,
    basis: np.ndarray,
    correlation: Correlation,
    psi_prior: Distribution,
    kappa_prior: Distribution,
    kappa_points: int = KAPPA_POINTS,
) -> Lattice:
    """The lattice over the psi of these spectra, complete or not; `basis` (n, m) is that of the model at the design."""
    # In NumPy: by itself every small operation of JAX is a program to compile.
    log_kappa, log_psi = kappa_lattice(kappa_points), np.asarray(spectrum.log_psi)
    inverse = 1 / (np.exp(log_kappa) + np.asarray(spectrum.eigenvalues)[:, :, None])
    of_psi = (np.asarray(psi_prior.log_density(np.exp(log_psi))) + log_psi).sum(axis=1)
    of_kappa = np.asarray(kappa_prior.log_density(np.exp(log_kappa))) + log_kappa
    tables = (
        node_correlations(correlation, np.exp(log_psi), functionals),
        log_kappa,
        inverse,
        spectrum.left_out * log_kappa - np.log(inverse).sum(axis=1),
        of_psi[:, None] + of_kappa,
        np.einsum("pij,im->pjm", np.asarray(spectrum.vectors), basis, optimize=True),
    )
    return Lattice(spectrum, complete, *jax.device_put(tables))


class Seen(NamedTuple):
    """The whole lattice at one theta, for one y: only used to choose the window."""

    rotated_y: Array  # U' y, (P, s)
    rest: Array  # (P,)
    quadratic: Array  # r' (kappa I + C_P)^-1 r, about, (P, K)
    log_determinant: Array  # of kappa I + C_P, about, (P, K)


def _look(plain: bool, lattice: Lattice, y: Array, modelled: Array, slopes: Array) -> Seen:
    """See `Seen`, for datasets (N, n), models at the design (N, m) and slopes (N, l, p).

    The slopes are projected out one by one, as if they were orthogonal. One psi after the other for all datasets, as
    the smoother does it.
    """
    square, p = jnp.sum(y**2, axis=1), slopes.shape[2]

    def look(psi: _AtPsi) -> Seen:
        rotated_y = y @ psi.vectors
        rest = left_out_square(psi.complete, jnp.sum(rotated_y**2, axis=1), square)
        rotated = rotated_y - modelled @ psi.rotated_basis.T
        if plain:
            quadratic, log_determinant = rotated**2 @ psi.inverse, jnp.zeros(1)
        else:
            b = jnp.einsum("nlj,sl->njs", slopes, psi.cross)
            h = jnp.einsum("nlj,lm,nmj->nj", slopes, psi.big_h, slopes)[:, :, None]
            rows = jnp.concatenate([rotated[:, None] ** 2, b**2, b * rotated[:, None]], axis=1)
            sums = (rows.reshape(-1, rows.shape[2]) @ psi.inverse).reshape(*rows.shape[:2], -1)
            schur = jnp.maximum(h - sums[:, 1 : p + 1], 1e-12 * h)
            quadratic = sums[:, 0] + jnp.sum(sums[:, p + 1 :] ** 2 / schur, axis=1)
            log_determinant = jnp.sum(jnp.log(schur / h), axis=1)
        quadratic += rest[:, None] * jnp.exp(-lattice.log_kappa)
        return Seen(
            rotated_y, rest, quadratic, jnp.broadcast_to(log_determinant + psi.log_determinant, quadratic.shape)
        )

    spectrum = lattice.spectrum
    over = _AtPsi(
        spectrum.vectors,
        spectrum.cross,
        lattice.complete,
        lattice.big_h,
        lattice.inverse,
        lattice.log_determinant,
        lattice.rotated_basis,
    )
    return Seen(*(jnp.moveaxis(field, 1, 0) for field in jax.lax.map(look, over)))


class _AtPsi(NamedTuple):
    """What is shared among all datasets, at one psi; see `Lattice`."""

    vectors: Array
    cross: Array
    complete: Array
    big_h: Array
    inverse: Array
    log_determinant: Array
    rotated_basis: Array


look_at_projected = computed_together(functools.partial(_look, False))
look_at_plain = computed_together(functools.partial(_look, True))


class Window(NamedTuple):
    """The part of a lattice that carries the mass: w values of psi, and v of kappa for each."""

    psi: AnyArray  # their indices (w,)
    kappa: AnyArray  # (w, v)
    log_cells: AnyArray  # of how many cells of the lattice each stands for (w, v)


_ONE_INPUT_STRIDES = (1, 2, 4, 8)  # of psi, on a line; with more inputs it has no such order


class Coverage(NamedTuple):
    """When a sublattice suffices: its heaviest entries carry so much of masses that are tempered by a power."""

    captured: float
    temper: float  # at other thetas the mass sits elsewhere


def window_of(table: AnyArray, inputs: int, psi: int, kappa: int, coverage: Coverage) -> Window:
    """`psi` values of psi at most, and `kappa` of kappa, for the log masses (P, K) of a whole lattice."""
    xp = namespace_of(table)
    strides = _ONE_INPUT_STRIDES if inputs == 1 else (1,)
    chosen, cells = carry_the_mass(log_sum_exp(table, axis=1), min(psi, table.shape[0]), strides, coverage)
    columns, kappa_cells = carry_the_mass(table[chosen], kappa, _ONE_INPUT_STRIDES, coverage)
    return Window(chosen, columns, xp.log(cells[:, None] * kappa_cells))


def carry_the_mass(
    log_mass: AnyArray, keep: int, strides: tuple[int, ...], coverage: Coverage
) -> tuple[AnyArray, AnyArray]:
    """Indices (..., keep) of the heaviest entries (..., L) of the finest sublattice whose heaviest carry nearly all.

    Also returns how many cells each entry stands for:
    the sublattice's stride, or none where the sublattice has no more entries.
    """
    xp = namespace_of(log_mass)
    position = np.arange(log_mass.shape[-1])
    tempered = softmax(coverage.temper * log_mass)
    tops, captured = [], []
    for stride in strides:
        on_sublattice = xp.where(position % stride == 0, tempered, 0.0)
        top, index = largest(on_sublattice, keep)
        tops.append(index)
        captured.append(xp.sum(top, axis=-1) / xp.sum(on_sublattice, axis=-1))
    enough = xp.stack(captured) > coverage.captured
    choice = xp.where(xp.any(enough, axis=0), xp.argmax(enough, axis=0), len(strides) - 1)
    index = xp.take_along_axis(xp.stack(tops), choice[None, ..., None], axis=0)[0]
    cells = xp.asarray(strides)[choice][..., None]
    return index, xp.where(index % cells == 0, cells, 0).astype(float)
