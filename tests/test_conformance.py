"""One suite for every method: names, shapes, seeds, and a batch that gives what single calls give."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import l2calib as l2
from tests.oracles.configurations import simulate
from tests.problems import experiment, problem

N = 20
METHODS = tuple(l2.METHODS)
RANDOM = ("projected", "gb-l2-boot", "gb-ols-boot")


def responses(number: int, datasets: int) -> np.ndarray:
    return np.stack([simulate(number, N, seed)[1] for seed in range(datasets)])


@pytest.fixture(scope="module")
def linear() -> l2.Problem:
    return problem(3, N, seed=0)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "projected"])
def test_what_is_compiled_to_integrate_serves_every_design(name):
    """A program's key is the prior, the structure of the view and the shapes in it."""
    method, small, large = l2.METHODS[name], experiment(4, 40), experiment(4, 60)
    assert small.prior == large.prior
    assert hash(small.prior) == hash(large.prior)
    views = [method.prepare(each).view for each in (small, large)]
    assert jax.tree.structure(views[0]) == jax.tree.structure(views[1])
    assert [np.shape(leaf) for leaf in jax.tree.leaves(views[0])] == [
        np.shape(leaf) for leaf in jax.tree.leaves(views[1])
    ]
    assert jax.tree.structure(views[0]) != jax.tree.structure(method.prepare(experiment(1, 40)).view)


@pytest.mark.parametrize("name", METHODS)
def test_a_result_has_its_name_its_shape_and_its_json(name, linear):
    result = l2.calibrate(linear, name, seed=3)
    table = result.summary()
    assert result.method == name
    assert list(table.index) == ["theta1"]
    assert list(table.columns) == ["mean", "sd", "q2.5", "q50", "q97.5"]
    assert np.isfinite(table.to_numpy()).all()
    assert (table["q2.5"] < table["q50"]).all()
    assert (table["q50"] < table["q97.5"]).all()
    entry = result.as_json()
    assert list(entry) == ["method", "parameters", "theta_hat", "gamma", "sigma2", "rho", "engine", "status", "seconds"]
    assert (entry["gamma"] is not None) == name.startswith("gb-")
    assert (entry["rho"] is None) == (name == "nlm")


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_bits(name, linear):
    first, second = (l2.calibrate(linear, name, seed=5).summary().to_numpy() for _ in range(2))
    assert (first == second).all()
    other = l2.calibrate(linear, name, seed=6).summary().to_numpy()
    assert (first != other).any() == (name in RANDOM)


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_gives_what_single_calls_give(name):
    datasets = 64
    known, y = experiment(3, N), responses(3, datasets)
    batch = l2.calibrate_batch(known, y, name, seed=list(range(datasets)))
    assert batch.mean.shape == batch.sd.shape == (datasets, 1)
    assert batch.quantiles.shape == (datasets, 1, 3)
    for i in range(datasets):
        single = _single(known, y[i], name, i)
        assert batch.mean[i] == pytest.approx(single.summary.mean, rel=1e-8)
        assert batch.quantiles[i] == pytest.approx(single.summary.quantiles, rel=1e-8)
        assert batch.sd[i] == pytest.approx(single.summary.sd, rel=1e-8)
        assert batch.status[i] == single.status


def _single(known, y, name, seed):
    """`calibrate` on a known experiment, so that 64 calls compile once."""
    from l2calib.calibration import _keys
    from l2calib.compute.stages import solve_one
    from l2calib.engines.engine import default_engine
    from l2calib.methods.catalogue import method_named

    return solve_one(method_named(name), known, default_engine(known.parameters), y, _keys([seed])[0])[0]


def test_a_batch_does_not_depend_on_its_company():
    known, y = experiment(2, N), responses(2, 40)
    whole = l2.calibrate_batch(known, y, "nlm", seed=list(range(40)))
    part = l2.calibrate_batch(known, y[7:20], "nlm", seed=list(range(7, 20)))
    assert part.mean == pytest.approx(whole.mean[7:20], rel=1e-8)
    assert part.quantiles == pytest.approx(whole.quantiles[7:20], rel=1e-8)


def test_multi_modal_posteriors_are_seen_whole():
    # Non-linear regression in configuration 2 keeps mass at its second minimum, theta = 0.26, when n is small.
    result = l2.calibrate(problem(2, N, seed=0), "nlm")
    draws = result.draws(4000, seed=1)["theta1"]
    share = float(np.mean(draws < 1.0))
    assert 0.005 < share < 0.5
    assert result.summary().loc["theta1", "mean"] == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(4000))


@pytest.mark.parametrize("name", ["gb-l2", "projected"])
def test_draws_of_any_number_follow_the_posterior(name, linear):
    result = l2.calibrate(linear, name, seed=2)
    number = 5000
    drawn = result.draws(number, seed=9)["theta1"]
    assert drawn.shape == (number,)
    row = result.summary().loc["theta1"]
    # The projected summary itself rests on 1,000 draws.
    error = row["sd"] * np.sqrt(1 / number + (1 / 1000 if name == "projected" else 0))
    assert drawn.mean() == pytest.approx(row["mean"], abs=4 * error)
    assert drawn.std() == pytest.approx(row["sd"], abs=4 * error / np.sqrt(2))
    assert len(result.draws(3, seed=1)["theta1"]) == 3
    assert (result.draws(50, seed=4)["theta1"] == result.draws(50, seed=4)["theta1"]).all()
