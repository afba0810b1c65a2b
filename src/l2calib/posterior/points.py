"""A posterior is a set of weighted points; everything that is reported of it is computed here.

Points live on the line, in the coordinates z of `Prior.from_line`, where every posterior is smooth. Those of an
integration have marginals as series; draws belong to no lattice: their quantiles are those of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from l2calib.numerics.arrays import Array, jax
from l2calib.numerics.derivatives import Jet, OfRows, jet_of_rows
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.kernel_density import density_on_line
from l2calib.posterior.moments import moments
from l2calib.posterior.series import Marginal, lattice_quantiles

PROBABILITIES = (0.025, 0.5, 0.975)
_FIRST_SCALE = 0.1  # of the prior's sd: most posteriors are narrower, and the second look knows better


class Weighed(NamedTuple):
    """Points that follow proposals with known marginals: see `Proposals`."""

    z: AnyArray  # (N, p)
    base: AnyArray  # what each stands for of the proposals, with a sum of one (N,)
    log_weight: AnyArray  # of the density beside the proposals, with the base (N,)
    log_share: AnyArray  # as that of a target
    place: AnyArray  # the distribution functions of quantities whose proposals are known, between zero and one (N, p)
    standard: AnyArray  # these quantities, with a mean of zero and a variance of one (N, p)
    lost: AnyArray  # probability that no point stands for
    strata: tuple[int, int]  # how many rows of strata there are, and how long each: points come stratum by stratum


class Proposals(NamedTuple):
    """What a method knows of where its posterior is: weighed points, and Gaussians (centres, factors, log masses)."""

    weighed: Callable[[int], Weighed]  # at level 0, or 1 with more points
    gaussians: Callable[[], tuple[AnyArray, AnyArray, AnyArray]]


class Target(NamedTuple):
    """What an engine sees: a log density on the line, in the array library of the starts, which say where to look."""

    log_density: OfRows  # z (N, p) -> (N,)
    starts: AnyArray  # (S, p)
    terms: int = 1  # how many densities it is a mixture of
    scale: AnyArray | float = _FIRST_SCALE  # a guess of its sd along each coordinate, (p,): for differences
    log_share: OfRows | None = None  # by which the weights of the points in the end are multiplied: at most zero
    own_jet: Jet | None = None  # of the log density, where there is something better than the usual one
    log_density_and_share: Callable[[AnyArray], tuple[AnyArray, AnyArray]] | None = None  # in one, where that is less
    proposals: Proposals | None = None

    @property
    def jet(self) -> Jet:
        return self.own_jet or jet_of_rows(self.log_density)


def target_of(log_density: Callable[[Array], Array], starts: Array, terms: int = 1) -> Target:
    """That of a log density of one z (p,), written for JAX."""
    return Target(jax.vmap(log_density), starts, terms)


class Points(NamedTuple):
    """Weighted points of a posterior, with weights that sum to one, and the marginals of an integration."""

    z: AnyArray  # (N, p)
    weights: AnyArray  # (N,)
    error: AnyArray  # numerical error of the moments, in posterior standard deviations
    marginals: Marginal | None = None  # of all parameters, along the first axis of its arrays; None for draws
    density_error: AnyArray | float = 0.0  # of what was integrated, in posterior standard deviations
    mass_error: AnyArray | float = 0.0  # probability that may have been lost or counted twice
    missed: AnyArray | float = 0.0  # what modes that were left out would move, in posterior standard deviations
    doubt: AnyArray | float = 0.0  # on average, what the share of a target takes away of the points that it keeps
    status: AnyArray | int = 0
    diagnostics: dict[str, Array] | None = None  # of Markov chains


class Summary(NamedTuple):
    """Per parameter: mean, sd and the quantiles at PROBABILITIES; and the largest numerical error of them all."""

    mean: AnyArray  # (p,)
    sd: AnyArray  # (p,)
    quantiles: AnyArray  # (p, 3)
    error: AnyArray  # in posterior standard deviations


@np.errstate(all="ignore")
def summarise(points: Points, from_line: Callable[[AnyArray], AnyArray]) -> Summary:
    """The posterior summary of theta = from_line(z)."""
    xp, probabilities = namespace_of(points.weights), np.asarray(PROBABILITIES)
    if points.marginals is None:
        mean, sd = moments(from_line(points.z).T, points.weights)
        return Summary(mean, sd, from_line(quantiles(points, probabilities)).T, points.error)
    z, density = lattice_quantiles(points.marginals, probabilities)
    _, line_sd = points.marginals.moments()
    on_line, weights = points.marginals.flat()
    mean, sd = moments(from_line(on_line.T).T, weights)
    at_the_ends = xp.minimum(density[:, 0], density[:, -1]) * line_sd
    errors = (points.mass_error + points.marginals.blur) / at_the_ends
    return Summary(mean, sd, from_line(z.T).T, xp.maximum(points.error, xp.max(errors)))


def quantiles(points: Points, probabilities: np.ndarray) -> AnyArray:
    """Marginal quantiles on the line (len(probabilities), p)."""
    if points.marginals is None:
        return sample_quantiles(points.z, points.weights, probabilities)
    return lattice_quantiles(points.marginals, probabilities)[0].T


def sample_quantiles(z: AnyArray, weights: AnyArray, probabilities: np.ndarray) -> AnyArray:
    """Those of every column of weighted points (N, p)."""
    xp = namespace_of(z)
    order = xp.argsort(z, axis=0)
    ordered, heavy = xp.take_along_axis(z, order, axis=0), weights[order]
    mass = xp.cumsum(heavy, axis=0) - heavy / 2
    columns = [xp.interp(probabilities, mass[:, j], ordered[:, j]) for j in range(z.shape[1])]
    return xp.stack(columns, axis=-1)


@np.errstate(all="ignore")
def marginal_density(points: Points, parameter: int | AnyArray, grid: AnyArray) -> AnyArray:
    """The density of one coordinate z_j on a grid: the lattices' series, or a kernel estimate from draws."""
    if points.marginals is not None:
        _, density = points.marginals.of(parameter).evaluate(grid)
        return namespace_of(density).maximum(density, 0.0)
    return density_on_line(points.z[:, parameter], points.weights, grid)
