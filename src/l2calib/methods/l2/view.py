"""What the density of theta sees of an experiment and of one y."""

from __future__ import annotations

from typing import NamedTuple

from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.problem.prior import Prior
from l2calib.problem.span import ModelCoordinates
from l2calib.process.projected_bias import Slopes, orthonormal_slopes


class View(NamedTuple):
    """The model at the design and at the nodes, n, and what proposals are made of (see `proposals`)."""

    at_design: ModelCoordinates
    at_nodes: ModelCoordinates
    observations: AnyArray
    deviates: tuple[AnyArray, ...]  # (N, p), by levels
    t_table: AnyArray


class Response(NamedTuple):
    """y in the span of the model at the design, and the sum of squares that no theta explains."""

    values: AnyArray
    outside: AnyArray

    def square(self, modelled: AnyArray) -> AnyArray:
        """The sum of squares (N,), for rows of the model in its span at the design."""
        return namespace_of(modelled).sum((modelled - self.values) ** 2, axis=1) + self.outside


def modelled_at(prior: Prior, view: View, theta: AnyArray) -> tuple[AnyArray, Slopes]:
    """The model at the design (N, m), and its slopes made orthonormal, at rows of theta."""
    modelled, at_design = view.at_design.with_slopes(theta)
    _, at_nodes = view.at_nodes.with_slopes(theta)
    return modelled, orthonormal_slopes(at_nodes, at_design, prior.scale)
