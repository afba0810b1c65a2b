"""What a run's folder holds, read into plain arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from l2calib.errors import DataError
from l2calib.posterior.band import Band
from l2calib.results.files import read_tree
from l2calib.results.prediction import tree_name

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr


class Profile(NamedTuple):
    """The model and its bias along one input."""

    x: np.ndarray
    model: Band
    bias: Band


class Marginal(NamedTuple):
    """A posterior density on a grid, and the prior's there."""

    value: np.ndarray
    density: np.ndarray
    prior: np.ndarray


@dataclass(frozen=True, eq=False)
class Found:
    """What one method found: its entries in the two JSON files, and the arrays of its NetCDF file."""

    method: str
    answer: dict[str, Any]
    messages: list[str]
    numerical_error: float | None
    draws: dict[str, np.ndarray]
    marginals: dict[str, Marginal]
    profiles: dict[str, Profile]
    fitted: Band

    @property
    def parameters(self) -> dict[str, dict[str, float]]:
        """By parameter: mean, sd, q2.5, q50, q97.5; not a number where there is none."""
        return {
            name: {column: np.nan if value is None else value for column, value in row.items()}
            for name, row in self.answer["parameters"].items()
        }


@dataclass(frozen=True, eq=False)
class Run:
    """A run: where it came from (run.json) and what each method found."""

    origin: dict[str, Any]
    found: list[Found]

    @property
    def response(self) -> str:
        return str(self.origin["response"])

    @property
    def inputs(self) -> dict[str, tuple[float, float]]:
        return {name: (low, high) for name, (low, high) in self.origin["inputs"].items()}

    @property
    def columns(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(values, dtype=float) for name, values in self.origin["data"]["columns"].items()}

    @property
    def parameters(self) -> list[str]:
        return list(self.found[0].parameters)


def read_run(folder: Path) -> Run:
    """The run in a folder; DataError if a file is missing, damaged or from another run."""
    if not (folder / "run.json").exists():
        raise DataError(
            f"the folder '{folder}' has no run.json, which this version writes beside the results and a report needs; "
            "calibrate again with --out."
        )
    origin, answers = _json(folder / "run.json"), _json(folder / "results.json")
    try:
        entries = {entry["method"]: entry for entry in origin["results"]}
        found = [_found(folder, answer, entries[answer["method"]], origin) for answer in answers["results"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"the files in '{folder}' do not belong together or are incomplete ({error}); calibrate again with --out."
        ) from None
    if not found:
        raise DataError(f"the run in '{folder}' has no result; calibrate again with --out.")
    return Run(origin, found)


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"the file '{file}' cannot be read: {error.strerror or error}.") from None
    except ValueError:
        raise DataError(f"the file '{file}' is no JSON; calibrate again with --out.") from None
    if not isinstance(content, dict):
        raise DataError(f"the file '{file}' holds no JSON object; calibrate again with --out.")
    return content


def _found(folder: Path, answer: dict[str, Any], entry: dict[str, Any], origin: dict[str, Any]) -> Found:
    tree = read_tree(folder / f"{answer['method']}.nc")
    marginals = tree["marginals"]
    return Found(
        method=answer["method"],
        answer=answer,
        messages=entry["messages"],
        numerical_error=entry["numerical_error"],
        draws={name: tree["posterior"][name].to_numpy().ravel() for name in answer["parameters"]},
        marginals={
            name: Marginal(*(marginals[part].sel(parameter=name).to_numpy() for part in Marginal._fields))
            for name in answer["parameters"]
        },
        profiles={name: _profile(tree[f"profiles/{tree_name(name)}"], tree_name(name)) for name in origin["inputs"]},
        fitted=_band(tree["fitted"], "model"),
    )


def _profile(node: xr.DataTree | xr.DataArray, name: str) -> Profile:
    x = node[name if f"input_{name}" not in node else f"input_{name}"]
    return Profile(x.to_numpy(), _band(node, "model"), _band(node, "bias"))


def _band(node: xr.DataTree | xr.DataArray, name: str) -> Band:
    return Band(*(node[each].to_numpy() for each in (name, f"{name}_low", f"{name}_high")))
