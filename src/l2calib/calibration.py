"""calibrate(), calibrate_batch() and compare(): a problem and a method in, posteriors out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib import markup
from l2calib.arrays import Array, jax, jnp
from l2calib.batch import solve_batch
from l2calib.compilation import quickly_compiled
from l2calib.engines import Engine, default_engine
from l2calib.errors import CalibrationFailed, DataError, MethodError, Status
from l2calib.experiment import Experiment, Problem
from l2calib.methods import PAPER_METHODS, DensityMethod, DrawingMethod, method_named
from l2calib.result import SUMMARY_COLUMNS, Calibration, checked_seed
from l2calib.solve import Solution, solve_one

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_METHOD = "gb-l2"


def calibrate(
    problem: Problem,
    method: str | DensityMethod | DrawingMethod = DEFAULT_METHOD,
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
    integrator = _engine(engine, experiment)
    key = quickly_compiled(_key)(np.int64(checked_seed(seed)))
    started = time.perf_counter()
    solution, level = solve_one(calibrator, experiment, integrator, problem.y, key)
    seconds = time.perf_counter() - started
    result = Calibration(problem, calibrator, integrator, solution, level, seed, seconds, key)
    if result.status.failed:
        # A minimum on the boundary does not fail, but it may be why no gamma exists.
        causes = Status.FLAT_LOSS | Status.NOT_FINITE | Status.MINIMUM_ON_BOUNDARY
        failures = (result.status & causes).sentences()
        raise CalibrationFailed(f"calibration by {result.method} failed: {' '.join(failures)}")
    return result


@dataclass(frozen=True)
class Batch:
    """Posterior summaries of many datasets of one experiment, a row each.

    `mean`, `sd` and `theta_hat` are (B, p), `quantiles` is (B, p, 3) at 2.5, 50 and 97.5 percent; `gamma`, `sigma2` and
    `kappa` are (B,) and `psi` is (B, k), None where the method has none; `status` holds `Status` values, `error` the
    numerical error in posterior standard deviations.
    """

    method: str
    solution: Solution

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.solution.summary.mean)

    @property
    def sd(self) -> np.ndarray:
        return np.asarray(self.solution.summary.sd)

    @property
    def quantiles(self) -> np.ndarray:
        return np.asarray(self.solution.summary.quantiles)

    @property
    def status(self) -> np.ndarray:
        return np.asarray(self.solution.status)

    @property
    def failed(self) -> np.ndarray:
        """Which datasets have no posterior."""
        return np.asarray((self.status & int(Status.FLAT_LOSS | Status.NOT_FINITE)) != 0)

    @property
    def error(self) -> np.ndarray:
        return np.asarray(self.solution.summary.error)

    @property
    def theta_hat(self) -> np.ndarray:
        return np.asarray(self.solution.fit.theta_hat)

    @property
    def gamma(self) -> np.ndarray | None:
        return self._learnt("gamma")

    @property
    def sigma2(self) -> np.ndarray | None:
        return self._learnt("sigma2")

    @property
    def psi(self) -> np.ndarray | None:
        return self._learnt("psi")

    @property
    def kappa(self) -> np.ndarray | None:
        return self._learnt("kappa")

    def _learnt(self, name: str) -> np.ndarray | None:
        value = getattr(self.solution.fit, name)
        return None if value is None else np.asarray(value)

    def covers(self, theta: Sequence[float] | np.ndarray) -> np.ndarray:
        """Whether the 95% interval of every dataset and parameter holds theta (B, p)."""
        target = np.asarray(theta, dtype=float)
        if target.shape not in (self.mean.shape, self.mean.shape[1:]):
            raise DataError(f"theta must have shape {self.mean.shape[1:]}: received {target.shape}.")
        return np.asarray((self.quantiles[:, :, 0] <= target) & (target <= self.quantiles[:, :, 2]))


def calibrate_batch(
    experiment: Experiment | Problem,
    responses: np.ndarray,
    method: str | DensityMethod | DrawingMethod = DEFAULT_METHOD,
    seed: int | Sequence[int] = 0,
    engine: Engine | None = None,
    progress: Callable[[int], None] | None = None,
) -> Batch:
    """Calibrate many vectors of responses (B, n) of one experiment.

    With one seed, dataset i has its own stream derived from (seed, i); with a sequence of seeds, dataset i gives what
    `calibrate` gives for it with seed i.
    """
    known = experiment.experiment if isinstance(experiment, Problem) else experiment
    if not isinstance(known, Experiment):
        raise MethodError(f"a batch needs an Experiment or a Problem: received a {type(known).__name__}; build one.")
    calibrator = _method(method)
    integrator = _engine(engine, known)
    y = _batch_of_responses(responses, known)
    if not isinstance(seed, Sequence | np.ndarray):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(checked_seed(seed)), jnp.arange(len(y)))
    elif len(seed) == len(y):
        keys = _keys([checked_seed(each) for each in seed])
    else:
        raise MethodError(f"there are {len(y)} datasets and {len(seed)} seeds; give one seed, or one for each.")
    return Batch(calibrator.name, solve_batch(calibrator, known, integrator, y, keys, progress))


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


@dataclass(frozen=True)
class Comparison:
    """Several methods on one problem."""

    results: list[Calibration]

    def __iter__(self) -> Iterator[Calibration]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def summary(self) -> pd.DataFrame:
        """One row per method and parameter."""
        import pandas as pd

        return pd.concat(
            [result.summary() for result in self.results],
            keys=[result.method for result in self.results],
            names=["method", "parameter"],
        )

    def _repr_html_(self) -> str:
        rows = [
            (result.method, name, *row.values(), str(result.status))
            for result in self.results
            for name, row in result.rows.items()
        ]
        headings = ("method", "parameter", *SUMMARY_COLUMNS, "status")
        return markup.block(f"Comparison of {len(self.results)} methods", markup.table(headings, rows))


def compare(
    problem: Problem,
    methods: str | DensityMethod | DrawingMethod | Iterable[str | DensityMethod | DrawingMethod] | None = None,
    seed: int = 0,
    engine: Engine | None = None,
) -> Comparison:
    """Every method of the paper, or those named, side by side."""
    several = PAPER_METHODS if methods is None else methods
    named = list(several) if isinstance(several, Iterable) and not isinstance(several, str) else [several]
    if not named:
        raise MethodError("there is nothing to compare: received no method; name one or leave them out for all.")
    chosen = [_method(each) for each in named]
    return Comparison([calibrate(problem, method, seed, engine) for method in chosen])


def _method(method: str | DensityMethod | DrawingMethod) -> DensityMethod | DrawingMethod:
    if isinstance(method, str):
        return method_named(method)
    if hasattr(method, "fit") and hasattr(method, "prepare") and not isinstance(method, type):
        return method
    raise MethodError(f"the method is not one: received {method!r}; give a name or for example GeneralBayes().")


def _engine(engine: Engine | None, experiment: Experiment) -> Engine:
    if engine is None:
        return default_engine(experiment.parameters)
    if isinstance(engine, type) or not (hasattr(engine, "points") and hasattr(engine, "levels")):
        raise MethodError(f"the engine is not one: received {engine!r:.60}; give Integrate() or NUTS().")
    engine.levels(experiment.parameters)
    return engine


def _key(seed: Array) -> Array:
    return jax.random.fold_in(jax.random.key(seed), 0)


def _keys(seeds: Sequence[int]) -> Any:
    return jax.vmap(_key)(jnp.asarray(seeds))


__all__ = ["Batch", "Calibration", "Comparison", "calibrate", "calibrate_batch", "compare"]
