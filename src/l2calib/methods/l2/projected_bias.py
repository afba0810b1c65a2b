"""Calibration with a bias that is projected at theta: the method `l2`, the package's own (docs/l2.md).

The system is the model at theta plus a Gaussian process that the model's slopes at theta have no part in. So theta is a
stationary point of the L2 distance by construction, and mass where it is not the minimiser is left out. rho = (psi,
kappa) is integrated over a proper prior with a probability of its own for "no process"; the measure on theta is the
volume of the model's functions.

Written over the array library of y: one dataset runs in NumPy and compiles the model alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from l2calib.errors import MethodError
from l2calib.methods.l2.measure import log_measure
from l2calib.methods.l2.minimiser import climbed, is_minimum, nearest
from l2calib.methods.l2.proposals import Posterior, deviates, gaussians, weighed_points
from l2calib.methods.l2.rho import (
    Chosen,
    Likelihoods,
    choose_nodes,
    number_of_nodes,
    number_of_references,
    of_dimension,
)
from l2calib.methods.l2.view import Response, View, modelled_at
from l2calib.methods.method import DensityOfRows, Fit, Learnt, Prepared, Workload
from l2calib.numerics.arrays import Array
from l2calib.numerics.derivatives import differences_of_rows
from l2calib.numerics.minimise import Candidates, candidates, lowest_candidates, scan
from l2calib.numerics.namespace import AnyArray, largest, log_sum_exp, namespace_of, softmax
from l2calib.numerics.t_distribution import t_table
from l2calib.posterior.points import Proposals
from l2calib.problem.distributions import Distribution, LogNormal
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.process.correlation import Correlation, SquaredExponential
from l2calib.process.lattice import HalfCauchyRatio, Lattice, lattice_over, psi_lattice
from l2calib.process.projected_bias import Slopes, bias_in_span, node_terms
from l2calib.process.spectrum import Functionals, Sites, compressed_spectrum_over
from l2calib.smoothers.gcv import Choice

# Wide: with few observations a prior that keeps psi small covers less, and its intervals are no shorter.
PSI_PRIOR = LogNormal(math.log(5.0), 2.5)
_NO_PROCESS = 0.5
_KAPPA_POINTS = {1: 36}  # a posterior of log kappa is wider than two cells of this lattice
_KAPPA_POINTS_BEYOND = 24
_STARTS = 6  # low minima of the sum of squares that are looked at
_COMPARED = 8  # low minima of the distance that every theta is compared with
_LOW = 48  # thetas at which the sum of squares is low, from which valleys are explored
_COPIES = (8, 4)  # of what is read in a fit, by parameters: with so many, chunks of a batch are of the quickest size
_LEARNT_FROM = 96  # points, for what is said of the posterior as a whole


class _Shared(NamedTuple):
    lattice: Lattice
    by_squares: Candidates
    by_distance: Candidates


class _Detail(NamedTuple):
    response: Response
    chosen: Chosen
    lowest: AnyArray  # thetas of low minima of the distance (C, p)
    minima: AnyArray  # the model there, in the span at the nodes of the quadrature (C, l)
    low: AnyArray  # thetas at which the sum of squares is low, wherever they are (L, p)


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
    proposes = True
    revision = 2

    def __post_init__(self) -> None:
        if self.prior not in ("volume", "literal"):
            raise MethodError(f"the prior is taken by its 'volume' or 'literal': received '{self.prior}'.")
        if not 0 <= self.no_process < 1:
            raise MethodError(f"the probability of no process is at least 0 and below 1: received {self.no_process}.")

    @property
    def name(self) -> str:
        literal = "+literal" if self.prior == "literal" else ""
        return f"l2{self.correlation.suffix}{literal}"

    def has_sd(self, experiment: Experiment) -> bool:
        """A t distribution with two degrees of freedom has none but what the ends of the prior make of it."""
        return experiment.observations - experiment.parameters > 2

    def prepare(self, experiment: Experiment) -> Prepared[_Shared, View]:
        sites, nodes, p = Sites.of(experiment), experiment.narrow_node_span, experiment.parameters
        functionals = Functionals(experiment.few_nodes.nodes, nodes.functionals)
        psi, seen = psi_lattice(experiment.inputs), experiment.design_span.basis
        spectrum, sizes = compressed_spectrum_over(self.correlation, psi, sites, functionals, seen)
        lattice = lattice_over(
            spectrum,
            sizes == experiment.observations,
            functionals,
            experiment.design_span.basis,
            self.correlation,
            self.psi_prior,
            self.kappa_prior,
            _KAPPA_POINTS.get(experiment.inputs, _KAPPA_POINTS_BEYOND),
        )
        log_prior = np.asarray(lattice.log_prior)
        lattice = lattice._replace(log_prior=log_prior - log_sum_exp(log_prior.ravel(), axis=0))
        at_design, at_nodes = experiment.design_span.coordinates, nodes.coordinates
        freedom = experiment.observations - p
        view = View(at_design, at_nodes, float(experiment.observations), deviates(p, freedom), t_table(freedom))
        return Prepared(
            _Shared(lattice, candidates(experiment.prior, at_design), candidates(experiment.prior, at_nodes)), view
        )

    @np.errstate(all="ignore")
    def fit(
        self, experiment: Experiment, shared: _Shared, y: AnyArray, *, key: Array, choice: Choice | None = None
    ) -> Fit[_Detail]:
        xp, prior, span = namespace_of(y), experiment.prior, experiment.design_span
        observations = float(experiment.observations)
        view = View(span.coordinates, experiment.narrow_node_span.coordinates, observations, (), np.empty(0))
        response = Response(span.project(y), span.outside(y))

        def by_squares(z: AnyArray) -> AnyArray:
            return -observations / 2 * xp.log(response.square(view.at_design.values(prior.from_line(z))))

        first = shared.by_squares.thetas[lowest_candidates(shared.by_squares, response.values, _STARTS)]
        starts, heights = climbed(by_squares, prior.to_line(first))
        best = prior.from_line(starts[xp.argmax(heights)][None])
        likelihoods = self._likelihoods(prior, view)
        chosen = choose_nodes(prior, view, shared.lattice, y, response, likelihoods, starts, best)
        minima = xp.zeros((0, view.at_nodes.values(best).shape[1]))
        low = shared.by_squares.thetas[largest(-scan(shared.by_squares, response.values), _LOW)[1]]
        detail = _Detail(response, chosen, best, minima, low)
        looked = self._looked(prior, view, detail, best)
        mu, sigma2 = looked.mu[:, 0], looked.sigma2[0]
        found = shared.by_distance.thetas[lowest_candidates(shared.by_distance, mu, _COMPARED)]
        lowest, nearness = nearest(prior, view, mu, xp.concatenate([prior.to_line(found), starts]))
        return Fit(
            theta_hat=lowest[xp.argmax(nearness)],
            starts=prior.from_line(chosen.starts),
            status=xp.asarray(0),
            sigma2=sigma2,
            psi=chosen.psi,
            kappa=chosen.kappa,
            no_process=looked.share[-1, 0],
            detail=detail._replace(lowest=lowest, minima=view.at_nodes.values(lowest)),
        )

    def posterior(self, prior: Prior, view: View, fit: Fit[_Detail]) -> DensityOfRows:
        detail, likelihoods = fit.detail, self._likelihoods(prior, view)
        response, chosen = detail.response, detail.chosen

        def log_density(theta: AnyArray) -> AnyArray:
            modelled, slopes = modelled_at(prior, view, theta)
            terms = node_terms(chosen.nodes, modelled, slopes, view.observations).terms
            process = likelihoods.of_process(terms.log_likelihood, chosen.log_weight[:, None])
            none = likelihoods.of_square(response.square(modelled))
            both = namespace_of(theta).logaddexp(log_sum_exp(process, axis=0), none)
            return both + likelihoods.log_measure(slopes, theta)

        def log_density_and_share(theta: AnyArray) -> tuple[AnyArray, AnyArray]:
            looked = self._looked(prior, view, detail, theta)
            measure = likelihoods.log_measure(looked.slopes, theta)
            return looked.log_density + measure, self._log_share(view, detail, theta, looked)

        def log_share(theta: AnyArray) -> AnyArray:
            return self._log_share(view, detail, theta, self._looked(prior, view, detail, theta))

        def learnt(theta: AnyArray, weights: AnyArray) -> Learnt:
            return self._learnt(prior, view, fit, theta, weights)

        known = Posterior(
            prior,
            view,
            response,
            chosen.nodes,
            chosen.log_weight,
            chosen.modes,
            chosen.anchors,
            chosen.expansions,
            detail.minima,
            detail.low,
            likelihoods,
        )
        proposals = None
        if prior.dimension > 1:
            proposals = Proposals(lambda level: weighed_points(known, level), lambda: gaussians(known))
        return DensityOfRows(
            log_density,
            terms=chosen.nodes.y.size // 4,
            log_share=log_share,
            error=chosen.error,
            learnt=learnt,
            jet_of_rows=differences_of_rows,
            proposals=proposals,
            log_density_and_share=log_density_and_share,
        )

    def workload(self, experiment: Experiment) -> Workload:
        n, p = experiment.observations, experiment.parameters
        m, at_nodes = experiment.design_span.dimension, experiment.narrow_node_span.dimension
        wide, number = min(n, m + at_nodes + 1), number_of_nodes(p)
        rho = len(psi_lattice(experiment.inputs)) * _KAPPA_POINTS.get(experiment.inputs, _KAPPA_POINTS_BEYOND)
        fitting = rho * (p + 2) ** 2 + rho * number_of_references(p) + number * wide * (m + at_nodes + 1)
        return Workload(fitting=of_dimension(_COPIES, p) * fitting, per_evaluation=number * (wide + m) // 2)

    def _likelihoods(self, prior: Prior, view: View) -> Likelihoods:
        def of_process(log_likelihood: AnyArray, log_weight: AnyArray) -> AnyArray:
            joint = log_likelihood + log_weight + np.log1p(-self.no_process)
            xp = namespace_of(joint)
            return xp.where(xp.isnan(joint), -np.inf, joint)

        def of_square(square: AnyArray) -> AnyArray:
            if self.no_process == 0:
                return namespace_of(square).full_like(square, -np.inf)
            return np.log(self.no_process) - view.observations / 2 * namespace_of(square).log(square)

        def measure(slopes: Slopes, theta: AnyArray) -> AnyArray:
            return log_measure(prior, view, slopes, theta, literal=self.prior == "literal")

        return Likelihoods(of_process, of_square, measure)

    def _looked(self, prior: Prior, view: View, detail: _Detail, theta: AnyArray) -> _LookedAt:
        """What every node says of mu at rows of theta."""
        xp, (nodes, log_weight) = namespace_of(theta), detail.chosen[:2]
        modelled, slopes = modelled_at(prior, view, theta)
        looked = node_terms(nodes, modelled, slopes, view.observations)
        likelihoods = self._likelihoods(prior, view)
        process = likelihoods.of_process(looked.terms.log_likelihood, log_weight[:, None])
        square = detail.response.square(modelled)
        both = xp.concatenate([process, likelihoods.of_square(square)[None]])
        share = softmax(both.T).T
        bias = bias_in_span(nodes, slopes, looked)
        bias = xp.where((share[:-1] > 0)[:, None], bias, 0.0)
        at_nodes = view.at_nodes.values(theta)
        squares = xp.concatenate([xp.exp(nodes.log_kappa)[:, None] * looked.terms.quadratic, square[None]])
        sigma2 = xp.sum(xp.where(share > 0, share * squares, 0.0), axis=0) / (view.observations - 2)
        mu = at_nodes.T + xp.sum(share[:-1, None] * bias, axis=0)
        return _LookedAt(slopes, at_nodes, log_sum_exp(both, axis=0), share, bias, mu, sigma2)

    def _log_share(self, view: View, detail: _Detail, theta: AnyArray, looked: _LookedAt) -> AnyArray:
        """The log of the posterior share of rho for which theta is the minimiser of the distance to mu."""
        xp = namespace_of(theta)
        minima = is_minimum(view, detail.minima, theta, looked.slopes, looked.bias)
        return xp.log(looked.share[-1] + xp.sum(xp.where(minima, looked.share[:-1], 0.0), axis=0))

    @np.errstate(all="ignore")
    def _learnt(self, prior: Prior, view: View, fit: Fit[_Detail], theta: AnyArray, weights: AnyArray) -> Learnt:
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
        lowest, nearness = nearest(prior, view, mu, prior.to_line(detail.lowest))
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
    log_density: AnyArray  # over all rho, without the measure on theta (N,)
    share: AnyArray  # of every rho, and of no process (G + 1, N)
    bias: AnyArray  # its mean at every rho (G, l, N)
    mu: AnyArray  # its mean over rho (l, N)
    sigma2: AnyArray  # likewise (N,)
