"""A few rho with weights that do for all of their lattice, as far as theta sees it.

What theta sees of the lattice is a sum of smooth functions of theta, which a few nodes with weights of their own say as
well. With the slopes of one theta, an anchor, the likelihood at every rho is a t distribution in closed form
(`process.projected_bias.Expansion`), so that the sums at many references around it cost no more than that one theta.
The nodes are chosen by these sums, and checked at references of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtri

from l2calib.methods.l2.view import Response, View, modelled_at
from l2calib.numerics.derivatives import differences_of_rows
from l2calib.numerics.modes import Modes, survey_climbs
from l2calib.numerics.namespace import AnyArray, largest, log_sum_exp, loops_of, namespace_of
from l2calib.numerics.newton import climb
from l2calib.numerics.small_matrices import cholesky, inverse
from l2calib.numerics.sparse_weights import sparse_weights
from l2calib.numerics.spread import kronecker
from l2calib.problem.prior import Prior
from l2calib.process.lattice import Lattice
from l2calib.process.projected_bias import (
    Expansion,
    Nodes,
    Rotated,
    RotatedResponses,
    Slopes,
    expanded,
    node_terms,
    nodes_of,
    orthonormal_slopes,
)
from l2calib.process.spectrum import left_out_square

T = TypeVar("T")

_PSI_AT_ONCE = 4  # of the lattice: more fill no cache in a batch, fewer are slow in NumPy
_FEW = 12  # rho by which modes are looked for
_FIRST_SCALE = 0.1  # of differences, in sd of the prior; the climbs find their own
_STEPS = 12  # of the climbs
_MODES = 2
_CANDIDATES = 512  # rho that may become nodes
_TEMPER = 0.7  # of what rho carry, before these are taken evenly: tails are to be right as well
_SPREAD = 1.4  # of references, in sd, likewise
_LINE_LIMIT = 8.0  # of z: beyond, a normal distribution function has no digits left
_OFFSETS = (0.0, -2.0, 2.0)  # of the anchors of one parameter, in sd: what lies between is expanded about them
_FAR = 4  # anchors all over the prior of one parameter, where a tail must not be taken for a mode
_FAR_WEIGHT, _LEAST_WEIGHT = 0.05, 1e-3  # of references
_OF_MODE, _OF_OTHER = (8, 36, 44, 56), (8, 12, 14, 18)  # references of an anchor, by parameters
_CHECKED = (4, 8, 8, 8)  # of an anchor at the first mode, besides
_KAPPA_STRIDE = 4  # of the first look
_KEPT_PSI, _FEW_DATA = 144, 60  # of the grid of two inputs, unless few observations tell little of psi
_NODES = (28, 26, 28, 32)  # by parameters


def of_dimension(several: tuple[T, ...], p: int) -> T:
    """The entry for so many parameters."""
    return several[min(p, len(several)) - 1]


def number_of_nodes(p: int) -> int:
    """How many there are, for so many parameters."""
    return of_dimension(_NODES, p)


def number_of_references(p: int) -> int:
    """At how many thetas each of the lattice's rho is looked at."""
    of_modes = of_dimension(_OF_MODE, p) + (_MODES - 1) * of_dimension(_OF_OTHER, p)
    return of_modes * len(_OFFSETS) + _FAR if p == 1 else of_modes  # enough, for one


class Anchors(NamedTuple):
    """Thetas about which the likelihood is expanded, and the model there: its values and slopes at the nodes."""

    z: AnyArray  # (A, p)
    at_nodes: AnyArray  # (A, l)
    slopes: Slopes


class Chosen(NamedTuple):
    """Nodes of rho with the logs of their weights, and what these cost; and modes and expansions on the way."""

    nodes: Nodes
    log_weight: AnyArray  # prior, cells and weights (G,)
    error: AnyArray  # in posterior standard deviations
    modes: Modes
    starts: AnyArray  # where further ones may be, on the line
    anchors: Anchors
    expansions: Expansion  # at the nodes, and last without a process: (G + 1, A)
    psi: AnyArray  # the most probable
    kappa: AnyArray


class Likelihoods(NamedTuple):
    """The method's log joint densities of y: with a process, from log likelihoods and log weights; and without."""

    of_process: Callable[[AnyArray, AnyArray], AnyArray]
    of_square: Callable[[AnyArray], AnyArray]  # of the sum of squares that is left
    log_measure: Callable[[Slopes, AnyArray], AnyArray]


