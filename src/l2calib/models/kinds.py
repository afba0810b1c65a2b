"""The kinds of models: the one list of them, and how each is recognised."""

from __future__ import annotations

from typing import Any

from l2calib.models.formula import Formula
from l2calib.models.jax_function import JaxFunction
from l2calib.models.model import Model
from l2calib.models.python_file import PythonFile
from l2calib.models.source import Source

KINDS: tuple[type[Source], ...] = (PythonFile, Formula)  # as they are tried: a formula is what nothing else is


def kind_meant_by(text: str) -> type[Source]:
    """The kind of a model that somebody types without saying which it is."""
    return next(kind for kind in KINDS if kind.is_meant_by(text))


def kind_called(key: str) -> type[Source]:
    """The kind of that key in the table [model] of a spec."""
    return next(kind for kind in KINDS if kind.key == key)


def as_model(given: Any, input_names: tuple[str, ...], parameter_names: tuple[str, ...]) -> Model:
    """What a user gives as the model of a problem, as one with these inputs and parameters."""
    return JaxFunction(given, input_names, parameter_names)
