"""Pictures show the numbers of the results, and leave no global state behind."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import l2calib as l2
from l2calib.methods.catalogue import METHODS
from l2calib.plots import (
    plot_bias,
    plot_calibration,
    plot_fit,
    plot_joint,
    plot_marginal,
    plot_prediction,
    save_figure,
)


def line(x, a, b):
    return a + b * x


def plane(u, v, a):
    return a * (u + 2 * v)


@pytest.fixture(scope="module")
def results():
    x = np.linspace(0, 1, 15)
    y = 1 + 2 * x + 0.1 * np.random.default_rng(1).standard_normal(15)
    prior = {"a": l2.Normal(0, 10), "b": l2.Uniform(-5, 5)}
    problem = l2.Problem(line, {"x": x, "y": y}, "y", {"x": (0, 1)}, prior)
    return [l2.calibrate(problem, method=METHODS[name]) for name in ("projected", "gb-ols")]


@pytest.fixture(scope="module")
def two_inputs():
    u, v = np.random.default_rng(2).uniform(size=(2, 20))
    y = u + 2 * v + 0.1 * np.random.default_rng(3).standard_normal(20)
    prior = {"a": l2.Uniform(-5, 5)}
    problem = l2.Problem(plane, {"u": u, "v": v, "y": y}, "y", {"u": (0, 1), "v": (0, 1)}, prior)
    return l2.calibrate(problem, method=METHODS["nlm"])


def drawn(axes, label):
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


def test_the_fit_is_the_model_at_the_posterior_mean(results):
    axes = plot_fit(results)
    observed = drawn(axes, "observed")
    np.testing.assert_array_equal(observed.get_ydata(), results[0].problem.y)
    mean = results[0].summary()["mean"]
    curve = drawn(axes, "projected $L^2$")
    np.testing.assert_allclose(curve.get_ydata(), mean["a"] + mean["b"] * curve.get_xdata())
    assert (curve.get_xdata()[0], curve.get_xdata()[-1]) == (0, 1)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")


def test_one_result_needs_no_list(results):
    assert isinstance(plot_fit(results[0]), Axes)


def test_overlapping_curves_differ_in_more_than_colour(results):
    first, second = (drawn(plot_fit(results), label) for label in ("projected $L^2$", "general Bayes, OLS"))
    assert first.get_color() != second.get_color()
    assert first._dash_pattern != second._dash_pattern


def test_fitted_against_observed_for_several_inputs(two_inputs):
    axes = plot_fit(two_inputs)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("fitted y", "observed y")
    mean = two_inputs.summary().loc["a", "mean"]
    points = drawn(axes, "non-linear regression")
    np.testing.assert_allclose(points.get_xdata(), two_inputs.problem.x @ [mean, 2 * mean])
    np.testing.assert_array_equal(points.get_ydata(), two_inputs.problem.y)


def test_marginals_are_densities_and_the_view_holds_their_mass(results):
    axes = plot_marginal(results, "b")
    low, high = axes.get_xlim()
    for result, label in zip(results, ("projected $L^2$", "general Bayes, OLS"), strict=True):
        curve = drawn(axes, label)
        # A trapezium over a couple of hundred points of a smooth density.
        assert np.trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(1, abs=0.01)
        summary = result.summary().loc["b"]
        assert low < summary["q2.5"] < summary["q97.5"] < high
        assert curve.get_ydata().max() < axes.get_ylim()[1]
    assert high - low < 12 * max(result.summary().loc["b", "sd"] for result in results)
    np.testing.assert_allclose(drawn(axes, "prior").get_ydata(), 0.1)


def test_an_unknown_parameter_is_an_error(results):
    with pytest.raises((KeyError, l2.L2CalibError), match="c"):
        plot_marginal(results, "c")


def test_the_prediction_shows_the_data_and_two_bands(results):
    axes = plot_prediction(results[0], level=0.9)
    np.testing.assert_array_equal(drawn(axes, "observed").get_ydata(), results[0].problem.y)
    predicted = results[0].predict({"x": [0.0, 1.0]}, level=0.9)
    shaded = dict(zip(("model", "system"), axes.collections, strict=True))
    for name, band in (("model", predicted.model), ("system", predicted.system)):
        curve = drawn(axes, name)
        np.testing.assert_allclose(curve.get_ydata()[[0, -1]], band.mean)
        (outline,) = shaded[name].get_paths()
        assert outline.vertices[:, 1].max() >= band.high.max()
        assert outline.vertices[:, 1].min() <= band.low.min()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")


def test_a_prediction_runs_along_the_input_that_is_named(two_inputs):
    axes = plot_prediction(two_inputs, input="v")
    assert axes.get_xlabel() == "v"
    observed = drawn(axes, "observed, other inputs vary")
    np.testing.assert_array_equal(observed.get_xdata(), two_inputs.problem.x[:, 1])
    at_the_end = two_inputs.predict({"u": [0.5], "v": [1.0]})
    assert drawn(axes, "system").get_ydata()[-1] == pytest.approx(at_the_end.system.mean[0])
    with pytest.raises(l2.L2CalibError, match="no input 'w'"):
        plot_prediction(two_inputs, input="w")


def test_the_bias_of_several_methods_is_drawn_around_zero(results):
    axes = plot_bias(results)
    assert len(axes.collections) == 2
    curve = drawn(axes, "general Bayes, OLS")
    np.testing.assert_allclose(curve.get_ydata()[[0, -1]], results[1].predict({"x": [0, 1]}).bias.mean)
    assert axes.get_ylabel() == "bias of y"


def test_joint_regions_hold_the_share_of_draws_that_they_say(results):
    axes = plot_joint(results[0], "a", "b")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("a", "b")
    outlines = axes.collections[1]
    draws = results[0].draws(2000, seed=9)
    points = np.column_stack([draws["a"], draws["b"]])
    for path, share in zip(outlines.get_paths(), (0.95, 0.5), strict=True):
        inside = path.contains_points(points).mean()
        # The kernel widens the cloud by the root of 1 + h^2, with h^2 = 4000^(-1/3), and so a region's share of it.
        widened = 1 - (1 - share) ** (1 + 4000 ** (-1 / 3))
        error = 4 * np.sqrt(share * (1 - share) / 2000)
        assert share - error <= inside <= widened + error


def test_a_pair_is_of_two_parameters(results):
    with pytest.raises(l2.L2CalibError, match="'a' twice"):
        plot_joint(results[0], "a", "a")


def test_the_calibration_has_a_panel_for_the_fit_and_one_for_each_parameter(results):
    figure = plot_calibration(results)
    assert [axes.get_xlabel() for axes in figure.axes] == ["x", "a", "b"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["(a)", "(b)", "(c)"]


def test_axes_that_are_given_are_drawn_on(results):
    given = plot_fit(results)
    assert plot_marginal(results, "a", ax=given) is given
    assert plot_prediction(results[0], ax=given) is given
    assert plot_bias(results, ax=given) is given
    assert plot_joint(results, "a", "b", ax=given) is given


def test_no_figure_is_left_with_pyplot(results):
    plot_calibration(results)
    assert plt.get_fignums() == []


def test_saving_is_reproducible(results, tmp_path):
    for name in ("one", "two"):
        save_figure(plot_calibration(results), tmp_path / name)
    for ending in ("png", "svg"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()
