"""calibrate(), calibrate_batch() and compare(): a problem and a method in, posteriors out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from l2calib.compute.chunks import solve_batch
from l2calib.compute.stages import solve_one
from l2calib.engines.engine import Engine, Integrate, default_engine
from l2calib.errors import CalibrationFailed, DataError, MethodError, Status
from l2calib.methods.catalogue import COMPARED, DEFAULT_METHOD, method_named
from l2calib.methods.method import AnyMethod, proposes
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.compile import quickly_compiled
from l2calib.problem.experiment import Experiment
from l2calib.problem.problem import Problem
from l2calib.results.batch import Batch
from l2calib.results.calibration import Calibration, checked_seed
from l2calib.results.comparison import Comparison
from l2calib.results.computed import Computed, computed
from l2calib.smoothers.gcv import Choice

_MEMBERS = ("name", "smoothing", "prepare", "fit", "posterior")


def calibrate(
    problem: Problem,
    method: str | AnyMethod = DEFAULT_METHOD,
    seed: int = 0,
    engine: Engine | None = None,
) -> Calibration:
    """The posterior of the parameters by one method.

    The engine is chosen by the number of parameters unless one is given. Raises CalibrationFailed when there is no
    posterior; anything less is in the result's status and messages.
    """
    if not isinstance(problem, Problem):
        raise MethodError(f"what is calibrated must be a Problem: received a {type(problem).__name__}; build one.")
    calibrator = _method(method)
    experiment = problem.experiment
    integrator = _engine(engine, experiment, calibrator)
    key = quickly_compiled(_key)(jnp.asarray(checked_seed(seed)))
    started = time.perf_counter()
    answer = solve_one(calibrator, experiment, integrator, problem.y, key)
    seconds = time.perf_counter() - started
    result = computed(Computed(problem, calibrator, integrator, answer, key), int(seed), seconds)
    if result.status.failed:
        # A minimum on the boundary does not fail, but it may be why no gamma exists.
        causes = Status.FLAT_LOSS | Status.NOT_FINITE | Status.MINIMUM_ON_BOUNDARY
        failures = (result.status & causes).sentences()
        raise CalibrationFailed(f"calibration by {result.method} failed: {' '.join(failures)}")
    return result


def calibrate_batch(
    experiment: Experiment | Problem,
    responses: np.ndarray,
    method: str | AnyMethod = DEFAULT_METHOD,
    seed: int | Sequence[int] = 0,
    engine: Engine | None = None,
    progress: Callable[[int], None] | None = None,
    choice: Choice | None = None,
) -> Batch:
    """Calibrate many vectors of responses (B, n) of one experiment.

    With one seed, dataset i has its own stream derived from (seed, i); with a sequence of seeds, dataset i gives what
    `calibrate` gives for it with seed i. Methods that smooth in the same way may share the choice of rho: what
    `l2calib.compute.choices.choose` returns for these responses is then handed to each as `choice`.
    """
    known = experiment.experiment if isinstance(experiment, Problem) else experiment
    if not isinstance(known, Experiment):
        raise MethodError(f"a batch needs an Experiment or a Problem: received a {type(known).__name__}; build one.")
    calibrator = _method(method)
    integrator = _engine(engine, known, calibrator)
    y = _batch_of_responses(responses, known)
    if not isinstance(seed, Sequence | np.ndarray):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(checked_seed(seed)), jnp.arange(len(y)))
    elif len(seed) == len(y):
        keys = _keys([checked_seed(each) for each in seed])
    else:
        raise MethodError(f"there are {len(y)} datasets and {len(seed)} seeds; give one seed, or one for each.")
    return Batch(calibrator.name, solve_batch(calibrator, known, integrator, y, keys, choice, progress))


def _batch_of_responses(responses: Any, known: Experiment) -> np.ndarray:
    try:
        y = np.asarray(responses, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            f"the responses of a batch are not an array of numbers: received a {type(responses).__name__}; "
            f"give shape (datasets, {known.observations})."
        ) from None
    if y.ndim != 2 or y.shape[1] != known.observations or not len(y):
        raise DataError(
            f"the responses of a batch must have shape (datasets, {known.observations}): received {y.shape}."
        )
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y).all(axis=1)))
        raise DataError(f"dataset {row + 1} of the batch has missing or infinite responses; drop it.")
    return y


def compare(
    problem: Problem,
    methods: str | AnyMethod | Iterable[str | AnyMethod] | None = None,
    seed: int = 0,
    engine: Engine | None = None,
) -> Comparison:
    """The default and every method of the paper, or those named, side by side."""
    several = COMPARED if methods is None else methods
    named = list(several) if isinstance(several, Iterable) and not isinstance(several, str) else [several]
    if not named:
        raise MethodError("there is nothing to compare: received no method; name one or leave them out for all.")
    chosen = [_method(each) for each in named]
    return Comparison([calibrate(problem, method, seed, engine) for method in chosen])


def _method(method: str | AnyMethod) -> AnyMethod:
    if isinstance(method, str):
        return method_named(method)
    if isinstance(method, type):
        name = method.__name__
        raise MethodError(f"the method is not one but a class: received {name}; give an object of it, {name}().")
    missing = [member for member in _MEMBERS if not hasattr(method, member)]
    if missing:
        raise MethodError(
            f"the method is not one: received {method!r:.60}, which has no {' and no '.join(missing)}; "
            "give a name or for example GeneralBayes()."
        )
    try:
        hash(method)
    except TypeError:
        raise MethodError(
            f"the method cannot be told from others, since it has no hash: received {method!r:.60}; "
            "make its class a dataclass that is frozen."
        ) from None
    return method


def _engine(engine: Engine | None, experiment: Experiment, method: AnyMethod) -> Engine:
    if engine is None:
        return Integrate() if proposes(method) else default_engine(experiment.parameters)
    if isinstance(engine, type) or not (hasattr(engine, "points") and hasattr(engine, "levels")):
        raise MethodError(f"the engine is not one: received {engine!r:.60}; give Integrate() or NUTS().")
    if not (proposes(method) and isinstance(engine, Integrate)):
        engine.levels(experiment.parameters)
    return engine


def _key(seed: Array) -> Array:
    return jax.random.fold_in(jax.random.key(seed), 0)


def _keys(seeds: Sequence[int]) -> Array:
    return jax.vmap(_key)(jnp.asarray(seeds))
