"""Modified Kennedy-O'Hagan calibration (paper, Section 2.3.2): a Gaussian process bias orthogonal to the model's slopes.

sigma2 is integrated out in closed form under the prior 1/sigma2. psi and kappa are integrated on a lattice of their
logarithms: at theta-hat the posterior of (psi, kappa) is tabulated on the whole lattice, and the part of it that
carries the mass is then used at every theta, each term at the cost of a low-rank downdate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.correlation import Downdate, Spectrum, correlation, downdate, squared_differences
from l2calib.errors import MethodError
from l2calib.experiment import Experiment
from l2calib.losses import L2, loss_candidates, loss_minima
from l2calib.methods.method import Fit
from l2calib.minimise import Candidates, Minima, scan_maxima
from l2calib.prior import Distribution, LogNormal
from l2calib.smoother import GCV, SmootherTables

_KAPPA_BOUNDS = (1e-8, 1e4)
_KAPPA_POINTS = 71
_KEPT_KAPPA = 10
_KEPT_MAXIMA = 2
_KEPT_PSI = {1: 10, 2: 30}
_KEPT_PSI_BEYOND = 48
_CAPTURED = 0.9995
_TEMPER = 0.6
_NYSTROM_RIDGE = 1e-6


class _Shared(NamedTuple):
    tables: SmootherTables
    candidates: Candidates
    node_differences: Array  # (Q, Q, k)
    log_kappa: Array  # (K,)
    inverse: Array  # 1 / (kappa + lambda), (P, n, K)
    log_prior: Array  # of (log psi, log kappa), (P, K)


class _Window(NamedTuple):
    """The part of the (psi, kappa) lattice that carries the mass: w values of psi, v of kappa for each."""

    spectrum: Spectrum
    node_correlation: Array | None  # C_DD, (w, Q, Q), where H depends on theta
    kappa: Array  # (w, v)
    log_weight: Array  # log prior and cell, (w, v)
    frozen: Downdate | None  # at theta-hat
    y: Array


@dataclass(frozen=True)
class KennedyOHagan:
    """Calibration with a Gaussian process for the bias.

    `orthogonal` says where the model's slopes, to which the bias is orthogonal, are evaluated: at the "estimate"
    theta-hat_L2 (the paper's choice), at the "parameter" itself (Plumlee's original), or "none" for the plain
    Kennedy-O'Hagan prior, whose target is not theta_L2 and depends on the correlation function.
    """

    orthogonal: Literal["estimate", "parameter", "none"] = "estimate"
    psi_prior: Distribution = field(default_factory=lambda: LogNormal(math.log(5.0), 1.5))
    kappa_prior: Distribution = field(default_factory=lambda: LogNormal(math.log(0.05), 3.0))
    smoother: GCV = field(default_factory=GCV)

    def __post_init__(self) -> None:
        if self.orthogonal not in _NAMES:
            raise MethodError(f"orthogonal is one of {', '.join(_NAMES)}: received '{self.orthogonal}'.")

    @property
    def name(self) -> str:
        return _NAMES[self.orthogonal]

    def prepare(self, experiment: Experiment) -> _Shared:
        nodes = experiment.quadrature.nodes
        tables = self.smoother.prepare(experiment)
        log_kappa = np.linspace(*np.log(_KAPPA_BOUNDS), _KAPPA_POINTS)
        inverse = 1 / (np.exp(log_kappa) + np.asarray(tables.spectrum.eigenvalues)[:, :, None])
        log_psi = tables.spectrum.log_psi
        of_psi = (self.psi_prior.log_density(jnp.exp(log_psi)) + log_psi).sum(axis=1)
        of_kappa = self.kappa_prior.log_density(jnp.exp(log_kappa)) + log_kappa
        return _Shared(
            tables,
            loss_candidates(L2(), experiment),
            jnp.asarray(squared_differences(nodes, nodes)),
            jnp.asarray(log_kappa),
            jnp.asarray(inverse),
            of_psi[:, None] + of_kappa,
        )

    def fit(self, experiment: Experiment, shared: _Shared, y: Array, key: Array) -> Fit:
        smooth = self.smoother.fit(shared.tables, y)
        minima = loss_minima(L2(), experiment, shared.candidates, smooth.at_nodes())
        window = self._window(experiment, shared, y, minima.theta)
        log_terms, quadratic = self._terms(experiment, window, minima.theta)
        share = jax.nn.softmax(log_terms.ravel()).reshape(log_terms.shape)
        sigma2 = jnp.sum(share * window.kappa * quadratic) / (experiment.observations - 2)
        return Fit(
            theta_hat=minima.theta,
            starts=self._starts(experiment, shared, smooth.at_nodes(), minima),
            status=minima.status | smooth.status,
            gamma=None,
            sigma2=sigma2,
            psi=jnp.exp(share.sum(axis=1) @ window.spectrum.log_psi),
            kappa=jnp.exp(jnp.sum(share * jnp.log(window.kappa))),
            detail=window,
        )

    def first_level(self, parameters: int) -> int:
        """With one parameter there are regularly several modes, so the engine starts where it fits several."""
        return 1 if parameters == 1 else 0

    def _starts(self, experiment: Experiment, shared: _Shared, mu: Array, minima: Minima) -> Array:
        """Every stationary point of the L2 distance is a mode: a bias orthogonal to the slopes fits them all."""
        if experiment.parameters > 1:
            return minima.thetas[:2]
        maxima = scan_maxima(shared.candidates, experiment.weights, mu, _KEPT_MAXIMA)
        return jnp.concatenate([minima.thetas, maxima])

    def log_density(self, experiment: Experiment, shared: _Shared, fit: Fit, theta: Array) -> Array:
        log_terms, _ = self._terms(experiment, fit.detail, theta)
        return jax.scipy.special.logsumexp(log_terms) + experiment.prior.log_density(theta)

    def _slopes(self, experiment: Experiment, theta: Array) -> Array:
        """F_D(theta): the weighted Jacobian at the nodes (Q, p)."""
        return experiment.weights[:, None] * jax.jacfwd(experiment.eta_nodes)(theta)

    def _terms(self, experiment: Experiment, window: _Window, theta: Array) -> tuple[Array, Array]:
        """Log weight of every (psi, kappa) at theta, with sigma2 integrated out, and r' (kappa I + C_P)^-1 r."""
        rotated = jnp.einsum("wij,i->wj", window.spectrum.vectors, window.y - experiment.eta_design(theta))
        if window.frozen is not None:
            matrices = window.frozen
        else:
            assert window.node_correlation is not None
            slopes = self._slopes(experiment, theta)
            matrices = _downdates(window.spectrum, window.node_correlation, window.kappa, slopes)
        per_kappa = jax.vmap(Downdate.quadratic, (0, None))
        quadratic = jax.vmap(per_kappa)(matrices, rotated)
        n = experiment.observations
        return window.log_weight - matrices.log_determinant / 2 - n / 2 * jnp.log(quadratic), quadratic

    def _window(self, experiment: Experiment, shared: _Shared, y: Array, theta: Array) -> _Window:
        slopes = self._slopes(experiment, theta)
        table = self._table(experiment, shared, y, theta, slopes)
        inputs = shared.node_differences.shape[-1]
        kept = min(_KEPT_PSI.get(inputs, _KEPT_PSI_BEYOND), table.shape[0])
        over_psi = jax.scipy.special.logsumexp(table, axis=1)
        chosen, _ = _carry_the_mass(over_psi, kept, (1, 2, 4, 8) if inputs == 1 else (1,))
        columns, strides = jax.vmap(lambda row: _carry_the_mass(row, _KEPT_KAPPA, (1, 2, 4, 8)))(table[chosen])
        kappa = jnp.exp(shared.log_kappa[columns])
        log_weight = jnp.take_along_axis(shared.log_prior[chosen], columns, axis=1) + jnp.log(strides)[:, None]
        spectrum = shared.tables.spectrum.at(chosen)
        psi = jnp.exp(spectrum.log_psi)
        node_correlation = jax.vmap(lambda one: correlation(shared.node_differences, one))(psi)
        if self.orthogonal == "parameter":
            return _Window(spectrum, node_correlation, kappa, log_weight, None, y)
        if self.orthogonal == "none":
            frozen = _plain(spectrum, kappa)
        else:
            frozen = _downdates(spectrum, node_correlation, kappa, slopes)
        return _Window(spectrum, None, kappa, log_weight, frozen, y)

    def _table(self, experiment: Experiment, shared: _Shared, y: Array, theta: Array, slopes: Array) -> Array:
        """Approximate log posterior of the whole (psi, kappa) lattice at theta, only used to choose the window.

        H = F' C_DD F is replaced by its Nystrom approximation through the design, which costs nothing here.
        """
        spectrum = shared.tables.spectrum
        n = experiment.observations
        rotated = jnp.einsum("pij,i->pj", spectrum.vectors, y - experiment.eta_design(theta))
        b = jnp.einsum("pqn,qj->pnj", spectrum.node_vectors, slopes)
        quadratic = jnp.einsum("pn,pnk->pk", rotated**2, shared.inverse)
        log_determinant = -jnp.sum(jnp.log(shared.inverse), axis=1)
        if self.orthogonal != "none":
            nystrom = 1 / (spectrum.eigenvalues + _NYSTROM_RIDGE)
            for j in range(slopes.shape[1]):
                h = jnp.sum(b[:, :, j] ** 2 * nystrom, axis=1)[:, None]
                schur = jnp.maximum(h - jnp.einsum("pn,pnk->pk", b[:, :, j] ** 2, shared.inverse), 1e-12 * h)
                quadratic += jnp.einsum("pn,pnk->pk", b[:, :, j] * rotated, shared.inverse) ** 2 / schur
                log_determinant += jnp.log(schur / h)
        return shared.log_prior - log_determinant / 2 - n / 2 * jnp.log(quadratic)


