"""What limits an answer of `l2`: held to the dense covariance before and after the points that it asks for."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import l2calib as l2
from l2calib.methods.l2.limits import OBSERVATIONS, limits
from l2calib.process.correlation import SquaredExponential
from tests.oracles.projected_bias import ProjectedProcess

PSI, KAPPA, SIGMA2 = np.array([4.0]), 0.05, 0.0009
NOTHING = np.array([np.nan])
GAP = np.r_[np.linspace(0, 0.35, 12), np.linspace(0.9, 1, 4)]
THETA = np.array([2.0, 1.5])


def falling(x, a, b):
    return a * jnp.exp(-b * x)


def slopes(x):
    return np.stack([np.exp(-THETA[1] * x), -THETA[0] * x * np.exp(-THETA[1] * x)], axis=1)


def experiment(x, model=falling, **prior):
    return l2.Experiment(model, {"x": (0, 1)}, x, prior or {"a": l2.Uniform(0, 10), "b": l2.Uniform(0, 10)})


def correlated(squared):
    return np.exp(-squared)


def theta_sd(x, rule, with_process=True):
    """By generalised least squares with the projected process, in units of sigma / sqrt(noise)."""
    process = ProjectedProcess(x[:, None], rule, correlated)
    at_nodes = slopes(rule.nodes[:, 0])
    covariance = process.covariance(PSI, slopes(x), at_nodes) if with_process else np.zeros((len(x), len(x)))
    noise = KAPPA if with_process else 1.0
    precision = slopes(x).T @ np.linalg.solve(covariance + noise * np.eye(len(x)), slopes(x))
    return np.sqrt(np.diag(np.linalg.inv(precision)))


@pytest.mark.parametrize("with_process", [True, False])
def test_more_points_shorten_intervals_by_what_is_said_and_nowhere_by_more(with_process):
    known = experiment(GAP)
    psi, kappa = (PSI, KAPPA) if with_process else (NOTHING, np.nan)
    found = limits(known, SquaredExponential(), THETA, SIGMA2, psi, kappa).more_points
    before = theta_sd(GAP, known.quadrature, with_process)

    def shorter(place):
        return 1 - theta_sd(np.r_[GAP, [place] * OBSERVATIONS], known.quadrature, with_process) / before

    assert list(found.shorter.values()) == pytest.approx(shorter(found.place["x"]), abs=1e-6)
    best = np.mean(1 - (1 - np.array(list(found.shorter.values()))) ** 2)
    for other in np.linspace(0, 1, 21):
        assert np.mean(1 - (1 - shorter(other)) ** 2) <= best + 0.01  # between two nodes there may be a better place


def test_a_gap_is_where_points_are_wanted():
    found = limits(experiment(GAP), SquaredExponential(), THETA, SIGMA2, PSI, KAPPA)
    assert 0.35 < found.more_points.place["x"] < 0.9
    (sentence,) = found.sentences()
    assert sentence.startswith("Most would be told by 3 more observations at x = 0.")


def test_without_a_gap_there_is_nothing_to_say():
    assert limits(experiment(np.linspace(0, 1, 40)), SquaredExponential(), THETA, SIGMA2, PSI, KAPPA).sentences() == []


def test_parameters_that_the_data_do_not_tell_apart_are_named():
    def model(x, a, b, c):
        return a * jnp.exp(-(b + c) * x)

    prior = {"a": l2.Uniform(0, 10), "b": l2.Uniform(0, 5), "c": l2.Uniform(0, 5)}
    known = experiment(np.linspace(0, 1, 40), model, **prior)
    found = limits(known, SquaredExponential(), np.array([2.0, 1.0, 0.5]), SIGMA2, NOTHING, np.nan)
    assert found.open == (("b", "c"),)
    assert found.sentences()[0].startswith("The data do not tell b and c apart")


def test_a_parameter_that_hardly_matters_is_named():
    def model(x, a, b, c):
        return a * jnp.exp(-b * x) + 1e-7 * c * x

    prior = {"a": l2.Uniform(0, 10), "b": l2.Uniform(0, 10), "c": l2.Uniform(0, 5)}
    known = experiment(np.linspace(0, 1, 40), model, **prior)
    found = limits(known, SquaredExponential(), np.array([2.0, 1.5, 1.0]), SIGMA2, NOTHING, np.nan)
    assert found.open == (("c",),)
    assert found.sentences()[0] == "The data say next to nothing of c: its posterior is what the prior says."


def observed(x):
    noise = 0.03 * np.random.default_rng(1).standard_normal(len(x))
    return l2.Problem(
        model=falling,
        data={"x": x, "y": 2 * np.exp(-1.5 * x) + 0.08 * np.sin(6 * x) + noise},
        response="y",
        inputs={"x": (0, 1)},
        prior={"a": l2.Uniform(0, 10), "b": l2.Uniform(0, 10)},
    )


def test_a_result_says_it_and_so_does_a_loaded_one(tmp_path):
    posed = observed(GAP)
    result = l2.calibrate(posed, "l2")
    assert result.notes == result.limits.sentences()
    result.save(tmp_path / "l2.nc")
    assert l2.load(tmp_path / "l2.nc", posed).notes == result.notes
    assert l2.load(tmp_path / "l2.nc").notes == []


def test_other_methods_say_nothing():
    assert l2.calibrate(observed(GAP), "gb-ols").limits is None


def test_with_two_degrees_of_freedom_there_is_no_standard_deviation():
    few = observed(np.array([0.0, 0.3, 0.7, 1.0]))
    result = l2.calibrate(few, "l2")
    rows = result.as_json()["parameters"]
    assert [row["sd"] for row in rows.values()] == [None, None]
    assert all(row["q2.5"] < row["q50"] < row["q97.5"] for row in rows.values())
    assert result.status == l2.Status.OK
    assert np.isnan(l2.calibrate_batch(few, few.y[None], "l2").sd).all()
    one_more = l2.calibrate(observed(np.array([0.0, 0.2, 0.4, 0.7, 1.0])), "l2")
    assert all(row["sd"] > 0 for row in one_more.rows.values())


def test_what_is_left_open_is_told_and_kept(tmp_path):
    result = l2.calibrate(observed(GAP), "l2")
    assert 0 <= result.doubt < 0.2
    result.save(tmp_path / "l2.nc")
    assert l2.load(tmp_path / "l2.nc").doubt == pytest.approx(result.doubt)
    assert l2.calibrate(observed(GAP), "gb-ols").doubt is None


def test_data_without_errors_break_nothing():
    for sigma2 in (0.0, 1e-300):
        assert limits(experiment(GAP), SquaredExponential(), THETA, sigma2, NOTHING, np.nan).open == ()


def test_what_cannot_be_computed_is_not_said():
    unknown = np.array([np.nan, 1.5])
    assert limits(experiment(GAP), SquaredExponential(), unknown, SIGMA2, PSI, KAPPA).sentences() == []
