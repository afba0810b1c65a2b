"""One dataset: compiled functions from its responses to its posterior, in three stages.

Each stage is a pure function of arrays: what is learnt from y, where the posterior's modes are, and its points. When
the numerical error exceeds the engine's tolerance the last one is done again at a later level.
"""

from __future__ import annotations

import functools
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from l2calib.compute.solvers import Solver, solver_of
from l2calib.engines.engine import Engine
from l2calib.engines.integrate import Integrate
from l2calib.errors import MethodError, Status
from l2calib.methods.method import AnyMethod, Fit, Method, Prepared, runs_in_numpy
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.compile import Compiled, Program, quickly_compiled
from l2calib.numerics.modes import Survey
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.points import Points, Summary, marginal_density, quantiles, summarise
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.smoothers.grid import forget_tables

S = TypeVar("S")
V = TypeVar("V")
D = TypeVar("D")

_MOST_DOUBT = 0.2  # beyond, the data leave open which minimum is the lowest
_FEWEST_DRAWS = 256  # at once: a program is made for a number of draws


class Solution(NamedTuple):
    """What is known of one dataset, or of a batch along the first axis."""

    fit: Fit[None]
    points: Points | None  # None in a batch
    summary: Summary
    doubt: Array  # whether theta is the minimiser, on average: see `Points.doubt`
    missed: Array  # by the modes that were left out, in posterior standard deviations
    integration: Array  # the part of the numerical error that a finer integration could mend
    status: Array


class Answer(NamedTuple):
    """The solution of one dataset, the level that sufficed, and how it was reached."""

    solution: Solution
    level: int
    solver: Solver[Any, Any]


@functools.lru_cache(maxsize=4)  # with two inputs and n = 200 each holds some hundred megabytes
def prepared(method: Method[S, V, D], experiment: Experiment) -> Prepared[S, V]:
    """What the method shares among all datasets of this experiment."""
    found: object = method.prepare(experiment)
    if not isinstance(found, Prepared):
        raise MethodError(
            f"what '{method.name}' prepares is not Prepared: received a {type(found).__name__}; return a Prepared."
        )
    return found


def forget_prepared() -> None:
    """Free the memory of what was prepared for experiments so far."""
    prepared.cache_clear()
    forget_tables()


def posterior_of(
    prior: Prior, solver: Solver[V, D], level: int, *, view: V, fit: Fit[D], survey: Survey | None, key: Array
) -> Solution:
    """From what was learnt of one dataset to its posterior."""
    points = solver.points(level, view=view, fit=fit, survey=survey, key=key)
    summary, xp = summarise(points, prior.from_line), namespace_of(points.weights)
    integration, summary = summary.error, summary._replace(error=summary.error + points.density_error)
    reported = xp.concatenate([summary.mean, summary.sd, summary.quantiles.ravel(), summary.error[None]])
    finite_summary = xp.isfinite(reported).all()
    status = fit.status | points.status | xp.where(finite_summary, 0, int(Status.NOT_FINITE))
    status = status | xp.where(summary.error <= solver.tolerance, 0, int(Status.INACCURATE))
    status = status | xp.where(points.doubt > _MOST_DOUBT, int(Status.NOT_A_MINIMUM), 0)
    if not solver.has_sd:
        summary = summary._replace(sd=xp.full_like(summary.sd, np.nan))
    learnt = _without_detail(solver.learnt(view, fit, points))
    return Solution(learnt, points, summary, xp.asarray(points.doubt), xp.asarray(points.missed), integration, status)


def _without_detail(fit: Fit[D]) -> Fit[None]:
    return Fit(**fit._asdict() | {"detail": None})


def next_levels(solver: Solver[Any, Any], level: int, solved: Solution) -> np.ndarray:
    """Where to go on with every solution; the level itself where it suffices, or where none can do better.

    Where the loss is flat there is no posterior at any.
    """
    status, error, missed = (np.asarray(each) for each in (solved.status, solved.integration, solved.missed))
    refined = ~(error <= solver.tolerance) & ((status & int(Status.FLAT_LOSS)) == 0)
    if not refined.any():
        return np.full(status.shape, level)
    return np.where(refined, solver.next_level(level, error, missed), level)


def stage_keys(key: Array) -> Array:
    """The key of the fit and that of the engine."""
    return jax.random.split(key)


