"""A posterior by weighed points of proposals whose marginals are known (decision 14).

The points are spread evenly, and what their spread leaves is taken out: weights are changed so that the proposals' own
marginals come out as they are known to be (control variates, as a change of weights). Where the posterior is its
proposals, its marginals are then right at the ends of the intervals, however few points there are.

The error is from how far neighbouring strata of points differ in what the control variates leave.
"""

from __future__ import annotations

import numpy as np

from l2calib.engines.importance import probabilities_to_sd
from l2calib.errors import Status
from l2calib.numerics.namespace import AnyArray, namespace_of, softmax
from l2calib.posterior.moments import moments
from l2calib.posterior.points import PROBABILITIES, Points, Target, Weighed, sample_quantiles

EVALUATIONS = (128, 512)  # of a whole density, about, by levels: each of some thousand points is one term of it
_DEGREE = 4  # of the polynomials of a marginal
_RIDGE = 1e-9
_AT_THE_ENDS = 0.058  # the density of a standard normal at its 2.5% quantile
_LOOKED_AT = 32  # points at which it is asked how sure a minimum is


@np.errstate(all="ignore")
def points_of_proposals(target: Target, level: int) -> Points:
    """Weighted points of the posterior."""
    assert target.proposals is not None
    seen = target.proposals.weighed(level)
    xp = namespace_of(seen.base)
    known = _known(seen)
    gram = (known * seen.base[:, None]).T @ known + _RIDGE * np.eye(known.shape[1])
    excess = xp.linalg.solve(gram, (seen.base @ known)[:, None])[:, 0]
    weights = softmax(seen.log_weight + seen.log_share) * xp.maximum(1 - known @ excess, 0.0)
    weights = weights / xp.sum(weights)
    z = xp.where(xp.isfinite(seen.z), seen.z, 0.0)
    missed = seen.lost / _AT_THE_ENDS
    error = _error(z, weights, seen, known, gram) + missed
    return Points(
        z=z,
        weights=weights,
        error=xp.where(xp.isnan(error), np.inf, error),
        missed=missed,
        doubt=_doubt(target, z, weights),
        status=xp.where(xp.all(xp.isfinite(weights)), 0, int(Status.NOT_FINITE)),
    )


def _known(seen: Weighed) -> AnyArray:
    """Functions (N, H) of what is known of the proposals, with a mean of zero.

    Of their distribution functions polynomials and steps at the quantiles, and the first two moments.
    """
    xp, place = namespace_of(seen.place), seen.place
    centred = 2 * place - 1
    last, here = xp.ones_like(centred), centred
    parts = []
    for degree in range(1, _DEGREE + 1):
        parts.append(here * np.sqrt(2 * degree + 1))
        last, here = here, ((2 * degree + 1) * centred * here - degree * last) / (degree + 1)
    parts += [xp.where(place < each, 1.0, 0.0) - each for each in PROBABILITIES]
    return xp.concatenate([*parts, seen.standard, seen.standard**2 - 1], axis=1)


def _error(z: AnyArray, weights: AnyArray, seen: Weighed, known: AnyArray, gram: AnyArray) -> AnyArray:
    """Of moments and quantiles, in posterior standard deviations."""
    xp, p = namespace_of(z), z.shape[1]
    mean, sd = moments(z.T, weights)
    white = (z - mean) / sd
    ends = sample_quantiles(z, weights, np.asarray(PROBABILITIES))  # (Q, p)
    below = [xp.where(z < end, 1.0, 0.0) for end in ends]
    functions = xp.concatenate([white, white**2 / 2, *below], axis=1)
    away = weights[:, None] * (functions - weights @ functions)
    left = away - seen.base[:, None] * (known @ xp.linalg.solve(gram, known.T @ away))
    sums = xp.sum(left.reshape(*seen.strata, -1, left.shape[1]), axis=2)
    steps = sums[:, 1:] - sums[:, :-1]
    errors = xp.sqrt(seen.strata[1] / (seen.strata[1] - 1) / 2 * xp.sum(steps**2, axis=(0, 1)))
    of_ends = probabilities_to_sd(z, weights, errors[2 * p :].reshape(-1, p).T, sd)
    return xp.maximum(xp.max(errors[: 2 * p]), xp.max(of_ends))


def _doubt(target: Target, z: AnyArray, weights: AnyArray) -> AnyArray:
    """What shares leave open at the points that they keep, from some of these; see `Points.doubt`."""
    if target.log_share is None:
        return 0.0
    xp = namespace_of(weights)
    below = xp.cumsum(weights)
    chosen = xp.searchsorted(below, below[-1] * (np.arange(_LOOKED_AT) + 0.5) / _LOOKED_AT)
    return 1 - xp.mean(xp.exp(target.log_share(z[xp.minimum(chosen, len(weights) - 1)])))
