"""One suite for every method: names, shapes, seeds, and a batch that gives what single calls give.

    pytest tests/test_conformance.py --method path/to/file.py:ClassName

runs it on a method that the package does not know, and on that alone. Without the option the methods are those of the
catalogue and the example's, which stands for all that users bring.
"""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt

import l2calib as l2
from l2calib import plots
from l2calib.calibration import _keys
from l2calib.compute.stages import solve_one
from l2calib.engines.engine import default_engine
from l2calib.errors import MethodError
from l2calib.methods.method import runs_in_numpy, workload_of
from tests import problems
from tests.oracles.configurations import simulate

N = 20
DATASETS = 64
RANDOM = ("projected", "gb-l2-boot", "gb-ols-boot")
EXAMPLE = f"{Path(__file__).parents[1] / 'examples' / 'own-method' / 'ridge.py'}:Ridge"

# What is compiled for an experiment serves every test of it.
experiment = functools.cache(problems.experiment)


class Only(NamedTuple):
    """Which methods of the catalogue a test is for, and whether it is for those of users."""

    names: tuple[str, ...]
    users: bool = True


def only(*names: str, users: bool = True) -> Any:
    def mark(test: Any) -> Any:
        test.only = Only(names, users)
        return test

    return mark


def pytest_generate_tests(metafunc):
    """All tests of one method in a row: its programs are then still at hand."""
    if "method" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("--method")
    names, users = getattr(metafunc.function, "only", Only(tuple(l2.METHODS)))
    methods = [] if given else [l2.METHODS[name] for name in names]
    methods += [loaded(each) for each in given or [EXAMPLE]] if users else []
    metafunc.parametrize("method", methods, ids=[each.name for each in methods], scope="module")


@functools.cache
def loaded(place: str) -> Any:
    """An object of the class that `path/to/file.py:ClassName` stands for."""
    path, _, name = place.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None, f"{place} is not path/to/file.py:ClassName"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)()


def is_known(method: Any) -> bool:
    return method in l2.METHODS.values()


def responses(number: int, datasets: int) -> np.ndarray:
    return np.stack([simulate(number, N, seed)[1] for seed in range(datasets)])


@functools.cache
def linear() -> l2.Problem:
    return problems.problem(3, N, seed=0)


@functools.cache
def calibrated(method: Any, seed: int) -> l2.Calibration:
    return l2.calibrate(linear(), method, seed=seed)


@functools.cache
def views(known: l2.Experiment) -> dict[str, Any]:
    """Of all methods for one experiment in a row, so that they share its tables."""
    return {name: each.prepare(known).view for name, each in l2.METHODS.items() if name != "projected"}


@only(*(name for name in l2.METHODS if name != "projected"), users=False)
def test_what_is_compiled_to_integrate_serves_every_design(method):
    """A program's key is the prior, the structure of the view and the shapes in it."""
    small, large = experiment(4, 16), experiment(4, 24)
    assert small.prior == large.prior
    assert hash(small.prior) == hash(large.prior)
    of_small, of_large, of_another = (views(known)[method.name] for known in (small, large, linear().experiment))
    assert jax.tree.structure(of_small) == jax.tree.structure(of_large)
    assert [np.shape(leaf) for leaf in jax.tree.leaves(of_small)] == [
        np.shape(leaf) for leaf in jax.tree.leaves(of_large)
    ]
    assert jax.tree.structure(of_small) != jax.tree.structure(of_another)


def test_a_result_has_its_name_its_shape_and_its_json(method):
    result = calibrated(method, 5)
    table = result.summary()
    assert result.method == method.name
    assert list(table.index) == ["theta1"]
    assert list(table.columns) == ["mean", "sd", "q2.5", "q50", "q97.5"]
    assert np.isfinite(table.to_numpy()).all()
    assert (table["q2.5"] < table["q50"]).all()
    assert (table["q50"] < table["q97.5"]).all()
    entry = result.as_json()
    assert list(entry) == [
        "method",
        "parameters",
        "theta_hat",
        "gamma",
        "sigma2",
        "rho",
        "no_process",
        "engine",
        "status",
        "seconds",
    ]
    if not is_known(method):
        assert (entry["rho"] is None) == (method.smoothing is None)
    else:
        assert (entry["gamma"] is not None) == method.name.startswith("gb-")
        assert (entry["rho"] is None) == (method.name == "nlm")


