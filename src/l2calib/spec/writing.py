"""A spec file as text, with comments for those who will edit it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from l2calib.models.expression import CONSTANTS, FUNCTIONS
from l2calib.spec.priors import prior_forms
from l2calib.spec.quoting import dotted, quoted

_WIDTH = 100


@dataclass(frozen=True)
class Draft:
    """What a spec is to say; paths are relative to where it will be."""

    file: str
    response: str
    inputs: Mapping[str, tuple[float, float]]
    kind: str  # of the model, as its key says
    model: str
    prior: Mapping[str, str]


def spec_text(draft: Draft) -> str:
    """Return the TOML file that says what the draft does."""
    return _TEMPLATE.format(
        file=quoted(draft.file),
        response=quoted(draft.response),
        inputs=_lines((name, f"[{low!r}, {high!r}]") for name, (low, high) in draft.inputs.items()),
        model=_lines([(draft.kind, quoted(draft.model))]),
        prior=_lines((name, quoted(text)) for name, text in draft.prior.items()),
        constants=" and ".join(CONSTANTS),
        functions=_comment(sorted(FUNCTIONS)),
        priors="\n".join(f"#   {form}" for form in prior_forms()),
    )


def _lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{dotted(key)} = {value}" for key, value in pairs)


def _comment(items: Iterable[str]) -> str:
    return textwrap.fill(", ".join(items), _WIDTH, initial_indent="#   ", subsequent_indent="#   ")


_TEMPLATE = """\
# What is calibrated and against which data; 'l2calib check' on this file says it in words.

[data]
file = {file}  # a CSV file with a header; its path is relative to this file
response = {response}  # the column that the model predicts

# Every input with its range [low, high], in the units of its column. The model is brought close to the
# system over all of these ranges, so choose them by where it is to be good; no data may lie outside.
[data.inputs]
{inputs}

# The model, a function of the inputs and of the parameters by their names: either
#   python = "model.py:function", a function of a Python file, written with jax.numpy, or
#   expression = "a + b * x", a formula of numbers, names, + - * / **, the constants {constants}, and
{functions}
[model]
{model}

# The prior of every parameter: each argument is a number, or a formula such as log(5) or 2*pi.
{priors}
[prior]
{prior}
"""
