"""Integration of a posterior that is a sum of simple densities, each on a lattice of its own (decision 14).

A posterior in which rho is integrated is a sum over rho, and given rho it is about a t distribution: a component. On a
lattice in the coordinates of a Gaussian that is fitted to it, a component is integrated with few points, each of which
needs one term of the sum where the posterior itself needs all of them; and the heavy tails of the sum are light tails
of a wide component. As in the integration of a posterior as a whole (`turns`), parameters take turns, so that every
marginal comes from regular lattices.

A component may have several modes: each has a lattice, and they share the component among them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.engines.integrate.across import Rule, lattice
from l2calib.engines.integrate.errors import SIXTH, turn_errors
from l2calib.engines.integrate.ridge import Knots, straight_charts
from l2calib.engines.integrate.shares import not_nan
from l2calib.engines.modes import Modes, Survey
from l2calib.errors import Status
from l2calib.numerics.derivatives import differences_of_rows
from l2calib.numerics.namespace import AnyArray, largest, log_sum_exp, namespace_of, placed, softmax
from l2calib.numerics.newton import climb, laplace
from l2calib.numerics.small_matrices import diagonal, lower_solve
from l2calib.posterior.axes import Stretched
from l2calib.posterior.points import Components, Points, Target
from l2calib.posterior.series import lattice_marginal

_MODES = 3
_FURTHER = 6  # modes of components, besides the largest of each
_LOOKS = 2  # from where modes are about
_STEPS = 8  # of the climbs in components, which begin at modes of the posterior
_SAME = 4.0  # squared distance of summits that are one mode, in sd
_BEND = 2.0
_LOOKED_AT = 64  # points at which it is asked how sure a minimum is


class _Level(NamedTuple):
    knots: Knots
    rule: Rule
    shared: int  # how many points of a lattice, the heaviest, are asked for their share


def _level(dimension: int, spacing: float, half: int, inner_spacing: float, reach: float, shared: int) -> _Level:
    knots = Knots(half, spacing, _BEND, far=False)
    return _Level(knots, lattice(dimension - 1, inner_spacing, reach, _BEND), shared)


LEVELS = {
    2: (_level(2, 0.6, 10, 1.2, 4.9, 160), _level(2, 0.4, 18, 0.8, 5.6, 500)),
    3: (_level(3, 0.6, 10, 1.2, 4.9, 300), _level(3, 0.45, 16, 1.0, 5.6, 1600)),
    4: (_level(4, 0.7, 9, 1.4, 4.9, 900), _level(4, 0.55, 12, 1.2, 5.3, 4800)),
}


def lattices_of(number: int) -> int:
    """How many lattices there are for so many components."""
    return number + _FURTHER


def points_per_lattice(dimension: int, level: int) -> int:
    """In all turns together."""
    chosen = LEVELS[dimension][level]
    return dimension * chosen.knots.values.size * chosen.rule.log_weights.size


@np.errstate(all="ignore")
def survey_starts(target: Target) -> Survey:
    """Gaussians at the starts, which are about modes."""
    xp = namespace_of(target.starts)
    scale = xp.broadcast_to(target.scale, target.starts.shape)
    centres, factors, log_mass = laplace(climb(target.jet, target.starts, scale, _LOOKS))
    return Survey(centres, factors, xp.where(xp.isnan(log_mass), -np.inf, log_mass))


class _Several(NamedTuple):
    """M modes of each of C components: (C, M, p), (C, M, p, p), and the logs of their masses (C, M)."""

    centres: AnyArray
    factors: AnyArray
    log_mass: AnyArray


def _modes_of(components: Components, modes: Modes) -> _Several:
    """Where the climbs in every component end, from modes of the posterior.

    Far out on a t distribution there is no curvature to climb by: it is climbed by the quadratic form of which it is a
    power.
    """
    xp = namespace_of(modes.centres)
    number, (several, p) = components.number, modes.centres.shape
    every = np.arange(number)

    def density(rows: AnyArray) -> AnyArray:
        return components.log_density(every, rows.reshape(number, -1, p)).reshape(-1)

    def of_all(each: AnyArray) -> AnyArray:
        return xp.broadcast_to(each, (number, *each.shape)).reshape(number * several, *each.shape[1:])

    starts, scale = of_all(modes.centres), of_all(modes.conditional_sd)
    heights = density(starts)

    def square(rows: AnyArray) -> AnyArray:
        """Minus what of a t distribution is a quadratic form, in units of its value at the start."""
        gain = density(rows).reshape(number * several, -1) - heights[:, None]
        return -xp.exp(-gain / components.power).reshape(-1)

    near = climb(differences_of_rows(square), starts, scale, _STEPS)
    summits = climb(differences_of_rows(density), near.z, scale, _LOOKS)
    centres, factors, log_mass = laplace(summits)
    log_mass = xp.where(xp.isfinite(log_mass) & xp.isfinite(of_all(modes.log_mass)), log_mass, -np.inf)
    centres, factors = centres.reshape(number, several, p), factors.reshape(number, several, p, p)
    log_mass = log_mass.reshape(number, several)
    for m in range(1, several):
        white = lower_solve(factors[:, :m], centres[:, m][:, None] - centres[:, :m])
        copy = (xp.sum(white**2, axis=2) < _SAME) & xp.isfinite(log_mass[:, :m])
        distinct = xp.where(xp.any(copy, axis=1), -np.inf, log_mass[:, m])
        log_mass = xp.concatenate([log_mass[:, :m], distinct[:, None], log_mass[:, m + 1 :]], axis=1)
    return _Several(centres, factors, log_mass)


def _chosen(several: _Several) -> tuple[AnyArray, Modes]:
    """The largest mode of every component and the largest of the others: their components (E,) and Gaussians."""
    xp = namespace_of(several.log_mass)
    number, modes = several.log_mass.shape
    best = xp.argmax(several.log_mass, axis=1)
    others = xp.where(np.arange(modes) == best[:, None], -np.inf, several.log_mass).reshape(-1)
    _, further = largest(others, _FURTHER)
    index = xp.concatenate([np.arange(number) * modes + best, further])
    p = several.centres.shape[2]
    log_mass = xp.concatenate([several.log_mass.reshape(-1)[index[:number]], others[further]])
    # A copy of the largest, without mass, fills the place of what is no mode.
    filled = xp.where(xp.isfinite(log_mass), index, xp.argmax(several.log_mass.reshape(-1)))
    centres, factors = several.centres.reshape(-1, p)[filled], several.factors.reshape(-1, p, p)[filled]
    return index // modes, Modes(centres, factors, log_mass)


def _log_share_of_mode(several: _Several, owner: AnyArray, chosen: Modes, z: AnyArray) -> AnyArray:
    """The share of each lattice's Gaussian in the mixture of its component, at its own points z (E, N, p): (E, N)."""
    xp = namespace_of(z)

    def log_bells(centres: AnyArray, factors: AnyArray, log_mass: AnyArray) -> AnyArray:
        white = lower_solve(factors[:, None], z - centres[:, None])
        log_peak = log_mass - xp.sum(xp.log(diagonal(factors)), axis=-1)
        return not_nan(log_peak[:, None] - xp.sum(white**2, axis=2) / 2)

    own = log_bells(chosen.centres, chosen.factors, chosen.log_mass)
    of_component = (each[owner] for each in several)
    centres, factors, log_mass = of_component
    all_modes = [log_bells(centres[:, m], factors[:, m], log_mass[:, m]) for m in range(log_mass.shape[1])]
    return own - log_sum_exp(xp.stack(all_modes), axis=0)


