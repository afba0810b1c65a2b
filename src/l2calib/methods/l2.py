"""Calibration with a bias that is projected at theta: the method `l2`, the package's own (docs/l2.md).

The system is the model at theta plus a Gaussian process that the model's slopes at theta have no part in. So theta is a
stationary point of the L2 distance by construction, and mass where it is not the minimiser is left out. rho = (psi,
kappa) is integrated over a proper prior with a probability of its own for "no process"; the measure on theta is the
volume of the model's functions.

Written over the array library of y: one dataset runs in NumPy and compiles the model alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from l2calib.errors import MethodError
from l2calib.losses import L2, OLS, loss_candidates
from l2calib.methods.method import DensityOfRows, Fit, Prepared, Workload
from l2calib.numerics.arrays import Array
from l2calib.numerics.derivatives import OfRows, jet_of_rows
from l2calib.numerics.minimise import Candidates, lowest_candidates
from l2calib.numerics.namespace import AnyArray, log_sum_exp, loops_of, namespace_of, softmax
from l2calib.numerics.newton import climb
from l2calib.numerics.spread import kronecker
from l2calib.problem.distributions import Distribution, LogNormal, Uniform
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.problem.span import ModelCoordinates
from l2calib.process.correlation import Correlation, SquaredExponential
from l2calib.process.lattice import Coverage, HalfCauchyRatio, Lattice, lattice_over, window_of
from l2calib.process.projected_bias import (
    Rotated,
    RotatedResponses,
    Slopes,
    bias_in_span,
    orthonormal_slopes,
    projected_terms,
)
from l2calib.process.spectrum import left_out_square
from l2calib.smoothers.gcv import GCV, Choice
from l2calib.smoothers.grid import SmootherTables

# Wide: with few observations a prior that keeps psi small covers less, and its intervals are no shorter.
PSI_PRIOR = LogNormal(math.log(5.0), 2.5)
_NO_PROCESS = 0.5
_STARTS = 6  # low minima of the sum of squares that are looked at
_COMPARED = 8  # low minima of the distance that every theta is compared with
_POLISH = 12  # steps of Newton's method
_FIRST_SCALE = 0.1  # of differences, in sd of the prior; the climbs find their own
_KEPT_PSI = {1: 14, 2: 30}
_KEPT_PSI_BEYOND = 48
_KEPT_KAPPA = 14
# On the paper's configurations with one input, the whole lattice moves no mean, sd or end by more than 1.3e-3 sd.
_COVERAGE = Coverage(captured=0.99995, temper=0.8)
_COMPARED_PSI, _COMPARED_KAPPA = 5, 3  # of rho, where theta is compared with other minima
_CURVE_STEP = 1e-4  # of second differences of the model, in its own size: half of the digits
_VOLUME_POINTS = 64  # over the box of the uniform parameters: a mean of a smooth function
_NEARER = 1e-9  # of a squared distance, relative: less is rounding


class _Shared(NamedTuple):
    lattice: Lattice
    by_squares: Candidates
    by_distance: Candidates


class _View(NamedTuple):
    """The model at the design and at the nodes, and n."""

    at_design: ModelCoordinates
    at_nodes: ModelCoordinates
    observations: float


class _Known(NamedTuple):
    """Of one y at a window of rho."""

    rotated: Rotated
    responses: RotatedResponses
    kappa: AnyArray  # (w, v)
    log_weight: AnyArray  # log prior and cells, (w, v)


class _Detail(NamedTuple):
    values: AnyArray  # y in the span of the model at the design
    outside: AnyArray  # the sum of squares of y that no theta explains
    known: _Known
    compared: _Known  # fewer rho, for comparing thetas with other minima
    minima: AnyArray  # of the distance, in the span at the nodes (C, l)


@dataclass(frozen=True)
class ProjectedBias:
    """The minimiser of the L2 distance, with all that is not known integrated.

    `prior` says what a uniform prior means: a bound within which equal sets of the model's functions have equal mass
    ("volume"), or a density that is flat in the parameter as it is written ("literal").
    """

    correlation: Correlation = field(default_factory=SquaredExponential)
    prior: Literal["volume", "literal"] = "volume"
    psi_prior: Distribution = PSI_PRIOR
    kappa_prior: Distribution = field(default_factory=HalfCauchyRatio)
    no_process: float = _NO_PROCESS

    smoothing = None
    in_numpy = True

    def __post_init__(self) -> None:
        if self.prior not in ("volume", "literal"):
            raise MethodError(f"the prior is taken by its 'volume' or 'literal': received '{self.prior}'.")
        if not 0 <= self.no_process < 1:
            raise MethodError(f"the probability of no process is at least 0 and below 1: received {self.no_process}.")

    @property
    def name(self) -> str:
        literal = "+literal" if self.prior == "literal" else ""
        return f"l2{self.correlation.suffix}{literal}"

    def prepare(self, experiment: Experiment) -> Prepared[_Shared, _View]:
        tables: SmootherTables = GCV(correlation=self.correlation).prepare(experiment, with_model=True)
        spectrum, complete = tables.spectrum.at(tables.searched), tables.complete[tables.searched]
        lattice = lattice_over(spectrum, complete, experiment, self.correlation, self.psi_prior, self.kappa_prior)
        lattice = lattice._replace(log_prior=lattice.log_prior - log_sum_exp(lattice.log_prior.ravel(), axis=0))
        at_design, at_nodes = experiment.design_span.coordinates, experiment.node_span.coordinates
        return Prepared(
            _Shared(lattice, loss_candidates(OLS(), experiment), loss_candidates(L2(), experiment)),
            _View(at_design, at_nodes, float(experiment.observations)),
        )

    @np.errstate(all="ignore")
    def fit(
        self, experiment: Experiment, shared: _Shared, y: AnyArray, *, key: Array, choice: Choice | None = None
    ) -> Fit[_Detail]:
        xp, prior, span = namespace_of(y), experiment.prior, experiment.design_span
        view = _View(span.coordinates, experiment.node_span.coordinates, float(experiment.observations))
        values, outside = span.project(y), span.outside(y)

        def by_squares(z: AnyArray) -> AnyArray:
            return -view.observations / 2 * xp.log(_square(view, values, prior.from_line(z)) + outside)

        first = shared.by_squares.thetas[lowest_candidates(shared.by_squares, values, _STARTS)]
        starts, heights = _climbed(by_squares, prior.to_line(first))
        best = prior.from_line(starts[xp.argmax(heights)][None])
        detail = self._detail(experiment, view, shared, y, best)._replace(values=values, outside=outside)
        mu, sigma2, log_psi, log_kappa = self._system(prior, view, detail, best)
        found = shared.by_distance.thetas[lowest_candidates(shared.by_distance, mu, _COMPARED)]

        def by_distance(z: AnyArray) -> AnyArray:
            away = view.at_nodes.values(prior.from_line(z)) - mu
            return -view.observations / (2 * sigma2) * xp.sum(away**2, axis=1)

        lowest, nearness = _climbed(by_distance, xp.concatenate([prior.to_line(found), starts]))
        thetas = prior.from_line(lowest)
        return Fit(
            theta_hat=thetas[xp.argmax(nearness)],
            starts=prior.from_line(starts),
            status=xp.asarray(0),
            sigma2=sigma2,
            psi=xp.exp(log_psi),
            kappa=xp.exp(log_kappa),
            detail=detail._replace(minima=view.at_nodes.values(thetas)),
        )

    def posterior(self, prior: Prior, view: _View, fit: Fit[_Detail]) -> DensityOfRows:
        def log_density(theta: AnyArray) -> AnyArray:
            modelled, slopes = _looked_at(prior, view, theta)
            process, none = self._both(view, fit.detail, fit.detail.known, modelled, slopes)
            total = namespace_of(theta).logaddexp(log_sum_exp(_flat(process), axis=1), none)
            return total + self._log_measure(prior, view, slopes, theta)

        def log_share(theta: AnyArray) -> AnyArray:
            return self._log_share(prior, view, fit.detail, theta)

        return DensityOfRows(log_density, terms=int(fit.detail.known.kappa.size), log_share=log_share)

    def workload(self, experiment: Experiment) -> Workload:
        n, p = experiment.observations, experiment.parameters
        kept = _KEPT_PSI.get(experiment.inputs, _KEPT_PSI_BEYOND)
        return Workload(fitting=64 * n * n, per_evaluation=kept * (n + _KEPT_KAPPA) * (2 * p + 1) * (p + 1))

    def _detail(self, experiment: Experiment, view: _View, shared: _Shared, y: AnyArray, theta: AnyArray) -> _Detail:
        """What is known of y at the rho that carry the mass at theta (1, p)."""
        xp, lattice = namespace_of(y), shared.lattice
        modelled, slopes = _looked_at(experiment.prior, view, theta)
        square = xp.sum(y**2)

        def at_psi(index: AnyArray) -> AnyArray:
            rotated, responses = _rotated(lattice, index[None], y, square)
            kappa = xp.exp(lattice.log_kappa)[None]
            terms = projected_terms(rotated, responses, kappa, modelled, slopes, view.observations)
            return terms.log_likelihood[0, 0]

        table = loops_of(y).map(at_psi, xp.arange(lattice.log_prior.shape[0])) + lattice.log_prior
        table = xp.where(xp.isnan(table), -np.inf, table)

        def known(psi: int, kappa: int) -> _Known:
            window = window_of(table, experiment.inputs, psi, kappa, _COVERAGE)
            rotated, responses = _rotated(lattice, window.psi, y, square)
            log_weight = xp.take_along_axis(lattice.log_prior[window.psi], window.kappa, axis=1) + window.log_cells
            return _Known(rotated, responses, xp.exp(lattice.log_kappa[window.kappa]), log_weight)

        kept = _KEPT_PSI.get(experiment.inputs, _KEPT_PSI_BEYOND)
        nothing = xp.zeros(0)
        known_all, compared = known(kept, _KEPT_KAPPA), known(_COMPARED_PSI, _COMPARED_KAPPA)
        return _Detail(nothing, nothing, known_all, compared, nothing)

    def _both(
        self, view: _View, detail: _Detail, known: _Known, modelled: AnyArray, slopes: Slopes
    ) -> tuple[AnyArray, AnyArray]:
        """The log joint density of y with every rho of a process (N, w, v), and with no process (N,)."""
        xp = namespace_of(modelled)
        terms = projected_terms(known.rotated, known.responses, known.kappa, modelled, slopes, view.observations)
        process = terms.log_likelihood + known.log_weight + np.log1p(-self.no_process)
        return xp.where(xp.isnan(process), -np.inf, process), self._none(view, detail, modelled)

    def _none(self, view: _View, detail: _Detail, modelled: AnyArray) -> AnyArray:
        xp = namespace_of(modelled)
        if self.no_process == 0:
            return xp.full(modelled.shape[0], -np.inf)
        square = xp.sum((detail.values - modelled) ** 2, axis=1) + detail.outside
        return np.log(self.no_process) - view.observations / 2 * xp.log(square)

    def _system(
        self, prior: Prior, view: _View, detail: _Detail, theta: AnyArray
    ) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
        """At theta (1, p): the mean of mu in the span at the nodes, sigma2, and the most probable log psi and kappa."""
        xp = namespace_of(theta)
        modelled, slopes = _looked_at(prior, view, theta)
        known, n = detail.known, view.observations
        terms = projected_terms(known.rotated, known.responses, known.kappa, modelled, slopes, n, with_weights=True)
        joint = terms.log_likelihood + known.log_weight + np.log1p(-self.no_process)
        joint = xp.where(xp.isnan(joint), -np.inf, joint)
        share = softmax(xp.concatenate([_flat(joint), self._none(view, detail, modelled)[:, None]], axis=1))[0]
        bias = bias_in_span(known.rotated, slopes, terms)[0].reshape(share.size - 1, -1)
        square = xp.sum((detail.values - modelled[0]) ** 2) + detail.outside
        errors = xp.concatenate([(known.kappa * terms.quadratic[0]).ravel(), square[None]])
        sigma2 = xp.sum(share * xp.where(share > 0, errors, 0.0)) / (n - 2)
        usable = xp.where(share[:-1, None] > 0, bias, 0.0)
        best = xp.argmax(share[:-1])
        log_psi = detail.known.rotated.log_psi[best // known.kappa.shape[1]]
        mu = view.at_nodes.values(theta)[0] + share[:-1] @ usable
        return mu, sigma2, log_psi, xp.log(known.kappa.ravel()[best])

    def _log_measure(self, prior: Prior, view: _View, slopes: Slopes, theta: AnyArray) -> AnyArray:
        """The log density of the prior, with the volume of the model's functions for what is uniform."""
        written = prior.log_density(theta)
        bounds_only = [isinstance(each, Uniform) for each in prior.distributions.values()]
        if self.prior == "literal" or not any(bounds_only):
            return written
        if all(bounds_only):
            return written + slopes.log_volume
        uniform = np.flatnonzero(bounds_only)
        return written + _log_volume(prior, view, theta, uniform) - _log_mean_volume(prior, view, theta, uniform)

    def _log_share(self, prior: Prior, view: _View, detail: _Detail, theta: AnyArray) -> AnyArray:
        """The log of the posterior share of rho for which theta is the minimiser of the distance to mu."""
        xp = namespace_of(theta)
        modelled, slopes = _looked_at(prior, view, theta)
        known = detail.compared
        terms = projected_terms(
            known.rotated, known.responses, known.kappa, modelled, slopes, view.observations, with_weights=True
        )
        process = terms.log_likelihood + known.log_weight + np.log1p(-self.no_process)
        process = _flat(xp.where(xp.isnan(process), -np.inf, process))
        none = self._none(view, detail, modelled)[:, None]
        share = softmax(xp.concatenate([process, none], axis=1))
        bias = bias_in_span(known.rotated, slopes, terms)
        bias = bias.reshape(bias.shape[0], -1, bias.shape[3])  # (N, R, l)
        at_nodes = view.at_nodes.values(theta)
        is_minimum = _is_convex(view, theta, slopes, bias)
        for other in range(detail.minima.shape[0]):
            away = at_nodes - detail.minima[other]
            # |mu - eta'|^2 - |mu - eta|^2
            gain = xp.sum(away**2, axis=1)[:, None] + 2 * xp.einsum("nrl,nl->nr", bias, away)
            is_minimum = is_minimum & (gain >= -_NEARER * xp.sum(at_nodes**2, axis=1)[:, None])
        return xp.log(share[:, -1] + xp.sum(xp.where(is_minimum, share[:, :-1], 0.0), axis=1))


