"""Whether a file holds a result of a problem."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from l2calib.compute.predictor import DRAWS, modelled
from l2calib.errors import DataError, MethodError
from l2calib.problem.data import rows
from l2calib.problem.problem import Problem
from l2calib.results.posterior import KEPT
from l2calib.results.prediction import tree_name
from l2calib.results.prior_text import distributions_of_text
from l2calib.results.saved import Held

_SAME_DATA = 1e-9  # relative: other software may have written the last digits of a table otherwise
_SAME_MODEL = 1e-6  # of the range of the responses: a model may be computed otherwise on another machine


def check_belongs(problem: Problem, held: Held) -> None:
    """Raise DataError unless the file's response, inputs, parameters, data and model are those of the problem."""
    if not isinstance(problem, Problem):
        raise MethodError(f"a result is loaded with its Problem: received a {type(problem).__name__}; build one.")
    for difference in _differences(problem, held):
        raise DataError(
            f"the problem is not that of the result '{held.path}': received one {difference}; "
            "give the problem that was calibrated."
        )


def _differences(problem: Problem, held: Held) -> Iterator[str]:
    """What tells them apart, in words; each may rely on those before it."""
    yield from _other_names(problem, held)
    yield from _other_ranges(problem, held)
    yield from _other_prior(problem, held)
    yield from _other_data(problem, held)
    yield from _other_noise(problem, held)
    yield from _other_model(problem, held)


def _other_names(problem: Problem, held: Held) -> Iterator[str]:
    response, inputs = tree_name(problem.response), sorted(map(tree_name, problem.input_names))
    known = held.variables("observed_data"), sorted(held.variables("constant_data"))
    if [response] != known[0]:
        yield f"with the response '{problem.response}' instead of '{', '.join(known[0])}'"
    if inputs != known[1]:
        yield f"with the inputs {', '.join(inputs)} instead of {', '.join(known[1])}"
    if problem.parameter_names != held.parameters:
        yield f"with the parameters {', '.join(problem.parameter_names)} instead of {', '.join(held.parameters)}"


def _other_ranges(problem: Problem, held: Held) -> Iterator[str]:
    for name, (low, high) in json.loads(held.tree.attrs.get("inputs", "{}")).items():
        if problem.inputs.get(name) != (low, high):
            given = problem.inputs.get(name)
            yield f"whose input '{name}' has the range {given} instead of {(low, high)}"


def _other_prior(problem: Problem, held: Held) -> Iterator[str]:
    known = distributions_of_text(str(held.tree.attrs.get("prior", "")))
    for name, given in problem.experiment.prior.distributions.items():
        if known.get(name) not in (None, given):
            yield f"whose prior of '{name}' is {given} instead of {known[name]}"


def _other_data(problem: Problem, held: Held) -> Iterator[str]:
    columns = {tree_name(problem.response): ("observed_data", problem.y)} | {
        tree_name(name): ("constant_data", problem.x[:, j]) for j, name in enumerate(problem.input_names)
    }
    for name, (group, given) in columns.items():
        known = held.values(group, name)
        if len(given) != len(known):
            yield f"with {len(given)} observations instead of {len(known)}"
            continue
        other = np.flatnonzero(~np.isclose(given, known, rtol=_SAME_DATA, atol=0))
        if other.size:
            yield f"whose data differ in '{name}' ({rows(other)})"


def _other_noise(problem: Problem, held: Held) -> Iterator[str]:
    given = 1 / problem.experiment.whitening
    known = held.values("noise", "scale") if held.variables("noise") else np.ones(len(given))
    other = np.flatnonzero(~np.isclose(given, known, rtol=_SAME_DATA, atol=0))
    if other.size:
        yield f"whose errors have other scales ({rows(other)})"


def _other_model(problem: Problem, held: Held) -> Iterator[str]:
    """The model at the observations, against what was kept of it there."""
    if "fitted" not in held.tree.children or len(held.sample) != KEPT:  # other draws than those it was made of
        return
    given = modelled(problem.experiment, problem.x, held.sample[:DRAWS]).mean(axis=0)
    known = held.values("fitted", "model")
    away = np.abs(given - known)[np.isfinite(given) & np.isfinite(known)]
    if (away > _SAME_MODEL * np.ptp(problem.y)).any():
        yield "whose model gives other values at the observations"
