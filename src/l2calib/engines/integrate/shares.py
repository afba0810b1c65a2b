"""What a target's share takes away of the points that an integration has chosen."""

from __future__ import annotations

import numpy as np

from l2calib.numerics.namespace import AnyArray, namespace_of


def not_nan(value: AnyArray) -> AnyArray:
    """The value, minus infinity where it is no number."""
    xp = namespace_of(value)
    return xp.where(xp.isnan(value), -np.inf, value)


def left_out(log_weights: AnyArray, log_share: AnyArray) -> AnyArray:
    """The probability that shares take away of points."""
    xp = namespace_of(log_weights)
    weights = xp.exp(log_weights - xp.max(log_weights))
    return 1 - xp.sum(weights * xp.exp(log_share)) / xp.sum(weights)
