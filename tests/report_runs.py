"""Runs that nobody ran: folders as `--out` writes them, with whatever names and shapes a test needs."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

HOSTILE = "<img src=x onerror=alert(1)>&\"'</script><script>alert(2)</script>"
METHODS = ("gb-l2", "koh")


def write_run(
    folder,
    methods=METHODS,
    inputs=None,
    prior=None,
    response="y",
    text="plain",
    bias=lambda x: 0 * x,
    observations=40,
    messages=(),
):
    """A run of so many methods whose posteriors are normal, each a little beside the last."""
    inputs = inputs or {"x": (0.0, 2.0)}
    prior = prior or {"a": "uniform(-5, 5)", "b": "normal(0, 10)"}
    rng = np.random.default_rng(5)
    columns = {name: np.linspace(low, high, observations) for name, (low, high) in inputs.items()}
    y = sum(columns.values()) + 0.1 * rng.standard_normal(observations)
    results = []
    for shift, method in enumerate(methods):
        means = {name: 1.2344 + j + 0.1 * shift for j, name in enumerate(prior)}
        _tree(inputs, columns, y, means, bias, rng).to_netcdf(folder / f"{method}.nc", engine="h5netcdf")
        results.append(_answer(method, means, len(inputs)))
    entries = [
        {"method": method, "status": "ok", "messages": list(messages), "numerical_error": 0.001, "engine": "integrate"}
        for method in methods
    ]
    origin = {
        "l2calib": "0.1.0",
        "versions": {"python": "3.11.7", "jax": "0.10"},
        "command": f"l2calib calibrate {text}",
        "spec": {"name": text, "text": f"[data]\n# {text}"},
        "model": {"kind": "expression", "text": f"a + b * x  # {text}"},
        "response": response,
        "inputs": {name: list(ends) for name, ends in inputs.items()},
        "prior": prior,
        "data": {
            "file": f"{text}.csv",
            "columns": {response: y.tolist(), **{name: values.tolist() for name, values in columns.items()}},
        },
        "seed": 3,
        "results": entries,
    }
    (folder / "run.json").write_text(json.dumps(origin))
    (folder / "results.json").write_text(json.dumps({"spec": text, "seed": 3, "results": results}))
    return folder


SD = 0.25


def _answer(method, means, inputs):
    rows = {
        name: {"mean": mean, "sd": SD, "q2.5": mean - 1.96 * SD, "q50": mean, "q97.5": mean + 1.96 * SD}
        for name, mean in means.items()
    }
    return {
        "method": method,
        "parameters": rows,
        "theta_hat": means,
        "gamma": None if method == "koh" else 12.5,
        "sigma2": 0.01,
        "rho": {"psi": [0.5] * inputs, "kappa": 0.1},
        "engine": "integrate",
        "status": "ok",
        "seconds": 1.5,
    }


def _tree(inputs, columns, y, means, bias, rng):
    z = np.linspace(-4, 4, 81)
    value = np.array([mean + SD * z for mean in means.values()])
    density = np.tile(np.exp(-(z**2) / 2) / (SD * np.sqrt(2 * np.pi)), (len(means), 1))
    grid = ("parameter", "grid")
    tree = {
        "posterior": xr.Dataset(
            {name: (("chain", "draw"), mean + SD * rng.standard_normal((4, 250))) for name, mean in means.items()}
        ),
        "marginals": xr.Dataset(
            {"value": (grid, value), "density": (grid, density), "prior": (grid, np.full(value.shape, 0.1))},
            coords={"parameter": list(means)},
        ),
        "fitted": _bands(y, bias(next(iter(columns.values()))), "observation", columns),
    }
    for name, (low, high) in inputs.items():
        x = np.linspace(low, high, 121)
        others = {each: np.full(121, sum(ends) / 2) for each, ends in inputs.items()}
        tree[f"profiles/{name}"] = _bands(sum((others | {name: x}).values()), bias(x), "point", others | {name: x})
    return xr.DataTree.from_dict(tree)


def _bands(model, bias, dimension, columns):
    means = {"model": model, "system": model + bias, "bias": bias}
    bands = {f"{name}{end}": mean + reach for name, mean in means.items() for end, reach in ENDS.items()}
    return xr.Dataset({name: (dimension, values) for name, values in {**columns, **bands}.items()})


ENDS = {"": 0.0, "_low": -0.1, "_high": 0.1}
