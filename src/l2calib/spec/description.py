"""What a spec asks for, in words and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.display.numbers import short
from l2calib.display.words import listed
from l2calib.methods.catalogue import DEFAULT_IN_WORDS, DEFAULT_METHOD
from l2calib.models.kinds import kind_called
from l2calib.problem import distributions as catalogue
from l2calib.spec.cautions import cautions, filled

if TYPE_CHECKING:
    from l2calib.problem.distributions import Distribution
    from l2calib.problem.problem import Problem
    from l2calib.spec.reading import Reading

_IN_WORDS: dict[type[Any], str] = {
    catalogue.Uniform: "uniform between {low:g} and {high:g}",
    catalogue.Normal: "normal with mean {mean:g} and standard deviation {sd:g}",
    catalogue.TruncatedNormal: "normal with mean {mean:g} and standard deviation {sd:g}, cut to [{low:g}, {high:g}]",
    catalogue.LogNormal: "log-normal: its logarithm has mean {mean_log:g} and standard deviation {sd_log:g}",
    catalogue.Gamma: "gamma with shape {shape:g} and rate {rate:g}",
    catalogue.Beta: "beta({a:g}, {b:g}) on [0, 1]",
    catalogue.HalfNormal: "half-normal: the size of a normal with mean 0 and standard deviation {sd:g}",
}
_METHOD = f"{DEFAULT_METHOD} ({DEFAULT_IN_WORDS}) unless --method names another"


def describe(reading: Reading) -> dict[str, Any]:
    """What will be calibrated, of a reading without mistakes, as data for JSON."""
    problem, source = reading.problem, reading.source
    assert problem is not None
    assert source is not None
    return {
        "response": problem.response,
        "observations": len(problem.y),
        "inputs": {name: _input(problem, j) for j, name in enumerate(problem.input_names)},
        "replicates": _replicates(problem),
        "model": source.description(problem.experiment.model),
        "prior": {name: prior_in_words(each) for name, each in problem.experiment.prior.distributions.items()},
        "method": DEFAULT_METHOD,
        "target": _target(problem),
        "warnings": [{"key": each.key, "sentence": each.sentence} for each in cautions(reading)],
    }


def in_words(description: dict[str, Any]) -> list[tuple[str, str]]:
    """A description as headings and sentences."""
    inputs = [_input_in_words(name, each) for name, each in description["inputs"].items()]
    parameters = [f"{name}: {words}" for name, words in description["prior"].items()]
    return [
        ("response", f"{description['response']}, {description['observations']} observations"),
        *_under("input", inputs),
        ("replicates", _replicates_in_words(description["replicates"], description["observations"])),
        ("model", kind_called(description["model"]["kind"]).in_words(description["model"])),
        *_under("parameter", parameters),
        ("method", _METHOD),
        ("target", description["target"]),
    ]


def prior_in_words(distribution: Distribution) -> str:
    """The law, and where its middle nine tenths lie."""
    low, high = distribution.quantile(np.array([0.05, 0.95]))
    law = _IN_WORDS[type(distribution)].format(**vars(distribution))
    return f"{law} (90% of it between {short(low)} and {short(high)})"


def _under(heading: str, lines: list[str]) -> list[tuple[str, str]]:
    name = heading if len(lines) == 1 else f"{heading}s"
    return [(name if i == 0 else "", line) for i, line in enumerate(lines)]


def _input(problem: Problem, j: int) -> dict[str, Any]:
    values, limits = np.unique(problem.x[:, j]), list(problem.inputs.values())[j]
    gap = int(np.argmax(np.diff(values))) if len(values) > 1 else 0
    return {
        "range": list(limits),
        "data": [float(values[0]), float(values[-1])],
        "values": len(values),
        "filled": filled(problem, j),
        "widest_gap": [float(value) for value in values[gap : gap + 2]],
    }


def _input_in_words(name: str, told: dict[str, Any]) -> str:
    low, high = told["range"]
    start, end = told["data"]
    lie = f"{name} in [{low:g}, {high:g}]: "
    if told["values"] == 1:
        return f"{lie}all data at {start:g}"
    before, after = told["widest_gap"]
    return (
        f"{lie}{told['values']} values from {start:g} to {end:g}, {told['filled']:.0%} of the range; "
        f"the widest gap is from {before:g} to {after:g}"
    )


def _replicates(problem: Problem) -> dict[str, int]:
    _, counts = np.unique(problem.x, axis=0, return_counts=True)
    return {"settings": len(counts), "fewest": int(counts.min()), "most": int(counts.max())}


def _replicates_in_words(told: dict[str, int], observations: int) -> str:
    if told["most"] == 1:
        return f"none: {observations} different settings of the inputs"
    each = f"{told['most']}" if told["fewest"] == told["most"] else f"{told['fewest']} to {told['most']}"
    return f"{told['settings']} different settings of the inputs, {each} observations at each"


def _target(problem: Problem) -> str:
    theta = listed(problem.parameter_names)
    where = ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in problem.inputs.items())
    return f"theta_L2: the {theta} for which the model is closest to the system, in mean square over {where}"
