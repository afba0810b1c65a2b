"""Predictions: the formula against dense matrices, nominal coverage of the system, and what goes in and comes out."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import l2calib as l2
from l2calib.compute.predictor import modelled, predictor
from l2calib.compute.stages import independent_draws, solve_one, stage_keys
from l2calib.engines.integrate import Integrate
from l2calib.errors import DataError, MethodError, ModelError
from l2calib.process.bias import draw_bias
from l2calib.process.spectrum import Sites
from tests.oracles.configurations import configuration, simulate
from tests.oracles.correlation import correlation
from tests.oracles.prediction import bias_posterior, conditional
from tests.problems import experiment, problem

FALSE_ALARM = 1e-4


@pytest.fixture(scope="module")
def result() -> l2.Calibration:
    """Configuration 3: the model is theta x."""
    return l2.calibrate(problem(3, 20, seed=0), "gb-ols", seed=1)


@pytest.fixture(scope="module")
def two_inputs() -> l2.Calibration:
    u, v = np.random.default_rng(2).uniform(size=(2, 20))
    data = {"x1": u, "x2": v, "y": u + np.sin(3 * v) + 0.1 * np.random.default_rng(3).standard_normal(20)}
    plane = l2.Problem(
        lambda x1, x2, a: a * (x1 + x2), data, "y", {"x1": (0, 1), "x2": (0, 1)}, {"a": l2.Uniform(-5, 5)}
    )
    return l2.calibrate(plane, "nlm")


def residual(number: int, n: int) -> tuple[l2.Experiment, np.ndarray]:
    chosen = configuration(number)
    x, y = simulate(number, n, seed=1)
    return experiment(number, n), y - chosen.eta(x, chosen.target())


@pytest.mark.parametrize("number", [2, 4])
def test_a_draw_of_the_bias_is_a_process_given_its_psi_and_kappa(number):
    known, r = residual(number, 12)
    at = np.random.default_rng(3).uniform(size=(5, known.x.shape[1]))
    for bias in draw_bias(Sites.of(known), np.tile(r, (8, 1)), np.random.default_rng(0)):
        least = max(np.linalg.eigvalsh(correlation(known.x_unit, known.x_unit, bias.psi))[0], 0.0)
        mean, variance = bias.at((at[:, None] - known.x_unit[None]) ** 2)
        for i in range(len(bias.draws)):
            kappa = 1 / bias.inverse[i, 0] - least
            expected, left = conditional(known.x_unit, r, at, bias.psi, kappa)
            # Both solve a system whose condition is at most n / kappa.
            rounding = 1e-13 * len(r) / kappa * max(1.0, np.abs(r).max())
            np.testing.assert_allclose(mean[i], expected, rtol=1e-8, atol=rounding)
            np.testing.assert_allclose(variance[i], bias.variance[i] * left, rtol=1e-8, atol=rounding)


@pytest.mark.parametrize(("number", "n", "at", "per_axis"), [(2, 12, [0.45], 61), (4, 14, [0.3, 0.8], 25)])
def test_draws_of_the_bias_follow_the_posterior_of_a_fine_grid(number, n, at, per_axis):
    draws = 4000
    known, r = residual(number, n)
    rng = np.random.default_rng(5)
    biases = draw_bias(Sites.of(known), np.tile(r, (draws, 1)), rng)
    point = np.array(at)
    mean, variance = np.empty((2, draws))
    for bias in biases:
        here = bias.at((point[None, None] - known.x_unit[None]) ** 2)
        mean[bias.draws], variance[bias.draws] = here[0][:, 0], here[1][:, 0]
    drawn = mean + np.sqrt(variance) * rng.standard_normal(draws)
    exact = bias_posterior(known.x_unit, r, point, per_axis)
    assert drawn.mean() == pytest.approx(exact.mean(), abs=4 * exact.sd() / np.sqrt(draws))
    for probability in (0.025, 0.975):
        # The number of draws below the exact quantile is binomial.
        low, high = stats.binom.interval(1 - FALSE_ALARM, draws, probability)
        assert low <= np.sum(drawn < exact.quantile(probability)) <= high


DATASETS, N, AT = 200, 40, np.array([[0.5]])


def sine(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The model of configuration 2 for every draw: without JAX, which would compile it anew for every dataset."""
    return np.asarray(np.sin(5 * theta * x[:, 0]) + 5 * x[:, 0])


