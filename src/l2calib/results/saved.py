"""A posterior that was read from a file: the draws and densities that were kept of it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.errors import DataError, MethodError, Status
from l2calib.problem.prior import Prior
from l2calib.problem.problem import Problem
from l2calib.results.calibration import SUMMARY_COLUMNS, Calibration, Rho
from l2calib.results.posterior import not_in_the_file
from l2calib.results.prior_text import distributions_of_text

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Held:
    """What a file holds, and its name, to say so where it lacks something."""

    path: str
    tree: xr.DataTree

    def attribute(self, name: str) -> Any:
        """An attribute that every result has; DataError if there is none."""
        if name not in self.tree.attrs:
            raise self._lacks(f"attribute '{name}'")
        return self.tree.attrs[name]

    def optional(self, name: str) -> float | None:
        """An attribute that is a number, or that the method does not have."""
        value = self.tree.attrs.get(name)
        return None if value is None else float(value)

    def values(self, group: str, variable: str) -> np.ndarray:
        """A variable of a group; DataError if there is none."""
        if group not in self.tree.children or variable not in self.tree[group].variables:
            raise self._lacks(f"'{variable}' in the group '{group}'")
        return np.asarray(self.tree[group][variable].to_numpy())

    def variables(self, group: str) -> list[str]:
        """The names of a group's variables; none if there is no such group."""
        return [str(name) for name in self.tree[group].data_vars] if group in self.tree.children else []

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self.values("summary", "parameter"))

    @functools.cached_property
    def sample(self) -> np.ndarray:
        """The draws of theta (S, p), in the order in which they were made."""
        return np.column_stack([self.values("posterior", name).ravel() for name in self.parameters])

    def _lacks(self, what: str) -> DataError:
        return DataError(
            f"the result '{self.path}' has no {what}: received a file of another version or of another program; "
            "give one that was written by save or --out."
        )


@dataclass(frozen=True, eq=False)
class Saved:
    """The draws and the densities in a file; the prior is that of the problem, where there is one."""

    held: Held
    problem: Problem | None

    @property
    def file(self) -> xr.DataTree | None:
        return self.held.tree

    @property
    def sample(self) -> np.ndarray:
        return self.held.sample

    @functools.cached_property
    def prior(self) -> Prior:
        if self.problem is not None:
            return self.problem.experiment.prior
        known = distributions_of_text(str(self.held.tree.attrs.get("prior", "")))
        for name in self.held.parameters:
            if known.get(name) is None:
                raise not_in_the_file("this", f"the prior of '{name}'")
        return Prior({name: known[name] for name in self.held.parameters})

    def draws(self, number: int, seed: int | None) -> np.ndarray:
        """Of those that were kept, the first, or the ones that a seed chooses."""
        kept = len(self.sample)
        if number > kept:
            raise MethodError(
                f"a result that was loaded has the draws that its file keeps, which are {kept}: received {number}; "
                "ask for no more, or calibrate again."
            )
        chosen = np.arange(kept) if seed is None else np.random.default_rng(seed).permutation(kept)
        return np.asarray(self.sample[chosen[:number]])

    def marginal(self, index: int, points: int) -> tuple[np.ndarray, np.ndarray]:
        """The curve that was kept, through whose points a smooth one is drawn."""
        from scipy.interpolate import CubicSpline

        curve = np.stack([self.held.values("marginals", name)[index] for name in ("value", "density")])
        value, density = CubicSpline(np.arange(curve.shape[1]), curve, axis=1)(
            np.linspace(0, curve.shape[1] - 1, points)
        )
        return value, np.maximum(density, 0.0)


def restored(held: Held, problem: Problem | None) -> Calibration:
    """The result that a file holds; DataError if it holds none."""
    names = held.parameters
    columns = np.column_stack([held.values("summary", column) for column in SUMMARY_COLUMNS]).tolist()
    level = held.optional("level")
    return Calibration(
        problem=problem,
        posterior=Saved(held, problem),
        method=str(held.attribute("method")),
        engine=str(held.attribute("engine")),
        level=None if level is None else int(level),
        status=_status(held),
        numerical_error=float(held.attribute("numerical_error")),
        rows={name: dict(zip(SUMMARY_COLUMNS, row, strict=True)) for name, row in zip(names, columns, strict=True)},
        theta_hat=dict(zip(names, np.atleast_1d(held.attribute("theta_hat")).tolist(), strict=True)),
        gamma=held.optional("gamma"),
        sigma2=held.optional("sigma2"),
        rho=_rho(held),
        no_process=held.optional("no_process"),
        doubt=held.optional("doubt"),
        diagnostics=_diagnostics(held),
        seed=int(held.attribute("seed")),
        seconds=float(held.attribute("seconds")),
    )


def _status(held: Held) -> Status:
    flags = {str(flag): flag for flag in (Status.OK, *Status)}
    status, text = Status.OK, str(held.attribute("status"))
    for name in text.split(", "):
        if name not in flags:
            raise DataError(
                f"the result '{held.path}' has a status that this version does not know: received '{name}'; "
                "install the version that wrote it."
            )
        status |= flags[name]
    return status


def _rho(held: Held) -> Rho | None:
    psi, kappa = held.tree.attrs.get("psi"), held.optional("kappa")
    return None if psi is None or kappa is None else Rho(np.atleast_1d(psi), kappa)


def _diagnostics(held: Held) -> dict[str, np.ndarray]:
    return {name: held.values("diagnostics", name) for name in held.variables("diagnostics")}
