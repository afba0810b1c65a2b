"""What is kept: a small JSON file per method, problem and part of its datasets, whole or not there.

DIR/METHOD@REVISION/PROBLEM/00250-00499.json, in the form of `benchmarks.realistic`, whose `seed` holds the first of the
datasets here. What was made by another revision of the problems, or is not as it was written, is as good as not there.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.named.problems import REVISION, named
from benchmarks.realistic.judged import Answers, InBatch, Judged
from benchmarks.realistic.measure import Record
from benchmarks.realistic.problems import RealisticProblem
from benchmarks.realistic.storage import from_json, to_json
from l2calib.results.writing import write_whole

PART = 250


def parts_of(datasets: int) -> list[range]:
    """The datasets, part by part; the last may be a smaller one."""
    return [range(first, min(first + PART, datasets)) for first in range(0, datasets, PART)]


@dataclasses.dataclass(frozen=True)
class PartShelf:
    """The files of one method on one problem."""

    folder: Path
    method: str
    revision: str
    problem: str

    def path(self, part: range) -> Path:
        name = f"{part.start:05d}-{part.stop - 1:05d}.json"
        return self.folder / f"{self.method}@{self.revision}" / self.problem / name

    def write(self, record: Record) -> None:
        path = self.path(range(record.seed, record.seed + record.datasets))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_json(record))

    def read(self, part: range) -> Record | None:
        """What is known of a part; None if nothing is, or if the file is damaged or of other problems."""
        try:
            record = from_json(self.path(part).read_bytes())
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        asked = (self.method, self.revision, self.problem, part.start, len(part), REVISION)
        found = (record.method, record.revision, record.model, record.seed, record.datasets, record.generator)
        return record if found == asked else None


def responses(problem: RealisticProblem, part: range) -> np.ndarray:
    """Datasets of a part (B, n), each the same whatever part it is in."""
    return problem.responses(part.stop)[part.start :]


def measured(name: str, method: Judged, part: range, revision: str) -> Record:
    """What a method answers to a part of a problem's datasets, and in how long."""
    problem = named(name)
    y = responses(problem, part)
    began = time.process_time()
    answers = _answers(problem, method, y, part)
    seconds = time.process_time() - began
    return Record(
        method=method.name,
        revision=revision,
        generator=REVISION,
        seed=part.start,
        datasets=len(part),
        model=name,
        inputs=len(problem.inputs),
        observations=len(problem.x),
        design=problem.design,
        truth=problem.truth,
        law=problem.law,
        deviation=problem.deviation,
        noise=problem.sigma / problem.extent,
        parameters=list(problem.prior),
        target=problem.target,
        oracle_length=np.full(len(problem.prior), np.nan),  # nothing here is told beside it
        seconds=seconds,
        answers=Answers(*(np.asarray(each) for each in answers)),
    )


def _answers(problem: RealisticProblem, method: Judged, y: np.ndarray, part: range) -> Answers:
    if not isinstance(method, InBatch):
        return method(problem, y)
    from l2calib.calibration import calibrate_batch

    # A seed each, so that a dataset's answer is the same whatever part it is in.
    batch = calibrate_batch(problem.experiment, y, method.method, seed=part)
    return Answers(batch.mean, batch.sd, batch.quantiles, batch.status, batch.failed, batch.theta_hat)


def joined(records: Sequence[Record]) -> Record:
    """Several parts of one method and problem as one record."""
    columns = zip(*(record.answers for record in records), strict=True)
    return dataclasses.replace(
        records[0],
        datasets=sum(record.datasets for record in records),
        seconds=sum(record.seconds for record in records),
        answers=Answers(*(np.concatenate(column) for column in columns)),
    )
