"""Studies that cost nothing: a configuration whose target is known, and blocks with made-up numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from l2calib.errors import Status
from l2calib.estimates import L2Target
from l2calib.study.block import PARAMETER_COLUMNS, design_digest, identity, versions
from l2calib.study.configurations import configurations_in
from l2calib.study.plan import Plan
from l2calib.study.sealed import seal

SOURCE = """
import l2calib as l2
from l2calib.study.configurations import Configuration

def line(x, a, b):
    return a + b * x

def bent(x):
    return 1 + 2 * x + (x - 0.5) ** 2

configurations = [
    Configuration("line", line, {"x": (0, 2)}, {"a": l2.Uniform(0, 3), "b": l2.Normal(0, 5)}, system=bent, sigma2=0.04)
]
"""
TARGET = (1.25, 3.0)


def line(source=SOURCE):
    """The configuration of a source, with a target that need not be computed."""
    fresh = replace(configurations_in(source)["line"])
    zeros = np.zeros((2, 2))
    fresh.__dict__["target"] = L2Target(("a", "b"), np.array(TARGET), 0.1, zeros, zeros, Status.OK)
    return fresh


def plan(source=SOURCE, **changes):
    asked = {"sizes": [10], "errors": ["normal"], "methods": ["nlm", "gb-ols"], "replications": 40, "block": 20}
    return Plan({"line": line(source)}, **(asked | changes))


def columns(task, seed=0):
    """Made-up numbers of a block, by column."""
    rng = np.random.default_rng([seed, task.cell.block, task.cell.n])
    first = task.cell.block * task.rows
    made: dict[str, np.ndarray | None] = {"replication": np.arange(first, first + task.rows)}
    for name, theta in zip("ab", TARGET, strict=True):
        mean = theta + 0.1 * rng.standard_normal(task.rows)
        values = (mean, 0.1 + 0.01 * rng.random(task.rows), mean - 0.2, mean, mean + 0.2, mean)
        made |= {f"{name}_{what}": value for what, value in zip(PARAMETER_COLUMNS, values, strict=True)}
    made |= dict.fromkeys(["gamma", "sigma2", "kappa", "psi1"])
    return made | {"status": np.zeros(task.rows, dtype=np.int64), "error": np.full(task.rows, 1e-6)}


def block(task, made=None, **about):
    """A sealed file of these numbers, or of made-up ones."""
    known = identity(task.cell, task.rows, task.levels, task.seed, design_digest(task.design))
    known |= {"seconds": 2.0, "seconds_compiling": 0.0, "compiled": False, "versions": versions()}
    empty = pa.nulls(task.rows, pa.float64())
    table = {name: empty if values is None else values for name, values in (made or columns(task)).items()}
    return seal(pa.table(table), known | about)