@pytest.fixture(scope="module")
def covering() -> dict[float, int]:
    """How many bands of a level hold mu in the middle of the input space: configuration 2 by general Bayes."""
    chosen, known = configuration(2), experiment(2, N)
    some = np.array([[1.7], [2.0]])
    np.testing.assert_allclose(sine(known.x, some), modelled(known, known.x, some), rtol=1e-12)
    method, engine = l2.METHODS["gb-l2"], Integrate()
    noise = np.sqrt(chosen.sigma2) * np.random.default_rng(20261117).standard_normal((DATASETS, N))
    responses, mu = chosen.mu(known.x) + noise, chosen.mu(AT)[0]
    answer = solve_one(method, known, engine, responses[0], jax.random.key(0))
    answer = answer._replace(level=answer.solver.first_level)  # rejection makes draws exact at any
    held = dict.fromkeys((0.95, 0.8), 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("l2calib.compute.predictor.modelled", lambda _, x, theta: sine(x, theta))
        for seed, y in enumerate(responses):
            fit_key, key = stage_keys(jax.random.key(seed))
            theta = independent_draws(method, known, answer, y, fit_key=fit_key, key=key, number=400)
            predicted = predictor(known, y, theta, np.random.default_rng(seed))
            for level in held:
                band = predicted.bands(AT, level).system
                held[level] += bool(band.low[0] <= mu <= band.high[0])
    return held


def test_bands_hold_the_system_at_their_nominal_rate(covering):
    low, high = stats.binom.interval(1 - FALSE_ALARM, DATASETS, 0.95)
    assert low <= covering[0.95] <= high


def test_narrower_bands_fail_the_same_test(covering):
    low, _ = stats.binom.interval(1 - FALSE_ALARM, DATASETS, 0.95)
    assert covering[0.8] < low


def test_the_model_has_the_posterior_of_its_parameters(result):
    predicted = result.predict({"x1": [0.25, 1.0]})
    summary = result.summary().loc["theta1"]
    # A sample quantile's standard error with 1,000 draws of a density that is about normal; five of them.
    allowed = 5 * np.sqrt(0.025 * 0.975 / 1000) / stats.norm.pdf(1.96) * summary["sd"]
    for end, name in zip(predicted.model, ("mean", "q2.5", "q97.5"), strict=True):
        assert end[1] == pytest.approx(summary[name], abs=allowed)
        assert end[0] == pytest.approx(end[1] / 4, rel=1e-12)


def test_the_system_is_the_model_and_its_bias(result):
    predicted = result.predict({"x1": np.linspace(0, 1, 7)})
    np.testing.assert_allclose(predicted.system.mean, predicted.model.mean + predicted.bias.mean, rtol=1e-10)
    # The model misses x sin(5 x) + (4 - theta) x, which is 0.53 at x = 0.4 with errors of sd 0.02.
    at = result.predict({"x1": [0.4]})
    mu = configuration(3).mu(np.array([[0.4]]))[0]
    assert at.system.low[0] < mu < at.system.high[0]
    assert not at.model.low[0] < mu < at.model.high[0]
    assert at.bias.low[0] > 0


def test_wider_levels_hold_narrower_ones(result):
    half, most = (result.predict({"x1": [0.1, 0.9]}, level=level) for level in (0.5, 0.99))
    assert (half.level, most.level) == (0.5, 0.99)
    for inner, outer in zip((half.model, half.system, half.bias), (most.model, most.system, most.bias), strict=True):
        assert (outer.low < inner.low).all()
        assert (inner.high < outer.high).all()


def test_frames_and_mappings_are_the_same(two_inputs):
    columns = {"x2": [0.1, 0.5, 0.9], "x1": [0.2, 0.3, 0.4], "note": ["a", "b", "c"]}
    frames = [two_inputs.predict(given).to_frame() for given in (columns, pd.DataFrame(columns), pl.DataFrame(columns))]
    assert list(frames[0].columns) == ["x1", "x2"] + [
        f"{name}{end}" for name in ("model", "system", "bias") for end in ("", "_low", "_high")
    ]
    assert frames[0]["x1"].tolist() == [0.2, 0.3, 0.4]
    for other in frames[1:]:
        pd.testing.assert_frame_equal(frames[0], other)


def test_the_seed_decides(result):
    at = {"x1": [0.3]}
    again = l2.calibrate(result.problem, "gb-ols", seed=1).predict(at)
    other = l2.calibrate(result.problem, "gb-ols", seed=2).predict(at)
    assert again.to_frame().equals(result.predict(at).to_frame())
    assert other.system.low[0] != again.system.low[0]


def test_one_point_at_a_time_is_all_at_once(result):
    x = np.linspace(0, 1, 1500)  # more than are computed together
    together = result.predict({"x1": x}).to_frame()
    alone = result.predict({"x1": x[[0, 1200]]}).to_frame()
    np.testing.assert_allclose(together.iloc[[0, 1200]], alone, rtol=1e-12, atol=1e-15)


def test_replicates_are_predicted_like_any_other_input():
    x = np.repeat(np.linspace(0, 1, 6), 4)
    y = 2 * x + 0.3 * np.sin(6 * x) + 0.05 * np.random.default_rng(2).standard_normal(x.size)
    replicated = l2.Problem(lambda x, a: a * x, {"x": x, "y": y}, "y", {"x": (0, 1)}, {"a": l2.Normal(0, 10)})
    fitted = l2.calibrate(replicated, "gb-ols").predict({"x": x})
    groups = fitted.system.mean.reshape(6, 4)
    assert np.isfinite(fitted.to_frame().to_numpy()).all()
    np.testing.assert_allclose(groups, groups[:, :1].repeat(4, axis=1), rtol=1e-12)
    # Shrunken towards the model, but by less than the errors of a mean of four.
    assert np.abs(groups[:, 0] - y.reshape(6, 4).mean(axis=1)).max() < 3 * 0.05 / np.sqrt(4)


@pytest.mark.parametrize(
    ("x", "level", "error", "said"),
    [
        ({"x1": [0.5]}, 95, MethodError, "between 0 and 1: received 95"),
        ({"x1": [0.5]}, "0.95", MethodError, "received '0.95'"),
        ({"x": [0.5]}, 0.95, DataError, "no column 'x1'"),
        ({"x1": []}, 0.95, DataError, "no point to predict at"),
        ({"x1": [0.5, 1.5]}, 0.95, DataError, "leaves its range"),
        ({"x1": [np.nan]}, 0.95, DataError, "missing"),
        (np.ones(3), 0.95, DataError, "not a table"),
    ],
)
def test_what_cannot_be_predicted_is_one_sentence(result, x, level, error, said):
    with pytest.raises(error, match=said):
        result.predict(x, level)


def test_inputs_of_different_lengths_are_one_sentence(two_inputs):
    with pytest.raises(DataError, match="'x1' has 2, 'x2' has 1"):
        two_inputs.predict({"x1": [0.1, 0.2], "x2": [0.3]})


def test_a_model_that_is_not_finite_at_an_input_is_one_sentence_and_a_gap_in_files(result):
    def pole(x1, theta1):
        return theta1 * x1 / jax.numpy.where(x1 == 0.5, 0.0, 1.0)

    broken = l2.Experiment(pole, {"x1": (0, 1)}, experiment(3, 20).x, {"theta1": l2.Uniform(2, 5)})
    spoilt = dataclasses.replace(result)
    vars(spoilt)["_predictor"] = dataclasses.replace(result._predictor, experiment=broken)
    with pytest.raises(ModelError, match=r"not finite at x1 = 0\.5 .*; mend it"):
        spoilt.predict({"x1": [0.25, 0.5]})
    profile = spoilt._predictor.bands(np.linspace(0, 1, 9)[:, None], 0.95)
    for band in (profile.model, profile.system):
        for end in band:
            assert np.flatnonzero(np.isnan(end)).tolist() == [4]
    assert np.isfinite(profile.bias.mean).all()


def test_many_observations_are_thinned(monkeypatch, result):
    monkeypatch.setattr("l2calib.compute.predictor._MOST_OBSERVATIONS", 15)
    known, theta = result.problem.experiment, np.full((50, 1), 3.565)
    few = predictor(known, result.problem.y, theta, np.random.default_rng(0))
    assert few.design.shape == (15, 1)
    assert {len(bias.vectors) for bias in few.biases} == {15}
    band = few.bands(np.array([[0.4]]), 0.95).system
    assert band.low[0] < configuration(3).mu(np.array([[0.4]]))[0] < band.high[0]


def test_an_input_called_like_a_band_keeps_its_values(result):
    named = dataclasses.replace(result.predict({"x1": [0.5]}), inputs={"model": np.array([7.0])})
    frame = named.to_frame()
    assert frame["input_model"].tolist() == [7.0]
    assert frame["model"].tolist() == named.model.mean.tolist()
