"""A named problem with its target, as `benchmarks.realistic` has its own: one form for both, and one way of judging.

`REVISION` counts changes of what a name means.
"""

from __future__ import annotations

import functools

import numpy as np

from benchmarks.named.nearest import nearest, rule
from benchmarks.named.settings import SETTINGS
from benchmarks.realistic.problems import RealisticProblem, surface_at

REVISION = 1
NAMES = tuple(SETTINGS)
_FIRST_SEED = 7_000_000  # of the errors, which are none of those of the random problems
_GRID = {1: 4097, 2: 129, 3: 33}


@functools.cache
def named(name: str) -> RealisticProblem:
    """The problem of that name; one object, on which prepared tables and compiled programs hang."""
    given = SETTINGS[name]()
    low, high = np.array(list(given.inputs.values())).T
    box = np.array(list(given.prior.values()))
    kink = None if given.kink is None else (0, float((given.kink - low[0]) / (high[0] - low[0])))

    def system(x: np.ndarray) -> np.ndarray:
        return given.system(**dict(zip(given.inputs, x.T, strict=True)))

    known = rule(len(low), kink)
    nodes = low + (high - low) * known.nodes
    surface = surface_at(given.model, nodes, given.inputs, given.prior)
    target, distance, _ = nearest(surface, system(nodes), known.weights, box)
    return RealisticProblem(
        seed=_FIRST_SEED + NAMES.index(name),
        model_name=name,
        model=given.model,
        inputs=given.inputs,
        prior=given.prior,
        true_parameters={},
        deviation=given.truth,
        kink=kink,
        design=given.design,
        truth="exact" if given.truth == "exact" else "wrong",
        law="normal",
        x=given.x,
        sigma=given.sigma,
        target=target,
        discrepancy=distance,
        extent=float(np.ptp(system(_everywhere(low, high)))),
        system=system,
    )


def _everywhere(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    axes = [np.linspace(a, b, _GRID[len(low)]) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low))
