"""Many datasets of one experiment, in chunks of fixed shapes.

Every dataset is fitted once, in large chunks, since a fit reads large tables. Its posterior is then computed, in small
chunks, since it fills the caches by itself: at the engine's first level, and again at later ones while its numerical
error exceeds the tolerance. Datasets that need a level wait for each other until they fill a chunk.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from l2calib.compute.choices import choose
from l2calib.compute.solvers import Solver, solver_of
from l2calib.compute.stages import Solution, next_levels, posterior_of, prepared, stage_keys
from l2calib.engines.engine import Engine
from l2calib.methods.method import AnyMethod, Fit, Method, workload_of
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.compile import Compiled, compiled_for_batches
from l2calib.numerics.modes import Survey
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.smoothers.gcv import Choice

S = TypeVar("S")
V = TypeVar("V")
D = TypeVar("D")

_CHUNK_BYTES = 80e6  # small enough for the caches to help
_LARGEST_CHUNK = 128
_UNDER_WAY = 2  # chunks that are computed while another is written down


class _Started(NamedTuple, Generic[D]):
    """Datasets that were fitted: rows of the batch and, along the first axis, what is known of them."""

    rows: np.ndarray
    fit: Fit[D]
    survey: Survey | None
    key_data: Array

    def take(self, index: np.ndarray | slice) -> _Started[D]:
        return _Started(self.rows[index], *jax.tree.map(lambda array: array[index], tuple(self[1:])))


class _Fitting(Generic[S, V, D]):
    """The program that fits datasets, and the solvers that its fits call for."""

    def __init__(self, method: Method[S, V, D], experiment: Experiment) -> None:
        self._method, self._experiment = method, experiment
        self._solvers: dict[Engine, Solver[V, D]] = {}

        def fit(shared: S, y: Array, key: Array, choice: Choice | None) -> tuple[Fit[D], Array]:
            fit_key, engine_key = stage_keys(key)
            return method.fit(experiment, shared, y, key=fit_key, choice=choice), jax.random.key_data(engine_key)

        self.program = compiled_for_batches(jax.vmap(fit, (None, 0, 0, 0)))

    def solver(self, engine: Engine, view: V, fits: Fit[D]) -> Solver[V, D]:
        """With an engine, for fits that have the datasets along their first axis."""
        if engine not in self._solvers:
            one: Fit[D] = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape[1:], array.dtype), fits)
            self._solvers[engine] = solver_of(self._method, self._experiment, engine, view, one)
        return self._solvers[engine]


@functools.lru_cache(maxsize=32)
def _fitting(method: Method[S, V, D], experiment: Experiment) -> _Fitting[S, V, D]:
    return _Fitting(method, experiment)


# The solver knows the prior and no design: what follows is the same for every experiment, as far as the shapes allow.
@functools.lru_cache(maxsize=32)
def _surveying(solver: Solver[V, D]) -> Compiled[[V, Fit[D]], Survey]:
    return compiled_for_batches(jax.vmap(solver.survey, (None, 0)))


@functools.lru_cache(maxsize=64)
def _solving(prior: Prior, solver: Solver[V, D], level: int) -> Compiled[[V, Fit[D], Survey | None, Array], Solution]:
    def solve(view: V, fit: Fit[D], survey: Survey | None, key_data: Array) -> Solution:
        key = jax.random.wrap_key_data(key_data)
        found = posterior_of(prior, solver, level, view=view, fit=fit, survey=survey, key=key)
        return found._replace(points=None)

    return compiled_for_batches(jax.vmap(solve, (None, 0, 0, 0)))


def solve_batch(
    method: AnyMethod,
    experiment: Experiment,
    engine: Engine,
    responses: np.ndarray,
    keys: Array,
    choice: Choice | None = None,
    progress: Callable[[int], None] | None = None,
) -> Solution:
    """The solutions of all responses (N, n), without their points.

    `choice` is what the method's smoother has chosen for them, if that is known; `progress` is told how many are done.
    """
    # LAPACK's own threads fight with XLA's: with two processes they were up to seventy times slower.
    with threadpool_limits(1, user_api="blas"):
        if choice is None and method.smoothing is not None:
            choice = choose(method.smoothing, experiment, responses).choice
        batch = _Batch(method, experiment, engine, len(responses), progress)
        return batch.solve(experiment.whiten(responses), keys, choice)


class _UnderWay(NamedTuple, Generic[D]):
    """A chunk whose solutions are being computed."""

    level: int
    started: _Started[D]
    genuine: int
    solved: Solution


class _Batch(Generic[S, V, D]):
    def __init__(
        self,
        method: Method[S, V, D],
        experiment: Experiment,
        engine: Engine,
        number: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._method, self._experiment, self._engine = method, experiment, engine
        self._prepared = prepared(method, experiment)
        self._workload = workload_of(method, experiment)
        self._number, self._progress = number, progress
        self._waiting: dict[int, list[_Started[D]]] = {}
        self._under_way: deque[_UnderWay[D]] = deque()
        self._result: Solution | None = None

    def solve(self, responses: np.ndarray, keys: Array, choice: Choice | None) -> Solution:
        size = self._at_once(self._workload.fitting)
        for begin in range(0, self._number, size):
            rows = np.minimum(np.arange(begin, begin + size), self._number - 1)
            own = None if choice is None else Choice(*(field[rows] for field in choice))
            started = self._start(rows, responses[rows], keys[rows], own)
            chunk = self._chunk(self._solver.first_level)
            for first in range(0, min(size, self._number - begin), chunk):
                part = started.take(slice(first, first + chunk))
                self._launch(self._solver.first_level, part, self._number - begin - first)
        self._collect(leave=0)
        for level in self._later(self._solver.first_level):
            self._flush(level, 1)
            self._collect(leave=0)
        assert self._result is not None
        return self._result

    def _start(self, rows: np.ndarray, responses: np.ndarray, keys: Array, choice: Choice | None) -> _Started[D]:
        shared, view = self._prepared
        fitting = _fitting(self._method, self._experiment)
        fit, key_data = fitting.program(shared, jnp.asarray(responses), keys, choice)
        if not self._waiting:
            self._solver = fitting.solver(self._engine, view, fit)
            self._waiting = {level: [] for level in range(self._solver.first_level, self._solver.last_level + 1)}
        survey = _surveying(self._solver)(view, fit) if self._solver.surveys else None
        return _Started(rows, *jax.tree.map(np.asarray, (fit, survey, key_data)))

    def _later(self, level: int) -> range:
        return range(level + 1, self._solver.last_level + 1)

    def _chunk(self, level: int) -> int:
        looking = self._workload.looking(self._solver.evaluations(level))
        return min(self._at_once(looking), self._at_once(self._workload.fitting))

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

    def _launch(self, level: int, started: _Started[D], genuine: int) -> None:
        """Begin to solve a chunk, whose first `genuine` datasets count; the call returns before it is computed."""
        program = _solving(self._experiment.prior, self._solver, level)
        solved = program(self._prepared.view, started.fit, started.survey, started.key_data)
        self._under_way.append(_UnderWay(level, started, genuine, solved))
        self._collect(leave=_UNDER_WAY)

    def _collect(self, leave: int) -> None:
        """Write chunks down, the oldest first, until so many are left under way."""
        while len(self._under_way) > leave:
            chunk = self._under_way.popleft()
            self._write(chunk.level, chunk.started, chunk.genuine, jax.device_get(chunk.solved))
            for level in self._later(chunk.level):
                self._flush(level, self._chunk(level))

    def _write(self, level: int, started: _Started[D], genuine: int, solved: Solution) -> None:
        """Write down the solutions of a chunk; datasets that are inaccurate wait for a later level."""
        if self._result is None:
            self._result = jax.tree.map(lambda a: np.empty((self._number, *a.shape[1:]), a.dtype), solved)
        index = np.arange(min(genuine, len(started.rows)))

        def write(whole: np.ndarray, part: np.ndarray) -> None:
            whole[started.rows[index]] = part[index]

        jax.tree.map(write, self._result, solved)
        following = next_levels(self._solver, level, solved)[index]
        for later in np.unique(following[following > level]):
            self._waiting[int(later)].append(started.take(index[following == later]))
        if self._progress is not None:
            self._progress(int(np.sum(following == level)))
