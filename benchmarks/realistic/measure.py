"""How good the answers of a method are on the datasets of one problem.

Datasets without a posterior are counted, and nothing else is taken over them: a method that fails where it is hard is
seen by its failures.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.realistic.judged import Answers, Judged
from benchmarks.realistic.problems import REVISION, RealisticProblem

_FAR, _NEAR = 5.0, 2.0  # posterior standard deviations
_NORMAL = 1.959964


@dataclass(frozen=True, eq=False)
class Record:
    """What is kept of one method on one problem: enough of the problem to judge the answers without it."""

    method: str
    revision: str
    generator: int
    seed: int
    datasets: int
    model: str
    inputs: int
    observations: int
    design: str
    truth: str
    law: str
    deviation: str
    noise: float
    parameters: list[str]
    target: np.ndarray
    oracle_length: np.ndarray
    seconds: float  # of the processor: a run may be paused
    answers: Answers

    @functools.cached_property
    def scores(self) -> Scores:
        return scores(self)


class Scores(NamedTuple):
    """By parameter (p,), and shares and numbers of datasets."""

    coverage: np.ndarray
    median_length: np.ndarray
    mean_length: np.ndarray
    relative_length: np.ndarray  # the median beside the oracle's
    sampling_sd: np.ndarray  # of the posterior mean
    sampling_spread: np.ndarray  # half of what is between its 16th and 84th percentiles
    mean_sd: np.ndarray
    median_sd: np.ndarray
    bias: np.ndarray
    failed: int
    ok: int
    far: float  # the share of all datasets whose posterior mean is far from the target in some parameter
    far_but_ok: float
    near: int  # within two posterior standard deviations in every parameter
    near_and_ok: int


def judge(problem: RealisticProblem, method: Judged, datasets: int) -> Record:
    """Run a method on the datasets of a problem."""
    responses = problem.responses(datasets)
    began = time.process_time()
    answers = method(problem, responses)
    seconds = time.process_time() - began
    return Record(
        method=method.name,
        revision=method.revision,
        generator=REVISION,
        seed=problem.seed,
        datasets=datasets,
        model=problem.model_name,
        inputs=len(problem.inputs),
        observations=len(problem.x),
        design=problem.design,
        truth=problem.truth,
        law=problem.law,
        deviation=problem.deviation,
        noise=problem.sigma / problem.extent,
        parameters=list(problem.prior),
        target=problem.target,
        oracle_length=problem.oracle_length(),
        seconds=seconds,
        answers=Answers(*(np.asarray(each) for each in answers)),
    )


def scores(record: Record) -> Scores:
    """How good the answers are; not a number where fewer than two datasets have one."""
    there = ~record.answers.failed.astype(bool)
    number, p = len(there), len(record.target)
    if there.sum() < 2:
        return Scores(*[np.full(p, np.nan)] * 9, number - int(there.sum()), 0, 0.0, 0.0, 0, 0)
    mean, sd, quantiles, status = (each[there] for each in record.answers[:4])
    low, middle, high = np.moveaxis(quantiles, -1, 0)
    length, ok = high - low, status == 0
    # A method may have quantiles and no moments.
    mean, sd = np.where(np.isfinite(mean), mean, middle), np.where(np.isfinite(sd), sd, length / (2 * _NORMAL))
    away = (np.abs(mean - record.target) / sd).max(axis=1)
    far, near = away > _FAR, away <= _NEAR
    return Scores(
        coverage=((low <= record.target) & (record.target <= high)).mean(axis=0),
        median_length=np.median(length, axis=0),
        mean_length=length.mean(axis=0),
        relative_length=np.median(length, axis=0) / record.oracle_length,
        sampling_sd=mean.std(axis=0, ddof=1),
        sampling_spread=np.diff(np.quantile(mean, (0.16, 0.84), axis=0), axis=0)[0] / 2,
        mean_sd=sd.mean(axis=0),
        median_sd=np.median(sd, axis=0),
        bias=mean.mean(axis=0) - record.target,
        failed=number - int(there.sum()),
        ok=int(ok.sum()),
        far=float(far.sum() / number),
        far_but_ok=float((far & ok).sum() / number),
        near=int(near.sum()),
        near_and_ok=int((near & ok).sum()),
    )
