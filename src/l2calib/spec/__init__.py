"""The TOML file that describes a problem, and the problem that it describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from l2calib.spec.mistakes import first_of
from l2calib.spec.reading import read_spec
from l2calib.spec.tables import examples

if TYPE_CHECKING:
    from pathlib import Path

    from l2calib.problem.problem import Problem

__all__ = ["examples", "load_problem", "read_spec"]


def load_problem(spec: str | Path) -> Problem:
    """Build the problem that a spec file, or the packaged example of that name, describes."""
    reading = read_spec(spec)
    if reading.problem is None:
        raise first_of(reading.mistakes, str(spec)) from reading.mistakes[0].error
    return reading.problem
