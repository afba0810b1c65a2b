"""l2calib itself: seconds per dataset in a batch."""

from __future__ import annotations

import time

import numpy as np
from tests.problems import experiment

import l2calib as l2
from benchmarks.cases import datasets


def seconds_per_dataset(number: int, n: int, method: str, batch: int, runs: int = 3) -> float:
    """The median of a few runs after one that compiles, each on datasets that nothing has been learnt from before."""
    setting = experiment(number, n)
    times = []
    for run in range(runs + 1):
        responses = datasets(number, n, batch, run)
        began = time.perf_counter()
        l2.calibrate_batch(setting, responses, method, seed=run)
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:])) / batch
