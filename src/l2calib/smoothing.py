"""rho of many datasets, chosen once for all methods that smooth them in the same way."""

from __future__ import annotations

import functools
import hashlib
import time
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from l2calib.arrays import jax, jnp
from l2calib.compilation import compiled_for_batches
from l2calib.experiment import Experiment
from l2calib.methods.method import Smoothing
from l2calib.smoother import Choice, keeps_model

_CHUNK = 128
_REMEMBERED = 256  # batches, some ten kilobytes each


class Chosen(NamedTuple):
    """What was chosen for every dataset of a batch, and the seconds that it took, without compilation."""

    choice: Choice
    seconds: float


def choose(smoothing: Smoothing, experiment: Experiment, responses: np.ndarray) -> Chosen:
    """Choose rho for responses (N, n), or remember what was chosen for them."""
    smoothing = smoothing._replace(with_model=keeps_model(experiment, smoothing.with_model))
    digest = hashlib.sha256(np.ascontiguousarray(responses).tobytes()).digest()
    key = smoothing, experiment, responses.shape, digest
    if key not in _remembered:
        with threadpool_limits(1, user_api="blas"):
            _remembered[key] = _choose(smoothing, experiment, responses)
        while len(_remembered) > _REMEMBERED:
            _remembered.popitem(last=False)
    return _remembered[key]


_remembered: OrderedDict[Any, Chosen] = OrderedDict()


def _choose(smoothing: Smoothing, experiment: Experiment, responses: np.ndarray) -> Chosen:
    size = min(_CHUNK, 2 ** int(np.ceil(np.log2(len(responses)))))
    tables = smoothing.smoother.prepare(experiment, smoothing.with_model)
    program = _program(smoothing, experiment, size)
    began = time.perf_counter()
    parts = []
    for begin in range(0, len(responses), size):
        rows = np.minimum(np.arange(begin, begin + size), len(responses) - 1)
        parts.append(jax.device_get(program(tables, jnp.asarray(responses[rows]))))
    joined: Choice = jax.tree.map(lambda *fields: np.concatenate(fields)[: len(responses)], *parts)
    return Chosen(joined, time.perf_counter() - began)


@functools.lru_cache(maxsize=8)
def _program(smoothing: Smoothing, experiment: Experiment, size: int) -> Any:
    tables = smoothing.smoother.prepare(experiment, smoothing.with_model)
    responses = jax.ShapeDtypeStruct((size, experiment.observations), float)
    return compiled_for_batches(jax.vmap(smoothing.smoother.choose, (None, 0))).lower(tables, responses).compile()
