"""Projected L2 calibration (paper, Section 2.3.3): draw mu from its posterior and minimise L_L2[theta, mu]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.correlation import Spectrum, correlation, node_correlations, squared_differences
from l2calib.errors import MethodError
from l2calib.experiment import Experiment
from l2calib.losses import L2, loss_candidates, loss_minima
from l2calib.methods.method import Fit, Smoothing
from l2calib.minimise import Candidates, Minima, nearest_minimum, shortlist
from l2calib.smoother import GCV, Choice, Smooth, SmootherTables, moves_off_grid

_JITTER = 1e-12
_LARGE_EIGENVALUE = 1e-10  # relative to the largest


class _Shared(NamedTuple):
    tables: SmootherTables
    candidates: Candidates
    node_differences: Array  # (Q, Q, k)
    unresolved: Array  # for psi on the grid: see `_unresolved`, (P, m, m)


class _Process(NamedTuple):
    """The posterior of mu in the coordinates of the model's span: the rest of mu moves no minimum."""

    mean: Array  # (m,)
    root: Array  # (m, m) Cholesky factor of the covariance
    minima: Minima  # of the L2 distance to the mean


@dataclass(frozen=True)
class ProjectedL2:
    """`draws` minimisers of the L2 distance to draws of mu.

    The paper does not say which variance the process has: "smoother" is sigma2-hat / kappa-hat, which is what the
    smoother itself implies; "profile" is y' Phi^-1 y / n, its maximum likelihood estimate given rho-hat.
    """

    draws: int = 1000
    process_variance: Literal["smoother", "profile"] = "smoother"
    smoother: GCV = field(default_factory=GCV)

    def __post_init__(self) -> None:
        if self.draws < 2:
            raise MethodError(f"projected calibration needs at least 2 draws: received {self.draws}.")
        if self.process_variance not in ("smoother", "profile"):
            raise MethodError(f"the process variance is 'smoother' or 'profile': received '{self.process_variance}'.")

    @property
    def name(self) -> str:
        return "projected"

    @property
    def smoothing(self) -> Smoothing:
        return Smoothing(self.smoother, with_model=False)

    def prepare(self, experiment: Experiment) -> _Shared:
        nodes = experiment.quadrature.nodes
        tables = self.smoother.prepare(experiment)
        psi = np.exp(np.asarray(tables.spectrum.log_psi))
        before = jnp.asarray(node_correlations(nodes, psi, experiment.node_span.functionals))
        unresolved = jax.jit(jax.vmap(_unresolved))(before, tables.spectrum)
        differences = jnp.asarray(squared_differences(nodes, nodes))
        return _Shared(tables, loss_candidates(L2(), experiment), differences, unresolved)

    def fit(self, experiment: Experiment, shared: _Shared, y: Array, key: Array, choice: Choice | None = None) -> Fit:
        smooth = self.smoother.fit(shared.tables, y, choice)
        minima = loss_minima(L2(), experiment, shared.candidates, smooth.in_span())
        implied, profile = smooth.sigma2() / smooth.kappa, smooth.process_variance()
        variance = implied if self.process_variance == "smoother" else profile
        root = jnp.linalg.cholesky(_covariance(shared, smooth) + _JITTER * jnp.eye(experiment.node_span.dimension))
        return Fit(
            theta_hat=minima.theta,
            starts=minima.thetas,
            status=minima.status | smooth.status,
            gamma=None,
            sigma2=smooth.sigma2(),
            psi=smooth.psi,
            kappa=smooth.kappa,
            detail=_Process(smooth.in_span(), jnp.sqrt(variance) * root, minima),
        )

    def fitting_set(self, experiment: Experiment) -> int:
        return self.smoother.working_set(experiment)

    def looking_set(self, experiment: Experiment, evaluations: int) -> int:
        return self.draws * (4 * experiment.node_span.dimension + 512) + len(experiment.nodes) ** 2

    def draw(self, experiment: Experiment, shared: _Shared, fit: Fit, key: Array, number: int) -> Array:
        """`number` draws of theta (number, p)."""
        normal = jax.random.normal(key, (number, fit.detail.mean.size))
        drawn = fit.detail.mean + normal @ fit.detail.root.T
        model = experiment.node_span.coordinates
        short = shortlist(shared.candidates, model, fit.detail.mean, fit.detail.minima)

        def project(mu: Array) -> Array:
            return nearest_minimum(short, model, mu, experiment.prior).theta

        return jax.vmap(project)(drawn)


def _is_large(spectrum: Spectrum) -> Array:
    return spectrum.eigenvalues > _LARGE_EIGENVALUE * jnp.max(spectrum.eigenvalues)


def _unresolved(before: Array, spectrum: Spectrum) -> Array:
    """The covariance (m, m) of mu in the span that would be left if y had no error along the large eigenvectors.

    It is a small difference of large numbers, so it is taken once for every psi and not for every dataset.
    """
    inverse = jnp.where(_is_large(spectrum), 1 / spectrum.eigenvalues, 0.0)
    return before - spectrum.cross.T @ (inverse[:, None] * spectrum.cross)


def _covariance(shared: _Shared, smooth: Smooth) -> Array:
    """The posterior covariance (m, m) of mu in the span, for a process of variance one: F' (C_DD - C_DX Phi^-1 C_XD) F.

    It is what is unresolved, plus what the error of y leaves open along the large eigenvectors, minus what the small
    ones add.
    """
    spectrum, kappa = smooth.spectrum, smooth.kappa
    unresolved = shared.unresolved[jnp.maximum(smooth.psi_index, 0)]
    if moves_off_grid(shared.tables.among.shape[-1]):
        functionals = shared.tables.functionals
        before = functionals.T @ correlation(shared.node_differences, smooth.psi) @ functionals
        unresolved = jnp.where(smooth.psi_index < 0, _unresolved(before, spectrum), unresolved)
    large = kappa / jnp.where(_is_large(spectrum), spectrum.eigenvalues, 1.0)
    share = jnp.where(_is_large(spectrum), large, -1.0) * smooth.inverse_diagonal
    return unresolved + spectrum.cross.T @ (share[:, None] * spectrum.cross)
