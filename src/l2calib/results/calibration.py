"""The result of a calibration: labels, tables, draws and files around one posterior."""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from l2calib.compute.predictor import DRAWS, Predictor, check_finite, predictor
from l2calib.compute.stages import Answer, Solution, independent_draws, marginal_curve, solve_one, stage_keys
from l2calib.display import html as markup
from l2calib.display.numbers import named
from l2calib.engines.engine import Engine
from l2calib.errors import MethodError, Status, suggest, whole_number
from l2calib.methods.method import AnyMethod
from l2calib.numerics.arrays import jax, jnp
from l2calib.posterior.kernel_density import joint_density
from l2calib.posterior.points import PROBABILITIES
from l2calib.problem.problem import Problem
from l2calib.results.prediction import Prediction, along, checked_level, points_of, tree_name

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SUMMARY_COLUMNS = ("mean", "sd", *(f"q{100 * probability:g}" for probability in PROBABILITIES))
_CHAINS = 4
_SAMPLE = 4000
_LEVEL = 0.95
_PROFILE_POINTS = 121
_PREDICTION = 2  # of the streams of randomness that a seed stands for
_MAXIMUM_SEED = 2**63 - 1


@dataclass(frozen=True)
class Rho:
    """The smoothing or correlation parameters: psi (k,) on the unit cube, and kappa."""

    psi: np.ndarray
    kappa: float


class Joint(NamedTuple):
    """Two parameters on a grid (P, P) that is even on the line but not in them: their values, and each point's mass."""

    first: np.ndarray
    second: np.ndarray
    mass: np.ndarray