def choose_nodes(
    prior: Prior,
    view: View,
    lattice: Lattice,
    y: AnyArray,
    response: Response,
    likelihoods: Likelihoods,
    starts: AnyArray,
    best: AnyArray,
) -> Chosen:
    """See `Chosen`; `starts` (S, p) are low minima of the sum of squares on the line, `best` (1, p) is the lowest."""
    xp, p = namespace_of(y), prior.dimension
    kappas = np.arange(lattice.log_prior.shape[1])
    several, psi, lost = _modes(prior, view, lattice, y, response, likelihoods, starts, best)
    modes = Modes(*(each[:_MODES] for each in several))
    anchors, references = _anchors(prior, view, modes)
    expansions = _tabulated(prior, view, lattice, y, prior.from_line(anchors.z), psi, kappas)
    flat = Expansion(*(each.reshape(-1, *each.shape[2:]) for each in expansions))  # (R, A)
    log_prior = lattice.log_prior[psi].reshape(-1)
    rows, checked = _rows(prior, view, response, likelihoods, anchors, references, flat, log_prior)
    total = xp.sum(rows, axis=1)
    carried = xp.cumsum(xp.sum(rows, axis=0) ** _TEMPER)
    levels = (np.arange(_CANDIDATES) + 0.5) / _CANDIDATES
    candidates = xp.minimum(xp.searchsorted(carried, levels * carried[-1]), carried.size - 1)
    keep = of_dimension(_NODES, p)
    place, sparse = sparse_weights(rows[:, candidates], total, keep)
    column = candidates[place]
    error = _error_of_nodes(checked, column, sparse) + lost
    own_psi, own_kappa = psi[column // kappas.size], column % kappas.size
    nodes = nodes_of(*_rotated(lattice, own_psi, y), lattice.log_kappa[own_kappa])
    log_weight = log_prior[column] + xp.log(sparse)
    at_nodes = Expansion(*(each[column] for each in flat))
    without = _without_process(view, response, likelihoods, prior.from_line(anchors.z), anchors.slopes)
    joint = at_nodes._replace(peak=likelihoods.of_process(at_nodes.peak, log_weight[:, None]))
    both = Expansion(*(xp.concatenate([one, other[None]]) for one, other in zip(joint, without, strict=True)))
    likeliest = xp.argmax(flat.log_mass()[:, references[0].anchor] + log_prior)
    return Chosen(
        nodes=nodes,
        log_weight=log_weight,
        error=xp.where(xp.isfinite(error), error, np.inf),
        modes=modes,
        starts=several.centres,
        anchors=anchors,
        expansions=both,
        psi=xp.exp(lattice.spectrum.log_psi[psi[likeliest // kappas.size]]),
        kappa=xp.exp(lattice.log_kappa[likeliest % kappas.size]),
    )


def _modes(
    prior: Prior,
    view: View,
    lattice: Lattice,
    y: AnyArray,
    response: Response,
    likelihoods: Likelihoods,
    starts: AnyArray,
    best: AnyArray,
) -> tuple[Modes, AnyArray, AnyArray]:
    """Where the posterior is, by the few rho that are most probable about the best fit.

    And the psi that are, at most so many that they carry all but little, which is told.
    """
    xp = namespace_of(y)
    number, kappa = lattice.log_prior.shape[0], np.arange(0, lattice.log_prior.shape[1], _KAPPA_STRIDE)
    two_inputs = lattice.spectrum.log_psi.shape[1] == 2
    first = _tabulated(prior, view, lattice, y, best, np.arange(number), kappa)
    log_mass = first.log_mass()[:, :, 0] + lattice.log_prior[:, kappa]
    log_mass = xp.where(xp.isnan(log_mass), -np.inf, log_mass)
    by_psi, psi = largest(log_sum_exp(log_mass, axis=1), _KEPT_PSI if y.size >= _FEW_DATA and two_inputs else number)
    lost = 1 - xp.exp(log_sum_exp(by_psi, axis=0) - log_sum_exp(log_mass.reshape(-1), axis=0))
    heaviest, index = largest(log_mass.reshape(-1), _FEW)
    own_psi, own_kappa = index // kappa.size, xp.asarray(kappa)[index % kappa.size]
    few = nodes_of(*_rotated(lattice, own_psi, y), lattice.log_kappa[own_kappa])
    # All of the mass is theirs.
    carried = log_sum_exp(heaviest, axis=0) - log_sum_exp(log_mass.reshape(-1), axis=0)
    log_weight = lattice.log_prior[own_psi, own_kappa] + np.log(_KAPPA_STRIDE) - carried

    def about(z: AnyArray) -> AnyArray:
        theta = prior.from_line(z)
        modelled, slopes = modelled_at(prior, view, theta)
        found = node_terms(few, modelled, slopes, view.observations).terms.log_likelihood
        process = likelihoods.of_process(found, log_weight[:, None])
        both = xp.logaddexp(log_sum_exp(process, axis=0), likelihoods.of_square(response.square(modelled)))
        return both + likelihoods.log_measure(slopes, theta) + xp.sum(prior.log_slope(z), axis=-1)

    scale = xp.full(starts.shape, _FIRST_SCALE)
    modes = survey_climbs(climb(differences_of_rows(about), starts, scale, _STEPS)).largest(_MODES + 1)[0]
    return modes, psi, xp.maximum(lost, 0.0)


class _References(NamedTuple):
    """Where an anchor is looked at: offsets (J, p) from it in units of a factor, and what they weigh."""

    anchor: int
    factor: AnyArray  # (p, p)
    offsets: np.ndarray
    weight: AnyArray | float
    checked: np.ndarray  # further offsets, by which nodes are not chosen but checked
    checked_weights: np.ndarray


def _anchors(prior: Prior, view: View, modes: Modes) -> tuple[Anchors, list[_References]]:
    """The anchors and their references, those at the first mode first."""
    xp, p = namespace_of(modes.centres), prior.dimension
    number, others, checks = (of_dimension(each, p) for each in (_OF_MODE, _OF_OTHER, _CHECKED))
    own = xp.exp((modes.log_mass - xp.max(modes.log_mass)) / 2)
    weight = xp.where(xp.isfinite(modes.log_mass), xp.maximum(own, _LEAST_WEIGHT), 0.0)
    if p > 1:
        chosen, checked = _SPREAD * ndtri(kronecker(number, p)), ndtri(kronecker(number + checks, p)[number:])
        even, nothing = np.full(checks, 1 / checks), np.empty((0, p))
        of_modes = [_References(0, modes.factors[0], chosen, weight[0], checked, even)]
        of_modes += [
            _References(mode, modes.factors[mode], chosen[:others], weight[mode], nothing, np.empty(0))
            for mode in range(1, _MODES)
        ]
        return _at(prior, view, modes.centres), of_modes
    # Each anchor has what lies between it and its neighbours; the first is in the middle of the first mode.
    width, references = abs(_OFFSETS[1]) / 2, list[_References]()
    z: list[AnyArray] = []
    for mode in range(_MODES):  # a further one is looked at as a whole
        for shift in _OFFSETS[:1] if mode else _OFFSETS:
            across, count = (3 * width, others) if mode else (width, number)
            chosen = across * (2 * (np.arange(count) + 0.5) / count - 1)
            checked = np.empty(0) if mode else width * (2 * (np.arange(checks) + 0.3) / checks - 1)
            normal = np.exp(-((checked + shift) ** 2) / 2)
            factor = modes.factors[mode]
            references.append(_References(len(z), factor, chosen[:, None], weight[mode], checked[:, None], normal))
            z.append(modes.centres[mode] + factor[0] * shift)
    for far in ndtri((np.arange(_FAR) + 0.5) / _FAR):
        references.append(_References(len(z), np.eye(1), np.zeros((1, 1)), _FAR_WEIGHT, np.empty((0, 1)), np.empty(0)))
        z.append(xp.full(1, far))
    return _at(prior, view, xp.clip(xp.stack(z), -_LINE_LIMIT, _LINE_LIMIT)), references


def _at(prior: Prior, view: View, z: AnyArray) -> Anchors:
    theta = prior.from_line(z)
    _, at_design = view.at_design.with_slopes(theta)
    values, at_nodes = view.at_nodes.with_slopes(theta)
    return Anchors(z, values, orthonormal_slopes(at_nodes, at_design, prior.scale))


class _Checked(NamedTuple):
    """At references that the nodes were not chosen by: the logs of all terms, of no process, and weights."""

    process: AnyArray  # (J, R)
    none: AnyArray  # (J,)
    weights: AnyArray


def _rows(
    prior: Prior,
    view: View,
    response: Response,
    likelihoods: Likelihoods,
    anchors: Anchors,
    references: list[_References],
    flat: Expansion,
    log_prior: AnyArray,
) -> tuple[AnyArray, _Checked]:
    """The share of every rho in the density at the references (J, R), times their weights; and at those that check."""
    xp, p = namespace_of(log_prior), prior.dimension
    z = [
        anchors.z[each.anchor] + xp.sum(each.factor * np.concatenate([each.offsets, each.checked])[:, None, :], axis=2)
        for each in references
    ]
    theta = prior.from_line(xp.clip(xp.concatenate(z), -_LINE_LIMIT, _LINE_LIMIT))
    at_nodes = view.at_nodes.values(theta)
    none = likelihoods.of_square(response.square(view.at_design.values(theta)))
    process, chosen, weights, begin = [], [], [], 0
    for each in references:
        end = begin + len(each.offsets) + len(each.checked)
        u = (at_nodes[begin:end] - anchors.at_nodes[each.anchor]) @ anchors.slopes.at_nodes[each.anchor]
        own = Expansion(*(part[:, each.anchor][:, None] for part in flat))
        found = own.log_likelihood(u.reshape(-1, p), view.observations)  # (R, J)
        process.append(likelihoods.of_process(found, log_prior[:, None]))
        chosen.append(np.arange(begin, begin + len(each.offsets)))
        weights.append(xp.zeros(len(each.offsets)) + each.weight)
        begin = end
    all_terms, index = xp.concatenate(process, axis=1).T, np.concatenate(chosen)
    checking = np.setdiff1d(np.arange(begin), index)
    own_terms, own_none = all_terms[index], none[index]
    total = xp.logaddexp(log_sum_exp(own_terms, axis=1), own_none)
    total = xp.where(xp.isfinite(total), total, np.inf)  # a theta without a likelihood asks for nothing
    rows = xp.exp(own_terms - total[:, None]) * xp.concatenate(weights)[:, None]
    sure = np.concatenate([each.checked_weights for each in references])
    return rows, _Checked(all_terms[checking], none[checking], sure / sure.sum())


def _error_of_nodes(checked: _Checked, column: AnyArray, sparse: AnyArray) -> AnyArray:
    """How far the log density varies that nodes leave out: what moves a posterior, in its standard deviations."""
    xp = namespace_of(sparse)
    exact = xp.logaddexp(log_sum_exp(checked.process, axis=1), checked.none)
    ours = xp.logaddexp(log_sum_exp(checked.process[:, column] + xp.log(sparse), axis=1), checked.none)
    wrong = xp.where(xp.isfinite(exact), ours - exact, 0.0)
    return xp.sqrt(xp.sum(checked.weights * (wrong - xp.sum(checked.weights * wrong)) ** 2))


def _without_process(
    view: View, response: Response, likelihoods: Likelihoods, theta: AnyArray, slopes: Slopes
) -> Expansion:
    """The expansion of the likelihood without a process (A,)."""
    xp, t = namespace_of(theta), slopes.at_design
    p = t.shape[2]
    residual = response.values - view.at_design.values(theta)
    nothing = xp.where(slopes.moves, 0.0, 1.0)[:, :, None] * np.eye(p)
    gram = xp.matmul(xp.swapaxes(t, 1, 2), t) + nothing
    covariance = inverse(gram)
    along = xp.sum(t * residual[:, :, None], axis=1)
    centre = xp.sum(covariance * along[:, None, :], axis=2)
    least = xp.sum(residual**2, axis=1) + response.outside - xp.sum(centre * along, axis=1)
    return Expansion(likelihoods.of_square(least), centre, cholesky(covariance), least)


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


def _tabulated(
    prior: Prior, view: View, lattice: Lattice, y: AnyArray, theta: AnyArray, psi: AnyArray, kappa: np.ndarray
) -> Expansion:
    """About rows of theta (A, p), at some psi and kappa of the lattice: (P, K, A)."""
    xp, (anchors, p) = namespace_of(y), theta.shape
    modelled, slopes = modelled_at(prior, view, theta)
    kappas = xp.broadcast_to(xp.exp(lattice.log_kappa[kappa]), (_PSI_AT_ONCE, kappa.size))

    def at_psi(index: AnyArray) -> AnyArray:
        rotated, responses = _rotated(lattice, index, y)
        found = expanded(rotated, responses, kappas, modelled, slopes, view.observations)
        parts = [found.peak[..., None], found.square[..., None], found.centre]
        return xp.concatenate([*parts, found.root.reshape(*found.peak.shape, p * p)], axis=-1)

    blocks = -(-psi.size // _PSI_AT_ONCE)
    index = xp.asarray(psi)[np.minimum(np.arange(blocks * _PSI_AT_ONCE), psi.size - 1)].reshape(blocks, _PSI_AT_ONCE)
    found = loops_of(y).map(at_psi, index)
    found = found.reshape(-1, kappa.size, anchors, 2 + p + p * p)[: psi.size]
    peak, square = found[..., 0], found[..., 1]
    peak = xp.where(xp.isnan(peak), -np.inf, peak)
    return Expansion(peak, found[..., 2 : 2 + p], found[..., 2 + p :].reshape(*peak.shape, p, p), square)
