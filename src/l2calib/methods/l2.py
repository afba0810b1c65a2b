"""Calibration with a bias that is projected at theta: the method `l2`, the package's own (docs/l2.md).

The system is the model at theta plus a Gaussian process that the model's slopes at theta have no part in. So theta is a
stationary point of the L2 distance by construction, and mass where it is not the minimiser is left out. rho = (psi,
kappa) is integrated over a proper prior with a probability of its own for "no process"; the measure on theta is the
volume of the model's functions.

The lattice of rho has thousands of points. What theta sees of them is a sum of smooth functions of theta, which a few
nodes with weights of their own say as well: they are chosen for every y, at thetas that are spread over the posterior,
and checked at others.

Written over the array library of y: one dataset runs in NumPy and compiles the model alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from l2calib.errors import MethodError
from l2calib.losses import L2, OLS, loss_candidates
from l2calib.methods.method import DensityOfRows, Fit, Learnt, Prepared, Workload
from l2calib.numerics.arrays import Array
from l2calib.numerics.derivatives import OfRows, differences_of_rows
from l2calib.numerics.minimise import Candidates, lowest_candidates
from l2calib.numerics.namespace import AnyArray, log_sum_exp, loops_of, namespace_of, softmax
from l2calib.numerics.newton import climb, laplace
from l2calib.numerics.sparse_weights import sparse_weights
from l2calib.numerics.spread import kronecker
from l2calib.posterior.points import Components
from l2calib.problem.distributions import Distribution, LogNormal, Uniform
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.problem.span import ModelCoordinates
from l2calib.process.correlation import Correlation, SquaredExponential
from l2calib.process.lattice import Coverage, HalfCauchyRatio, Lattice, lattice_over, psi_lattice, window_of
from l2calib.process.projected_bias import (
    Looked,
    Nodes,
    Rotated,
    RotatedResponses,
    Slopes,
    bias_in_span,
    lattice_terms,
    node_terms,
    nodes_of,
    orthonormal_slopes,
)
from l2calib.process.spectrum import Functionals, Sites, compressed_spectrum_over, left_out_square
from l2calib.smoothers.gcv import Choice

# Wide: with few observations a prior that keeps psi small covers less, and its intervals are no shorter.
PSI_PRIOR = LogNormal(math.log(5.0), 2.5)
_NO_PROCESS = 0.5
_KAPPA_POINTS = {1: 36}  # a posterior of log kappa is wider than two cells of this lattice
_KAPPA_POINTS_BEYOND = 24
_STARTS = 6  # low minima of the sum of squares that are looked at
_COMPARED = 8  # low minima of the distance that every theta is compared with
_POLISH = 12  # steps of Newton's method
_FIRST_SCALE = 0.1  # of differences, in sd of the prior; the climbs find their own
_KEPT_PSI = {1: 24, 2: 96}
_KEPT_PSI_BEYOND = 128
_KEPT_WITH_FEW = 256  # psi of several inputs, of which few observations tell little
_FEW = 40
_KEPT_KAPPA = {1: 18}
_COVERAGE = Coverage(captured=0.99995, temper=0.8)
_FIRST_PSI, _FIRST_KAPPA = 5, 3  # of rho, where only the place of the posterior is looked for
_FIRST_STEPS = 5  # of the climbs there
_PSI_AT_ONCE = 4  # of the lattice: more fill no cache in a batch, fewer are slow in NumPy
_REFERRED, _NODES = (64, 56, 80, 96), (32, 28, 40, 48)  # thetas and nodes of rho, by parameters
_CHECKED = 12  # thetas at which the nodes of rho are checked
_SPREAD = 1.4  # of the thetas at which they are chosen, in sd: the tails are to be right as well
_FAR, _FAR_WEIGHT = (
    12,
    0.05,
)  # thetas all over the prior, where a tail must not be taken for a mode, and what they count
_LINE_LIMIT = 8.0  # of z: beyond, a normal distribution function has no digits left
_LEARNT_FROM = 384  # points, for what is said of the posterior as a whole
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


class _Window(NamedTuple):
    """What is known of one y at a part of the lattice."""

    rotated: Rotated
    responses: RotatedResponses
    log_kappa: AnyArray  # (w, v)
    log_weight: AnyArray  # log prior and cells, (w, v)


class _Response(NamedTuple):
    """y in the span of the model at the design, and the sum of squares that no theta explains."""

    values: AnyArray
    outside: AnyArray


class _Detail(NamedTuple):
    response: _Response
    nodes: Nodes
    log_weight: AnyArray  # of the nodes: prior, cells and weights
    error: AnyArray  # what the nodes cost, in posterior standard deviations
    lowest: AnyArray  # thetas of low minima of the distance (C, p)
    minima: AnyArray  # the model there, in the span at the nodes of the quadrature (C, l)


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
    revision = 1

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
        sites, functionals = Sites.of(experiment), Functionals.of(experiment)
        psi, seen = psi_lattice(experiment.inputs), experiment.design_span.basis
        spectrum, sizes = compressed_spectrum_over(self.correlation, psi, sites, functionals, seen)
        lattice = lattice_over(
            spectrum,
            sizes == experiment.observations,
            experiment,
            self.correlation,
            self.psi_prior,
            self.kappa_prior,
            _kappas(experiment.inputs),
        )
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
        response = _Response(span.project(y), span.outside(y))

        def by_squares(z: AnyArray) -> AnyArray:
            return -view.observations / 2 * xp.log(_square(response, view.at_design.values(prior.from_line(z))))

        first = shared.by_squares.thetas[lowest_candidates(shared.by_squares, response.values, _STARTS)]
        starts, heights = _climbed(by_squares, prior.to_line(first))
        best = prior.from_line(starts[xp.argmax(heights)][None])
        table = _tabulated(prior, view, shared.lattice, y, best)
        window, lost = _window(shared.lattice, y, table, experiment.inputs)
        nodes, log_weight, error, modes = self._nodes(prior, view, response, window, starts)
        minima = xp.zeros((0, view.at_nodes.values(best).shape[1]))
        detail = _Detail(response, nodes, log_weight, error + lost, best, minima)
        looked = self._looked(prior, view, detail, best)
        mu, sigma2 = looked.mu[:, 0], looked.sigma2[0]
        found = shared.by_distance.thetas[lowest_candidates(shared.by_distance, mu, _COMPARED)]
        lowest, nearness = _nearest(prior, view, mu, xp.concatenate([prior.to_line(found), starts]))
        psi, kappa = xp.unravel_index(xp.argmax(table), table.shape)
        return Fit(
            theta_hat=lowest[xp.argmax(nearness)],
            starts=prior.from_line(modes),
            status=xp.asarray(0),
            sigma2=sigma2,
            psi=xp.exp(shared.lattice.spectrum.log_psi[psi]),
            kappa=xp.exp(shared.lattice.log_kappa[kappa]),
            no_process=looked.share[-1, 0],
            detail=detail._replace(lowest=lowest, minima=view.at_nodes.values(lowest)),
        )

    def posterior(self, prior: Prior, view: _View, fit: Fit[_Detail]) -> DensityOfRows:
        detail = fit.detail

        def log_density(theta: AnyArray) -> AnyArray:
            modelled, slopes = _modelled(prior, view, theta)
            terms = node_terms(detail.nodes, modelled, slopes, view.observations).terms
            process = self._of_process(terms.log_likelihood, detail.log_weight[:, None])
            none = self._none(view, detail.response, modelled)
            both = namespace_of(theta).logaddexp(log_sum_exp(process, axis=0), none)
            return both + self._log_measure(prior, view, slopes, theta)

        def log_share(theta: AnyArray) -> AnyArray:
            return self._log_share(prior, view, detail, theta)

        def learnt(theta: AnyArray, weights: AnyArray) -> Learnt:
            return self._learnt(prior, view, fit, theta, weights)

        terms = detail.nodes.y.size // 4
        own = self._components(prior, view, detail)
        return DensityOfRows(log_density, terms, log_share, detail.error, learnt, differences_of_rows, own)

    def _components(self, prior: Prior, view: _View, detail: _Detail) -> Components:
        """The posterior, node by node, and last without a process."""
        number = detail.log_weight.shape[0]

        def look(index: AnyArray, theta: AnyArray) -> tuple[AnyArray, Nodes, AnyArray, Slopes, Looked]:
            xp, (blocks, rows, p) = namespace_of(theta), theta.shape
            flat = theta.reshape(-1, p)
            modelled, slopes = _modelled(prior, view, flat)
            own = xp.minimum(xp.asarray(index), number - 1)
            nodes = Nodes(*(each[own] for each in detail.nodes))
            by_block = Slopes(*(each.reshape(blocks, rows, *each.shape[1:]) for each in slopes))
            looked = node_terms(nodes, modelled.reshape(blocks, rows, -1), by_block, view.observations)
            return flat, nodes, modelled, by_block, looked

        def log_density(index: AnyArray, theta: AnyArray) -> AnyArray:
            xp = namespace_of(theta)
            flat, _, modelled, slopes, looked = look(index, theta)
            weight = xp.concatenate([detail.log_weight, xp.zeros(1)])[index]
            process = self._of_process(looked.terms.log_likelihood, weight[:, None])
            none = self._none(view, detail.response, modelled).reshape(process.shape)
            likelihood = xp.where(xp.asarray(index)[:, None] == number, none, process)
            flat_slopes = Slopes(*(each.reshape(len(flat), *each.shape[2:]) for each in slopes))
            return likelihood + self._log_measure(prior, view, flat_slopes, flat).reshape(process.shape)

        def log_share(index: AnyArray, theta: AnyArray) -> AnyArray:
            xp = namespace_of(theta)
            flat, nodes, _, slopes, looked = look(index, theta)
            bias = xp.swapaxes(bias_in_span(nodes, slopes, looked), 1, 2)  # (S, n, l)
            bias = bias.reshape(1, len(flat), -1).swapaxes(1, 2)  # one bias for every theta
            flat_slopes = Slopes(*(each.reshape(len(flat), *each.shape[2:]) for each in slopes))
            kept = _is_minimum(view, detail, flat, flat_slopes, bias)[0].reshape(theta.shape[:2])
            return xp.where(kept | (xp.asarray(index)[:, None] == number), 0.0, -np.inf)

        return Components(number + 1, view.observations / 2, log_density, log_share)

    def workload(self, experiment: Experiment) -> Workload:
        n, p = experiment.observations, experiment.parameters
        m, at_nodes = experiment.design_span.dimension, experiment.node_span.dimension
        wide = min(n, m + at_nodes + 1)
        pairs = (2 * p + 1) * (p + 1)
        referred = n * pairs * (_referred(p) + _CHECKED) + _rows_of_nodes(p) * wide * (m + at_nodes + 1)
        return Workload(fitting=max(64 * n, referred), per_evaluation=_rows_of_nodes(p) * (wide + m) // 2)

    def _nodes(
        self, prior: Prior, view: _View, response: _Response, window: _Window, starts: AnyArray
    ) -> tuple[Nodes, AnyArray, AnyArray, AnyArray]:
        """A few rho with weights, that do for the window as far as theta sees it; what that costs, in sd; and modes."""
        xp, p = namespace_of(starts), starts.shape[1]
        few = _part_of(window)

        def joint(some: _Window, theta: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
            modelled, slopes = _modelled(prior, view, theta)
            log_likelihood = _over_psi(some, modelled, slopes, view.observations)
            process = self._of_process(log_likelihood, some.log_weight[:, :, None])
            measure = self._log_measure(prior, view, slopes, theta)
            return process.reshape(-1, len(theta)), self._none(view, response, modelled), measure

        def about(z: AnyArray) -> AnyArray:
            process, none, measure = joint(few, prior.from_line(z))
            slope = xp.sum(prior.log_slope(z), axis=-1)
            return xp.logaddexp(log_sum_exp(process, axis=0), none) + measure + slope

        scale = xp.full(starts.shape, _FIRST_SCALE)
        centres, factors, log_mass = laplace(climb(differences_of_rows(about), starts, scale, _FIRST_STEPS))
        z, log_spread = _references(centres, factors, log_mass)
        z = xp.concatenate([xp.asarray(ndtri(kronecker(_FAR, p))), starts, z])
        far = _FAR + len(starts)
        process, none, measure = joint(window, prior.from_line(z))
        total = xp.logaddexp(log_sum_exp(process, axis=0), none)
        total = xp.where(xp.isfinite(total), total, np.inf)  # a theta without a likelihood asks for nothing
        rows = xp.exp(process - total).T
        chosen = far + _referred(p)
        rows = rows * np.where(np.arange(len(z)) < far, _FAR_WEIGHT, 1.0)[:, None]
        place, weight = sparse_weights(rows[:chosen], _rows_of_nodes(p))
        wrong = xp.log(rows[chosen:][:, place] @ weight + xp.exp(none - total)[chosen:])
        heights = (total + measure + xp.sum(prior.log_slope(z), axis=-1))[chosen:] - log_spread[_referred(p) :]
        wrong = xp.where(xp.isfinite(wrong), wrong, 0.0)
        heavy = softmax(xp.where(xp.isfinite(heights), heights, -np.inf))
        error = xp.sqrt(xp.sum(heavy * (wrong - xp.sum(heavy * wrong)) ** 2))
        row = place // window.log_kappa.shape[1]
        rotated = window.rotated._replace(
            **{name: getattr(window.rotated, name)[row] for name in window.rotated._fields if name != "left_out"}
        )
        responses = RotatedResponses(*(each[row] for each in window.responses))
        nodes = nodes_of(rotated, responses, window.log_kappa.reshape(-1)[place])
        log_weight = window.log_weight.reshape(-1)[place] + xp.log(weight)
        return nodes, log_weight, xp.where(xp.isfinite(error), error, np.inf), centres

    def _of_process(self, log_likelihood: AnyArray, log_weight: AnyArray) -> AnyArray:
        """The log joint density of y with a process."""
        process = log_likelihood + log_weight + np.log1p(-self.no_process)
        xp = namespace_of(process)
        return xp.where(xp.isnan(process), -np.inf, process)

    def _none(self, view: _View, response: _Response, modelled: AnyArray) -> AnyArray:
        """That with no process (N,)."""
        xp = namespace_of(modelled)
        if self.no_process == 0:
            return xp.full(modelled.shape[0], -np.inf)
        return np.log(self.no_process) - view.observations / 2 * xp.log(_square(response, modelled))

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

    def _looked(self, prior: Prior, view: _View, detail: _Detail, theta: AnyArray) -> _LookedAt:
        """What every node says of mu at rows of theta."""
        xp = namespace_of(theta)
        modelled, slopes = _modelled(prior, view, theta)
        looked = node_terms(detail.nodes, modelled, slopes, view.observations)
        process = self._of_process(looked.terms.log_likelihood, detail.log_weight[:, None])
        none = self._none(view, detail.response, modelled)
        share = softmax(xp.concatenate([process, none[None]]).T).T
        bias = bias_in_span(detail.nodes, slopes, looked)
        bias = xp.where((share[:-1] > 0)[:, None], bias, 0.0)
        at_nodes = view.at_nodes.values(theta)
        kappa = xp.exp(detail.nodes.log_kappa)[:, None]
        squares = xp.concatenate([kappa * looked.terms.quadratic, _square(detail.response, modelled)[None]])
        sigma2 = xp.sum(xp.where(share > 0, share * squares, 0.0), axis=0) / (view.observations - 2)
        mu = at_nodes.T + xp.sum(share[:-1, None] * bias, axis=0)
        return _LookedAt(slopes, at_nodes, share, bias, mu, sigma2)

    def _log_share(self, prior: Prior, view: _View, detail: _Detail, theta: AnyArray) -> AnyArray:
        """The log of the posterior share of rho for which theta is the minimiser of the distance to mu."""
        xp = namespace_of(theta)
        looked = self._looked(prior, view, detail, theta)
        is_minimum = _is_minimum(view, detail, theta, looked.slopes, looked.bias)
        return xp.log(looked.share[-1] + xp.sum(xp.where(is_minimum, looked.share[:-1], 0.0), axis=0))

    @np.errstate(all="ignore")
    def _learnt(self, prior: Prior, view: _View, fit: Fit[_Detail], theta: AnyArray, weights: AnyArray) -> Learnt:
        """Of all of the posterior, by its points."""
        xp, detail = namespace_of(theta), fit.detail
        if len(theta) > _LEARNT_FROM:  # as many, evenly among them by their weights
            below = xp.cumsum(weights)
            chosen = xp.searchsorted(below, below[-1] * (np.arange(_LEARNT_FROM) + 0.5) / _LEARNT_FROM)
            theta = theta[xp.minimum(chosen, len(theta) - 1)]
            weights = xp.full(_LEARNT_FROM, 1 / _LEARNT_FROM)
        looked = self._looked(prior, view, detail, theta)
        parts = xp.concatenate([looked.mu, looked.share[-1:], looked.sigma2[None]])
        sums = xp.sum(xp.where(weights > 0, parts * weights, 0.0), axis=1)
        mu, no_process, sigma2 = sums[:-2], sums[-2], sums[-1]
        lowest, nearness = _nearest(prior, view, mu, prior.to_line(detail.lowest))
        process = no_process <= 0.5
        return Learnt(
            theta_hat=lowest[xp.argmax(nearness)],
            sigma2=sigma2,
            psi=xp.where(process, fit.psi, np.nan),
            kappa=xp.where(process, fit.kappa, np.nan),
            no_process=no_process,
        )


class _LookedAt(NamedTuple):
    """Of rows of theta."""

    slopes: Slopes
    at_nodes: AnyArray  # the model in the span at the nodes of the quadrature (N, l)
    share: AnyArray  # of every rho, and of no process (G + 1, N)
    bias: AnyArray  # its mean at every rho (G, l, N)
    mu: AnyArray  # its mean over rho (l, N)
    sigma2: AnyArray  # likewise (N,)


def _referred(p: int) -> int:
    """At how many thetas the nodes of rho are chosen."""
    return _REFERRED[min(p, len(_REFERRED)) - 1]


def _rows_of_nodes(p: int) -> int:
    """How many nodes there are."""
    return _NODES[min(p, len(_NODES)) - 1]


@functools.cache
def _normals(p: int) -> np.ndarray:
    """Standard normal points (R, p), evenly spread: those for choosing the nodes, and those for checking them."""
    number = _referred(p) + _CHECKED
    points = ndtri(kronecker(number, p))
    checking = np.arange(number) % (number // _CHECKED) == 1
    checking &= np.cumsum(checking) <= _CHECKED
    return np.concatenate([points[~checking], points[checking]])


def _references(centres: AnyArray, factors: AnyArray, log_mass: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Points z (R, p) around modes, more around heavy ones, and the log of how densely they are spread there."""
    xp, p = namespace_of(centres), centres.shape[1]
    log_mass = xp.where(xp.isfinite(log_mass), log_mass, -1e300)
    below = xp.cumsum(softmax(log_mass / 2))  # a light mode is to be right as well
    normals = _normals(p)
    chosen = len(normals) - _CHECKED
    level = np.concatenate([(np.arange(each) + 0.5) / each for each in (chosen, _CHECKED)])
    mode = xp.minimum(xp.searchsorted(below, level * below[-1]), len(centres) - 1)
    away = xp.sum(factors[mode] * (_SPREAD * normals)[:, None, :], axis=2)
    log_size = xp.sum(xp.log(xp.stack([factors[:, i, i] for i in range(p)])), axis=0)[mode]
    z = xp.clip(centres[mode] + away, -_LINE_LIMIT, _LINE_LIMIT)
    return z, -np.sum(normals**2, axis=1) / 2 - log_size


