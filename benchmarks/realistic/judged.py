"""What is judged: whatever turns responses into summaries of posteriors.

A method of the library is, in a batch or one dataset at a time.
"""

from __future__ import annotations

import copy
import importlib
import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from benchmarks.realistic.problems import RealisticProblem

_TRIED = 4  # datasets, before it is known how long the others would take
_COMPILATION = 80.0  # seconds of a batch of a problem with three parameters


class Answers(NamedTuple):
    """A row per dataset; `quantiles` are at 2.5, 50 and 97.5 percent, and `status` holds flags, zero for all well."""

    mean: np.ndarray  # (B, p)
    sd: np.ndarray  # (B, p)
    quantiles: np.ndarray  # (B, p, 3)
    status: np.ndarray  # (B,)
    failed: np.ndarray  # (B,)
    theta_hat: np.ndarray  # (B, p)


@runtime_checkable
class Judged(Protocol):
    """What is judged; `revision` tells versions of one method apart."""

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    def __call__(self, problem: RealisticProblem, responses: np.ndarray) -> Answers: ...


@dataclass(frozen=True)
class InBatch:
    """A method of the library, by `calibrate_batch`, which compiles it for the problem."""

    method: Any

    @property
    def name(self) -> str:
        return str(_known(self.method).name)

    @property
    def revision(self) -> str:
        return str(getattr(_known(self.method), "revision", 0))

    def __call__(self, problem: RealisticProblem, responses: np.ndarray) -> Answers:
        from l2calib.calibration import calibrate_batch

        batch = calibrate_batch(problem.experiment, responses, _known(self.method))
        return Answers(batch.mean, batch.sd, batch.quantiles, batch.status, batch.failed, batch.theta_hat)


@dataclass(frozen=True)
class OneByOne(InBatch):
    """A method of the library, by `calibrate`, where it need not be compiled, and in a batch where that is quicker."""

    def __call__(self, problem: RealisticProblem, responses: np.ndarray) -> Answers:
        from l2calib.problem.distributions import Uniform
        from l2calib.problem.problem import Problem

        data = dict(zip(problem.inputs, problem.x.T, strict=True)) | {"response": responses[0]}
        prior = {name: Uniform(*limits) for name, limits in problem.prior.items()}
        given = Problem(problem.model, data, "response", problem.inputs, prior)
        rows, began = [], 0.0
        for seed, y in enumerate(responses):
            if seed == 1:
                began = time.process_time()  # the first has the model compiled
            elif seed == _TRIED and self._too_long(time.process_time() - began, len(responses)):
                return super().__call__(problem, responses)
            one = copy.copy(given)  # with the same experiment, on which compiled programs hang
            one.y = y
            rows.append(self._answer(one, seed))
        return Answers(*(np.array(column) for column in zip(*rows, strict=True)))

    @staticmethod
    def _too_long(seconds: float, datasets: int) -> bool:
        """Whether the others would take longer than to compile, if they take what the first have."""
        return seconds / (_TRIED - 1) * (datasets - _TRIED) > _COMPILATION

    def _answer(self, problem: Any, seed: int) -> Answers:
        from l2calib.calibration import calibrate
        from l2calib.errors import CalibrationFailed, Status

        try:
            found = calibrate(problem, _known(self.method), seed)
        except CalibrationFailed:
            nothing = np.full(len(problem.parameter_names), np.nan)
            status = np.array(int(Status.NOT_FINITE))
            return Answers(nothing, nothing, np.full((len(nothing), 3), np.nan), status, np.array(True), nothing)
        table = np.array([list(row.values()) for row in found.rows.values()], dtype=float)
        theta_hat = np.array(list(found.theta_hat.values()))
        return Answers(table[:, 0], table[:, 1], table[:, 2:], np.array(int(found.status)), np.array(False), theta_hat)


def _known(method: Any) -> Any:
    if not isinstance(method, str):
        return method
    from l2calib.methods.catalogue import method_named

    return method_named(method)


def judged(given: Any, one_by_one: bool = False) -> Judged:
    """A name of the catalogue, 'module:object', a method or what is judged already, as what is judged."""
    if isinstance(given, str) and ":" in given:
        module, _, attribute = given.partition(":")
        given = getattr(importlib.import_module(module), attribute)
    if isinstance(given, Judged) and callable(given):
        return given
    return OneByOne(given) if one_by_one else InBatch(given)
