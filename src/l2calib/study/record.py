"""study.json: what a study is, so that it is continued as it was begun, and what has been asked of it.

What makes two studies the same is decided in docs/decisions/0008.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.errors import SpecError
from l2calib.study.block import versions
from l2calib.study.sealed import DamagedError

if TYPE_CHECKING:
    from pathlib import Path

    from l2calib.study.configurations import Configuration
    from l2calib.study.plan import Plan

_TOLERANCE = 1e-10  # more than machines differ by in rounding, less than any change that is meant
_OPTIONS = {"seed": "--seed", "levels": "--levels", "block": "--block"}


@dataclass(frozen=True)
class Record:
    """Seed, levels, block size, versions and the definition of every configuration; then the requests so far."""

    seed: int
    levels: str
    block: int
    versions: dict[str, str]
    configurations: dict[str, dict[str, Any]]
    requests: list[dict[str, Any]]

    @classmethod
    def begin(cls, plan: Plan) -> Record:
        return cls(plan.seed, plan.levels, plan.block, versions(), {}, [])

    def refuse_another(self, plan: Plan, folder: Path) -> None:
        """Raise SpecError if the plan belongs to another study than this one."""
        begun = f"the study in '{folder}' was begun with"
        for name, option in _OPTIONS.items():
            old, new = getattr(self, name), getattr(plan, name)
            if old != new:
                raise SpecError(
                    f"{begun} {name} {old} and cannot be continued with {name} {new}; "
                    f"give '{option} {old}' or name another folder."
                )
        for name, new in versions().items():
            old = self.versions.get(name)
            if old != new:
                raise SpecError(
                    f"{begun} {name} {old} and cannot be continued with {name} {new}, which may round otherwise; "
                    f"install {name} {old} or name another folder."
                )
        for name, configuration in plan.configurations.items():
            if name in self.configurations:
                _refuse_another_definition(self.configurations[name]["definition"], configuration, folder)

    def with_request(self, plan: Plan, command: str) -> Record:
        """The same study with what is asked of it now, and the targets of configurations that are new to it."""
        new = {name: each for name, each in plan.configurations.items() if name not in self.configurations}
        request = {
            "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "command": command,
            "configurations": list(plan.configurations),
            "sizes": list(plan.sizes),
            "errors": list(plan.errors),
            "methods": list(plan.methods),
            "replications": plan.replications,
        }
        described = {name: _described(each) for name, each in new.items()}
        return replace(self, configurations=self.configurations | described, requests=[*self.requests, request])

    def asked(self) -> dict[tuple[str, int, str, str], int]:
        """The replications asked for, by configuration, size, error law and method."""
        most: dict[tuple[str, int, str, str], int] = {}
        for request in self.requests:
            for configuration in request["configurations"]:
                for n in request["sizes"]:
                    for errors in request["errors"]:
                        for method in request["methods"]:
                            key = configuration, n, errors, method
                            most[key] = max(request["replications"], most.get(key, 0))
        return most

    def inputs(self, configuration: str) -> int:
        """k."""
        return len(self.configurations[configuration]["definition"]["inputs"])

    def to_json(self) -> str:
        """With a digest, for a number that was changed here would change every summary."""
        content = asdict(self)
        return json.dumps({**content, "sha256": _digest(content)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Record:
        """DamagedError if it is not what `to_json` returned."""
        try:
            content = json.loads(text)
            digest = content.pop("sha256")
            record = cls(**content)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise DamagedError("is cut short or was not written by a study") from None
        if digest != _digest(content):
            raise DamagedError("is not as it was written")
        return record


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _described(configuration: Configuration) -> dict[str, Any]:
    target = configuration.target
    return {
        "definition": configuration.definition(),
        "parameters": list(configuration.parameters),
        "target": target.theta.tolist(),
        "discrepancy": target.discrepancy,
        "target_status": str(target.status),
        "source": configuration.source,
    }


def _refuse_another_definition(
    old: dict[str, dict[str, list[float]]], configuration: Configuration, folder: Path
) -> None:
    for part, new in configuration.definition().items():
        if not _same(old[part], new):
            raise SpecError(
                f"the {part} of configuration {configuration.name} changed since the study in '{folder}' was begun; "
                "restore what it was, give the configuration another name, or name another folder."
            )


def _same(old: Mapping[str, list[float]], new: Mapping[str, list[float]]) -> bool:
    if list(old) != list(new):
        return False
    for name, values in new.items():
        before, now = np.asarray(old[name]), np.asarray(values)
        scale = np.abs(before[np.isfinite(before)]).max(initial=0.0)
        if before.shape != now.shape or not np.allclose(now, before, 0, _TOLERANCE * scale, equal_nan=True):
            return False
    return True
