"""Where method meets engine: compiled functions from responses to posteriors.

One dataset is a pure function of (shared, y, key). When its numerical error exceeds the engine's tolerance it is solved
again at the next level.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from l2calib.arrays import Array, jax, jnp
from l2calib.compilation import Program, quickly_compiled
from l2calib.engines import Engine, Integrate
from l2calib.engines.modes import Survey
from l2calib.errors import Status
from l2calib.experiment import Experiment
from l2calib.methods import DensityMethod, DrawingMethod, Fit
from l2calib.posterior import Points, Summary, Target, marginal_density, quantiles, summarise
from l2calib.prior import Prior
from l2calib.smoother import forget_tables


class Solution(NamedTuple):
    """What is known of one dataset, or of a batch along the first axis."""

    fit: Fit
    points: Points | None  # None in a batch
    summary: Summary
    missed: Array  # by the modes that were left out, in posterior standard deviations
    status: Array


@functools.lru_cache(maxsize=4)  # with two inputs and n = 200 each holds some hundred megabytes
def prepared(method: DensityMethod | DrawingMethod, experiment: Experiment) -> Any:
    """What the method shares among all datasets of this experiment."""
    return method.prepare(experiment)


def forget_prepared() -> None:
    """Free the memory of what was prepared for experiments so far."""
    prepared.cache_clear()
    forget_tables()


def target_of(method: DensityMethod, prior: Prior, view: Any, fit: Fit) -> Target:
    """The posterior's log density on the line; `view` is the method's of the experiment."""

    def log_density(z: Array) -> Array:
        return method.log_density(prior, view, fit, prior.from_line(z)) + jnp.sum(prior.log_slope(z))

    return Target(log_density, prior.to_line(fit.starts), method.terms(fit))


def integrated(
    method: DensityMethod, prior: Prior, engine: Engine, level: int, view: Any, fit: Fit, survey: Survey, key: Array
) -> Solution:
    """From what was learnt of one dataset to its posterior."""
    points = engine.points(target_of(method, prior, view, fit), survey, level, key)
    return _solution(prior, fit, points, engine.tolerance)


def drawn(method: DrawingMethod, experiment: Experiment, shared: Any, fit: Fit, key: Array) -> Solution:
    """The same for a method that draws."""
    theta = method.draw(experiment, shared, fit, key, method.draws)
    weights = jnp.full(method.draws, 1 / method.draws)
    finite = jnp.where(jnp.isfinite(theta).all(), 0, int(Status.NOT_FINITE))
    error, nothing = jnp.asarray(method.draws**-0.5), jnp.asarray(0.0)
    points = Points(experiment.prior.to_line(theta), weights, None, error, nothing, nothing, finite, None)
    return _solution(experiment.prior, fit, points, np.inf)


def _solution(prior: Prior, fit: Fit, points: Points, tolerance: float) -> Solution:
    summary = summarise(points, prior.from_line)
    reported = jnp.concatenate([summary.mean, summary.sd, summary.quantiles.ravel(), summary.error[None]])
    finite_summary = jnp.isfinite(reported).all()
    status = fit.status | points.status | jnp.where(finite_summary, 0, int(Status.NOT_FINITE))
    status |= jnp.where(summary.error <= tolerance, 0, int(Status.INACCURATE))
    return Solution(fit._replace(detail=None), points, summary, points.missed, status)


def stage_keys(key: Array) -> Any:
    """The key of the fit and that of the engine."""
    return jax.random.split(key)


class _Stages:
    """One dataset in three compiled steps: with one dataset, compilation is what takes time, and this does it once.

    What is sure to be needed begins to be compiled at once.
    """

    def __init__(self, method: DensityMethod | DrawingMethod, experiment: Experiment, engine: Engine) -> None:
        self._of = method, experiment, engine
        self._levels: dict[int, Program] = {}
        self._key = jax.eval_shape(lambda: jax.random.key(0))
        y = jax.ShapeDtypeStruct((experiment.observations,), float)
        self.fit = Program(self._fit, prepared(method, experiment), y, self._key)
        self.fit.start()
        self.survey: Program | None = None
        if not isinstance(method, DrawingMethod):
            self.survey = Program(self._survey, self.fit.shapes)
            self.survey.start()
        self.posterior(first_level(method, experiment, engine)).start()

    def posterior(self, level: int) -> Program:
        """The last step at one level: traced, but not compiled before it is needed."""
        if level not in self._levels:
            survey = None if self.survey is None else self.survey.shapes
            shared = prepared(*self._of[:2])
            self._levels[level] = Program(
                functools.partial(self._posterior, level), shared, self.fit.shapes, survey, self._key
            )
        return self._levels[level]

    # Keys are split where they are used, if they are: by itself every small operation would be a program to compile.
    def _fit(self, shared: Any, y: Array, key: Array) -> Fit:
        method, experiment, _ = self._of
        return method.fit(experiment, shared, y, stage_keys(key)[0])

    def _survey(self, fit: Fit) -> Survey:
        method, experiment, engine = self._of
        assert isinstance(method, DensityMethod)
        return engine.survey(target_of(method, experiment.prior, method.view(experiment), fit))

    def _posterior(self, level: int, shared: Any, fit: Fit, survey: Survey | None, key: Array) -> Solution:
        (method, experiment, engine), engine_key = self._of, stage_keys(key)[1]
        if isinstance(method, DrawingMethod):
            return drawn(method, experiment, shared, fit, engine_key)
        assert survey is not None
        return integrated(method, experiment.prior, engine, level, method.view(experiment), fit, survey, engine_key)


_stages = functools.lru_cache(maxsize=16)(_Stages)


def first_level(method: DensityMethod | DrawingMethod, experiment: Experiment, engine: Engine) -> int:
    """Where refinement starts."""
    if isinstance(method, DrawingMethod):
        return 0
    return min(method.first_level(experiment.parameters), engine.levels(experiment.parameters) - 1)


def solve_one(
    method: DensityMethod | DrawingMethod, experiment: Experiment, engine: Engine, y: np.ndarray, key: Array
) -> tuple[Solution, int]:
    """One dataset with its weighted points, and the level that sufficed."""
    shared, stages = prepared(method, experiment), _stages(method, experiment, engine)
    fit = stages.fit(shared, y, key)
    survey = None if stages.survey is None else stages.survey(fit)
    level = first_level(method, experiment, engine)
    last = level if isinstance(method, DrawingMethod) else engine.levels(experiment.parameters) - 1
    if level < last and not stages.posterior(level).ready:
        stages.posterior(level + 1)  # It is often needed, and there is nothing else to do.
    while True:
        solution: Solution = jax.device_get(stages.posterior(level)(shared, fit, survey, key))
        following = int(next_levels(method, experiment, engine, level, solution))
        if following == level:
            return solution, level
        level = following


def next_levels(
    method: DensityMethod | DrawingMethod, experiment: Experiment, engine: Engine, level: int, solved: Solution
) -> np.ndarray:
    """Where to go on with every solution; the level itself where it suffices, or where none can do better.

    Where the loss is flat there is no posterior at any.
    """
    status = np.asarray(solved.status)
    refined = (status & int(Status.INACCURATE | Status.FLAT_LOSS)) == int(Status.INACCURATE)
    if isinstance(method, DrawingMethod) or not refined.any():
        return np.full(status.shape, level)
    error, missed = np.asarray(solved.summary.error), np.asarray(solved.missed)
    return np.where(refined, engine.next_level(experiment.parameters, level, error, missed), level)


@functools.lru_cache(maxsize=16)
def _drawer(method: DensityMethod, experiment: Experiment, engine: Integrate, level: int, number: int) -> Any:
    def draw(shared: Any, y: Array, fit_key: Array, key: Array) -> tuple[Array, Array]:
        fit = method.fit(experiment, shared, y, fit_key)
        target = target_of(method, experiment.prior, method.view(experiment), fit)
        z, accept = engine.draws(target, engine.survey(target), level, key, number)
        return experiment.prior.from_line(z), accept

    return quickly_compiled(draw)


@functools.lru_cache(maxsize=16)
def _projector(method: DrawingMethod, experiment: Experiment, number: int) -> Any:
    def draw(shared: Any, y: Array, fit_key: Array, key: Array) -> Array:
        return method.draw(experiment, shared, method.fit(experiment, shared, y, fit_key), key, number)

    return quickly_compiled(draw)


def independent_draws(
    method: DensityMethod | DrawingMethod,
    experiment: Experiment,
    engine: Integrate,
    level: int,
    y: np.ndarray,
    fit_key: Array,
    key: Array,
    number: int,
) -> np.ndarray:
    """`number` independent draws of theta (number, p), from the density or from the method itself."""
    shared = prepared(method, experiment)
    batch = min(8192, 2 ** int(np.ceil(np.log2(max(2 * number, 256)))))
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < number:
        key, step = jax.random.split(key)
        if isinstance(method, DrawingMethod):
            kept.append(np.asarray(_projector(method, experiment, min(batch, 1024))(shared, y, fit_key, step)))
        else:
            drawer = _drawer(method, experiment, engine, level, batch)
            theta, accept = (np.asarray(a) for a in drawer(shared, y, fit_key, step))
            kept.append(theta[accept])
    return np.concatenate(kept)[:number]


@functools.lru_cache(maxsize=16)
def marginal_curve(prior: Prior, number: int) -> Any:
    """The function from weighted points and a parameter's index to a grid of it and its marginal density there."""

    def curve(points: Points, parameter: Array) -> tuple[Array, Array]:
        ends = quantiles(points, jnp.asarray([5e-4, 1 - 5e-4]))
        line = ends.mean(axis=0) + jnp.linspace(-0.6, 0.6, number)[:, None] * (ends[1] - ends[0])
        density = marginal_density(points, parameter, line[:, parameter])
        return prior.from_line(line)[:, parameter], density / jnp.exp(prior.log_slope(line)[:, parameter])

    return quickly_compiled(curve)
