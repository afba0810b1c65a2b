"""What is known before the responses: model, inputs, prior, quadrature."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from l2calib.errors import DataError, MethodError
from l2calib.models.kinds import as_model
from l2calib.models.model import check_model
from l2calib.numerics.spread import kronecker
from l2calib.problem.data import Box, rows
from l2calib.problem.measure import Quadrature, default_quadrature
from l2calib.problem.noise import EqualVariance, Noise
from l2calib.problem.prior import Prior
from l2calib.problem.span import Span, narrowed, snapshots_of, span_of

_CHECKED_THETAS = 64
_CHECKED_SHARE = 0.9
_FEW_NODES = 1024  # with three inputs a smooth function's mean is then right to three digits


class Experiment:
    """Model, design, prior and quadrature, validated once; immutable.

    `x` holds the design in physical units, one row per observation and one column per input.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        inputs: Mapping[str, tuple[float, float]],
        x: np.ndarray,
        prior: Mapping[str, object],
        quadrature: Quadrature | None = None,
        noise: Noise | None = None,
    ) -> None:
        self.box = Box(inputs)
        self.prior = Prior(prior)
        self.model = as_model(model, self.box.names, self.prior.names)
        self.x = _design(x)
        if self.x.shape[1] != len(self.box.names):
            raise DataError(
                f"the design has {self.x.shape[1]} columns and there are {len(self.box.names)} inputs; "
                "give one column each."
            )
        self.box.check_inside(self.x)
        self.x_unit = self.box.to_unit(self.x)
        self.quadrature = default_quadrature(len(self.box.names)) if quadrature is None else quadrature
        if not isinstance(self.quadrature, Quadrature):
            raise MethodError(f"the quadrature is not one: received {quadrature!r:.60}; give gauss_legendre or sobol.")
        if self.quadrature.nodes.shape[1] != len(self.box.names):
            raise MethodError(
                f"the quadrature has {self.quadrature.nodes.shape[1]} inputs and the problem has "
                f"{len(self.box.names)}; give nodes of the same dimension."
            )
        self.nodes = self.box.from_unit(self.quadrature.nodes)
        self.noise: Noise = EqualVariance() if noise is None else noise
        self.whitening = _whitening(self.noise, self.observations)
        check_enough(self.observations, self.parameters)
        self._everywhere = np.vstack([self.x, self.nodes])
        check_model(self.model, self._everywhere, central_thetas(self.prior))

    @property
    def inputs(self) -> int:
        """k."""
        return len(self.box.names)

    @property
    def observations(self) -> int:
        """n."""
        return len(self.x)

    @property
    def parameters(self) -> int:
        """p."""
        return self.prior.dimension

    def whiten(self, y: np.ndarray) -> np.ndarray:
        """Responses (..., n) with errors of equal variance."""
        return np.asarray(y * self.whitening)

    @functools.cached_property
    def _snapshots(self) -> np.ndarray:
        """At the design and at the nodes."""
        return snapshots_of(self.model, self.prior, self._everywhere)

    @functools.cached_property
    def design_span(self) -> Span:
        """The model at the design points, eta_X(theta), whitened."""
        ones, snapshots = np.ones(self.observations), self._snapshots[:, : self.observations]
        return span_of(self.model, self.prior, self.x, ones, snapshots, scale=self.whitening)

    @functools.cached_property
    def node_span(self) -> Span:
        """The model at the quadrature nodes."""
        snapshots = self._snapshots[:, self.observations :]
        return span_of(self.model, self.prior, self.nodes, self.quadrature.weights, snapshots)

    @functools.cached_property
    def few_nodes(self) -> Quadrature:
        """For what is done for all pairs of nodes."""
        return self.quadrature.thinned(_FEW_NODES)

    @functools.cached_property
    def narrow_node_span(self) -> Span:
        """The model at the few nodes, in the few coordinates that directions need."""
        few = self.few_nodes
        if few is self.quadrature:
            span = self.node_span
        else:
            number = len(few.nodes)
            snapshots = self._snapshots[:, self.observations : self.observations + number]
            span = span_of(self.model, self.prior, self.nodes[:number], few.weights, snapshots)
        return narrowed(span, self.prior)


def _whitening(noise: Noise, observations: int) -> np.ndarray:
    """1 / s_i (n,)."""
    if isinstance(noise, type) or not hasattr(noise, "scales"):
        raise MethodError(f"the noise is not one: received {noise!r:.60}; leave it out for errors of equal variance.")
    scales = np.asarray(noise.scales(observations), dtype=float)
    if scales.shape != (observations,) or not (np.isfinite(scales) & (scales > 0)).all():
        raise DataError(
            f"the scales of the errors must be {observations} positive numbers: received shape {scales.shape}, "
            f"{scales!r:.60}; give one for every observation."
        )
    return np.asarray(1 / scales)


def check_enough(observations: int, parameters: int) -> None:
    """Raise DataError when so few observations cannot calibrate so many parameters."""
    required = parameters + 2
    if observations < required:
        raise DataError(
            f"{observations} observations cannot calibrate {parameters} parameters: "
            f"give at least {required}, two more than there are parameters."
        )


def central_thetas(prior: Prior) -> np.ndarray:
    """Points spread over the middle of the prior, where a model has no excuse for not being finite."""
    tail = (1 - _CHECKED_SHARE) / 2
    return prior.quantile(tail + _CHECKED_SHARE * kronecker(_CHECKED_THETAS, prior.dimension))


def _design(x: Any) -> np.ndarray:
    """The design as an array (n, k) of finite numbers."""
    try:
        design = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        design = np.asarray(np.nan)
    if design.ndim not in (1, 2):
        raise DataError("the design is not an array of numbers, one row per observation; give one of shape (n, k).")
    if not len(design):
        raise DataError("there are no observations: received an empty design; give at least one row.")
    design = design.reshape(len(design), -1)
    wrong = np.flatnonzero(~np.isfinite(design).all(axis=1))
    if wrong.size:
        raise DataError(f"the design has missing or infinite values ({rows(wrong)}); drop or correct them.")
    return design
