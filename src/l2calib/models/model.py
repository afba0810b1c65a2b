"""The mathematical model eta(x; theta): what every kind of it can do, and what may be wrong with it.

A function of named inputs and parameters in physical units (paper, Section 2.1). Whoever calibrates one asks no more
than this role says, so that a further kind of model is a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from l2calib.display.numbers import named
from l2calib.errors import ModelError
from l2calib.numerics.arrays import Array


class Model(Protocol):
    """eta(x; theta), seen as a function of arrays. Equal models share what was compiled for them."""

    @property
    def input_names(self) -> tuple[str, ...]: ...

    @property
    def parameter_names(self) -> tuple[str, ...]: ...

    @property
    def arguments(self) -> tuple[str, ...]:
        """All that it could be given by name, inputs and parameters among them."""
        ...

    @property
    def text(self) -> str:
        """What it is, for the record of a run."""
        ...

    def __hash__(self) -> int: ...

    def __call__(self, x: Array, theta: Array) -> Array:
        """eta at the rows of x (m, k), for one theta (p,): an array (m,) that JAX can trace and differentiate."""
        ...

    def values(self, x: np.ndarray, thetas: np.ndarray) -> np.ndarray:
        """eta at the rows of x (m, k), for every row of thetas (T, p): an array (T, m)."""
        ...

    def values_and_slopes(self, x: np.ndarray, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same with its derivatives by theta (T, m, p)."""
        ...

    def shape_fault(self, x: np.ndarray, theta: np.ndarray) -> ModelError | None:
        """Why it does not give one number for every row of x, if it does not."""
        ...


def check_model(model: Model, x: np.ndarray, thetas: np.ndarray) -> None:
    """Raise ModelError unless eta is finite, of the right shape and moved by every parameter at these thetas."""
    for fault in model_faults(model, x, thetas):
        raise fault


def model_faults(model: Model, x: np.ndarray, thetas: np.ndarray) -> Iterator[ModelError]:
    """What `check_model` raises for: the first of these, and all that do not follow from another."""
    misshapen = model.shape_fault(x, thetas[0])
    if misshapen is not None:
        yield misshapen
        return
    values = model.values(x, thetas)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        found = "NaN" if np.isnan(values[row]).any() else "an infinite value"
        column = int(np.argmin(np.isfinite(values[row])))
        theta, inputs = named(model.parameter_names, thetas[row]), named(model.input_names, x[column])
        yield ModelError(f"the model returns {found} at {theta} (where {inputs}); mend it or narrow the prior.")
    if finite.any():
        yield from _slope_faults(model, x, model.values_and_slopes(x, thetas[finite])[1])


def _slope_faults(model: Model, x: np.ndarray, slopes: np.ndarray) -> Iterator[ModelError]:
    undefined = np.isnan(slopes).all(axis=0)  # (points, p)
    names = [repr(name) for j, name in enumerate(model.parameter_names) if undefined[:, j].any()]
    if names:
        # One infinite slope is enough to spoil the others, so they are one fault.
        inputs = named(model.input_names, x[int(np.argmax(undefined.any(axis=1)))])
        by = f"parameter{'s' if len(names) > 1 else ''} {', '.join(names)}"
        yield ModelError(
            f"the derivative of the model by its {by} is NaN where {inputs}; "
            "write the model so that it can be differentiated there, or leave that value out of the range."
        )
    for j, name in enumerate(model.parameter_names):
        if not np.any(slopes[..., j] != 0):
            yield unused_parameter(name)


def check_distinct(input_names: Sequence[str], parameter_names: Sequence[str]) -> None:
    """Raise ModelError when a name is given to an input and to a parameter."""
    for name in sorted(set(input_names) & set(parameter_names)):
        raise ModelError(f"'{name}' is both an input and a parameter; rename one of them.")


def unused_parameter(name: str) -> ModelError:
    """What is wrong with a parameter that moves nothing."""
    return ModelError(f"the model does not depend on its parameter '{name}'; remove it from the prior.", about=name)
