"""Modified Kennedy-O'Hagan calibration (paper, Section 2.3.2): a bias orthogonal to the model's slopes.

sigma2 is integrated out in closed form under the prior 1/sigma2. psi and kappa are integrated on a lattice of their
logarithms: at theta-hat the posterior of (psi, kappa) is tabulated on the whole lattice, and the part of it that
carries the mass is then used at every theta, each term at the cost of a low-rank downdate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from l2calib.errors import MethodError, Status
from l2calib.losses import L2, loss_candidates, loss_minima
from l2calib.methods.method import Density, Fit, Prepared, Smoothing, Workload
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.minimise import Candidates, Minima, scan_maxima
from l2calib.problem.distributions import Distribution
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.problem.span import ModelCoordinates
from l2calib.process.downdate import Downdate, downdate
from l2calib.process.lattice import (
    KAPPA_POINTS,
    KAPPA_PRIOR,
    PSI_PRIOR,
    Coverage,
    Lattice,
    lattice_over,
    look_at_plain,
    look_at_projected,
    window_of,
)
from l2calib.process.spectrum import Functionals
from l2calib.smoothers.gcv import GCV, Choice
from l2calib.smoothers.grid import SmootherTables

_KEPT_KAPPA = 10
_KEPT_MAXIMA = 2
_KEPT_PSI = {1: 10, 2: 30}
_KEPT_PSI_BEYOND = 48
_KEPT_OF_PLAIN = 24  # a bias that may take any shape lets (psi, kappa) move far with theta
_COVERAGE = Coverage(captured=0.9995, temper=0.6)
_LARGEST_GRAM = 4  # entries of a Gram matrix, per observation
_NEGLIGIBLE = 200.0  # finite for terms without weight, and out of the others' reach: kappa varies by exp(28)


class _Shared(NamedTuple):
    tables: SmootherTables
    candidates: Candidates
    lattice: Lattice  # over the values of psi that are searched


class _Gram(NamedTuple):
    """r' (kappa I + C_P)^-1 r as a quadratic form in the model's coefficients, away from those at theta-hat.

    A model that needs few functions at the design needs nothing of size n at every theta, and the forms of all (psi,
    kappa) at all thetas are one matrix product: a form is held as its upper triangle, the off-diagonal doubled.
    """

    centre: Array  # (m,)
    form: Array  # (w, v, (m + 1) (m + 2) / 2)
    log_determinant: Array  # (w, v)

    @classmethod
    def of(cls, matrices: Downdate, rotated_residual: Array, rotated_basis: Array, centre: Array) -> _Gram:
        functions = jnp.concatenate([rotated_residual[:, :, None], rotated_basis], axis=2)
        projected = jnp.einsum("wvpn,wna->wvpa", matrices.projector, functions)
        form = jnp.einsum("wvn,wnq->wvq", matrices.inverse_diagonal, _packed_squares(functions))
        form += jnp.sum(_packed_squares(projected), axis=2)
        return cls(centre, form, matrices.log_determinant)

    def quadratic(self, coefficients: Array) -> Array:
        """(w, v) of the residual of a model with these coefficients (m,)."""
        away = jnp.concatenate([jnp.ones(1), self.centre - coefficients])
        rows, columns = np.triu_indices(away.size)
        return self.form @ (away[rows] * away[columns])


def _packed_squares(vectors: Array) -> Array:
    """The products (..., m (m + 1) / 2) of all pairs of entries of vectors (..., m), twice where they differ."""
    rows, columns = np.triu_indices(vectors.shape[-1])
    return vectors[..., rows] * vectors[..., columns] * np.where(rows == columns, 1.0, 2.0)


class _Parts(NamedTuple):
    """What kappa I + C_P is made of, and what it is applied to, for w values of psi."""

    eigenvalues: Array  # (w, s)
    cross: Array  # (w, s, l)
    big_h: Array  # (w, l, l)
    rotated_y: Array  # U' y, (w, s)
    rotated_basis: Array  # (w, s, m)


class _Window(NamedTuple):
    """The part of the (psi, kappa) lattice that carries the mass: w values of psi, v of kappa for each."""

    log_psi: Array  # (w, k)
    kappa: Array  # (w, v)
    log_weight: Array  # log prior and cell, (w, v)
    rest: Array  # the sum of squares of y along the eigenvectors that are left out, (w,)
    frozen: Downdate | _Gram | None  # at theta-hat
    parts: _Parts | None  # a Gram matrix does without


class _View(NamedTuple):
    """The model at the design and at the nodes, and n."""

    at_design: ModelCoordinates
    at_nodes: ModelCoordinates
    observations: float


@dataclass(frozen=True)
class KennedyOHagan:
    """Calibration with a Gaussian process for the bias.

    `orthogonal` says where the model's slopes, to which the bias is orthogonal, are evaluated: at the "estimate"
    theta-hat_L2 (the paper's choice), at the "parameter" itself (Plumlee's original), or "none" for the plain
    Kennedy-O'Hagan prior, whose target is not theta_L2 and depends on the correlation function.
    """

    orthogonal: Literal["estimate", "parameter", "none"] = "estimate"
    psi_prior: Distribution = PSI_PRIOR
    kappa_prior: Distribution = KAPPA_PRIOR
    smoother: GCV = field(default_factory=GCV)

    def __post_init__(self) -> None:
        if self.orthogonal not in _NAMES:
            raise MethodError(f"orthogonal is one of {', '.join(_NAMES)}: received '{self.orthogonal}'.")

    @property
    def name(self) -> str:
        return _NAMES[self.orthogonal]

    @property
    def smoothing(self) -> Smoothing:
        return Smoothing(self.smoother, with_model=True)

    def prepare(self, experiment: Experiment) -> Prepared[_Shared, _View]:
        tables = self.smoother.prepare(experiment, with_model=True)
        spectrum, complete = tables.spectrum.at(tables.searched), tables.complete[tables.searched]
        lattice = lattice_over(
            spectrum,
            complete,
            Functionals.of(experiment),
            experiment.design_span.basis,
            self.smoother.correlation,
            self.psi_prior,
            self.kappa_prior,
        )
        return Prepared(_Shared(tables, loss_candidates(L2(), experiment), lattice), _view(experiment))

    def fit(
        self, experiment: Experiment, shared: _Shared, y: Array, *, key: Array, choice: Choice | None = None
    ) -> Fit[_Window]:
        smooth = self.smoother.fit(shared.tables, y, choice)
        minima = loss_minima(L2(), experiment, shared.candidates, smooth.in_span())
        window = self._window(experiment, shared, y, minima.theta)
        log_weight, quadratic = self._mixture(_view(experiment), window, minima.theta)
        log_terms = log_weight - experiment.observations / 2 * jnp.log(quadratic)
        share = jax.nn.softmax(log_terms.ravel()).reshape(log_terms.shape)
        sigma2 = jnp.sum(share * window.kappa * quadratic) / (experiment.observations - 2)
        return Fit(
            theta_hat=minima.theta,
            starts=self._starts(experiment, shared, smooth.in_span(), minima),
            # Its error variance is not the smoother's.
            status=minima.status | (smooth.status & ~int(Status.NEAR_INTERPOLATION)),
            sigma2=sigma2,
            psi=jnp.exp(share.sum(axis=1) @ window.log_psi),
            kappa=jnp.exp(jnp.sum(share * jnp.log(window.kappa))),
            detail=window,
        )

    def posterior(self, prior: Prior, view: _View, fit: Fit[_Window]) -> Density:
        def log_density(theta: Array) -> Array:
            log_weight, quadratic = self._mixture(view, fit.detail, theta)
            return _log_sum(log_weight, quadratic, view.observations / 2) + prior.log_density(theta)

        return Density(log_density, terms=int(fit.detail.kappa.size))

    def workload(self, experiment: Experiment) -> Workload:
        n, inputs = experiment.observations, experiment.inputs
        lattice = len(self.smoother.grid(inputs).searched()) * (n + KAPPA_POINTS)
        kept = math.prod(self._kept(inputs))
        in_gram = self.orthogonal != "parameter" and _is_small(experiment)
        return Workload(
            fitting=lattice + 4 * kept * n,
            per_evaluation=5 * kept if in_gram else 30 * n,
            # With one parameter there are regularly several modes, so the engine starts where it fits several.
            first_level=1 if experiment.parameters == 1 else 0,
        )

    def _kept(self, inputs: int) -> tuple[int, int]:
        """How many values of psi, and of kappa for each, a window holds at most."""
        kept = _KEPT_PSI.get(inputs, _KEPT_PSI_BEYOND)
        return (max(kept, _KEPT_OF_PLAIN), _KEPT_OF_PLAIN) if self.orthogonal == "none" else (kept, _KEPT_KAPPA)

    def _starts(self, experiment: Experiment, shared: _Shared, mu: Array, minima: Minima) -> Array:
        """Every stationary point of the L2 distance is a mode: a bias orthogonal to the slopes fits them all."""
        if experiment.parameters > 1:
            return minima.thetas[:2]
        maxima = scan_maxima(shared.candidates, mu, _KEPT_MAXIMA)
        return jnp.concatenate([minima.thetas, maxima])

    def _mixture(self, view: _View, window: _Window, theta: Array) -> tuple[Array, Array]:
        """Of every (psi, kappa) at theta, with sigma2 integrated out: the log weight of Q^(-n/2), and Q itself.

        Q is r' (kappa I + C_P)^-1 r.
        """
        modelled = view.at_design(theta)
        matrices = window.frozen
        if isinstance(matrices, _Gram):
            quadratic = matrices.quadratic(modelled)
        else:
            parts = window.parts
            assert parts is not None
            matrices = matrices or _downdates(parts, window.kappa, _slopes(view.at_nodes, theta))
            rotated = parts.rotated_y - parts.rotated_basis @ modelled
            quadratic = jax.vmap(jax.vmap(Downdate.quadratic, (0, None)))(matrices, rotated)
        quadratic += window.rest[:, None] / window.kappa
        return window.log_weight - matrices.log_determinant / 2, quadratic

    def _window(self, experiment: Experiment, shared: _Shared, y: Array, theta: Array) -> _Window:
        view = _view(experiment)
        slopes, modelled = _slopes(view.at_nodes, theta), view.at_design(theta)
        lattice = shared.lattice
        look = look_at_plain if self.orthogonal == "none" else look_at_projected
        seen = look(lattice, y, modelled, slopes)
        n, left_out = experiment.observations, lattice.spectrum.left_out
        table = lattice.log_prior - seen.log_determinant / 2 - n / 2 * jnp.log(seen.quadratic)
        inputs = shared.tables.differences.inputs
        chosen, columns, log_cells = window_of(table, inputs, *self._kept(inputs), _COVERAGE)
        parts = _Parts(
            lattice.spectrum.eigenvalues[chosen],
            lattice.spectrum.cross[chosen],
            lattice.big_h[chosen],
            seen.rotated_y[chosen],
            lattice.rotated_basis[chosen],
        )
        window = _Window(
            log_psi=lattice.spectrum.log_psi[chosen],
            kappa=jnp.exp(lattice.log_kappa[columns]),
            log_weight=jnp.take_along_axis(lattice.log_prior[chosen], columns, axis=1)
            + log_cells
            - left_out / 2 * lattice.log_kappa[columns],
            rest=seen.rest[chosen],
            frozen=None,
            parts=parts,
        )
        if self.orthogonal == "parameter":
            return window
        plain = self.orthogonal == "none"
        frozen = _plain(parts, window.kappa) if plain else _downdates(parts, window.kappa, slopes)
        if not _is_small(experiment):
            return window._replace(frozen=frozen)
        residual = parts.rotated_y - parts.rotated_basis @ modelled
        return window._replace(frozen=_Gram.of(frozen, residual, parts.rotated_basis, modelled), parts=None)


def _view(experiment: Experiment) -> _View:
    at_design, at_nodes = experiment.design_span.coordinates, experiment.node_span.coordinates
    return _View(at_design, at_nodes, float(experiment.observations))


def _is_small(experiment: Experiment) -> bool:
    """Whether the model needs few functions at the design."""
    return (experiment.design_span.dimension + 1) ** 2 <= _LARGEST_GRAM * experiment.observations


_NAMES = {"estimate": "koh", "parameter": "koh-plumlee", "none": "kennedy-ohagan-plain"}


def _log_sum(log_weight: Array, quadratic: Array, power: float) -> Array:
    """The log of the sum of exp(log_weight) / quadratic^power.

    The weights become factors of the bases, which the model's thousands of thetas share: what is left to do for every
    term at every theta is one logarithm and one exponential.
    """
    log_factor = -log_weight / power
    base = quadratic * jnp.exp(jnp.minimum(log_factor, jnp.min(log_factor) + _NEGLIGIBLE))
    least = jax.lax.stop_gradient(jnp.min(base))
    return jnp.asarray(jnp.log(jnp.sum(jnp.exp(-power * jnp.log(base / least)))) - power * jnp.log(least))


def _slopes(at_nodes: ModelCoordinates, theta: Array) -> Array:
    """The model's Jacobian at the nodes, in the coordinates of its span (l, p)."""
    return jnp.asarray(jax.jacfwd(at_nodes)(theta))


def _downdates(parts: _Parts, kappa: Array, slopes: Array) -> Downdate:
    """(kappa I + C_P) for every psi (w) and kappa (w, v)."""

    def for_psi(lambdas: Array, to_slopes: Array, c_dd: Array, kappas: Array) -> Downdate:
        b, h = to_slopes @ slopes, slopes.T @ c_dd @ slopes
        return jax.vmap(lambda one: downdate(lambdas, one, b, h))(kappas)

    return jax.vmap(for_psi)(parts.eigenvalues, parts.cross, parts.big_h, kappa)


def _plain(parts: _Parts, kappa: Array) -> Downdate:
    """kappa I + C itself: nothing is projected out."""
    diagonal = kappa[:, :, None] + parts.eigenvalues[:, None, :]
    nothing = jnp.zeros((*kappa.shape, 1, diagonal.shape[2]))
    return Downdate(1 / diagonal, nothing, jnp.sum(jnp.log(diagonal), axis=2))
