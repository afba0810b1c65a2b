"""A posterior that was computed in this session: it can be drawn from without end."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from l2calib.compute.stages import Answer, independent_draws, marginal_curve, solve_one, stage_keys
from l2calib.engines.engine import Engine
from l2calib.errors import Status
from l2calib.methods.method import AnyMethod
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.posterior.points import Points
from l2calib.problem.prior import Prior
from l2calib.problem.problem import Problem
from l2calib.results.calibration import SUMMARY_COLUMNS, Calibration, Rho
from l2calib.results.posterior import KEPT

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Computed:
    """What was computed, and all that it takes to draw more."""

    problem: Problem
    method: AnyMethod
    engine: Engine
    answer: Answer
    key: Array  # of all randomness

    @property
    def prior(self) -> Prior:
        return self.problem.experiment.prior

    @property
    def file(self) -> xr.DataTree | None:
        return None

    @property
    def points(self) -> Points:
        found = self.answer.solution.points
        assert found is not None
        return found

    @functools.cached_property
    def sample(self) -> np.ndarray:
        return self.draws(KEPT, None)

    def draws(self, number: int, seed: int | None) -> np.ndarray:
        """Independent draws, except from NUTS: then they are taken from its chains."""
        key = jax.random.fold_in(self.key, 1) if seed is None else jax.random.key(seed)
        if self.answer.solver.name == "nuts":
            return self._from_chains(number, key)
        fit_key, _ = stage_keys(self.key)
        return independent_draws(
            self.method,
            self.problem.experiment,
            self.answer,
            self.problem.y,
            fit_key=fit_key,
            key=key,
            number=number,
        )

    def _from_chains(self, number: int, key: Array) -> np.ndarray:
        points = self.points
        if number > len(points.z):
            longer = dataclasses.replace(self.engine, draws=number)  # type: ignore[type-var]
            again = solve_one(self.method, self.problem.experiment, longer, self.problem.y, key)
            points = dataclasses.replace(self, answer=again).points
        chosen = jax.random.permutation(key, len(points.z))[:number]
        return np.asarray(self.prior.from_line(jnp.asarray(points.z)[chosen]))

    def marginal(self, index: int, points: int) -> tuple[np.ndarray, np.ndarray]:
        theta, density = marginal_curve(self.prior, points)(self.points, index)
        return np.asarray(theta), np.asarray(density)


def computed(posterior: Computed, seed: int, seconds: float) -> Calibration:
    """The result that a computed posterior is."""
    solution, names = posterior.answer.solution, posterior.problem.parameter_names
    fit, (mean, sd, quantiles, error) = solution.fit, solution.summary
    table = np.column_stack([mean, sd, quantiles]).tolist()
    return Calibration(
        problem=posterior.problem,
        posterior=posterior,
        method=posterior.method.name,
        engine=posterior.answer.solver.name,
        level=posterior.answer.level,
        status=Status(int(solution.status)),
        numerical_error=float(error),
        rows={name: dict(zip(SUMMARY_COLUMNS, row, strict=True)) for name, row in zip(names, table, strict=True)},
        theta_hat=dict(zip(names, (float(value) for value in fit.theta_hat), strict=True)),
        gamma=_optional(fit.gamma),
        sigma2=_optional(fit.sigma2),
        rho=None if fit.psi is None or fit.kappa is None else Rho(np.asarray(fit.psi), float(fit.kappa)),
        no_process=_optional(fit.no_process),
        doubt=None if fit.no_process is None else float(solution.doubt),
        diagnostics={name: np.asarray(value) for name, value in (posterior.points.diagnostics or {}).items()},
        seed=seed,
        seconds=seconds,
    )


def _optional(value: Array | None) -> float | None:
    return None if value is None else float(value)