def _square(response: _Response, modelled: AnyArray) -> AnyArray:
    """The sum of squares (N,), for rows of the model in its span at the design."""
    return namespace_of(modelled).sum((modelled - response.values) ** 2, axis=1) + response.outside


def _climbed(function: OfRows, starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Where Newton's method ends from every start, and the function there."""
    xp = namespace_of(starts)
    scale = xp.full(starts.shape, _FIRST_SCALE)
    summits = climb(differences_of_rows(function), starts, scale, _POLISH)
    return summits.z, xp.where(xp.isnan(summits.value), -np.inf, summits.value)


def _nearest(prior: Prior, view: _View, mu: AnyArray, starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Minima (C, p) of the distance to mu, from starts on the line, and minus a multiple of it."""
    xp = namespace_of(mu)

    def by_distance(z: AnyArray) -> AnyArray:
        away = view.at_nodes.values(prior.from_line(z)) - mu
        return -view.observations / 2 * xp.log(xp.sum(away**2, axis=1) + _NEARER * xp.sum(mu**2))

    lowest, nearness = _climbed(by_distance, starts)
    return prior.from_line(lowest), nearness


def _modelled(prior: Prior, view: _View, theta: AnyArray) -> tuple[AnyArray, Slopes]:
    """The model at the design (N, m), and its slopes made orthonormal, at rows of theta."""
    modelled, at_design = view.at_design.with_slopes(theta)
    _, at_nodes = view.at_nodes.with_slopes(theta)
    return modelled, orthonormal_slopes(at_nodes, at_design, prior.scale)


def _rotated(lattice: Lattice, psi: AnyArray, y: AnyArray) -> tuple[Rotated, RotatedResponses]:
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
    own = xp.matmul(y, spectrum.vectors[psi])
    square = xp.sum(y**2)
    return rotated, RotatedResponses(own, left_out_square(lattice.complete[psi], xp.sum(own**2, axis=1), square))


def _tabulated(prior: Prior, view: _View, lattice: Lattice, y: AnyArray, theta: AnyArray) -> AnyArray:
    """The log posterior of rho given theta (1, p), on the whole lattice (P, K)."""
    xp = namespace_of(y)
    modelled, slopes = _modelled(prior, view, theta)
    points, kappas = lattice.log_prior.shape
    kappa = xp.broadcast_to(xp.exp(lattice.log_kappa), (_PSI_AT_ONCE, kappas))

    def at_psi(index: AnyArray) -> AnyArray:
        rotated, responses = _rotated(lattice, index, y)
        return lattice_terms(rotated, responses, kappa, modelled, slopes, view.observations).log_likelihood[:, :, 0]

    blocks = -(-points // _PSI_AT_ONCE)
    index = np.minimum(np.arange(blocks * _PSI_AT_ONCE), points - 1).reshape(blocks, _PSI_AT_ONCE)
    found = loops_of(y).map(at_psi, xp.asarray(index)).reshape(-1, kappas)[:points] + lattice.log_prior
    return xp.where(xp.isnan(found), -np.inf, found)


def _kappas(inputs: int) -> int:
    """How many kappa the lattice has."""
    return _KAPPA_POINTS.get(inputs, _KAPPA_POINTS_BEYOND)


def _window(lattice: Lattice, y: AnyArray, table: AnyArray, inputs: int) -> tuple[_Window, AnyArray]:
    """The part of the lattice that carries the mass, and how much of it is lost."""
    xp = namespace_of(y)
    few = inputs > 1 and y.size < _FEW
    psi = _KEPT_WITH_FEW if few else _KEPT_PSI.get(inputs, _KEPT_PSI_BEYOND)
    kept = window_of(table, inputs, psi, _KEPT_KAPPA.get(inputs, _kappas(inputs)), _COVERAGE)
    rotated, responses = _rotated(lattice, kept.psi, y)
    log_weight = xp.take_along_axis(lattice.log_prior[kept.psi], kept.kappa, axis=1) + kept.log_cells
    carried = xp.take_along_axis(table[kept.psi], kept.kappa, axis=1) + kept.log_cells
    lost = 1 - xp.exp(log_sum_exp(carried.reshape(-1), axis=0) - log_sum_exp(table.reshape(-1), axis=0))
    return _Window(rotated, responses, lattice.log_kappa[kept.kappa], log_weight), xp.maximum(lost, 0.0)


def _part_of(window: _Window) -> _Window:
    """A few psi and kappa of a window: the heaviest, which come first in it."""
    psi, kappa = slice(None, _FIRST_PSI), slice(None, _FIRST_KAPPA)
    rotated = window.rotated._replace(
        **{name: getattr(window.rotated, name)[psi] for name in window.rotated._fields if name != "left_out"}
    )
    responses = RotatedResponses(*(each[psi] for each in window.responses))
    return _Window(rotated, responses, window.log_kappa[psi, kappa], window.log_weight[psi, kappa])


def _over_psi(window: _Window, modelled: AnyArray, slopes: Slopes, observations: float) -> AnyArray:
    """The log likelihood at every rho of a window and every row of theta (w, v, N), psi by psi."""
    xp, (rotated, responses, log_kappa, _) = namespace_of(modelled), window

    def at_psi(psi: AnyArray) -> AnyArray:
        own = Rotated(*(each if each.ndim == 0 else each[psi][None] for each in rotated))
        seen = RotatedResponses(*(each[psi][None] for each in responses))
        kappa = xp.exp(log_kappa[psi])[None]
        return lattice_terms(own, seen, kappa, modelled, slopes, observations).log_likelihood[0]

    return loops_of(modelled).map(at_psi, xp.arange(log_kappa.shape[0]))


def _is_minimum(view: _View, detail: _Detail, theta: AnyArray, slopes: Slopes, bias: AnyArray) -> AnyArray:
    """Whether theta minimises the distance to the model there plus a bias, for every bias (G, l, N): (G, N).

    It does where the Hessian, I - sum_l z_l d2 c_l along the orthonormal directions, by differences of the model, is
    positive definite, and no other low minimum is closer.
    """
    xp = namespace_of(theta)
    p = theta.shape[1]
    here = view.at_nodes.values(theta)
    step = _CURVE_STEP * xp.sqrt(xp.sum(here**2, axis=1))[:, None]
    directions = [step * slopes.inverse_root[:, :, i] for i in range(p)]

    def bend(shift: AnyArray) -> AnyArray:
        """The second derivative along a direction, times the bias."""
        moved = (view.at_nodes.values(theta + shift) - here) + (view.at_nodes.values(theta - shift) - here)
        return xp.sum(bias * (moved / step**2).T, axis=1)

    hessian: list[list[AnyArray]] = [[here] * p for _ in range(p)]
    straight = [bend(each) for each in directions]
    for i in range(p):
        hessian[i][i] = 1.0 - straight[i]
        for j in range(i):
            hessian[i][j] = -(bend(directions[i] + directions[j]) - straight[i] - straight[j]) / 2
    is_minimum = functools.reduce(xp.logical_and, [pivot > 0 for pivot in _pivots(hessian, p)])
    allowed = -_NEARER * xp.sum(here**2, axis=1)
    for other in range(detail.minima.shape[0]):
        away = (here - detail.minima[other]).T
        # |mu - eta'|^2 - |mu - eta|^2
        gain = xp.sum(away**2, axis=0) + 2 * xp.sum(bias * away, axis=1)
        is_minimum = is_minimum & (gain >= allowed)
    return is_minimum


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