@dataclass(frozen=True, eq=False)
class Calibration:
    """One posterior of one problem by one method."""

    problem: Problem
    calibrator: AnyMethod
    integrator: Engine
    answer: Answer
    seed: int
    seconds: float
    key: Any = field(repr=False)  # of all randomness

    @property
    def method(self) -> str:
        return self.calibrator.name

    @property
    def engine(self) -> str:
        return self.answer.solver.name

    @property
    def solution(self) -> Solution:
        return self.answer.solution

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.problem.parameter_names

    @property
    def status(self) -> Status:
        return Status(int(self.solution.status))

    @property
    def messages(self) -> list[str]:
        """What to know before relying on this result, in sentences."""
        return self.status.sentences()

    @property
    def numerical_error(self) -> float:
        """In posterior standard deviations; for draws, the Monte Carlo error of the mean."""
        return float(self.solution.summary.error)

    @property
    def theta_hat(self) -> dict[str, float]:
        """The estimate that the method starts from: theta-hat of its loss."""
        return dict(zip(self.parameter_names, (float(v) for v in self.solution.fit.theta_hat), strict=True))

    @property
    def gamma(self) -> float | None:
        return _optional(self.solution.fit.gamma)

    @property
    def sigma2(self) -> float | None:
        return _optional(self.solution.fit.sigma2)

    @property
    def rho(self) -> Rho | None:
        fit = self.solution.fit
        return None if fit.psi is None or fit.kappa is None else Rho(np.asarray(fit.psi), float(fit.kappa))

    @property
    def diagnostics(self) -> dict[str, np.ndarray]:
        """Of Markov chains: r_hat, ess, divergences; empty otherwise."""
        points = self.solution.points
        assert points is not None
        return {name: np.asarray(value) for name, value in (points.diagnostics or {}).items()}

    @property
    def rows(self) -> dict[str, dict[str, float]]:
        """The table of `summary` as numbers by parameter and column: to print them, pandas need not be imported."""
        mean, sd, q, _ = self.solution.summary
        table = np.column_stack([mean, sd, q]).tolist()
        return {
            name: dict(zip(SUMMARY_COLUMNS, row, strict=True))
            for name, row in zip(self.parameter_names, table, strict=True)
        }

    def summary(self) -> pd.DataFrame:
        """One row per parameter: mean, sd and the quantiles of the equal-tailed interval."""
        import pandas as pd

        table = pd.DataFrame.from_dict(self.rows, orient="index", columns=list(SUMMARY_COLUMNS))
        return table.rename_axis("parameter")

    def draws(self, number: int, seed: int | None = None) -> dict[str, np.ndarray]:
        """`number` draws from the posterior, by parameter.

        Independent draws, except from NUTS: then they are taken from its chains, which run again if more are wanted
        than there are.
        """
        whole_number(number, "the number of draws", least=1)
        fit_key, _ = stage_keys(self.key)
        key = jax.random.fold_in(self.key, 1) if seed is None else jax.random.key(checked_seed(seed))
        if self.engine == "nuts":
            theta = self._from_chains(number, key)
        else:
            theta = independent_draws(
                self.calibrator,
                self.problem.experiment,
                self.answer,
                self.problem.y,
                fit_key=fit_key,
                key=key,
                number=number,
            )
        return {name: theta[:, j] for j, name in enumerate(self.parameter_names)}

    def _from_chains(self, number: int, key: Any) -> np.ndarray:
        import dataclasses

        experiment, points = self.problem.experiment, self.solution.points
        assert points is not None
        if number > len(points.z):
            longer = dataclasses.replace(self.integrator, draws=number)  # type: ignore[type-var]
            points = solve_one(self.calibrator, experiment, longer, self.problem.y, key).solution.points
            assert points is not None
        chosen = jax.random.permutation(key, len(points.z))[:number]
        return np.asarray(experiment.prior.from_line(jnp.asarray(points.z)[chosen]))

    def marginal(self, name: str, points: int = 200) -> tuple[np.ndarray, np.ndarray]:
        """The marginal posterior density of one parameter: a grid of values and the density there."""
        whole_number(points, "the number of points", least=2)
        j = self._index(name)
        curve = marginal_curve(self.problem.experiment.prior, points)
        assert self.solution.points is not None
        theta, density = curve(self.solution.points, j)
        return np.asarray(theta), np.asarray(density)

    def joint(self, first: str, second: str, points: int = 80) -> Joint:
        """The joint posterior of two parameters on a grid, estimated from draws."""
        whole_number(points, "the number of points", least=2)
        pair = [self._index(first), self._index(second)]
        if first == second:
            raise MethodError(f"a joint posterior needs two parameters: received '{first}' twice; name another one.")
        prior = self.problem.experiment.prior
        grid, density = joint_density(np.asarray(prior.to_line(jnp.asarray(self._sample)))[:, pair], points)
        line = np.zeros((*density.shape, prior.dimension))
        line[..., pair] = grid
        theta = np.asarray(prior.from_line(jnp.asarray(line)))[..., pair]
        return Joint(theta[..., 0], theta[..., 1], density / density.sum())

    def _index(self, name: str) -> int:
        if name not in self.parameter_names:
            near = suggest(str(name), self.parameter_names)
            raise MethodError(
                f"there is no parameter '{name}'{near}: the parameters are {', '.join(self.parameter_names)}."
            )
        return self.parameter_names.index(name)

    def predict(self, x: Any, level: float = _LEVEL) -> Prediction:
        """The model, the system and the bias at inputs `x`, a frame or mapping of columns in physical units.

        The first call draws what the system depends on besides theta; later ones are quicker.
        """
        probability, experiment = checked_level(level), self.problem.experiment
        points = points_of(x, experiment.box)
        predicted = self._predicted(points, probability)
        check_finite(experiment, points, np.isfinite(predicted.model.mean))
        return predicted

    def _predicted(self, points: np.ndarray, level: float) -> Prediction:
        columns = dict(zip(self.problem.input_names, points.T, strict=True))
        return Prediction(columns, *self._predictor.bands(points, level), level)

    @functools.cached_property
    def _predictor(self) -> Predictor:
        rng = np.random.default_rng((int(self.seed), _PREDICTION))
        return predictor(self.problem.experiment, self.problem.y, self._sample[:DRAWS], rng)

    @functools.cached_property
    def _sample(self) -> np.ndarray:
        """Draws of theta, as many as a DataTree holds: one compiled program makes both."""
        return np.column_stack(list(self.draws(_SAMPLE).values()))

    def as_json(self) -> dict[str, Any]:
        """The entry of this result in the command line's JSON."""
        rho = self.rho
        return {
            "method": self.method,
            "parameters": {
                name: {column: _number(value) for column, value in row.items()} for name, row in self.rows.items()
            },
            "theta_hat": {name: _number(value) for name, value in self.theta_hat.items()},
            "gamma": _number(self.gamma),
            "sigma2": _number(self.sigma2),
            "rho": None if rho is None else {"psi": [_number(v) for v in rho.psi], "kappa": _number(rho.kappa)},
            "engine": self.engine,
            "status": str(self.status),
            "seconds": _number(self.seconds),
        }

    def to_datatree(self, draws: int = _SAMPLE) -> xr.DataTree:
        """An ArviZ DataTree: posterior draws, the data, and what was learnt on the way as attributes.

        Beside ArviZ's groups it holds `summary`, the densities in `marginals`, and predictions: `fitted` at the
        observations, and `profiles/NAME` along every input with the others at the middle of their ranges.
        """
        import xarray as xr
        from arviz_base import from_dict

        per_chain = -(-whole_number(draws, "the number of draws", least=1) // _CHAINS)
        drawn = self.draws(per_chain * _CHAINS)
        problem = self.problem
        tree = from_dict(
            {
                "posterior": {name: values.reshape(_CHAINS, per_chain) for name, values in drawn.items()},
                "observed_data": {tree_name(problem.response): problem.y},
                "constant_data": {tree_name(name): problem.x[:, j] for j, name in enumerate(problem.input_names)},
            }
        )
        tree["summary"] = xr.DataTree(self.summary().to_xarray())
        tree["marginals"] = xr.DataTree(self._marginals())
        for name in problem.input_names:  # a model may have a pole where the range of an input ends
            columns = along(problem.experiment.box, name, _PROFILE_POINTS)
            profile = self._predicted(np.column_stack(list(columns.values())), _LEVEL)
            tree[f"profiles/{tree_name(name)}"] = xr.DataTree(profile.to_dataset("point"))
        tree["fitted"] = xr.DataTree(self._predicted(problem.x, _LEVEL).to_dataset("observation"))
        tree.attrs = {**self._attributes()}
        return tree

    def _marginals(self) -> xr.Dataset:
        """The marginal posterior densities on grids of values, and the priors there."""
        import xarray as xr

        values, densities = (np.array(part) for part in zip(*map(self.marginal, self.parameter_names), strict=True))
        distributions = self.problem.experiment.prior.distributions.values()
        log_priors = [each.log_density(jnp.asarray(row)) for each, row in zip(distributions, values, strict=True)]
        by_grid = {"value": values, "density": densities, "prior": np.exp(np.array(log_priors))}
        variables = {name: (("parameter", "grid"), array) for name, array in by_grid.items()}
        return xr.Dataset(variables, coords={"parameter": list(self.parameter_names)})

    def _attributes(self) -> dict[str, Any]:
        from l2calib import __version__

        rho = self.rho
        optional = {
            "gamma": self.gamma,
            "sigma2": self.sigma2,
            "psi": None if rho is None else rho.psi,
            "kappa": None if rho is None else rho.kappa,
        }
        return {
            "creation_library": "l2calib",
            "creation_library_version": __version__,
            "response": self.problem.response,
            "method": self.method,
            "engine": self.engine,
            "status": str(self.status),
            "seed": self.seed,
            "seconds": self.seconds,
            "numerical_error": self.numerical_error,
            "theta_hat": np.array(list(self.theta_hat.values())),
            **{name: value for name, value in optional.items() if value is not None},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the DataTree as NetCDF, atomically."""
        destination = Path(path)
        partial = destination.with_name(f".{destination.name}.{os.getpid()}")
        try:
            self.to_datatree().to_netcdf(partial, engine="h5netcdf")
            partial.replace(destination)
        finally:
            partial.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"Calibration({self.method}, {self.status})\n{self.summary()}"

    def _repr_html_(self) -> str:
        rows = [(name, *row.values()) for name, row in self.rows.items()]
        learnt = {name: value for name, value in (("gamma", self.gamma), ("sigma2", self.sigma2)) if value}
        return markup.block(
            f"Calibration by {self.method}: {self.status}",
            markup.table(("parameter", *SUMMARY_COLUMNS), rows, sd="sd"),
            *map(markup.paragraph, [named(learnt, learnt.values(), digits=4)] if learnt else []),
            *map(markup.paragraph, self.messages),
        )


def checked_seed(seed: Any) -> int:
    """The seed as an int; MethodError if it cannot be one."""
    return whole_number(seed, "the seed", least=0, most=_MAXIMUM_SEED)


def _optional(value: Any) -> float | None:
    return None if value is None else float(value)


def _number(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
