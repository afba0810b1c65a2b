"""A spec file read as far as it can be: every mistake that does not follow from another, or the problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.errors import DataError, SpecError
from l2calib.models.kinds import KINDS, as_model
from l2calib.models.model import check_distinct, model_faults
from l2calib.models.source import Source
from l2calib.problem.data import Box, column, observed_input, observed_response
from l2calib.problem.experiment import central_thetas, check_enough
from l2calib.problem.measure import default_quadrature
from l2calib.problem.prior import Prior
from l2calib.problem.problem import Problem
from l2calib.spec.columns import by_name, column_faults, read_lines
from l2calib.spec.mistakes import Findings, Mistake
from l2calib.spec.priors import parse_prior
from l2calib.spec.tables import Spec, locate, read_tables, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from l2calib.problem.distributions import Distribution

_Ranges = dict[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a spec says and the problem that it describes, which is None when there are mistakes."""

    spec: Spec
    columns: Mapping[str, list[str]]
    source: Source | None
    problem: Problem | None
    mistakes: list[Mistake]


def read_spec(spec: str | Path) -> Reading:
    """Read a spec file, or the packaged example of that name."""
    findings = Findings()
    with findings.at("spec"):
        path = locate(spec)
        return read_text(text_of(path), path.parent)
    return Reading(Spec(), {}, None, None, findings.mistakes)


def read_text(text: str, folder: Path) -> Reading:
    """Read the text of a spec whose paths are relative to `folder`."""
    findings = Findings()
    spec = Spec()
    with findings.at("spec"):
        spec = read_tables(text, findings)
        return _Reader(spec, folder, findings).read()
    return Reading(spec, {}, None, None, findings.mistakes)


class _Reader:
    """Reads what the tables of one spec name; what cannot be had is noted and left out."""

    def __init__(self, spec: Spec, folder: Path, findings: Findings) -> None:
        self.spec, self.folder, self.findings = spec, folder, findings
        self.inputs, self.parameters = list(spec.data.inputs), list(spec.prior)

    def read(self) -> Reading:
        self.columns = self.read_columns()
        self.ranges = self.read_ranges()
        self.design = self.read_design()
        self.read_response()
        self.prior = self.read_prior()
        self.source = self.read_source()
        self.model_key = ("model",) if self.source is None else ("model", self.source.key)
        self.names_are_certain = self.check_names()
        self.function = self.read_function()
        problem = None
        if not self.findings:
            with self.findings.at(*self.model_key):
                problem = self.problem()
        if problem is None:
            self.evaluate_model()
        return Reading(self.spec, self.columns, self.source, problem, self.findings.mistakes)

    def problem(self) -> Problem:
        assert self.function is not None
        assert self.spec.data.response is not None
        return Problem(self.function, self.columns, self.spec.data.response, self.ranges, self.prior)

    def read_columns(self) -> dict[str, list[str]]:
        """The columns of the data file; none if it cannot be read."""
        header, lines = self.read_file()
        if not lines:
            return {}
        path = self.folder / str(self.spec.data.file)
        faults = list(column_faults(path, header, lines))
        for fault in faults:
            self.findings.add(fault, "data", "file")
        if faults:
            return {}
        if self.parameters:
            with self.findings.at("data", "file"):
                check_enough(len(lines), len(self.parameters))
        return by_name(header, lines)

    def read_file(self) -> tuple[list[str], list[list[str]]]:
        if self.spec.data.file is not None:
            with self.findings.at("data", "file"):
                header, *lines = read_lines(self.folder / self.spec.data.file)
                return header, lines
        return [], []

    def read_ranges(self) -> _Ranges:
        """The ranges that are ones."""
        ranges: _Ranges = {}
        for name, limits in self.spec.data.inputs.items():
            if limits is not None:
                with self.findings.at("data", "inputs", name):
                    low, high = limits
                    Box({name: (low, high)})
                    ranges[name] = (low, high)
        return ranges

    def read_design(self) -> dict[str, np.ndarray]:
        """The columns of inputs that are numbers, and in their ranges if these are known."""
        design = {}
        for name, given in self.spec.data.inputs.items() if self.columns else []:
            if given is None and name not in self.columns:
                continue  # something else than an input, by its value and by its name
            with self.findings.at("data", "inputs", name):
                limits = self.ranges.get(name)
                numbers = column(self.columns, name) if limits is None else observed_input(self.columns, name, limits)
                design[name] = numbers
        return design

    def read_response(self) -> None:
        response = self.spec.data.response
        with self.findings.at("data", "response"):
            if response is not None and response in self.inputs:
                raise DataError(f"'{response}' is both the response and an input; name two different columns.")
            if response is not None and self.columns:
                observed_response(self.columns, response)

    def read_prior(self) -> dict[str, Distribution]:
        """The priors that are distributions."""
        prior = {}
        for name, text in self.spec.prior.items():
            if text is not None:
                with self.findings.at("prior", name):
                    distribution = parse_prior(name, text)
                    Prior({name: distribution})
                    prior[name] = distribution
        return prior

    def check_names(self) -> bool:
        """Whether the names of inputs and parameters are known well enough to hold a model to them."""
        before = len(self.findings.mistakes)
        for name in self.parameters:
            with self.findings.at("prior", name):
                check_distinct([each for each, limits in self.spec.data.inputs.items() if limits is not None], [name])
        if self.source is not None:
            for table, names in ((("data", "inputs"), self.inputs), (("prior",), self.parameters)):
                for name in names:
                    with self.findings.at(*table, name):
                        self.source.check_name(name)
        are_columns = not self.columns or all(name in self.columns for name in self.inputs)
        listed = bool(self.inputs and self.parameters)
        return listed and are_columns and len(self.findings.mistakes) == before

    def read_source(self) -> Source | None:
        """What names the model, if there is exactly one such thing."""
        given = self.spec.model.sources(self.folder)
        if len(given) == 1:
            return given[0]
        if given:
            several = " and ".join(repr(source.key) for source in given)
            self.findings.add(SpecError(f"it has both of {several}; give exactly one."), "model")
        elif "model" in self.spec.model_fields_set and not self.findings.under("model"):
            kinds = " and ".join(repr(kind.key) for kind in KINDS)
            self.findings.add(SpecError(f"it has neither of {kinds}; give exactly one."), "model")
        return None

    def read_function(self) -> Callable[..., Any] | None:
        """The model, if its arguments are the inputs and the parameters."""
        if self.source is None:
            return None
        with self.findings.at(*self.model_key):
            self.source.names()
            if not self.names_are_certain:
                return None
            misfits = list(self.source.misfits(self.inputs, self.parameters, self.columns))
            for misfit in misfits:
                self.findings.add(misfit.error, *misfit.key)
            return None if misfits else self.source.function(self.inputs, self.parameters)
        return None

    def evaluate_model(self) -> None:
        """Look for faults in the model's values where the inputs and the prior are known."""
        whole = len(self.ranges) == len(self.inputs) and len(self.prior) == len(self.parameters)
        if self.function is None or not whole:
            return
        box, prior = Box(self.ranges), Prior(self.prior)
        points = box.from_unit(default_quadrature(len(self.inputs)).nodes)
        if len(self.design) == len(self.inputs):
            points = np.vstack([np.column_stack([self.design[name] for name in self.inputs]), points])
        for fault in model_faults(as_model(self.function, box.names, prior.names), points, central_thetas(prior)):
            self.findings.add(fault, *self.model_key)