def _flat(table: AnyArray) -> AnyArray:
    return table.reshape(table.shape[0], -1)


def _square(view: _View, values: AnyArray, theta: AnyArray) -> AnyArray:
    """The sum of squares (N,) at rows of theta, within the span of the model."""
    return namespace_of(theta).sum((view.at_design.values(theta) - values) ** 2, axis=1)


def _climbed(function: OfRows, starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Where Newton's method ends from every start, and the function there."""
    xp = namespace_of(starts)
    scale = xp.full(starts.shape, _FIRST_SCALE)
    summits = climb(jet_of_rows(function), starts, scale, _POLISH)
    return summits.z, xp.where(xp.isnan(summits.value), -np.inf, summits.value)


def _looked_at(prior: Prior, view: _View, theta: AnyArray) -> tuple[AnyArray, Slopes]:
    """The model at the design (N, m), and its slopes made orthonormal, at rows of theta."""
    modelled, at_design = view.at_design.with_slopes(theta)
    _, at_nodes = view.at_nodes.with_slopes(theta)
    return modelled, orthonormal_slopes(at_nodes, at_design, prior.scale)


def _rotated(lattice: Lattice, psi: AnyArray, y: AnyArray, square: AnyArray) -> tuple[Rotated, RotatedResponses]:
    """At some psi of the lattice."""
    xp, spectrum = namespace_of(y), lattice.spectrum
    rotated = Rotated(
        log_psi=spectrum.log_psi[psi],
        eigenvalues=spectrum.eigenvalues[psi],
        cross=spectrum.cross[psi],
        big_h=lattice.big_h[psi],
        basis=lattice.rotated_basis[psi],
        left_out=xp.asarray(float(spectrum.left_out)),
    )
    own = xp.einsum("wns,n->ws", spectrum.vectors[psi], y)
    return rotated, RotatedResponses(own, left_out_square(lattice.complete[psi], xp.sum(own**2, axis=1), square))


def _is_convex(view: _View, theta: AnyArray, slopes: Slopes, bias: AnyArray) -> AnyArray:
    """Whether the Hessian of the distance is positive definite at theta, for every bias (N, R, l): (N, R).

    I - sum_l z_l d2 c_l along the orthonormal directions, by differences of the model.
    """
    xp = namespace_of(theta)
    p = theta.shape[1]
    here = view.at_nodes.values(theta)
    step = _CURVE_STEP * xp.sqrt(xp.sum(here**2, axis=1))[:, None]
    directions = [step * slopes.inverse_root[:, :, i] for i in range(p)]

    def moved(shift: AnyArray) -> AnyArray:
        return view.at_nodes.values(theta + shift)

    hessian: list[list[AnyArray]] = [[here] * p for _ in range(p)]
    for i in range(p):
        for j in range(i + 1):
            one, other = directions[i], directions[j]
            bend = (moved(one + other) - moved(one - other) - moved(other - one) + moved(-one - other)) / (4 * step**2)
            identity = 1.0 if i == j else 0.0
            hessian[i][j] = identity - xp.einsum("nrl,nl->nr", bias, bend)
    pivots = _pivots(hessian, p)
    return functools.reduce(xp.logical_and, [pivot > 0 for pivot in pivots])


def _pivots(matrix: list[list[AnyArray]], p: int) -> list[AnyArray]:
    """Of symmetric matrices, given by their lower triangles: all positive where they are definite."""
    rows = [list(row[: i + 1]) for i, row in enumerate(matrix)]
    pivots: list[AnyArray] = []
    for i in range(p):
        pivots.append(rows[i][i])
        for j in range(i + 1, p):
            ratio = rows[j][i] / rows[i][i]
            for k in range(i + 1, j + 1):
                rows[j][k] = rows[j][k] - ratio * rows[k][i]
    return pivots


def _log_volume(prior: Prior, view: _View, theta: AnyArray, uniform: np.ndarray) -> AnyArray:
    """log det(M_uu)^(1/2) of some of the parameters, at rows of theta (N,)."""
    _, slopes = view.at_nodes.with_slopes(theta)
    block = slopes[:, :, uniform]
    return orthonormal_slopes(block, block, prior.scale[uniform]).log_volume


def _log_mean_volume(prior: Prior, view: _View, theta: AnyArray, uniform: np.ndarray) -> AnyArray:
    """The log of the mean of that volume over the box of the uniform parameters, given the others (N,)."""
    xp = namespace_of(theta)
    unit = np.full((_VOLUME_POINTS, prior.dimension), 0.5)
    unit[:, uniform] = kronecker(_VOLUME_POINTS, len(uniform))
    values = prior.quantile(unit)
    volumes = []
    for row in values:
        columns = [xp.full_like(theta[:, j], row[j]) if j in uniform else theta[:, j] for j in range(prior.dimension)]
        volumes.append(_log_volume(prior, view, xp.stack(columns, axis=1), uniform))
    return log_sum_exp(xp.stack(volumes), axis=0) - np.log(_VOLUME_POINTS)
