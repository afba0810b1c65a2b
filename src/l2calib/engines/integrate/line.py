"""Integration over one parameter: one lattice that is dense where the modes are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.engines.integrate.errors import halving_errors
from l2calib.engines.integrate.rejection import Uniforms
from l2calib.engines.integrate.shares import doubt, not_nan
from l2calib.numerics.modes import Modes
from l2calib.numerics.namespace import AnyArray, namespace_of, softmax
from l2calib.posterior.axes import Mixture, cell_middles
from l2calib.posterior.points import Points, Target
from l2calib.posterior.series import lattice_marginal


class _Line(NamedTuple):
    """Points z (N,) at the middles of equal cells of a mixture's axis, and the log density in its position."""

    axis: Mixture
    z: AnyArray
    log_weights: AnyArray


def _look(target: Target, modes: Modes, number: int) -> _Line:
    axis = Mixture.of_modes(modes.centres[:, 0], modes.factors[:, 0, 0], modes.log_mass)
    return _Line(axis, *_weigh(target, axis, cell_middles(number)))


def _weigh(target: Target, axis: Mixture, position: AnyArray) -> tuple[AnyArray, AnyArray]:
    z = axis.at(position)
    slope = axis.position(z[None])[1][0]
    return z, not_nan(target.log_density(z[:, None]) - namespace_of(z).log(slope))


def points_on_a_line(target: Target, modes: Modes, number: int) -> Points:
    """Weighted points, from looking at the density at so many."""
    line = _look(target, modes, number)
    log_weights, unsure = line.log_weights, 0.0
    if target.log_share is not None:
        log_share = not_nan(target.log_share(line.z[:, None]))
        log_weights, unsure = log_weights + log_share, doubt(log_weights, log_share)
    weights = softmax(log_weights)
    error, mass_error = halving_errors(line.z, weights, np.arange(number) % 2 == 0)
    axis = Mixture(*(part[None] for part in line.axis))
    return Points(
        z=line.z[:, None],
        weights=weights,
        error=error,
        marginals=lattice_marginal(line.z[None, None], weights[None, None], axis, 1 / number),
        mass_error=mass_error + weights[0] + weights[-1],
        doubt=unsure,
    )


def draws_on_a_line(target: Target, modes: Modes, number: int, uniforms: Uniforms) -> tuple[AnyArray, AnyArray]:
    """Candidates z (N, 1) spread over the cells of so many points, and whether rejection keeps them."""
    line = _look(target, modes, number)
    picked = uniforms.points(softmax(line.log_weights))
    z, log_weights = _weigh(target, line.axis, (picked + uniforms.cell[:, 0]) / number)
    z = z[:, None]
    return z, uniforms.accepted(target, z, log_weights - line.log_weights[picked])
