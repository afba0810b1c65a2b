"""What one response of an experiment has of its own: all but the prior, since theta is common to all.

Losses, smoothers and processes ask for no more than this. An experiment has one response today and is it itself.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from l2calib.problem.measure import Quadrature
from l2calib.problem.span import Span


class Response(Protocol):
    """A design, a measure on the inputs, the errors' scales, and the model at the design and at the nodes."""

    x_unit: np.ndarray  # the design in the unit cube, (n, k)
    quadrature: Quadrature
    whitening: np.ndarray  # 1 / s_i, (n,)

    def __hash__(self) -> int: ...

    @property
    def inputs(self) -> int:
        """k."""
        ...

    @property
    def observations(self) -> int:
        """n."""
        ...

    @property
    def design_span(self) -> Span:
        """The model at the design points, eta_X(theta), whitened."""
        ...

    @property
    def node_span(self) -> Span:
        """The model at the quadrature nodes."""
        ...
