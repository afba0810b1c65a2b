"""Whether theta is the minimiser of the distance to a mu, where the minimisers of one are, and where models fit y."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from l2calib.methods.l2.view import Response, View
from l2calib.numerics.derivatives import OfRows, differences_of_rows
from l2calib.numerics.namespace import AnyArray, loops_of, namespace_of
from l2calib.numerics.newton import climb
from l2calib.numerics.small_matrices import cholesky, diagonal, inverse, solve
from l2calib.problem.prior import Prior
from l2calib.process.projected_bias import Slopes

_CURVE_STEP = 1e-4  # of second differences of the model, in its own size: half of the digits
_NEARER = 1e-9  # of a squared distance, relative: less is rounding
_POLISH = 12  # steps of Newton's method
_FIRST_SCALE = 0.1  # of differences, in sd of the prior; the climbs find their own
_FITTING_STEPS = 12  # of Levenberg and Marquardt's method
_FIRST_DAMPING, _EASIER, _HARDER = 1e-3, 0.2, 8.0
_LONGEST = 1.5  # of a step on the line
_LINE_LIMIT = 6.0  # of z


def is_minimum(view: View, minima: AnyArray, theta: AnyArray, slopes: Slopes, bias: AnyArray) -> AnyArray:
    """Whether theta minimises the distance to the model there plus a bias, for every bias (G, l, N): (G, N).

    It does where the Hessian, I - sum_l z_l d2 c_l along the orthonormal directions, by differences of the model, is
    positive definite, and no other low minimum, where the model is a row of `minima` (C, l), is closer.
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
    found = functools.reduce(xp.logical_and, [pivot > 0 for pivot in _pivots(hessian, p)])
    allowed = -_NEARER * xp.sum(here**2, axis=1)
    for other in range(minima.shape[0]):
        away = (here - minima[other]).T
        # |mu - eta'|^2 - |mu - eta|^2
        gain = xp.sum(away**2, axis=0) + 2 * xp.sum(bias * away, axis=1)
        found = found & (gain >= allowed)
    return found


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


def nearest(prior: Prior, view: View, mu: AnyArray, starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Minima (C, p) of the distance to mu, from starts on the line, and minus a multiple of it."""
    xp = namespace_of(mu)

    def by_distance(z: AnyArray) -> AnyArray:
        away = view.at_nodes.values(prior.from_line(z)) - mu
        return -view.observations / 2 * xp.log(xp.sum(away**2, axis=1) + _NEARER * xp.sum(mu**2))

    lowest, nearness = climbed(by_distance, starts)
    return prior.from_line(lowest), nearness


class _Fitted(NamedTuple):
    z: AnyArray  # (S, p)
    residual: AnyArray  # (S, m)
    slopes: AnyArray  # on the line (S, m, p)
    damping: AnyArray  # (S,)


def fitted(prior: Prior, view: View, response: Response, starts: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Gaussians on the line where the sum of squares is low, from starts (S, p): centres, factors and log masses.

    Each start goes down by itself and no further than it must: where a valley is long they end all along it.
    """
    xp, p = namespace_of(starts), starts.shape[1]

    def look(z: AnyArray) -> tuple[AnyArray, AnyArray]:
        values, slopes = view.at_design.with_slopes(prior.from_line(z))
        return response.values - values, slopes * xp.exp(prior.log_slope(z))[:, None, :]

    def products(at: _Fitted) -> AnyArray:
        return xp.matmul(xp.swapaxes(at.slopes, 1, 2), at.slopes)

    def step(_: AnyArray, at: _Fitted) -> _Fitted:
        gram = products(at)
        gram = gram + at.damping[:, None, None] * xp.max(diagonal(gram), axis=1)[:, None, None] * np.eye(p)
        move = solve(gram, xp.sum(at.slopes * at.residual[:, :, None], axis=1))
        move = xp.clip(xp.where(xp.isfinite(move), move, 0.0), -_LONGEST, _LONGEST)
        z = xp.clip(at.z + move, -_LINE_LIMIT, _LINE_LIMIT)
        residual, slopes = look(z)
        better = xp.sum(residual**2, axis=1) < xp.sum(at.residual**2, axis=1)
        return _Fitted(
            xp.where(better[:, None], z, at.z),
            xp.where(better[:, None], residual, at.residual),
            xp.where(better[:, None, None], slopes, at.slopes),
            at.damping * xp.where(better, _EASIER, _HARDER),
        )

    first = _Fitted(starts, *look(starts), xp.full(len(starts), _FIRST_DAMPING))
    end = loops_of(starts).fori_loop(0, _FITTING_STEPS, step, first)
    square = xp.sum(end.residual**2, axis=1) + response.outside
    freedom = view.observations - p
    precision = products(end) * (freedom / square)[:, None, None] + 30 * np.eye(p)  # with the prior's, on the line
    factors = cholesky(inverse(precision))
    sound = xp.all(xp.isfinite(factors), axis=(1, 2)) & xp.isfinite(square)
    log_mass = -view.observations / 2 * xp.log(square) + xp.sum(xp.log(diagonal(factors)), axis=1)
    log_mass = xp.where(sound, log_mass - xp.max(xp.where(sound, log_mass, -np.inf)), -np.inf)
    return end.z, xp.where(sound[:, None, None], factors, np.eye(p)), log_mass


def climbed(function: OfRows, starts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Where Newton's method ends from every start, and the function there."""
    xp = namespace_of(starts)
    scale = xp.full(starts.shape, _FIRST_SCALE)
    summits = climb(differences_of_rows(function), starts, scale, _POLISH)
    return summits.z, xp.where(xp.isnan(summits.value), -np.inf, summits.value)