def test_the_same_seed_gives_the_same_bits(method):
    first = calibrated(method, 5).summary().to_numpy()
    second = l2.calibrate(linear(), method, seed=5).summary().to_numpy()
    assert (first == second).all()
    other = l2.calibrate(linear(), method, seed=6)
    differs = (first != other.summary().to_numpy()).any()
    if is_known(method):
        assert differs == (method.name in RANDOM)
    elif other.engine == "draws":
        assert differs


def test_a_batch_gives_what_single_calls_give(method):
    known, y = linear().experiment, responses(3, DATASETS)
    batch = l2.calibrate_batch(known, y, method, seed=list(range(DATASETS)))
    assert batch.mean.shape == batch.sd.shape == (DATASETS, 1)
    assert batch.quantiles.shape == (DATASETS, 1, 3)
    engine, keys = default_engine(known.parameters), _keys(range(DATASETS))
    for i in range(DATASETS):
        # `calibrate` on a known experiment, so that all calls compile once.
        single = solve_one(method, known, engine, y[i], keys[i]).solution
        # NumPy differentiates by differences, so its points lie elsewhere: the answers agree within their stated error.
        own = float(single.summary.error * single.summary.sd[0]) if runs_in_numpy(method) else 0.0
        assert batch.mean[i] == pytest.approx(single.summary.mean, rel=1e-8, abs=own)
        assert batch.quantiles[i] == pytest.approx(single.summary.quantiles, rel=1e-8, abs=own)
        assert batch.sd[i] == pytest.approx(single.summary.sd, rel=1e-8, abs=own)
        assert batch.status[i] == single.status


@only("nlm")
def test_a_batch_does_not_depend_on_its_company(method):
    known, y = experiment(2, N), responses(2, 24)
    whole = l2.calibrate_batch(known, y, method, seed=list(range(24)))
    part = l2.calibrate_batch(known, y[7:], method, seed=list(range(7, 24)))  # in chunks of 32, too: compiled once
    assert part.mean == pytest.approx(whole.mean[7:], rel=1e-8)
    assert part.quantiles == pytest.approx(whole.quantiles[7:], rel=1e-8)


@only("nlm", users=False)
def test_multi_modal_posteriors_are_seen_whole(method):
    # Non-linear regression in configuration 2 keeps mass at its second minimum, theta = 0.26, when n is small.
    result = l2.calibrate(problems.problem(2, N, seed=0), method)
    draws = result.draws(4000, seed=1)["theta1"]
    share = float(np.mean(draws < 1.0))
    assert 0.005 < share < 0.5
    assert result.summary().loc["theta1", "mean"] == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(4000))


@only("gb-l2", "projected")
def test_draws_of_any_number_follow_the_posterior(method):
    result = calibrated(method, 5)
    number = 5000
    drawn = result.draws(number, seed=9)["theta1"]
    assert drawn.shape == (number,)
    row = result.summary().loc["theta1"]
    # A summary may rest on draws itself, 1,000 of them if it is the projected; the result knows their error.
    error = row["sd"] * np.sqrt(1 / number + (result.numerical_error**2 if result.engine == "draws" else 0))
    assert drawn.mean() == pytest.approx(row["mean"], abs=4 * error)
    assert drawn.std() == pytest.approx(row["sd"], abs=4 * error / np.sqrt(2))
    assert len(result.draws(3, seed=1)["theta1"]) == 3
    assert (result.draws(50, seed=4)["theta1"] == result.draws(50, seed=4)["theta1"]).all()


@only()
def test_a_method_stands_beside_those_of_the_catalogue(method, tmp_path):
    """In comparisons, pictures and files, as a result does whose method has a name."""
    both = l2.compare(linear(), [method, "nlm"], seed=5)
    assert [each.method for each in both] == [method.name, "nlm"]
    ours = both.results[0]
    assert (ours.summary() == calibrated(method, 5).summary()).all(axis=None)
    shown = plots.plot_marginal(both, "theta1").get_legend_handles_labels()[1]
    plt.close("all")
    assert method.name in shown
    ours.save(tmp_path / "result.nc")
    with xr.open_datatree(tmp_path / "result.nc", engine="h5netcdf") as kept:
        assert kept.attrs["method"] == method.name
        assert np.isfinite(kept["posterior"]["theta1"]).all()


@only()
def test_a_method_without_a_workload_is_given_one(method):
    if hasattr(method, "workload"):
        assert workload_of(method, linear().experiment) == method.workload(linear().experiment)
    else:
        assert min(workload_of(method, linear().experiment)[:2]) >= N


