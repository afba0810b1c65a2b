"""l2calib itself: seconds per dataset in a batch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.oracles.configurations import configuration, design

if TYPE_CHECKING:
    from l2calib import Experiment

from benchmarks.cases import MODELS, datasets


def experiment(number: int, n: int) -> Experiment:
    """The configuration as a user would set it up."""
    import l2calib as l2

    chosen = configuration(number)
    bounds = zip(chosen.lower, chosen.upper, strict=True)
    return l2.Experiment(
        model=MODELS[number],
        inputs={f"x{j + 1}": (0.0, 1.0) for j in range(chosen.k)},
        x=design(n, chosen.k),
        prior={f"theta{j + 1}": l2.Uniform(float(a), float(b)) for j, (a, b) in enumerate(bounds)},
    )


def seconds_per_dataset(number: int, n: int, method: str, batch: int, runs: int = 3) -> float:
    """The best of a few runs after one that compiles."""
    import l2calib as l2
    from l2calib.methods import METHODS

    setting, responses = experiment(number, n), datasets(number, n, batch)
    times = []
    for run in range(runs + 1):
        began = time.perf_counter()
        l2.calibrate_batch(setting, responses, METHODS[method], seed=run)
        times.append(time.perf_counter() - began)
    return min(times[1:]) / batch