@np.errstate(all="ignore")
def points_of_components(target: Target, survey: Survey, level: int) -> Points:
    """Weighted points with the marginals of all parameters, each from its own turn."""
    components = target.components
    assert components is not None
    p = target.starts.shape[1]
    knots, rule, shared = LEVELS[p][level]
    modes, missed = survey.largest(_MODES)
    several = _modes_of(components, modes)
    owner, chosen = _chosen(several)
    charts = straight_charts(chosen, np.arange(p), knots)
    places, log_weights = charts.around_knots(knots, rule)  # (T, E, K, R)
    xp, shape = namespace_of(log_weights), log_weights.shape
    z = xp.stack(places, axis=-1)
    by_lattice = xp.moveaxis(z, 1, 0).reshape(shape[1], -1, p)
    log_density = components.log_density(owner, by_lattice)
    log_density = log_density + _log_share_of_mode(several, owner, chosen, by_lattice)
    usable = xp.isfinite(chosen.log_mass)[:, None] & xp.all(xp.isfinite(by_lattice), axis=2)
    log_weights = log_weights + xp.moveaxis(log_density.reshape(shape[1], shape[0], *shape[2:]), 0, 1)
    usable = xp.moveaxis(usable.reshape(shape[1], shape[0], *shape[2:]), 0, 1)
    log_weights = xp.where(usable, not_nan(log_weights), -np.inf)
    unasked = 0.0
    if components.log_share is not None:
        log_weights, unasked = _shared(components, owner, by_lattice, log_weights, shared)
    weights = softmax(log_weights.reshape(p, -1)).reshape(shape)
    along, z_along = xp.sum(weights, axis=3), charts.outer.at(knots, knots.values)
    log_masses = log_sum_exp(log_weights.reshape(p, -1), axis=1)
    # Components are near the Gaussians that are fitted to them, so that errors fall faster than those of a posterior.
    error, mass_error = turn_errors(knots, rule, z_along, weights, log_masses, SIXTH)
    centre, scale, stretch = (part[..., 0] for part in charts.outer)
    axis = Stretched(centre, knots.bend * scale, stretch * knots.reach / knots.bend)
    flat, own = xp.where(xp.isfinite(z[0]), z[0], 0.0).reshape(-1, p), weights[0].reshape(-1)
    error = xp.maximum(error, missed)
    return Points(
        z=flat,
        weights=own,
        error=xp.where(xp.isnan(error), np.inf, error),
        marginals=lattice_marginal(z_along, along, axis, Stretched.step(knots.spacing, knots.reach)),
        mass_error=mass_error + unasked,
        missed=missed,
        doubt=0.0 if target.log_share is None else _doubt(target, flat, own),
        status=_status(weights),
    )