_NAMES = {"estimate": "koh", "parameter": "koh-plumlee", "none": "kennedy-ohagan-plain"}


def _downdates(spectrum: Spectrum, node_correlation: Array, kappa: Array, slopes: Array) -> Downdate:
    """(kappa I + C_P) for every psi (w) and kappa (w, v)."""

    def for_psi(eigenvalues: Array, node_vectors: Array, c_dd: Array, kappas: Array) -> Downdate:
        b, big_h = node_vectors.T @ slopes, slopes.T @ c_dd @ slopes
        return jax.vmap(lambda one: downdate(eigenvalues, one, b, big_h))(kappas)

    return jax.vmap(for_psi)(spectrum.eigenvalues, spectrum.node_vectors, node_correlation, kappa)


def _plain(spectrum: Spectrum, kappa: Array) -> Downdate:
    """kappa I + C itself: nothing is projected out."""
    diagonal = kappa[:, :, None] + spectrum.eigenvalues[:, None, :]
    nothing = jnp.zeros((*kappa.shape, 1, diagonal.shape[2]))
    return Downdate(1 / diagonal, jnp.ones((*kappa.shape, 1, 1)), nothing, jnp.sum(jnp.log(diagonal), axis=2))


def _carry_the_mass(log_mass: Array, keep: int, strides: tuple[int, ...]) -> tuple[Array, Array]:
    """Indices of the `keep` heaviest entries of the finest sublattice whose heaviest carry nearly everything.

    The masses are tempered: at other thetas the mass sits elsewhere. Also returns the sublattice's stride.
    """
    position = jnp.arange(log_mass.size)
    tempered = jax.nn.softmax(_TEMPER * log_mass)
    tops, captured = [], []
    for stride in strides:
        on_sublattice = jnp.where(position % stride == 0, tempered, 0.0)
        top, index = jax.lax.top_k(on_sublattice, keep)
        tops.append(index)
        captured.append(jnp.sum(top) / jnp.sum(on_sublattice))
    enough = jnp.stack(captured) > _CAPTURED
    choice = jnp.where(jnp.any(enough), jnp.argmax(enough), len(strides) - 1)
    return jnp.stack(tops)[choice], jnp.asarray(strides, dtype=float)[choice]
