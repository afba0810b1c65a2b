"""The paper's configurations as a user of the library would set them up."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

import l2calib as l2
from tests.oracles.configurations import configuration, design, simulate

if TYPE_CHECKING:
    from collections.abc import Callable


def _model1(x1: Any, theta1: Any, theta2: Any) -> Any:
    level = 7 * jnp.sin(2 * jnp.pi * theta1 - jnp.pi) ** 2
    return level + 2 * (2 * jnp.pi * theta2 - jnp.pi) ** 2 * jnp.sin(2 * jnp.pi * x1 - jnp.pi)


def _model2(x1: Any, theta1: Any) -> Any:
    return jnp.sin(5 * theta1 * x1) + 5 * x1


def _model3(x1: Any, theta1: Any) -> Any:
    return theta1 * x1


def _model4(x1: Any, x2: Any, theta1: Any, theta2: Any, theta3: Any) -> Any:
    return _model1(x1, theta1, theta2) + 6 * theta3 * (x2 - 0.5)


MODELS: dict[int, Callable[..., Any]] = {1: _model1, 2: _model2, 3: _model3, 4: _model4}


def inputs_and_prior(number: int) -> dict[str, Any]:
    """The box and the prior of a configuration, as keyword arguments."""
    chosen = configuration(number)
    bounds = zip(chosen.lower, chosen.upper, strict=True)
    return {
        "inputs": {f"x{j + 1}": (0.0, 1.0) for j in range(chosen.k)},
        "prior": {f"theta{j + 1}": l2.Uniform(float(a), float(b)) for j, (a, b) in enumerate(bounds)},
    }


# The same objects for the same arguments: compiled programs and prepared tables hang on them.
@cache
def experiment(number: int, n: int) -> l2.Experiment:
    """A configuration on the oracles' design, before any responses."""
    return l2.Experiment(model=MODELS[number], x=design(n, configuration(number).k), **inputs_and_prior(number))


@cache
def problem(number: int, n: int, seed: int, nodes: int | None = None) -> l2.Problem:
    """A configuration with the responses that the oracles simulate; `nodes` per input rather than the usual number."""
    x, y = simulate(number, n, seed)
    data = {f"x{j + 1}": column for j, column in enumerate(x.T)} | {"y": y}
    rule = None if nodes is None else l2.gauss_legendre(x.shape[1], nodes)
    return l2.Problem(model=MODELS[number], data=data, response="y", quadrature=rule, **inputs_and_prior(number))
