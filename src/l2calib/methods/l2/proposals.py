"""Points of the posterior from its expansions: proposals that are right where the model bends in its parameters only.

Given rho and the slopes of an anchor, u = Q' (eta(theta) - eta(anchor)), what of the model's move lies along these
slopes, has a t distribution. Points of it are taken back to theta by Newton's method, and weighed by what the density
is beside it: under the volume of the model's functions, with a model that is linear in any functions of its parameters,
all of them weigh the same. Each point stands for one rho, so that it costs one term of the sum over rho.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import fdtri, ndtri

from l2calib.methods.l2.minimiser import fitted, is_minimum
from l2calib.methods.l2.rho import Anchors, Likelihoods, of_dimension
from l2calib.methods.l2.view import Response, View, modelled_at
from l2calib.numerics.modes import Modes
from l2calib.numerics.namespace import AnyArray, largest, log_sum_exp, loops_of, namespace_of, softmax
from l2calib.numerics.small_matrices import cholesky, diagonal, lower_solve, solve
from l2calib.numerics.spread import kronecker
from l2calib.numerics.t_distribution import t_distribution
from l2calib.posterior.points import Weighed
from l2calib.problem.prior import Prior
from l2calib.process.projected_bias import Expansion, Looked, Nodes, Slopes, bias_in_span, node_terms

_COMPONENTS = 32  # the heaviest pairs of a node and an anchor
_LEAST_MASS = 1e-5  # of a component that has a slot whatever the others have
_SLOTS = 64  # groups of points with one component each
# Radii of a slot, by parameters and levels; at each are two points per parameter.
_RADII: tuple[tuple[int, ...], ...] = ((), (8, 32), (4, 16), (4, 16))
_STEPS = 16  # back to theta
_LONGEST = 1.5  # of a step in z
_LINE_LIMIT = 8.0  # of z: beyond, a normal distribution function has no digits left
_ARRIVED = 1e-4  # in sd: so far u may be missed
_OUTSIDE = 4.0  # of z: what is sought from there and was not found is beyond the prior
_DAMPING, _FIRST_DAMPING, _LAST_DAMPING = 1e-12, 1e-2, 1e4  # relative, of the steps


def deviates(p: int, freedom: float) -> tuple[np.ndarray, ...]:
    """Those of every level; see `weighed_points`."""
    return tuple(_deviates(p, freedom, radii) for radii in of_dimension(_RADII, p))


def _deviates(p: int, freedom: float, radii: int) -> np.ndarray:
    """Points (N, p) with the density (1 + |t|^2)^(-(freedom + p) / 2), slot by slot.

    At every radius a slot has the ends of a frame of axes, so that first and second moments are right in every slot.
    """
    rank = np.arange(_SLOTS * radii)
    unit = kronecker(rank.size, p * p + 1)
    frames, _ = np.linalg.qr(ndtri(unit[:, 1:]).reshape(-1, p, p))
    level = (rank % radii + unit[:, 0]) / radii
    radius = np.sqrt(p / freedom * fdtri(p, freedom, level))
    ends = radius[:, None, None] * np.concatenate([frames, -frames], axis=1)
    return np.asarray(ends.reshape(-1, p))


class Posterior(NamedTuple):
    """What is known of one y: see `projected_bias`."""

    prior: Prior
    view: View
    response: Response
    nodes: Nodes
    log_weight: AnyArray
    modes: Modes
    anchors: Anchors
    expansions: Expansion  # (G + 1, A)
    minima: AnyArray
    low: AnyArray  # thetas (L, p) at which the sum of squares is low, wherever they are
    likelihoods: Likelihoods


class _Components(NamedTuple):
    """The heaviest pairs of a node and an anchor: (C,)."""

    node: AnyArray
    anchor: AnyArray
    expansion: Expansion
    mass: AnyArray  # with a sum of one
    left_out: AnyArray


def _components(known: Posterior) -> _Components:
    xp, anchors = namespace_of(known.modes.centres), known.anchors
    usable = xp.isfinite(known.modes.log_mass) & xp.all(anchors.slopes.moves, axis=1)
    log_mass = xp.where(usable, known.expansions.log_mass(), -np.inf)
    log_mass = xp.where(xp.isnan(log_mass), -np.inf, log_mass)
    # Anchors divide the posterior as their modes do.
    of_anchor = log_sum_exp(log_mass, axis=0)
    of_anchor = xp.where(usable, known.modes.log_mass - of_anchor, 0.0)
    log_mass = (log_mass + of_anchor).reshape(-1)
    heaviest, index = largest(log_mass, min(_COMPONENTS, log_mass.shape[0]))
    left_out = 1 - xp.exp(log_sum_exp(heaviest, axis=0) - log_sum_exp(log_mass, axis=0))
    each = Expansion(*(part.reshape(-1, *part.shape[2:])[index] for part in known.expansions))
    number = anchors.z.shape[0]
    return _Components(index // number, index % number, each, softmax(heaviest), left_out)


@np.errstate(all="ignore")
def gaussians(known: Posterior) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The components on the line, the modes, and where else models fit: centres, factors and log masses."""
    xp, some = namespace_of(known.modes.centres), _components(known)
    slope = xp.exp(known.prior.log_slope(known.anchors.z))[some.anchor]
    root = known.anchors.slopes.inverse_root[some.anchor] / slope[:, :, None]
    centre = known.anchors.z[some.anchor] + xp.sum(root * some.expansion.centre[:, None, :], axis=2)
    freedom = known.view.observations - centre.shape[1]
    spread = xp.matmul(root, some.expansion.root) * xp.sqrt(some.expansion.square / freedom)[:, None, None]
    factor = cholesky(xp.matmul(spread, xp.swapaxes(spread, 1, 2)))
    sound = xp.all(xp.isfinite(factor), axis=(1, 2)) & xp.all(xp.abs(centre) < _LINE_LIMIT, axis=1)
    sound = sound & xp.all(diagonal(factor) > 0, axis=1)
    log_mass = xp.where(sound & (some.mass > 0), xp.log(some.mass), -np.inf)
    modes = known.modes.log_mass - log_sum_exp(known.modes.log_mass, axis=0)
    fits, of_fits, mass_of_fits = fitted(known.prior, known.view, known.response, known.prior.to_line(known.low))
    return (
        xp.concatenate([known.modes.centres, xp.where(sound[:, None], centre, known.modes.centres[0]), fits]),
        xp.concatenate([known.modes.factors, xp.where(sound[:, None, None], factor, known.modes.factors[0]), of_fits]),
        xp.concatenate([modes, log_mass, mass_of_fits]),
    )


