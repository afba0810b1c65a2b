"""What a target's share does to the points that an integration has chosen."""

from __future__ import annotations

import numpy as np

from l2calib.numerics.namespace import AnyArray, namespace_of, softmax


def not_nan(value: AnyArray) -> AnyArray:
    """The value, minus infinity where it is no number."""
    xp = namespace_of(value)
    return xp.where(xp.isnan(value), -np.inf, value)


def doubt(log_weights: AnyArray, log_share: AnyArray) -> AnyArray:
    """What shares leave open at the points that they keep: nothing where every share is all or none."""
    xp = namespace_of(log_weights)
    weights = softmax(log_weights + log_share)
    return 1 - xp.sum(weights * xp.exp(log_share))
