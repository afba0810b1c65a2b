"""One block of a study: datasets simulated, calibrated as one batch, and kept as one Parquet file.

Why a block is the unit of a study is told in docs/decisions/0008.
"""

from __future__ import annotations

import functools
import hashlib
import math
import time
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.study.memory import make_room
from l2calib.study.sealed import seal

if TYPE_CHECKING:
    import pyarrow as pa

    from l2calib.compute.choices import Chosen
    from l2calib.methods.method import Smoothing
    from l2calib.problem.experiment import Experiment
    from l2calib.results.batch import Batch
    from l2calib.study.configurations import Configuration
    from l2calib.study.plan import Task

# By what follows a parameter's name and an underscore; then what a method may have learnt, null where it has not.
PARAMETER_COLUMNS = ("mean", "sd", "q2.5", "q50", "q97.5", "hat")
_COMPILATION = "/jax/core/compile/"


@functools.cache
def versions() -> dict[str, str]:
    """Of what the numbers of a study depend on to the last bit."""
    return {name: version(name) for name in ("l2calib", "numpy", "jax", "jaxlib")}


def design_digest(design: np.ndarray) -> str:
    """The same for the same design, to the last bit."""
    return hashlib.sha256(np.ascontiguousarray(design, dtype="<f8").tobytes()).hexdigest()


def compute_block(task: Task) -> bytes:
    """Simulate the datasets of a block and calibrate them: a sealed Parquet file with a row per replication.

    Its columns depend on the task alone, to the last bit; how long it took is in the metadata.
    """
    from l2calib.calibration import calibrate_batch
    from l2calib.compute.stages import prepared
    from l2calib.methods.catalogue import method_named
    from l2calib.study.configurations import configuration_named

    configuration = configuration_named(task.source, task.cell.configuration)
    bench = _bench(task.source, task.cell.configuration, task.design.shape, task.design.tobytes())
    responses, seeds = simulate(task, configuration)
    method = method_named(task.cell.method)
    with _Stopwatch() as preparation:  # once per experiment and method: it is no part of a calibration's time
        prepared(method, bench.experiment)
    # Methods share the choice of rho; its time is a part of each one's, whichever had it made.
    with _Stopwatch() as smoothing:
        chosen = None if method.smoothing is None else bench.chosen(method.smoothing, task, responses)
    choice, seconds = (None, 0.0) if chosen is None else chosen
    with _Stopwatch() as calibration:
        batch = calibrate_batch(bench.experiment, responses, method, seed=seeds, choice=choice)
    times = {
        "seconds_preparing": preparation.seconds,
        "seconds_choosing": seconds,
        "seconds": calibration.seconds + seconds + smoothing.compiling,
        "seconds_compiling": calibration.compiling + smoothing.compiling,
    }
    return seal(_table(task, batch, configuration), _about(task, configuration, times))


def simulate(task: Task, configuration: Configuration) -> tuple[np.ndarray, list[int]]:
    """The responses (rows, n) of a block, and the seeds of their calibrations."""
    from l2calib.study.error_laws import error_law

    errors, seeds = task.streams()
    noise = error_law(task.cell.errors).draw(errors, (task.rows, task.cell.n))
    responses = configuration.system_at(task.design) + math.sqrt(configuration.sigma2) * noise
    return responses, seeds.integers(0, 2**63 - 1, size=task.rows, endpoint=True).tolist()


