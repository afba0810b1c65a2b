"""Automatic scaling of a generalised posterior (paper, Section 3.3 and supplement SM2).

Multiplying a loss by gamma moves no target; it sets how fast the posterior learns. Each class is one rule for gamma.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from l2calib.losses import Loss
from l2calib.numerics.arrays import Array
from l2calib.numerics.minimise import Candidates, Minima
from l2calib.problem.experiment import Experiment
from l2calib.process.smooth import Smooth


class Fitted(NamedTuple):
    """What is known of one dataset when gamma is chosen, and how the smoother would be fitted to another."""

    y: Array
    smooth: Smooth
    values: Array
    minima: Minima
    candidates: Candidates
    refit: Callable[[Array], Smooth] | None


class Scaling(Protocol):
    """A rule for gamma."""

    @property
    def suffix(self) -> str: ...

    def gamma(self, loss: Loss, experiment: Experiment, fitted: Fitted, key: Array) -> tuple[Array, Array]:
        """gamma and a status."""
        ...
