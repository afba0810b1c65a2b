"""What is kept of a run: a small JSON file per problem and method, whole or not there.

DIR/METHOD@REVISION/datasets=50/00012.json. What was made by another revision of the problems, or is not as it was
written, is as good as not there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.realistic.judged import Answers
from benchmarks.realistic.measure import Record
from benchmarks.realistic.problems import REVISION
from l2calib.results.writing import write_whole

_DIGITS = 10


@dataclasses.dataclass(frozen=True)
class Shelf:
    """The files of one method at one number of datasets."""

    folder: Path
    method: str
    revision: str
    datasets: int

    def path(self, seed: int) -> Path:
        return self.folder / f"{self.method}@{self.revision}" / f"datasets={self.datasets}" / f"{seed:05d}.json"

    def write(self, record: Record) -> None:
        path = self.path(record.seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_json(record))

    def read(self, seed: int) -> Record | None:
        """What is known of a problem; None if nothing is, or if the file is damaged or of other problems."""
        try:
            record = from_json(self.path(seed).read_bytes())
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        asked = (self.method, self.revision, self.datasets, seed, REVISION)
        found = (record.method, record.revision, record.datasets, record.seed, record.generator)
        return record if found == asked else None


def to_json(record: Record) -> bytes:
    """A line with the record and its digest."""
    fields = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    text = json.dumps(_plain(fields | {"answers": record.answers._asdict()}))
    return json.dumps({"sha256": _digest(text), "record": text}).encode()


def from_json(data: bytes) -> Record:
    """The record; ValueError, KeyError or TypeError if it is not as it was written."""
    sealed = json.loads(data)
    if _digest(sealed["record"]) != sealed["sha256"]:
        raise ValueError("the digest is another one.")
    fields = json.loads(sealed["record"])
    answers = fields.pop("answers")
    floats = {name: np.array(answers[name], dtype=float) for name in ("mean", "sd", "quantiles", "theta_hat")}
    flags = {"status": np.array(answers["status"], dtype=int), "failed": np.array(answers["failed"], dtype=bool)}
    arrays = {name: np.array(fields.pop(name), dtype=float) for name in ("target", "oracle_length")}
    return Record(**fields, **arrays, answers=Answers(**floats, **flags))


def _plain(value: Any) -> Any:
    """With lists for arrays, and nothing for what is not finite, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