class _Bench:
    """What a worker has at hand while it stays with one design: the experiment, and rho as chosen for its datasets.

    Every method sees the same datasets, so that those which smooth them alike are handed the same choice.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._chosen: dict[tuple[Smoothing, str, int, int, int], Chosen] = {}

    def chosen(self, smoothing: Smoothing, task: Task, responses: np.ndarray) -> Chosen:
        """rho for the datasets of a block, chosen when a method first asks for it."""
        from l2calib.compute.choices import choose, shared_smoothing

        shared = shared_smoothing(smoothing, self.experiment)
        datasets = shared, task.cell.errors, task.cell.block, task.rows, task.seed
        if datasets not in self._chosen:
            self._chosen[datasets] = choose(shared, self.experiment, responses)
        return self._chosen[datasets]


@functools.lru_cache(maxsize=1)
def _bench(source: str, name: str, shape: tuple[int, ...], design: bytes) -> _Bench:
    """The same object for the same arguments: compiled programs and prepared tables hang on its experiment.

    A worker goes from one design to the next, and the tables of the last one are in its way.
    """
    from l2calib.compute.stages import forget_prepared
    from l2calib.study.configurations import configuration_named

    forget_prepared()
    make_room()
    return _Bench(configuration_named(source, name).experiment(np.frombuffer(design).reshape(shape)))


def _table(task: Task, batch: Batch, configuration: Configuration) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, Any] = {"replication": pa.array(task.cell.block * task.rows + np.arange(task.rows))}
    for j, name in enumerate(configuration.parameters):
        quantiles = batch.quantiles[:, j].T
        values = (batch.mean[:, j], batch.sd[:, j], *quantiles, batch.theta_hat[:, j])
        columns |= {f"{name}_{what}": _floats(value) for what, value in zip(PARAMETER_COLUMNS, values, strict=True)}
    learnt = {"gamma": batch.gamma, "sigma2": batch.sigma2, "kappa": batch.kappa}
    psi = [None] * len(configuration.inputs) if batch.psi is None else batch.psi.T
    learnt |= {f"psi{j + 1}": value for j, value in enumerate(psi)}
    missing = pa.nulls(task.rows, pa.float64())
    columns |= {name: missing if value is None else _floats(value) for name, value in learnt.items()}
    columns["status"] = pa.array(batch.status.astype(np.int64))
    columns["error"] = _floats(batch.error)
    return pa.table(columns)


def _floats(values: np.ndarray) -> pa.Array:
    import pyarrow as pa

    return pa.array(np.ascontiguousarray(values, dtype=np.float64), from_pandas=False)


def _about(task: Task, configuration: Configuration, times: dict[str, float]) -> dict[str, Any]:
    return {
        **identity(task.cell, task.rows, task.levels, task.seed, design_digest(task.design)),
        "parameters": list(configuration.parameters),
        "inputs": list(configuration.inputs),
        **times,
        "compiled": times["seconds_compiling"] > 0,
        "versions": versions(),
    }


def identity(cell: Any, rows: int, levels: str, seed: int, design: str) -> dict[str, Any]:
    """What a block file says that it is; a method whose numbers have changed has another revision."""
    from l2calib.methods.catalogue import method_named
    from l2calib.methods.method import revision_of

    return {
        "configuration": cell.configuration,
        "n": cell.n,
        "errors": cell.errors,
        "method": cell.method,
        "revision": revision_of(method_named(cell.method)),
        "block": cell.block,
        "rows": rows,
        "levels": levels,
        "seed": seed,
        "design": design,
    }


class _Stopwatch:
    """The seconds of what is done inside it, and how many of them JAX traced and compiled."""

    seconds: float
    compiling: float

    def __enter__(self) -> _Stopwatch:
        _listen()
        _spells.clear()
        self._started = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds = time.perf_counter() - self._started
        self.compiling = sum(end - start for start, end in _spells)


_spells: list[tuple[float, float]] = []  # of compilation, none inside another


def _hear(event: str, duration_secs: float, **_: Any) -> None:
    if event.startswith(_COMPILATION):
        end = time.perf_counter()
        while (
            _spells and _spells[-1][0] >= end - duration_secs
        ):  # a part of this one: functions are traced inside others
            _spells.pop()
        _spells.append((end - duration_secs, end))


@functools.cache
def _listen() -> None:
    import jax

    jax.monitoring.register_event_duration_secs_listener(_hear)
