"""The questions that lead to a spec: what was not given as an option is asked for until it is right."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from l2calib.cli.terminal import silent_stdout
from l2calib.errors import DataError, ModelError
from l2calib.models.expression import check_name
from l2calib.models.kinds import kind_meant_by
from l2calib.models.python_file import relative
from l2calib.models.source import Source
from l2calib.problem.data import column, observed_input, observed_response
from l2calib.spec.priors import parse_prior, prior_forms
from l2calib.spec.writing import Draft

_T = TypeVar("_T")


class Ask(Protocol):
    """Puts a question until its answer can be parsed; the suggestion is what an empty answer means."""

    def __call__(self, question: str, suggestion: str | None, parse: Callable[[str], _T], /) -> _T: ...


@dataclass
class Answers:
    """What is known so far, as it was typed; a range is None where none was given."""

    response: str | None = None
    model: str | None = None
    inputs: dict[str, str | None] = field(default_factory=dict)
    prior: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Interview:
    """Questions about a table of columns."""

    columns: Mapping[str, Sequence[str]]
    ask: Ask
    tell: Callable[[str], None]

    def conduct(self, given: Answers, before: Answers) -> Answers:
        """Complete what was given; what was answered before is suggested."""
        response = given.response or self.ask(
            "Response, the column that the model predicts", before.response, self.response
        )
        model = given.model or self.ask(
            "Model, a formula like a + b * x, or FILE.py:FUNCTION", before.model, self.model
        )
        inputs = given.inputs or self.ask_inputs(response, model, given, before)
        ranges = {name: limits or self.ask_range(name, before) for name, limits in inputs.items()}
        return Answers(response, model, dict(ranges), self.ask_priors(model, [*inputs], given, before))

    def check(self, given: Answers) -> None:
        """Raise InputError for an option that is wrong whatever the rest will be."""
        if given.response is not None:
            self.response(given.response)
        if given.model is not None:
            self.model(given.model)
        for name, limits in given.inputs.items():
            self.inputs(name) if limits is None else self.range(name, limits)
        for name, text in given.prior.items():
            parse_prior(name, text)

    def ask_inputs(self, response: str, model: str, given: Answers, before: Answers) -> dict[str, str | None]:
        likely = [name for name in model_names(model) if name in self.columns and name != response]

        def chosen(text: str) -> dict[str, str | None]:
            inputs = self.inputs(text)
            if response in inputs:
                raise DataError(f"'{response}' is the response already; name other columns as inputs.")
            parameters_of(model, list(inputs), given)
            return inputs

        suggestion = ", ".join(before.inputs or likely) or None
        return self.ask("Inputs, the columns that the model depends on, separated by commas", suggestion, chosen)

    def ask_range(self, name: str, before: Answers) -> str:
        values = column(self.columns, name)
        low, high = values.min(), values.max()
        observed = f"{_exactly(low)}:{_exactly(high)}" if low < high else None
        suggestion = before.inputs.get(name) or observed
        return self.ask(
            f"Range of {name} over which the model is to be good, LOW:HIGH",
            suggestion,
            lambda text: self.range(name, text),
        )

    def ask_priors(self, model: str, inputs: list[str], given: Answers, before: Answers) -> dict[str, str]:
        names = parameters_of(model, inputs, given)
        if any(name not in given.prior for name in names):
            self.tell(f"Parameters: {', '.join(names)}. A prior is one of {', '.join(prior_forms())}.")
        return {
            name: given.prior.get(name)
            or self.ask(f"Prior of {name}", before.prior.get(name), functools.partial(_prior, name))
            for name in names
        }

    def response(self, text: str) -> str:
        observed_response(self.columns, text)
        return text

    def model(self, text: str) -> str:
        names = model_names(text)
        if set(names) <= set(self.columns) and not source_of(text).has_defaults:
            raise ModelError(
                f"the model {text!r:.60} names nothing but columns of the data; name what is to be calibrated in it."
            )
        return text

    def inputs(self, text: str) -> dict[str, str | None]:
        names = [name.strip() for name in text.split(",")]
        for name in names:
            column(self.columns, name)
            check_name(name)
        return dict.fromkeys(names)

    def range(self, name: str, text: str) -> str:
        observed_input(self.columns, name, parse_range(name, text))
        return text


def parse_range(name: str, text: str) -> tuple[float, float]:
    """Read a range such as ``0:5``."""
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise DataError(f"the range of '{name}' is {text!r:.60}; write it like 0:5.") from None


def source_of(model: str) -> Source:
    """What somebody who types this means; paths are relative to where it is typed."""
    return kind_meant_by(model).of(model, Path())


def model_names(model: str) -> list[str]:
    """Return the names that a model needs values for."""
    with silent_stdout():
        return source_of(model).names()


def parameters_of(model: str, inputs: Sequence[str], given: Answers) -> list[str]:
    """Return the names that were given a prior, and those that the model has besides them and its inputs."""
    names = [name for name in model_names(model) if name not in inputs]
    if not names and not given.prior:
        raise ModelError(
            f"the model {model!r:.60} has no names besides its inputs; name what is to be calibrated in it."
        )
    return list(dict.fromkeys([*given.prior, *names]))


def draft(answers: Answers, data: Path, folder: Path) -> Draft:
    """What a spec in `folder` is to say."""
    assert answers.response is not None
    assert answers.model is not None
    source = source_of(answers.model)
    inputs = {name: parse_range(name, str(limits)) for name, limits in answers.inputs.items()}
    return Draft(relative(data, folder), answers.response, inputs, source.key, source.moved_to(folder), answers.prior)


def _exactly(value: float) -> str:
    """A number with as few digits as say all of it."""
    return repr(float(value)).removesuffix(".0")


def _prior(name: str, text: str) -> str:
    parse_prior(name, text)
    return text
