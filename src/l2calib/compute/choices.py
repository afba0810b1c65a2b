"""rho of many datasets, chosen once for all methods that smooth them in the same way, which it is then handed to."""

from __future__ import annotations

import functools
import time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from l2calib.methods.method import Smoothing
from l2calib.numerics.arrays import jax, jnp
from l2calib.numerics.compile import compiled_for_batches
from l2calib.problem.experiment import Experiment
from l2calib.smoothers.gcv import Choice
from l2calib.smoothers.grid import keeps_model

_CHUNK = 128


class Chosen(NamedTuple):
    """What was chosen for every dataset of a batch, and the seconds that it took, without compilation."""

    choice: Choice
    seconds: float


def shared_smoothing(smoothing: Smoothing, experiment: Experiment) -> Smoothing:
    """The same for all methods that can share one choice for an experiment."""
    return smoothing._replace(with_model=keeps_model(experiment, smoothing.with_model))


def choose(smoothing: Smoothing, experiment: Experiment, responses: np.ndarray) -> Chosen:
    """Choose rho for responses (N, n)."""
    smoothing = shared_smoothing(smoothing, experiment)
    whitened = experiment.whiten(responses)
    size = min(_CHUNK, 2 ** int(np.ceil(np.log2(len(responses)))))
    # LAPACK's own threads fight with XLA's.
    with threadpool_limits(1, user_api="blas"):
        tables = smoothing.smoother.prepare(experiment, smoothing.with_model)
        program = _program(smoothing, experiment, size)
        began = time.perf_counter()
        parts = []
        for begin in range(0, len(responses), size):
            rows = np.minimum(np.arange(begin, begin + size), len(responses) - 1)
            parts.append(jax.device_get(program(tables, jnp.asarray(whitened[rows]))))
    joined: Choice = jax.tree.map(lambda *fields: np.concatenate(fields)[: len(responses)], *parts)
    return Chosen(joined, time.perf_counter() - began)


@functools.lru_cache(maxsize=8)
def _program(smoothing: Smoothing, experiment: Experiment, size: int) -> jax.stages.Compiled:
    tables = smoothing.smoother.prepare(experiment, smoothing.with_model)
    responses = jax.ShapeDtypeStruct((size, experiment.observations), float)
    return compiled_for_batches(jax.vmap(smoothing.smoother.choose, (None, 0))).lower(tables, responses).compile()
