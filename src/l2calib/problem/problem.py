"""A problem: an experiment and its responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from l2calib.display import html as markup
from l2calib.errors import DataError
from l2calib.problem.data import Box, Observations, column
from l2calib.problem.experiment import Experiment
from l2calib.problem.measure import Quadrature
from l2calib.problem.noise import Noise


class Problem:
    """An experiment and its responses, from a frame or a mapping of columns."""

    def __init__(
        self,
        model: Callable[..., Any],
        data: Any,
        response: str,
        inputs: Mapping[str, tuple[float, float]],
        prior: Mapping[str, object],
        quadrature: Quadrature | None = None,
        noise: Noise | None = None,
    ) -> None:
        observed = Observations.from_columns(data, response, Box(inputs))
        self.response = response
        self.x = observed.x
        self.y = observed.y
        self.experiment = Experiment(model, inputs, observed.x, prior, quadrature, noise)

    @property
    def inputs(self) -> dict[str, tuple[float, float]]:
        """The box, by input."""
        box = self.experiment.box
        return {n: (float(a), float(b)) for n, a, b in zip(box.names, box.low, box.high, strict=True)}

    @property
    def input_names(self) -> tuple[str, ...]:
        return self.experiment.box.names

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.experiment.prior.names

    def predict_model(self, theta: np.ndarray, x: Mapping[str, np.ndarray]) -> np.ndarray:
        """eta(x; theta) at columns of inputs in physical units."""
        columns = np.column_stack([column(x, name) for name in self.input_names])
        values = np.asarray(theta, dtype=float)
        if values.shape != (self.experiment.parameters,):
            raise DataError(
                f"theta must hold {', '.join(self.parameter_names)}: received shape {values.shape}; "
                "give one value for each."
            )
        return np.asarray(self.experiment.model.values(columns, values[None])[0])

    def __repr__(self) -> str:
        return (
            f"Problem({self.response} ~ {', '.join(self.input_names)}; n = {len(self.y)}; "
            f"parameters {', '.join(self.parameter_names)})"
        )

    def _repr_html_(self) -> str:
        ranges = [(name, low, high) for name, (low, high) in self.inputs.items()]
        priors = [(name, str(each)) for name, each in self.experiment.prior.distributions.items()]
        return markup.block(
            f"Problem: {self.response} at {len(self.y)} observations",
            markup.table(("input", "low", "high"), ranges),
            markup.table(("parameter", "prior"), priors),
        )
