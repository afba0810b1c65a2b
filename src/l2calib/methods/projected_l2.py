"""Projected L2 calibration (paper, Section 2.3.3): draw mu from its posterior and minimise L_L2[theta, mu]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from l2calib.errors import MethodError
from l2calib.losses import L2, loss_candidates, loss_minima
from l2calib.methods.method import Fit, Prepared, Sampler, Smoothing, Workload
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.minimise import Candidates, Minima, nearest_minimum, shortlist
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.problem.span import ModelCoordinates
from l2calib.process.correlation import squared_differences
from l2calib.process.smooth import Smooth
from l2calib.process.spectrum import Functionals, Spectrum, node_correlations
from l2calib.smoothers.gcv import GCV, Choice
from l2calib.smoothers.grid import SmootherTables

_JITTER = 1e-12
_LARGE_EIGENVALUE = 1e-10  # relative to the largest


class _Shared(NamedTuple):
    tables: SmootherTables
    candidates: Candidates
    node_differences: Array  # (Q, Q, k)
    unresolved: Array  # for psi on the grid: see `_unresolved`, (P, m, m)


class _View(NamedTuple):
    """The model at the nodes, also tabulated for the search of minima."""

    model: ModelCoordinates
    candidates: Candidates


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

    def prepare(self, experiment: Experiment) -> Prepared[_Shared, _View]:
        functionals = Functionals.of(experiment)
        tables = self.smoother.prepare(experiment)
        psi = np.exp(np.asarray(tables.spectrum.log_psi))
        before = jnp.asarray(node_correlations(self.smoother.correlation, psi, functionals))
        unresolved = jax.jit(jax.vmap(_unresolved))(before, tables.spectrum)
        differences = jnp.asarray(squared_differences(functionals.nodes, functionals.nodes))
        view = _View(experiment.node_span.coordinates, loss_candidates(L2(), experiment))
        return Prepared(_Shared(tables, view.candidates, differences, unresolved), view)

    def fit(
        self, experiment: Experiment, shared: _Shared, y: Array, *, key: Array, choice: Choice | None = None
    ) -> Fit[_Process]:
        smooth = self.smoother.fit(shared.tables, y, choice)
        minima = loss_minima(L2(), experiment, shared.candidates, smooth.in_span())
        implied, profile = smooth.sigma2() / smooth.kappa, smooth.process_variance()
        variance = implied if self.process_variance == "smoother" else profile
        root = jnp.linalg.cholesky(
            _covariance(self.smoother, shared, smooth) + _JITTER * jnp.eye(experiment.node_span.dimension)
        )
        return Fit(
            theta_hat=minima.theta,
            starts=minima.thetas,
            status=minima.status | smooth.status,
            sigma2=smooth.sigma2(),
            psi=smooth.psi,
            kappa=smooth.kappa,
            detail=_Process(smooth.in_span(), jnp.sqrt(variance) * root, minima),
        )

    def posterior(self, prior: Prior, view: _View, fit: Fit[_Process]) -> Sampler:
        process = fit.detail
        short = shortlist(view.candidates, view.model, process.mean, process.minima)

        def project(mu: Array) -> Array:
            return nearest_minimum(short, view.model, mu, prior).theta

        def draw(key: Array, number: int) -> Array:
            normal = jax.random.normal(key, (number, process.mean.size))
            return jax.vmap(project)(process.mean + normal @ process.root.T)

        return Sampler(draw, self.draws)

    def workload(self, experiment: Experiment) -> Workload:
        per_draw = 4 * experiment.node_span.dimension + 512
        return Workload(self.smoother.working_set(experiment), per_draw, besides=len(experiment.nodes) ** 2)


def _is_large(spectrum: Spectrum) -> Array:
    return spectrum.eigenvalues > _LARGE_EIGENVALUE * jnp.max(spectrum.eigenvalues)


def _unresolved(before: Array, spectrum: Spectrum) -> Array:
    """The covariance (m, m) of mu in the span that would be left if y had no error along the large eigenvectors.

    It is a small difference of large numbers, so it is taken once for every psi and not for every dataset.
    """
    inverse = jnp.where(_is_large(spectrum), 1 / spectrum.eigenvalues, 0.0)
    return before - spectrum.cross.T @ (inverse[:, None] * spectrum.cross)


def _covariance(smoother: GCV, shared: _Shared, smooth: Smooth) -> Array:
    """The posterior covariance (m, m) of mu in the span, for a process of variance one: F' (C_DD - C_DX Phi^-1 C_XD) F.

    It is what is unresolved, plus what the error of y leaves open along the large eigenvectors, minus what the small
    ones add.
    """
    spectrum, kappa = smooth.spectrum, smooth.kappa
    unresolved = shared.unresolved[jnp.maximum(smooth.psi_index, 0)]
    if smoother.grid(shared.tables.differences.inputs).is_left:
        matrix = shared.tables.differences.matrix
        before = matrix.T @ smoother.correlation(shared.node_differences, smooth.psi) @ matrix
        unresolved = jnp.where(smooth.psi_index < 0, _unresolved(before, spectrum), unresolved)
    large = kappa / jnp.where(_is_large(spectrum), spectrum.eigenvalues, 1.0)
    share = jnp.where(_is_large(spectrum), large, -1.0) * smooth.inverse_diagonal
    return unresolved + spectrum.cross.T @ (share[:, None] * spectrum.cross)
