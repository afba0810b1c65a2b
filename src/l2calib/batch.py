"""Many datasets of one experiment, in chunks of fixed shapes.

Every dataset is fitted once, in large chunks, since a fit reads large tables. Its posterior is then computed, in small
chunks, since it fills the caches by itself: at the engine's first level, and again at later ones while its numerical
error exceeds the tolerance. Datasets that need a level wait for each other until they fill a chunk.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from l2calib.arrays import Array, jax, jnp
from l2calib.compilation import compiled_for_batches
from l2calib.engines import Engine
from l2calib.engines.modes import Survey
from l2calib.experiment import Experiment
from l2calib.methods import DensityMethod, DrawingMethod, Fit
from l2calib.prior import Prior
from l2calib.smoother import Choice
from l2calib.smoothing import choose
from l2calib.solve import Solution, drawn, first_level, integrated, next_levels, prepared, target_of

_CHUNK_BYTES = 80e6  # small enough for the caches to help
_LARGEST_CHUNK = 128
_UNDER_WAY = 2  # chunks that are computed while another is written down


class _Started(NamedTuple):
    """Datasets that were fitted: rows of the batch and, along the first axis, what is known of them."""

    rows: np.ndarray
    fit: Fit
    survey: Survey | None
    key_data: Array

    def take(self, index: np.ndarray | slice) -> _Started:
        return _Started(self.rows[index], *jax.tree.map(lambda array: array[index], tuple(self[1:])))


@functools.lru_cache(maxsize=32)
def _fitting(method: DensityMethod | DrawingMethod, experiment: Experiment) -> Any:
    def fit(shared: Any, y: Array, key: Array, choice: Choice | None) -> tuple[Fit, Array]:
        fit_key, engine_key = jax.random.split(key)
        return method.fit(experiment, shared, y, fit_key, choice), jax.random.key_data(engine_key)

    return compiled_for_batches(jax.vmap(fit, (None, 0, 0, 0)))


@functools.lru_cache(maxsize=32)
def _surveying(method: DensityMethod, prior: Prior, engine: Engine) -> Any:
    """Like the program that integrates, the same for every experiment with this prior, as far as the shapes allow."""

    def survey(view: Any, fit: Fit) -> Survey:
        return engine.survey(target_of(method, prior, view, fit))

    return compiled_for_batches(jax.vmap(survey, (None, 0)))


@functools.lru_cache(maxsize=64)
def _integrating(method: DensityMethod, prior: Prior, engine: Engine, level: int) -> Any:
    def integrate(view: Any, fit: Fit, survey: Survey, key_data: Array) -> Solution:
        key = jax.random.wrap_key_data(key_data)
        return integrated(method, prior, engine, level, view, fit, survey, key)._replace(points=None)

    return compiled_for_batches(jax.vmap(integrate, (None, 0, 0, 0)))


@functools.lru_cache(maxsize=32)
def _drawing(method: DrawingMethod, experiment: Experiment) -> Any:
    def draw(shared: Any, fit: Fit, key_data: Array) -> Solution:
        return drawn(method, experiment, shared, fit, jax.random.wrap_key_data(key_data))._replace(points=None)

    return compiled_for_batches(jax.vmap(draw, (None, 0, 0)))


def solve_batch(
    method: DensityMethod | DrawingMethod,
    experiment: Experiment,
    engine: Engine,
    responses: np.ndarray,
    keys: Array,
    progress: Callable[[int], None] | None = None,
) -> Solution:
    """The solutions of all responses (N, n), without their points; `progress` is told how many are done."""
    # LAPACK's own threads fight with XLA's: with two processes they were up to seventy times slower.
    with threadpool_limits(1, user_api="blas"):
        return _Batch(method, experiment, engine, len(responses), progress).solve(responses, keys)


class _UnderWay(NamedTuple):
    """A chunk whose solutions are being computed."""

    level: int
    started: _Started
    genuine: int
    solved: Solution


class _Batch:
    def __init__(
        self,
        method: DensityMethod | DrawingMethod,
        experiment: Experiment,
        engine: Engine,
        number: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._what = method, experiment, engine
        self._shared = prepared(method, experiment)
        self._number, self._progress = number, progress
        self._first = first_level(method, experiment, engine)
        drawing = isinstance(method, DrawingMethod)
        self._last = self._first if drawing else engine.levels(experiment.parameters) - 1
        self._waiting: dict[int, list[_Started]] = {level: [] for level in range(self._first, self._last + 1)}
        self._under_way: deque[_UnderWay] = deque()
        self._result: Solution | None = None

    def solve(self, responses: np.ndarray, keys: Array) -> Solution:
        size, chunk = self._started_together, self._chunk(self._first)
        method, experiment, _ = self._what
        smoothing = method.smoothing
        choices = None if smoothing is None else choose(smoothing, experiment, responses).choice
        for begin in range(0, self._number, size):
            rows = np.minimum(np.arange(begin, begin + size), self._number - 1)
            choice = None if choices is None else Choice(*(field[rows] for field in choices))
            started = self._start(rows, responses[rows], keys[rows], choice)
            for first in range(0, min(size, self._number - begin), chunk):
                part = started.take(slice(first, first + chunk))
                self._launch(self._first, part, self._number - begin - first)
        self._collect(leave=0)
        for level in range(self._first + 1, self._last + 1):
            self._flush(level, 1)
            self._collect(leave=0)
        assert self._result is not None
        return self._result

    def _start(self, rows: np.ndarray, responses: np.ndarray, keys: Array, choice: Choice | None) -> _Started:
        method, experiment, engine = self._what
        fit, key_data = _fitting(method, experiment)(self._shared, jnp.asarray(responses), keys, choice)
        survey = None
        if not isinstance(method, DrawingMethod):
            survey = _surveying(method, experiment.prior, engine)(method.view(experiment), fit)
        return _Started(rows, *jax.tree.map(np.asarray, (fit, survey, key_data)))

    @property
    def _started_together(self) -> int:
        method, experiment, _ = self._what
        return self._at_once(method.fitting_set(experiment))

    def _chunk(self, level: int) -> int:
        method, experiment, engine = self._what
        numbers = method.looking_set(experiment, engine.evaluations(experiment.parameters, level))
        return min(self._at_once(numbers), self._started_together)

    def _at_once(self, numbers: int) -> int:
        """A power of two of datasets that keeps the working set in bounds, whatever the machine."""
        fitting = max(1, int(_CHUNK_BYTES / (8 * numbers)))
        largest = min(_LARGEST_CHUNK, 2 ** int(np.log2(fitting)))
        return int(min(largest, 2 ** int(np.ceil(np.log2(self._number)))))

    def _flush(self, level: int, least: int) -> None:
        """Solve those who wait for a level while there are at least so many of them."""
        size = self._chunk(level)
        while sum(len(part.rows) for part in self._waiting[level]) >= least:
            rows = np.concatenate([part.rows for part in self._waiting[level]])
            trees = [tuple(part[1:]) for part in self._waiting[level]]
            waiting = _Started(rows, *jax.tree.map(lambda *arrays: np.concatenate(arrays), *trees))
            padded = np.minimum(np.arange(size), len(rows) - 1)
            rest = np.arange(size, len(rows))
            self._waiting[level] = [waiting.take(rest)] if rest.size else []
            self._launch(level, waiting.take(padded), len(rows))

    def _launch(self, level: int, started: _Started, genuine: int) -> None:
        """Begin to solve a chunk, whose first `genuine` datasets count; the call returns before it is computed."""
        method, experiment, engine = self._what
        if isinstance(method, DrawingMethod):
            solved = _drawing(method, experiment)(self._shared, started.fit, started.key_data)
        else:
            integrate = _integrating(method, experiment.prior, engine, level)
            solved = integrate(method.view(experiment), started.fit, started.survey, started.key_data)
        self._under_way.append(_UnderWay(level, started, genuine, solved))
        self._collect(leave=_UNDER_WAY)

    def _collect(self, leave: int) -> None:
        """Write chunks down, the oldest first, until so many are left under way."""
        while len(self._under_way) > leave:
            chunk = self._under_way.popleft()
            self._write(chunk.level, chunk.started, chunk.genuine, jax.device_get(chunk.solved))
            for level in range(chunk.level + 1, self._last + 1):
                self._flush(level, self._chunk(level))

    def _write(self, level: int, started: _Started, genuine: int, solved: Solution) -> None:
        """Write down the solutions of a chunk; datasets that are inaccurate wait for a later level."""
        if self._result is None:
            self._result = jax.tree.map(lambda a: np.empty((self._number, *a.shape[1:]), a.dtype), solved)
        index = np.arange(min(genuine, len(started.rows)))

        def write(whole: np.ndarray, part: np.ndarray) -> None:
            whole[started.rows[index]] = part[index]

        jax.tree.map(write, self._result, solved)
        following = next_levels(*self._what, level, solved)[index]
        for later in np.unique(following[following > level]):
            self._waiting[int(later)].append(started.take(index[following == later]))
        if self._progress is not None:
            self._progress(int(np.sum(following == level)))
