"""Warnings about a spec: what is not wrong with it, but will hurt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from l2calib.display.numbers import named
from l2calib.models.source import Source
from l2calib.numerics.spread import kronecker
from l2calib.spec.quoting import dotted

if TYPE_CHECKING:
    from l2calib.problem.problem import Problem
    from l2calib.spec.reading import Reading

_FILLED_ENOUGH = 0.8
_OBSERVATIONS_PER_PARAMETER = 10
_TRIED_THETAS = 512
_TRIED_POINTS = 1000


@dataclass(frozen=True)
class Caution:
    """A warning that belongs to one key of a spec."""

    key: str
    text: str

    @property
    def sentence(self) -> str:
        """It begins with the key."""
        return f"{self.key}: {self.text}"


def cautions(reading: Reading) -> list[Caution]:
    """Every warning about a spec without mistakes."""
    problem, source = reading.problem, reading.source
    assert problem is not None
    assert source is not None
    return [
        *_thin_inputs(problem),
        *_few_observations(problem),
        *_unused_inputs(source, problem.inputs),
        *_measured(reading, source),
    ] + [Caution(dotted("model", source.key), text) for text in _not_finite(problem)]


def filled(problem: Problem, j: int) -> float:
    """The share of an input's range between its smallest and its largest value."""
    unit = problem.experiment.x_unit[:, j]
    return float(np.ptp(unit))


def _thin_inputs(problem: Problem) -> Iterator[Caution]:
    for j, (name, (low, high)) in enumerate(problem.inputs.items()):
        share, start, end = filled(problem, j), problem.x[:, j].min(), problem.x[:, j].max()
        if share < _FILLED_ENOUGH:
            yield Caution(
                dotted("data", "inputs", name),
                f"the data lie in [{start:g}, {end:g}], {share:.0%} of the range [{low:g}, {high:g}], and the target "
                "counts all of the range; narrow it, or observe the rest.",
            )


def _few_observations(problem: Problem) -> Iterator[Caution]:
    n, p = len(problem.y), len(problem.parameter_names)
    if n < _OBSERVATIONS_PER_PARAMETER * p:
        yield Caution(
            "data.file",
            f"{n} observations are few for {p} parameter{'s' if p > 1 else ''}, and intervals may then be too short, "
            "those of general Bayes above all; compare l2 with koh, "
            f"or observe at least {_OBSERVATIONS_PER_PARAMETER * p}.",
        )


def _unused_inputs(source: Source, inputs: Iterable[str]) -> Iterator[Caution]:
    for name in source.unused(list(inputs)):
        yield Caution(
            dotted("data", "inputs", name),
            f"the {source.key} does not use '{name}', so whatever it does to the response is error of the model; "
            "use it, or leave it out if it does nothing.",
        )


def _measured(reading: Reading, source: Source) -> Iterator[Caution]:
    """Columns that the model names as something else than an input."""
    for name in reading.spec.prior:
        if name in reading.columns:
            yield Caution(
                dotted("prior", name),
                f"'{name}' is a parameter here, but also a column of the data; "
                f"if it was measured, add {name} = [low, high] to [data.inputs] instead.",
            )
    declared = {*reading.spec.data.inputs, *reading.spec.prior}
    assert reading.problem is not None
    for name in reading.problem.experiment.model.arguments:
        if name in reading.columns and name not in declared:
            yield Caution(
                dotted("model", source.key),
                f"the argument '{name}' keeps its default although the data have a column '{name}'; "
                f"if it is meant, add {name} = [low, high] to [data.inputs].",
            )


def _not_finite(problem: Problem) -> Iterator[str]:
    """The experiment has tried the middle of the prior; here it is tried whole."""
    known = problem.experiment
    thetas = known.prior.quantile(kronecker(_TRIED_THETAS, known.parameters))
    points = np.vstack([known.x[:: 1 + known.observations // _TRIED_POINTS], known.nodes])
    values = known.model.values(points, thetas)
    lost = ~np.isfinite(values).all(axis=1)
    if lost.any():
        at = named(problem.parameter_names, thetas[int(np.argmax(lost))])
        yield (
            f"the model is not finite for about {lost.mean():.1%} of the prior, for example at {at}; "
            "narrow the prior or mend the model, since no posterior can be there."
        )
