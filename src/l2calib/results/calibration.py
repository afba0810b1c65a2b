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
from l2calib.display import html as markup
from l2calib.display.numbers import named
from l2calib.errors import MethodError, Status, suggest, whole_number
from l2calib.numerics.arrays import jnp
from l2calib.posterior.kernel_density import joint_density
from l2calib.posterior.points import PROBABILITIES
from l2calib.problem.prior import Prior
from l2calib.problem.problem import Problem
from l2calib.results.posterior import Posterior, not_in_the_file
from l2calib.results.prediction import LEVEL, Prediction, checked_level, points_of
from l2calib.results.tree import CHAINS, new_tree, with_draws
from l2calib.results.writing import staged

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from l2calib.methods.l2.limits import Limits

SUMMARY_COLUMNS = ("mean", "sd", *(f"q{100 * probability:g}" for probability in PROBABILITIES))
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
    """One posterior of one problem by one method, from `calibrate` or from a file.

    `rows` is the table of `summary` as numbers by parameter and column. `theta_hat` is the estimate that the method
    starts from. `numerical_error` is in posterior standard deviations; for draws, it is the Monte Carlo error of the
    mean. `gamma`, `sigma2`, `rho`, `no_process` and `doubt` are None where the method has none. `no_process` is the
    probability that the model has no bias; what is in `rho` is not a number where that is more probable than one.
    `doubt` is the share of biases, on average over the posterior, with which the model is closer to the system at
    another theta. `diagnostics` are those of Markov chains (r_hat, ess, divergences), empty otherwise, and `level` is
    the refinement of the engine that sufficed. `problem` is None where a file was loaded without it.
    """

    method: str
    engine: str
    rows: dict[str, dict[str, float]]
    theta_hat: dict[str, float]
    gamma: float | None
    sigma2: float | None
    rho: Rho | None
    no_process: float | None
    doubt: float | None
    status: Status
    numerical_error: float
    diagnostics: dict[str, np.ndarray]
    level: int | None
    seed: int
    seconds: float
    problem: Problem | None
    posterior: Posterior = field(repr=False)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(self.rows)

    @property
    def prior(self) -> Prior:
        return self.posterior.prior

    @property
    def messages(self) -> list[str]:
        """What to know before relying on this result, in sentences."""
        return self.status.sentences()

    @functools.cached_property
    def limits(self) -> Limits | None:
        """What the data leave open, and where more points would help most; None where the method does not tell.

        Of `l2`, whose process is that of the model's bias; a loaded result needs its problem.
        """
        if self.problem is None or self.rho is None or self.sigma2 is None or self.no_process is None:
            return None
        from l2calib.methods.catalogue import method_named
        from l2calib.methods.l2 import ProjectedBias
        from l2calib.methods.l2.limits import limits

        method, theta = method_named(self.method), np.array(list(self.theta_hat.values()))
        if not isinstance(method, ProjectedBias):
            return None
        return limits(self.problem.experiment, method.correlation, theta, self.sigma2, self.rho.psi, self.rho.kappa)

    @property
    def notes(self) -> list[str]:
        """The same in sentences, where there is something to say."""
        return [] if self.limits is None else self.limits.sentences()

    def summary(self) -> pd.DataFrame:
        """One row per parameter: mean, sd and the quantiles of the equal-tailed interval."""
        import pandas as pd

        table = pd.DataFrame.from_dict(self.rows, orient="index", columns=list(SUMMARY_COLUMNS))
        return table.rename_axis("parameter")

    def draws(self, number: int, seed: int | None = None) -> dict[str, np.ndarray]:
        """`number` draws from the posterior, by parameter.

        Independent draws, except from NUTS: then they are taken from its chains, which run again if more are wanted
        than there are. Those of a loaded result are taken from the ones that were kept.
        """
        whole_number(number, "the number of draws", least=1)
        theta = self.posterior.draws(number, None if seed is None else checked_seed(seed))
        return {name: theta[:, j] for j, name in enumerate(self.parameter_names)}

    def marginal(self, name: str, points: int = 200) -> tuple[np.ndarray, np.ndarray]:
        """The marginal posterior density of one parameter: a grid of values and the density there."""
        whole_number(points, "the number of points", least=2)
        return self.posterior.marginal(self._index(name), points)

    def joint(self, first: str, second: str, points: int = 80) -> Joint:
        """The joint posterior of two parameters on a grid, estimated from draws."""
        whole_number(points, "the number of points", least=2)
        pair = [self._index(first), self._index(second)]
        if first == second:
            raise MethodError(f"a joint posterior needs two parameters: received '{first}' twice; name another one.")
        prior = self.prior
        sample = jnp.asarray(self.posterior.sample)
        grid, density = joint_density(np.asarray(prior.to_line(sample))[:, pair], points)
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

    def predict(self, x: Any, level: float = LEVEL) -> Prediction:
        """The model, the system and the bias at inputs `x`, a frame or mapping of columns in physical units.

        The first call draws what the system depends on besides theta; later ones are quicker.
        """
        experiment = problem_of(self, "predicting").experiment
        probability, points = checked_level(level), points_of(x, experiment.box)
        predicted = self._predicted(points, probability)
        check_finite(experiment, points, np.isfinite(predicted.model.mean))
        return predicted

    def _predicted(self, points: np.ndarray, level: float) -> Prediction:
        columns = dict(zip(problem_of(self, "predicting").input_names, points.T, strict=True))
        return Prediction(columns, *self._predictor.bands(points, level), level)

    @functools.cached_property
    def _predictor(self) -> Predictor:
        problem, rng = problem_of(self, "predicting"), np.random.default_rng((self.seed, _PREDICTION))
        return predictor(problem.experiment, problem.y, self.posterior.sample[:DRAWS], rng)

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
            "no_process": _number(self.no_process),
            "engine": self.engine,
            "status": str(self.status),
            "seconds": _number(self.seconds),
        }

    def to_datatree(self, draws: int | None = None) -> xr.DataTree:
        """An ArviZ DataTree: posterior draws, the data, and what was learnt on the way as attributes.

        Beside ArviZ's groups it holds `summary`, the densities in `marginals`, and predictions: `fitted` at the
        observations, and `profiles/NAME` along every input with the others at the middle of their ranges; and the
        `diagnostics` of Markov chains. It has 4000 draws unless told otherwise, or all that a file has kept.
        """
        theta = None if draws is None else self.posterior.draws(_in_chains(draws), None)
        held = self.posterior.file
        if held is not None:
            return held.copy(deep=True) if theta is None else with_draws(held, self.parameter_names, theta)
        problem = problem_of(self, "making a DataTree")
        return new_tree(self, problem, self._predicted, self.posterior.sample if theta is None else theta)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the DataTree as NetCDF, atomically: `load` reads it."""
        destination, tree = Path(path), self.to_datatree()
        with staged(destination.parent, destination.name) as place:
            tree.to_netcdf(place / destination.name, engine="h5netcdf")

    def __repr__(self) -> str:
        return f"Calibration({self.method}, {self.status})\n{self.summary()}"

    def _repr_html_(self) -> str:
        rows = [(name, *row.values()) for name, row in self.rows.items()]
        learnt = {name: value for name, value in (("gamma", self.gamma), ("sigma2", self.sigma2)) if value}
        return markup.block(
            f"Calibration by {self.method}: {self.status}",
            markup.table(("parameter", *SUMMARY_COLUMNS), rows, sd="sd"),
            *map(markup.paragraph, [named(learnt, learnt.values(), digits=4)] if learnt else []),
            *map(markup.paragraph, [*self.messages, *self.notes]),
        )


def problem_of(result: Calibration, doing: str) -> Problem:
    """The problem of a result; MethodError if it was loaded without."""
    if result.problem is None:
        raise not_in_the_file(doing, "the model")
    return result.problem


def checked_seed(seed: Any) -> int:
    """The seed as an int; MethodError if it cannot be one."""
    return whole_number(seed, "the seed", least=0, most=_MAXIMUM_SEED)


def _in_chains(draws: Any) -> int:
    """As many draws, or a few more, as fill all chains."""
    return -(-whole_number(draws, "the number of draws", least=1) // CHAINS) * CHAINS


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