def _status(weights: AnyArray) -> AnyArray:
    xp = namespace_of(weights)
    return xp.where(xp.all(xp.isfinite(weights)), 0, int(Status.NOT_FINITE))


def _shared(
    components: Components, owner: AnyArray, by_lattice: AnyArray, log_weights: AnyArray, number: int
) -> tuple[AnyArray, AnyArray]:
    """The log weights (T, E, K, R) with the shares of each lattice's heaviest points, and what the rest may lack."""
    assert components.log_share is not None
    xp, shape = namespace_of(log_weights), log_weights.shape
    rows = xp.moveaxis(log_weights, 1, 0).reshape(shape[1], -1)
    _, heaviest = largest(rows, min(number, rows.shape[1]))
    log_share = not_nan(components.log_share(owner, xp.take_along_axis(by_lattice, heaviest[..., None], axis=1)))
    # The others have what the lightest of these have.
    few = max(1, heaviest.shape[1] // 4)
    taken = 1 - xp.mean(xp.exp(log_share[:, -few:]), axis=1, keepdims=True)
    log_share_of_all = placed(xp.log1p(-taken) + xp.zeros_like(rows), heaviest, log_share)
    is_asked = placed(xp.zeros_like(rows), heaviest, xp.ones_like(log_share)) > 0
    total = softmax((rows + log_share_of_all).reshape(-1)).reshape(rows.shape)
    rest = xp.sum(xp.where(is_asked, 0.0, total * taken))
    together = (rows + log_share_of_all).reshape(shape[1], shape[0], *shape[2:])
    return xp.moveaxis(together, 0, 1), rest


def _doubt(target: Target, z: AnyArray, weights: AnyArray) -> AnyArray:
    """What shares leave open at the points that they keep, from some of these; see `Points.doubt`."""
    assert target.log_share is not None
    xp = namespace_of(weights)
    below = xp.cumsum(weights)
    chosen = xp.searchsorted(below, below[-1] * (np.arange(_LOOKED_AT) + 0.5) / _LOOKED_AT)
    return 1 - xp.mean(xp.exp(target.log_share(z[xp.minimum(chosen, len(weights) - 1)])))
