"""Engines turn a log density with its starts into weighted points, and say how good they are."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from l2calib.engines.integrate import Integrate
from l2calib.engines.integrate.levels import MAXIMUM_DIMENSION
from l2calib.numerics.arrays import Array
from l2calib.numerics.modes import Survey
from l2calib.posterior.points import Points, Target


class Engine(Protocol):
    """Something that integrates or samples a posterior, at increasing levels of effort."""

    @property
    def name(self) -> str: ...

    @property
    def tolerance(self) -> float:
        """The largest numerical error, in posterior standard deviations, that needs no status."""
        ...

    def __hash__(self) -> int: ...

    def levels(self, dimension: int) -> int: ...

    def evaluations(self, dimension: int, level: int) -> int:
        """How often the density is evaluated at a level."""
        ...

    def next_level(self, dimension: int, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """What to try where a level did not suffice, by its error and what was missed; itself if nothing."""
        ...

    def survey(self, target: Target) -> Survey: ...

    def points(self, target: Target, survey: Survey, level: int, key: Array) -> Points: ...


def default_engine(parameters: int) -> Engine:
    """Integration where it is exact and quick, the sampler beyond."""
    if parameters <= MAXIMUM_DIMENSION:
        return Integrate()
    from l2calib.engines.nuts import NUTS

    return NUTS()


__all__ = ["Engine", "Integrate", "default_engine"]