@np.errstate(all="ignore")
def weighed_points(known: Posterior, level: int) -> Weighed:
    """The points of all slots, at a finer level more of them."""
    prior, view = known.prior, known.view
    some, p = _components(known), prior.dimension
    xp, number = namespace_of(some.mass), some.mass.shape[0]
    first = np.arange(_SLOTS) % number
    has_one = (np.arange(_SLOTS) < number) & (some.mass[first] > _LEAST_MASS)
    by_mass = (xp.cumsum(~has_one) - 0.5) / xp.sum(~has_one)  # of the slots that go by mass
    owner = xp.where(has_one, first, xp.minimum(xp.searchsorted(xp.cumsum(some.mass), by_mass), number - 1))
    slots_of = xp.sum(owner == np.arange(number)[:, None], axis=1)
    t = view.deviates[level].reshape(_SLOTS, -1, p)
    each = t.shape[1]
    base = xp.repeat((some.mass / slots_of)[owner] / each, each)
    own = Expansion(*(part[owner] for part in some.expansion))
    away = xp.sum(own.root[:, None] * t[:, :, None, :], axis=3) * xp.sqrt(own.square)[:, None, None]
    u = own.centre[:, None] + away
    anchor = some.anchor[owner]
    z, arrived = _found(known, anchor, own, u)
    theta = prior.from_line(z.reshape(-1, p))
    modelled, slopes = modelled_at(prior, view, theta)
    node = some.node[owner]
    look = _looked(known, node, modelled, slopes)
    log_density = look.log_density + known.likelihoods.log_measure(slopes, theta)
    q = known.anchors.slopes.at_nodes[anchor][:, None]  # (S, 1, l, p)
    turned = xp.matmul(xp.swapaxes(q, 2, 3), slopes.at_nodes.reshape(_SLOTS, each, *slopes.at_nodes.shape[1:]))
    turned = turned.reshape(-1, p, p)
    log_turned = xp.sum(xp.log(diagonal(cholesky(xp.matmul(xp.swapaxes(turned, 1, 2), turned)))), axis=1)
    expected = own.peak[:, None] - view.observations / 2 * xp.log1p(xp.sum(t**2, axis=2))
    shares = known.modes.log_shares(xp.moveaxis(z, 2, 0))  # (A, S, K)
    of_anchor = xp.take_along_axis(shares, anchor[None, :, None], axis=0)[0]
    log_weight = xp.log(base) + log_density - expected.reshape(-1) - log_turned - slopes.log_volume
    log_weight = log_weight + of_anchor.reshape(-1)
    arrived = arrived.reshape(-1)
    usable = arrived & xp.isfinite(log_weight)
    astray = xp.sum(xp.where(~arrived & xp.all(xp.abs(z.reshape(-1, p)) < _OUTSIDE, axis=1), base, 0.0))
    place, standard = _places(known, some, anchor, u)
    return Weighed(
        z=z.reshape(-1, p),
        base=base,
        log_weight=xp.where(usable, log_weight, -np.inf),
        log_share=xp.where(_are_minima(known, node, theta, slopes, look), 0.0, -np.inf),
        place=place,
        standard=standard,
        lost=some.left_out + astray,
        strata=(_SLOTS, each // (2 * p)),
    )


class _Search(NamedTuple):
    """Where the points are on the line, what is left to go there and the slopes of u; and how far steps are trusted."""

    z: AnyArray  # (S, K, p)
    left: AnyArray  # (S, K, p)
    along: AnyArray  # (S, K, p, p)
    damping: AnyArray  # (S, K)
    moving: AnyArray
    taken: AnyArray


def _found(known: Posterior, anchor: AnyArray, own: Expansion, u: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Where on the line the model moves by u (S, K, p) along the slopes of anchors (S,), and whether that was found.

    By Levenberg and Marquardt's method. Where the prior ends before the model has moved so far, it ends there.
    """
    prior, view, (slots, each, p) = known.prior, known.view, u.shape
    xp = namespace_of(u)
    q, origin = known.anchors.slopes.at_nodes[anchor], known.anchors.at_nodes[anchor][:, None]
    allowed = (_ARRIVED**2 * own.square / (view.observations - p))[:, None]

    def look(z: AnyArray) -> tuple[AnyArray, AnyArray]:
        """What is left to go, and the slopes of u along z."""
        rows = z.reshape(-1, p)
        values, slopes = view.at_nodes.with_slopes(prior.from_line(rows))
        slopes = slopes * xp.exp(prior.log_slope(rows))[:, None, :]
        moved = values.reshape(slots, each, -1) - origin
        along = xp.matmul(xp.swapaxes(q, 1, 2)[:, None], slopes.reshape(slots, each, -1, p))
        return u - xp.matmul(moved, q), along

    def far(left: AnyArray) -> AnyArray:
        """Squared distances, in the units of each slot's proposals."""
        return xp.sum(lower_solve(own.root[:, None], left) ** 2, axis=2)

    def step(search: _Search) -> _Search:
        gram = xp.matmul(xp.swapaxes(search.along, 2, 3), search.along)
        gram = gram * (1 + search.damping[..., None, None] * np.eye(p))
        right = xp.sum(search.along * search.left[..., None], axis=2)
        move = solve(gram.reshape(-1, p, p), right.reshape(-1, p)).reshape(u.shape)
        move = xp.clip(xp.where(xp.isfinite(move), move, 0.0), -_LONGEST, _LONGEST)
        z = xp.clip(search.z + move, -_LINE_LIMIT, _LINE_LIMIT)
        left, along = look(z)
        distance = far(left)
        better = search.moving & (distance < far(search.left))
        z = xp.where(better[..., None], z, search.z)
        damping = xp.where(better, search.damping / 10, 10 * search.damping + _FIRST_DAMPING)
        moving = search.moving & ~(better & (distance <= allowed)) & xp.all(xp.abs(z) < _LINE_LIMIT, axis=2)
        return _Search(
            z,
            xp.where(better[..., None], left, search.left),
            xp.where(better[..., None, None], along, search.along),
            xp.maximum(damping, _DAMPING),
            moving & (damping < _LAST_DAMPING),
            search.taken + 1,
        )

    def unsettled(search: _Search) -> AnyArray:
        return xp.any(search.moving) & (search.taken < _STEPS)

    start = xp.broadcast_to(known.anchors.z[anchor][:, None], u.shape)
    left, along = look(start)
    nothing = xp.full(u.shape[:2], _DAMPING)
    search = _Search(start, left, along, nothing, xp.ones(u.shape[:2], dtype=bool), xp.asarray(0))
    search = loops_of(u).while_loop(unsettled, step, search)
    return search.z, far(search.left) <= allowed


class _LookedAt(NamedTuple):
    """Points of slots, each at the node of its slot."""

    nodes: Nodes
    slopes: Slopes
    looked: Looked
    log_density: AnyArray  # without the measure on theta (N,)


def _looked(known: Posterior, node: AnyArray, modelled: AnyArray, slopes: Slopes) -> _LookedAt:
    xp, number, slots = namespace_of(modelled), known.log_weight.shape[0], node.shape[0]
    own = xp.minimum(node, number - 1)
    nodes = Nodes(*(part[own] for part in known.nodes))
    by_slot = Slopes(*(part.reshape(slots, -1, *part.shape[1:]) for part in slopes))
    looked = node_terms(nodes, modelled.reshape(slots, -1, modelled.shape[1]), by_slot, known.view.observations)
    process = known.likelihoods.of_process(looked.terms.log_likelihood, known.log_weight[own][:, None])
    none = known.likelihoods.of_square(known.response.square(modelled)).reshape(process.shape)
    return _LookedAt(nodes, by_slot, looked, xp.where(node[:, None] == number, none, process).reshape(-1))


def _are_minima(known: Posterior, node: AnyArray, theta: AnyArray, slopes: Slopes, look: _LookedAt) -> AnyArray:
    """Whether every theta is the minimiser under the bias of its node (N,)."""
    xp = namespace_of(theta)
    bias = xp.swapaxes(bias_in_span(look.nodes, look.slopes, look.looked), 1, 2)  # (S, K, l)
    bias = bias.reshape(1, len(theta), -1).swapaxes(1, 2)
    kept = is_minimum(known.view, known.minima, theta, slopes, bias)[0]
    without = xp.repeat(node == known.log_weight.shape[0], len(theta) // node.shape[0])
    return kept | without


def _places(known: Posterior, some: _Components, anchor: AnyArray, u: AnyArray) -> tuple[AnyArray, AnyArray]:
    """For each parameter, as if it went straight with u: the proposals' distribution function, and in their sd."""
    xp, p = namespace_of(u), u.shape[2]
    origin, inverse_root = known.prior.from_line(known.anchors.z), known.anchors.slopes.inverse_root
    here = origin[anchor][:, None] + xp.sum(inverse_root[anchor][:, None] * u[:, :, None, :], axis=3)
    here = here.reshape(-1, p)
    centre = origin[some.anchor] + xp.sum(inverse_root[some.anchor] * some.expansion.centre[:, None, :], axis=2)
    spread = xp.matmul(inverse_root[some.anchor], some.expansion.root)
    scale = xp.sqrt(xp.sum(spread**2, axis=2) * some.expansion.square[:, None])  # (C, p)
    there = some.mass[:, None] > 0
    mass, centre, scale = some.mass[:, None], xp.where(there, centre, 0.0), xp.where(there, scale, 1.0)
    columns = []
    for j in range(p):
        relative = (here[:, j][:, None] - centre[:, j]) / scale[:, j]
        columns.append(t_distribution(known.view.t_table, relative) @ some.mass)
    mean = xp.sum(mass * centre, axis=0)
    freedom = xp.maximum(known.view.observations - p, 2.5)  # fewer have no variance
    variance = xp.sum(mass * (scale**2 / (freedom - 2) + (centre - mean) ** 2), axis=0)
    return xp.stack(columns, axis=1), (here - mean) / xp.sqrt(variance)
