"""A result as an ArviZ DataTree: draws, data, tables, predictions, and what was learnt on the way as attributes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.numerics.arrays import jnp
from l2calib.problem.problem import Problem
from l2calib.results.prediction import LEVEL, Prediction, along, tree_name
from l2calib.results.prior_text import text_of_prior

if TYPE_CHECKING:
    import xarray as xr

    from l2calib.results.calibration import Calibration

CHAINS = 4
_PROFILE_POINTS = 121


def new_tree(
    result: Calibration, problem: Problem, predicted: Callable[[np.ndarray, float], Prediction], theta: np.ndarray
) -> xr.DataTree:
    """The tree of a result with the draws theta (S, p); `predicted` may have gaps where the model has a pole."""
    import xarray as xr
    from arviz_base import from_dict

    tree: xr.DataTree = from_dict(
        {
            "posterior": _chains(result.parameter_names, theta),
            "observed_data": {tree_name(problem.response): problem.y},
            "constant_data": {tree_name(name): problem.x[:, j] for j, name in enumerate(problem.input_names)},
        }
    )
    tree["summary"] = xr.DataTree(result.summary().to_xarray())
    tree["marginals"] = xr.DataTree(_marginals(result))
    for name in problem.input_names:  # a model may have a pole where the range of an input ends
        columns = along(problem.experiment.box, name, _PROFILE_POINTS)
        profile = predicted(np.column_stack(list(columns.values())), LEVEL)
        tree[f"profiles/{tree_name(name)}"] = xr.DataTree(profile.to_dataset("point"))
    tree["fitted"] = xr.DataTree(predicted(problem.x, LEVEL).to_dataset("observation"))
    scales = 1 / problem.experiment.whitening
    if (scales != 1).any():
        tree["noise"] = xr.DataTree(xr.Dataset({"scale": ("observation", scales)}))
    if result.diagnostics:
        tree["diagnostics"] = xr.DataTree(_diagnostics(result))
    tree.attrs = _attributes(result, problem)
    return tree


def with_draws(tree: xr.DataTree, names: Sequence[str], theta: np.ndarray) -> xr.DataTree:
    """The same tree with other draws."""
    from arviz_base import from_dict

    copy: xr.DataTree = tree.copy(deep=True)
    copy["posterior"] = from_dict({"posterior": _chains(names, theta)})["posterior"]
    return copy


def _chains(names: Sequence[str], theta: np.ndarray) -> dict[str, np.ndarray]:
    return {name: theta[:, j].reshape(CHAINS, -1) for j, name in enumerate(names)}


def _marginals(result: Calibration) -> xr.Dataset:
    """The marginal posterior densities on grids of values, and the priors there."""
    import xarray as xr

    values, densities = (np.array(part) for part in zip(*map(result.marginal, result.parameter_names), strict=True))
    distributions = result.prior.distributions.values()
    log_priors = [each.log_density(jnp.asarray(row)) for each, row in zip(distributions, values, strict=True)]
    by_grid = {"value": values, "density": densities, "prior": np.exp(np.array(log_priors))}
    variables = {name: (("parameter", "grid"), array) for name, array in by_grid.items()}
    return xr.Dataset(variables, coords={"parameter": list(result.parameter_names)})


def _diagnostics(result: Calibration) -> xr.Dataset:
    """One variable each; most have a value for every parameter."""
    import xarray as xr

    parameters = len(result.parameter_names)
    variables = {}
    for name, array in result.diagnostics.items():
        own = tuple(f"{tree_name(name)}_dim_{axis}" for axis in range(array.ndim))
        variables[tree_name(name)] = (("parameter",) if array.shape == (parameters,) else own, array)
    return xr.Dataset(variables)


def _attributes(result: Calibration, problem: Problem) -> dict[str, Any]:
    from l2calib import __version__

    rho = result.rho
    optional = {
        "gamma": result.gamma,
        "sigma2": result.sigma2,
        "psi": None if rho is None else rho.psi,
        "kappa": None if rho is None else rho.kappa,
        "no_process": result.no_process,
        "doubt": result.doubt,
        "level": result.level,
    }
    return {
        "creation_library": "l2calib",
        "creation_library_version": __version__,
        "response": problem.response,
        "inputs": json.dumps(problem.inputs),
        "prior": text_of_prior(problem.experiment.prior),
        "method": result.method,
        "engine": result.engine,
        "status": str(result.status),
        "seed": result.seed,
        "seconds": result.seconds,
        "numerical_error": result.numerical_error,
        "theta_hat": np.array(list(result.theta_hat.values())),
        **{name: value for name, value in optional.items() if value is not None},
    }