class _Stages(Generic[S, V, D]):
    """The programs of one method: with one dataset, compilation is what takes time, and this does it once."""

    def __init__(self, method: Method[S, V, D], experiment: Experiment, engine: Engine) -> None:
        self._method, self._experiment = method, experiment
        self._levels: dict[int, Program[[V, Fit[D], Survey | None, Array], Solution]] = {}
        self._key = jax.eval_shape(lambda: jax.random.key(0))
        y = jax.ShapeDtypeStruct((experiment.observations,), float)
        shared, self._view = prepared(method, experiment)
        self.fit: Program[[S, Array, Array], Fit[D]] = Program(self._fit, shared, y, self._key)
        self.fit.start()
        self.solver: Solver[V, D] = solver_of(method, experiment, engine, self._view, self.fit.shapes)
        self.survey: Program[[V, Fit[D]], Survey] | None = None
        if self.solver.surveys:
            self.survey = Program(self.solver.survey, self._view, self.fit.shapes)
            self.survey.start()
        self.posterior(self.solver.first_level).start()

    def posterior(self, level: int) -> Program[[V, Fit[D], Survey | None, Array], Solution]:
        """The last step at one level: traced, but not compiled before it is needed."""
        if level not in self._levels:
            survey = None if self.survey is None else self.survey.shapes
            stage = functools.partial(self._posterior, level)
            self._levels[level] = Program(stage, self._view, self.fit.shapes, survey, self._key)
        return self._levels[level]

    # Keys are split where they are used, if they are: by itself every small operation would be a program to compile.
    def _fit(self, shared: S, y: Array, key: Array) -> Fit[D]:
        return self._method.fit(self._experiment, shared, y, key=stage_keys(key)[0], choice=None)

    def _posterior(self, level: int, view: V, fit: Fit[D], survey: Survey | None, key: Array) -> Solution:
        prior, engine_key = self._experiment.prior, stage_keys(key)[1]
        return posterior_of(prior, self.solver, level, view=view, fit=fit, survey=survey, key=engine_key)


@functools.lru_cache(maxsize=16)
def _stages(method: Method[S, V, D], experiment: Experiment, engine: Engine) -> _Stages[S, V, D]:
    return _Stages(method, experiment, engine)


def solve_one(method: AnyMethod, experiment: Experiment, engine: Engine, y: np.ndarray, key: Array) -> Answer:
    """One dataset with its weighted points."""
    if runs_in_numpy(method) and isinstance(engine, Integrate):
        return _solve_in_numpy(method, experiment, engine, y, key)
    shared, view = prepared(method, experiment)
    stages = _stages(method, experiment, engine)
    fit = stages.fit(shared, jnp.asarray(experiment.whiten(y)), key)
    survey = None if stages.survey is None else stages.survey(view, fit)
    level = stages.solver.first_level
    if level < stages.solver.last_level and not stages.posterior(level).ready:
        stages.posterior(level + 1)  # It is often needed, and there is nothing else to do.
    while True:
        solution: Solution = jax.device_get(stages.posterior(level)(view, fit, survey, key))
        following = int(next_levels(stages.solver, level, solution))
        if following == level:
            return Answer(solution, level, stages.solver)
        level = following


def _solve_in_numpy(method: AnyMethod, experiment: Experiment, engine: Integrate, y: AnyArray, key: Array) -> Answer:
    """The same, computed at once: nothing is traced but the model."""
    with threadpool_limits(1, user_api="blas"):  # matrices of this size gain nothing from threads
        shared, view = jax.tree.map(np.asarray, tuple(prepared(method, experiment)))
        whitened: AnyArray = experiment.whiten(y)
        fit = method.fit(experiment, shared, whitened, key=key, choice=None)
        solver = solver_of(method, experiment, engine, view, fit)
        survey, level = solver.survey(view, fit) if solver.surveys else None, solver.first_level
        while True:
            solution = posterior_of(experiment.prior, solver, level, view=view, fit=fit, survey=survey, key=key)
            following = int(next_levels(solver, level, solution))
            if following == level:
                return Answer(solution, level, solver)
            level = following


@functools.lru_cache(maxsize=16)
def _drawer(
    method: Method[S, V, D], experiment: Experiment, solver: Solver[V, D], level: int, number: int
) -> Compiled[[S, V, Array, Array, Array], tuple[Array, Array]]:
    def draw(shared: S, view: V, y: Array, fit_key: Array, key: Array) -> tuple[Array, Array]:
        fit = method.fit(experiment, shared, y, key=fit_key, choice=None)
        return solver.draws(level, number, view=view, fit=fit, key=key)

    return quickly_compiled(draw)


def independent_draws(
    method: AnyMethod, experiment: Experiment, answer: Answer, y: np.ndarray, *, fit_key: Array, key: Array, number: int
) -> np.ndarray:
    """`number` independent draws of theta (number, p), from the density or from the method itself."""
    shared, view = prepared(method, experiment)
    at_once = 2 ** int(np.ceil(np.log2(max(2 * number, _FEWEST_DRAWS))))
    drawer = _drawer(method, experiment, answer.solver, answer.level, min(at_once, answer.solver.most_draws))
    kept: list[np.ndarray] = []
    whitened = jnp.asarray(experiment.whiten(y))
    while sum(map(len, kept)) < number:
        key, step = jax.random.split(key)
        theta, accepted = (np.asarray(a) for a in drawer(shared, view, whitened, fit_key, step))
        kept.append(theta[accepted])
    return np.concatenate(kept)[:number]


@functools.lru_cache(maxsize=16)
def marginal_curve(prior: Prior, number: int) -> Compiled[[Points, int], tuple[Array, Array]]:
    """The function from weighted points and a parameter's index to a grid of it and its marginal density there."""

    def curve(points: Points, parameter: int) -> tuple[Array, Array]:
        ends = quantiles(points, np.array([5e-4, 1 - 5e-4]))
        line = ends.mean(axis=0) + jnp.linspace(-0.6, 0.6, number)[:, None] * (ends[1] - ends[0])
        density = marginal_density(points, parameter, line[:, parameter])
        return prior.from_line(line)[:, parameter], density / jnp.exp(prior.log_slope(line)[:, parameter])

    return quickly_compiled(curve)
