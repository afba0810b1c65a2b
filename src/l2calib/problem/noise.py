"""The errors of the observations: y_i = mu(x_i) + s_i e_i, with e_i independent and of one unknown variance sigma2.

A noise says how the s_i differ, and no more. It is applied once, by whitening: observations, the model and the process
at the design are divided by s_i, and everything that follows sees errors of equal variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Noise(Protocol):
    """How the standard deviations of the errors differ."""

    def scales(self, observations: int) -> np.ndarray:
        """The s_i (n,), positive; a factor common to all is sigma's."""
        ...


@dataclass(frozen=True)
class EqualVariance:
    """The paper's: s_i = 1."""

    def scales(self, observations: int) -> np.ndarray:
        return np.ones(observations)
