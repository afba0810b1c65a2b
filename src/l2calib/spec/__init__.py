"""The TOML file that describes a problem, and the problem that it describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from l2calib.experiment import Problem
from l2calib.expression import compile_expression
from l2calib.spec.columns import read_columns
from l2calib.spec.functions import load_function
from l2calib.spec.priors import parse_prior
from l2calib.spec.tables import examples, locate, read_spec

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["examples", "load_problem"]


def load_problem(spec: str | Path) -> Problem:
    """Build the problem that a spec file, or the packaged example of that name, describes."""
    path = locate(spec)
    tables = read_spec(path)
    inputs = {name: (low, high) for name, (low, high) in tables.data.inputs.items()}
    prior = {name: parse_prior(name, text) for name, text in tables.prior.items()}
    data = read_columns(path.parent / tables.data.file)
    if tables.model.expression is not None:
        model = compile_expression(tables.model.expression, (*inputs, *prior))
    else:
        model = load_function(tables.model.python or "", path.parent)
    return Problem(model=model, data=data, response=tables.data.response, inputs=inputs, prior=prior)
