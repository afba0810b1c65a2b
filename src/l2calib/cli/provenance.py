"""Where results come from: all that a reader needs to understand and repeat a run, beside its results."""

from __future__ import annotations

import platform
import shlex
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from l2calib.spec.mistakes import Findings
from l2calib.spec.tables import locate, read_tables, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from l2calib.problem.problem import Problem
    from l2calib.results.calibration import Calibration

_PACKAGES = ("numpy", "scipy", "jax", "jaxlib", "xarray", "arviz-base")


def origin(spec: str, problem: Problem) -> dict[str, Any]:
    """What a spec says, with its files as text: read before the work, since files may change while it goes on."""
    path = locate(spec)
    text = text_of(path)
    tables = read_tables(text, Findings())
    columns = {problem.response: problem.y, **dict(zip(problem.input_names, problem.x.T, strict=True))}
    (source,) = tables.model.sources(path.parent)
    return {
        "spec": {"name": spec, "text": text},
        "model": source.recorded(problem.experiment.model),
        "response": problem.response,
        "inputs": {name: list(ends) for name, ends in problem.inputs.items()},
        "prior": dict(tables.prior),
        "data": {"file": tables.data.file, "columns": {name: values.tolist() for name, values in columns.items()}},
    }


def provenance(origin: dict[str, Any], seed: int, results: Sequence[Calibration]) -> dict[str, Any]:
    """The content of run.json; `level` is the refinement of the engine that sufficed."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
    return {
        "l2calib": version("l2calib"),
        "versions": versions,
        "command": shlex.join(["l2calib", *sys.argv[1:]]),
        **origin,
        "seed": seed,
        "results": [_entry(result) for result in results],
    }


def _entry(result: Calibration) -> dict[str, Any]:
    return {
        "method": result.method,
        "status": str(result.status),
        "messages": [*result.messages, *result.notes],
        "numerical_error": result.numerical_error,
        "engine": result.engine,
        "level": result.level,
    }
