"""Where a result's posterior comes from: computed in this session, or read from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from l2calib.errors import MethodError
from l2calib.problem.prior import Prior

if TYPE_CHECKING:
    import xarray as xr

KEPT = 4000  # draws, in a file


class Posterior(Protocol):
    """The draws and densities behind a result, in the order of its parameters."""

    @property
    def prior(self) -> Prior:
        """MethodError if it is not known."""
        ...

    @property
    def sample(self) -> np.ndarray:
        """The draws of theta (S, p) that a file keeps: those that predictions and joint densities are made of."""
        ...

    @property
    def file(self) -> xr.DataTree | None:
        """All that the file holds that this was read from; None if there is none."""
        ...

    def draws(self, number: int, seed: int | None) -> np.ndarray:
        """Draws of theta (number, p)."""
        ...

    def marginal(self, index: int, points: int) -> tuple[np.ndarray, np.ndarray]:
        """A grid of one parameter, and its density there."""
        ...


def not_in_the_file(doing: str, needed: str) -> MethodError:
    """What to say where a loaded result lacks what only its problem has."""
    return MethodError(
        f"{doing} needs {needed}, which the file does not hold: received a result that was loaded without its problem; "
        "give it to load(path, problem)."
    )
