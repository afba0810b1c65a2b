"""The measure on theta: the prior as it is written, and the volume of the model's functions for what is uniform."""

from __future__ import annotations

import numpy as np

from l2calib.methods.l2.view import View
from l2calib.numerics.namespace import AnyArray, log_sum_exp, namespace_of
from l2calib.numerics.spread import kronecker
from l2calib.problem.distributions import Uniform
from l2calib.problem.prior import Prior
from l2calib.process.projected_bias import Slopes, orthonormal_slopes

_POINTS = 64  # over the box of the uniform parameters: a mean of a smooth function


def log_measure(prior: Prior, view: View, slopes: Slopes, theta: AnyArray, *, literal: bool) -> AnyArray:
    """The log density of the prior at rows of theta (N,), if not literal with that volume."""
    written = prior.log_density(theta)
    bounds_only = [isinstance(each, Uniform) for each in prior.distributions.values()]
    if literal or not any(bounds_only):
        return written
    if all(bounds_only):
        return written + slopes.log_volume
    uniform = np.flatnonzero(bounds_only)
    return written + _log_volume(prior, view, theta, uniform) - _log_mean_volume(prior, view, theta, uniform)


def _log_volume(prior: Prior, view: View, theta: AnyArray, uniform: np.ndarray) -> AnyArray:
    """log det(M_uu)^(1/2) of some of the parameters, at rows of theta (N,)."""
    _, slopes = view.at_nodes.with_slopes(theta)
    block = slopes[:, :, uniform]
    return orthonormal_slopes(block, block, prior.scale[uniform]).log_volume


def _log_mean_volume(prior: Prior, view: View, theta: AnyArray, uniform: np.ndarray) -> AnyArray:
    """The log of the mean of that volume over the box of the uniform parameters, given the others (N,)."""
    xp = namespace_of(theta)
    unit = np.full((_POINTS, prior.dimension), 0.5)
    unit[:, uniform] = kronecker(_POINTS, len(uniform))
    volumes = []
    for row in prior.quantile(unit):
        columns = [xp.full_like(theta[:, j], row[j]) if j in uniform else theta[:, j] for j in range(prior.dimension)]
        volumes.append(_log_volume(prior, view, xp.stack(columns, axis=1), uniform))
    return log_sum_exp(xp.stack(volumes), axis=0) - np.log(_POINTS)
