"""How hard the integration tries, level by level (decision 2)."""

from __future__ import annotations

from typing import NamedTuple

from l2calib.engines.integrate.across import Rule, lattice
from l2calib.engines.integrate.ridge import Knots

MAXIMUM_DIMENSION = 4
_BEND = 2.0  # of the hyperbolic sines, in standard deviations
_FAR_BEND = 1.4  # as many points reach farther; it takes finer knots


class Level(NamedTuple):
    """How hard to try: how many modes, the knots along every parameter, and the rule across."""

    modes: int
    knots: Knots
    rule: Rule


def _level(
    dimension: int,
    modes: int,
    spacing: float,
    half: int,
    inner_spacing: float,
    reach: float,
    bend: float = _BEND,
    far: bool = False,
) -> Level:
    return Level(modes, Knots(half, spacing, bend, far), lattice(dimension - 1, inner_spacing, reach, bend))


class LineLevel(NamedTuple):
    """How hard to try with one parameter."""

    modes: int
    points: int


LINE_LEVELS = (LineLevel(1, 20), LineLevel(5, 128), LineLevel(8, 320), LineLevel(8, 1536))
LEVELS = {
    2: (
        _level(2, 1, 0.5, 14, 1.2, 4.9),
        _level(2, 1, 0.4, 18, 0.8, 5.6),
        _level(2, 1, 0.22, 44, 0.35, 9.1, _FAR_BEND, far=True),
        _level(2, 4, 0.22, 44, 0.35, 9.1, _FAR_BEND, far=True),
        _level(2, 1, 0.18, 60, 0.25, 10.0, _FAR_BEND, far=True),
        _level(2, 5, 0.18, 60, 0.25, 10.0, _FAR_BEND, far=True),
    ),
    3: (
        _level(3, 1, 0.5, 14, 1.4, 4.3),
        _level(3, 1, 0.45, 16, 1.1, 5.6),
        _level(3, 1, 0.3, 26, 0.9, 6.3),
        _level(3, 1, 0.22, 38, 0.7, 7.4, _FAR_BEND, far=True),
        _level(3, 3, 0.22, 38, 0.7, 7.4, _FAR_BEND, far=True),
        _level(3, 1, 0.16, 52, 0.6, 8.4, _FAR_BEND, far=True),
        _level(3, 3, 0.16, 52, 0.6, 8.4, _FAR_BEND, far=True),
    ),
    4: (
        _level(4, 1, 0.6, 12, 1.4, 4.3),
        _level(4, 1, 0.5, 20, 0.8, 5.6, far=True),
        _level(4, 2, 0.5, 20, 0.8, 5.6, far=True),
    ),
}
