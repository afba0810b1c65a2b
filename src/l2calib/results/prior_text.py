"""A prior as text in a file: JSON that says each parameter's distribution and its arguments."""

from __future__ import annotations

import json
import math

from l2calib.errors import PriorError
from l2calib.problem.distributions import (
    Beta,
    Distribution,
    Gamma,
    HalfNormal,
    LogNormal,
    Normal,
    TruncatedNormal,
    Uniform,
)
from l2calib.problem.prior import Prior

_KINDS: dict[str, type[Distribution]] = {
    kind.__name__: kind for kind in (Beta, Gamma, HalfNormal, LogNormal, Normal, TruncatedNormal, Uniform)
}


def text_of_prior(prior: Prior) -> str:
    """The distributions by parameter; null for one that is not l2calib's own."""
    return json.dumps({name: _described(each) for name, each in prior.distributions.items()})


def distributions_of_text(text: str) -> dict[str, Distribution | None]:
    """What `text_of_prior` described; None for a distribution that it could not describe, or that is unknown here."""
    try:
        return {name: _built(described) for name, described in json.loads(text).items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def _described(distribution: Distribution) -> dict[str, str | float] | None:
    kind = type(distribution)
    if _KINDS.get(kind.__name__) is not kind:
        return None
    arguments = {name: float(value) for name, value in vars(distribution).items()}
    # JSON has no infinite numbers.
    return {"distribution": kind.__name__} | {
        name: value if math.isfinite(value) else str(value) for name, value in arguments.items()
    }


def _built(described: object) -> Distribution | None:
    if not isinstance(described, dict):
        return None
    kind = _KINDS.get(str(described.get("distribution")))
    arguments = {str(name): float(value) for name, value in described.items() if name != "distribution"}
    try:
        return None if kind is None else kind(**arguments)
    except (TypeError, PriorError):
        return None
