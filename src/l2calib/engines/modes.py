"""The modes of a posterior: found by Newton's method from several starts."""

from __future__ import annotations

from l2calib.numerics.modes import Survey, survey_climbs
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.numerics.newton import climb
from l2calib.posterior.points import Target

_NEWTON_STEPS = 12


def survey_modes(target: Target, starts: AnyArray) -> Survey:
    """Climb from every start (S, p) and fit a Gaussian at each summit."""
    xp = namespace_of(starts)
    return survey_climbs(climb(target.jet, starts, xp.broadcast_to(target.scale, starts.shape), _NEWTON_STEPS))