@only()
def test_a_method_knows_designs_of_several_inputs_and_parameters(method):
    known = experiment(4, 24)
    batch = l2.calibrate_batch(known, np.stack([simulate(4, 24, seed)[1] for seed in range(2)]), method)
    assert batch.mean.shape == (2, 3)
    assert ((known.prior.low <= batch.mean) & (batch.mean <= known.prior.high)).all()
    assert (batch.sd > 0).all()


NOTHING = l2.Prepared(None, None)


@dataclass(frozen=True)
class Guess:
    """As little as a method can be: a normal posterior about 3, or what a test puts in the place of a part of it."""

    fitted: Any = None
    posteriors: Any = None
    prepares: Any = NOTHING
    name = "guess"
    smoothing = None

    def prepare(self, experiment: Any) -> Any:
        return self.prepares

    def fit(self, experiment: Any, shared: Any, y: Any, *, key: Any, choice: Any) -> Any:
        learnt = l2.Fit(jnp.full(1, 3.0), jnp.full((1, 1), 3.0), 0, detail=None)
        return learnt if self.fitted is None else self.fitted(learnt)

    def posterior(self, prior: Any, view: Any, fit: Any) -> Any:
        normal = l2.Density(lambda theta: -50 * jnp.sum((theta - fit.theta_hat) ** 2))
        return normal if self.posteriors is None else self.posteriors(fit)


def test_five_members_make_a_method():
    row = l2.calibrate(linear(), Guess()).summary().loc["theta1"]
    error = 0.1 * l2.Integrate().tolerance
    assert row["mean"] == pytest.approx(3, abs=error)
    assert row["sd"] == pytest.approx(0.1, abs=error)


@dataclass
class Mutable:
    """A dataclass that can change has no hash."""

    name: str = "mutable"
    smoothing = prepare = fit = posterior = None


@pytest.mark.parametrize(
    ("received", "sentence"),
    [
        (3, "the method is not one: received 3, which has no name and no smoothing and no prepare"),
        (None, "received None"),
        (l2.Bootstrap(), "which has no name"),
        (Guess, "not one but a class: received Guess; give an object of it, Guess\\(\\)"),
        (Mutable(), "has no hash: received Mutable.*frozen"),
    ],
)
def test_what_is_no_method_is_refused_in_one_sentence(received, sentence):
    for refuse in (
        lambda: l2.calibrate(linear(), received),
        lambda: l2.calibrate_batch(linear(), responses(3, 1), received),
        lambda: l2.compare(linear(), ["nlm", received]),
    ):
        with pytest.raises(MethodError, match=sentence) as caught:
            refuse()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (Guess(prepares=None), "what 'guess' prepares is not Prepared: received a NoneType"),
        (Guess(tuple), "the fit of 'guess' is not a Fit: received a tuple"),
        (Guess(lambda fit: fit._replace(theta_hat=jnp.ones(2))), r"'theta_hat' .* shape \(1,\): received \(2,\)"),
        (Guess(lambda fit: fit._replace(starts=jnp.ones(1))), r"'starts' .* shape \(1, 1\): received \(1,\)"),
        (Guess(lambda fit: fit._replace(starts=jnp.ones((3, 2)))), r"'starts' .* shape \(3, 1\): received \(3, 2\)"),
        (Guess(lambda fit: fit._replace(status=jnp.zeros(1, int))), r"'status' .* shape \(\): received \(1,\)"),
        (Guess(lambda fit: fit._replace(status=0.0)), "'status' .* whole number: received float64"),
        (Guess(lambda fit: fit._replace(sigma2=jnp.ones(2))), r"'sigma2' .* shape \(\): received \(2,\)"),
        (Guess(posteriors=lambda fit: fit.theta_hat), "neither a Density nor a Sampler: received a "),
        (Guess(posteriors=lambda fit: l2.Density(lambda theta: theta)), r"the log density .* \(\): received \(1,\)"),
        (
            Guess(posteriors=lambda fit: l2.Sampler(lambda key, number: jnp.ones(number), 8)),
            r"\(8, 1\): received \(8,\)",
        ),
        (Guess(posteriors=lambda fit: l2.Sampler(None, 1.5)), "draws must be a whole number, at least 2: received 1.5"),
    ],
)
def test_what_a_method_returns_is_refused_in_one_sentence(wrong, sentence):
    for refuse in (
        lambda: l2.calibrate(linear(), wrong),
        lambda: l2.calibrate_batch(linear(), responses(3, 1), wrong),
    ):
        with pytest.raises(MethodError, match=sentence) as caught:
            refuse()
        assert "\n" not in str(caught.value)
