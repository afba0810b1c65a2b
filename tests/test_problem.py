"""Problems from Python: frames and mappings in, one sentence out when something is wrong."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import l2calib as l2
from l2calib.errors import DataError, MethodError, ModelError, PriorError

X = np.linspace(0.0, 2.0, 12)
Y = 1.5 * X + np.sin(7 * X) / 5


def line(x, slope):
    return slope * x


def build(**changes):
    arguments = {
        "model": line,
        "data": {"x": X, "y": Y},
        "response": "y",
        "inputs": {"x": (0.0, 2.0)},
        "prior": {"slope": l2.Uniform(0, 3)},
    }
    return l2.Problem(**(arguments | changes))


def spoilt(column, row, value):
    data = {"x": list(X), "y": list(Y)}
    data[column][row] = value
    return data


def matrix_model(x, slope):
    return slope * x[:, None] * jnp.ones((1, 2))


def nan_model(x, slope):
    return jnp.where(slope > 2.0, jnp.nan, slope * x)


def two_parameters(x, slope, unused):
    return slope * x + 0 * unused


def numpy_model(x, slope):
    return slope * np.sin(np.asarray(x))


def stuck_model(x, slope):
    return x * jnp.maximum(slope - 1.5, 0.0) ** 2


def branching_model(x, slope):
    return x if slope > 1 else -x


def math_model(x, slope):
    return math.sin(slope) * x


def silent_model(x, slope):
    slope * x


def complex_model(x, slope):
    return slope * x * 1j


def whole_model(x, slope):
    return (slope * x).astype(int)


def leaving_model(x, slope):
    raise SystemExit(3)


def cornered_model(x, slope):
    return jnp.sqrt(slope * x)


def two_columns_of_one_name():
    return pd.DataFrame(np.column_stack([X, Y, Y]), columns=["x", "y", "y"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_frames_and_mappings_are_the_same_problem(frame):
    problem = build(data=frame({"x": X, "y": Y}))
    assert (problem.x[:, 0] == X).all()
    assert (problem.y == Y).all()
    assert problem.experiment.x_unit.max() == 1.0


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"response": "z"}, DataError, "no column 'z'"),
        ({"data": spoilt("y", 3, "abc")}, DataError, r"1 non-numeric value \(row 4\)"),
        ({"data": spoilt("y", 0, None)}, DataError, r"1 missing value \(row 1\)"),
        ({"data": spoilt("x", 11, np.inf)}, DataError, r"1 infinite value \(row 12\)"),
        ({"inputs": {"x": (0.0, 1.0)}}, DataError, "leaves its range"),
        ({"data": {"x": X[:-1], "y": Y}}, DataError, "11 values and the response 'y' has 12"),
        ({"data": {"x": X[:2], "y": Y[:2]}}, DataError, "2 observations cannot calibrate 1 parameters"),
        ({"data": {"x": X, "y": np.ones(12)}}, DataError, "is constant"),
        ({"data": {"x": [], "y": []}}, DataError, "no observations"),
        ({"inputs": {"x": (2.0, 0.0)}}, DataError, "give finite numbers low < high"),
        ({"inputs": {"x": 3}}, DataError, r"is not \(low, high\)"),
        ({"model": matrix_model}, ModelError, "returns shape"),
        ({"model": nan_model}, ModelError, "returns NaN at slope = 2"),
        ({"model": numpy_model}, ModelError, "jax.numpy"),
        ({"model": branching_model}, ModelError, "jax.numpy.where"),
        ({"prior": {"slop": l2.Uniform(0, 3)}}, ModelError, "did you mean 'slope'"),
        (
            {"model": two_parameters, "prior": {"slope": l2.Uniform(0, 3), "unused": l2.Uniform(0, 1)}},
            ModelError,
            "does not depend on its parameter 'unused'",
        ),
        ({"model": 3}, ModelError, "is not a function"),
        ({"model": nan_model}, ModelError, r"returns NaN at slope = 2.* \(where x = 0\)"),
        ({"model": math_model}, ModelError, "the math module"),
        ({"model": silent_model}, ModelError, "returns nothing"),
        ({"model": complex_model}, ModelError, "of type complex128"),
        ({"model": whole_model}, ModelError, "of type int64"),
        ({"model": leaving_model}, ModelError, "the model raised SystemExit"),
        ({"model": cornered_model}, ModelError, "by its parameter 'slope' is NaN where x = 0;"),
        ({"model": max}, ModelError, "have no names"),
        ({"data": two_columns_of_one_name()}, DataError, r"not one-dimensional: received shape \(12, 2\)"),
        ({"data": spoilt("y", 1, 10**400)}, DataError, r"1 infinite value \(row 2\)"),
        ({"data": {"x": X, "y": Y + 1j}}, DataError, "12 non-numeric values"),
        ({"data": spoilt("y", 1, [1, 2])}, DataError, "lists of different lengths"),
        ({"data": {"x": X, "y": np.ma.masked_greater(Y, 3)}}, DataError, r"1 missing value \(row 12\)"),
        (
            {"data": {"x": X, "y": np.arange(12).astype("datetime64[ns]")}},
            DataError,
            "12 non-numeric values",
        ),
        ({"data": pl.LazyFrame({"x": X, "y": Y})}, DataError, "received a LazyFrame; collect it first"),
        ({"data": np.column_stack([X, Y])}, DataError, "not a table: received a ndarray"),
        ({"data": "ball.csv"}, DataError, "not a table: received a str"),
        ({"data": None}, DataError, "not a table"),
        ({"data": {"x": X[:1], "y": Y[:1]}}, DataError, "1 observations cannot calibrate"),
        ({"response": None}, DataError, "not the name of a column: received None"),
        ({"response": "Y"}, DataError, "did you mean 'y'"),
        ({"inputs": ["x"]}, DataError, "no input has a range"),
        ({"inputs": {0: (0, 1)}}, DataError, "is not text: received 0"),
        ({"inputs": {"x": "02"}}, DataError, "give finite numbers low < high"),
        ({"inputs": {"x": (-1e308, 1e308)}}, DataError, "empty or infinite"),
        ({"prior": l2.Uniform(0, 3)}, PriorError, "give a mapping"),
        ({"prior": {1: l2.Uniform(0, 3)}}, PriorError, "is not text: received 1"),
        ({"quadrature": 5}, MethodError, "quadrature is not one: received 5"),
    ],
)
def test_bad_input_is_one_sentence(changes, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        build(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["gb-old", "GB-OLS"])
def test_unknown_methods_are_refused_with_the_near_one(name):
    with pytest.raises(MethodError, match="did you mean 'gb-ols'"):
        l2.calibrate(build(), name)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seed": -1}, "the seed must be a whole number, between 0 and"),
        ({"seed": 2**63}, "the seed must be a whole number"),
        ({"seed": 1.5}, "received 1.5"),
        ({"seed": None}, "received None"),
        ({"seed": True}, "received True"),
        ({"engine": "nuts"}, "the engine is not one: received 'nuts'"),
        ({"engine": l2.NUTS}, "the engine is not one"),
        ({"method": l2.GeneralBayes}, "the method is not one"),
        ({"problem": {"x": X}}, "must be a Problem: received a dict"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_the_work(arguments, sentence):
    with pytest.raises(MethodError, match=sentence):
        l2.calibrate(**({"problem": build(), "method": "gb-ols"} | arguments))


@pytest.mark.parametrize(
    ("build_one", "sentence"),
    [
        (lambda: l2.GeneralBayes("l2"), "the loss is not one: received 'l2'"),
        (lambda: l2.GeneralBayes(l2.L2(), l2.Asymptotic), "the scaling is not one"),
        (lambda: l2.Bootstrap(10.5), "number of resamples must be a whole number"),
        (lambda: l2.gauss_legendre(0, 5), "number of inputs must be a whole number"),
        (lambda: l2.gauss_legendre(1, 2.5), "nodes per input must be a whole number"),
        (lambda: l2.sobol(1, -1), "power of two"),
    ],
)
def test_parts_that_are_none_are_refused(build_one, sentence):
    with pytest.raises(MethodError, match=sentence):
        build_one()


def test_a_comparison_needs_a_method_and_takes_a_single_one():
    problem = build()
    with pytest.raises(MethodError, match="nothing to compare"):
        l2.compare(problem, [])
    with pytest.raises(MethodError, match="there is no method 'gb'"):
        l2.compare(problem, "gb")


@pytest.fixture(scope="module")
def result():
    return l2.calibrate(build(), "gb-ols")


def test_a_comparison_keeps_two_methods_of_one_name_apart(result):
    table = l2.Comparison([result, result]).summary()
    assert list(table.index) == [("gb-ols", "slope")] * 2


def test_the_model_is_evaluated_at_as_many_parameters_as_it_has():
    with pytest.raises(DataError, match=r"theta must hold slope: received shape \(2,\)"):
        build().predict_model(np.ones(2), {"x": X})
    with pytest.raises(DataError, match="no column 'x'"):
        build().predict_model(np.ones(1), {"z": X})


def test_a_batch_refuses_responses_that_do_not_fit():
    with pytest.raises(DataError, match=r"must have shape \(datasets, 12\)"):
        l2.calibrate_batch(build(), np.ones((3, 5)))
    with pytest.raises(DataError, match="dataset 2 of the batch"):
        l2.calibrate_batch(build(), np.stack([Y, np.full(12, np.nan)]))
    with pytest.raises(DataError, match="not an array of numbers"):
        l2.calibrate_batch(build(), [[1.0, 2.0], [1.0]])
    with pytest.raises(MethodError, match="the seed must be"):
        l2.calibrate_batch(build(), Y[None], seed=-1)
    with pytest.raises(MethodError, match="an Experiment or a Problem: received a int"):
        l2.calibrate_batch(3, Y[None])


def test_the_draws_and_curves_of_a_result_are_asked_for_in_numbers(result):
    for wrong in (0, -1, 10.5, "a"):
        with pytest.raises(MethodError, match="the number of draws must be a whole number"):
            result.draws(wrong)
    with pytest.raises(MethodError, match="the seed must be"):
        result.draws(3, seed=1.5)
    with pytest.raises(MethodError, match="the number of draws"):
        result.to_datatree(0)
    with pytest.raises(MethodError, match="did you mean 'slope'"):
        result.marginal("slop")
    with pytest.raises(MethodError, match="the number of points"):
        result.marginal("slope", 0)


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (np.array([0, 1, np.nan, 2]), r"missing or infinite values \(row 3\)"),
        (["a", "b", "c"], "not an array of numbers"),
        (None, "not an array of numbers"),
        (np.zeros((4, 2, 1)), "not an array of numbers"),
        ([], "no observations"),
    ],
)
def test_a_design_that_is_none_is_refused(x, sentence):
    with pytest.raises(DataError, match=sentence):
        l2.Experiment(line, {"x": (0, 2)}, x, {"slope": l2.Uniform(0, 3)})


@pytest.mark.parametrize(
    ("mu", "sentence"),
    [
        (lambda z: z, "give a function of x"),
        (lambda x: x[:, None], r"returns shape \(64, 1\)"),
        (lambda x: jnp.log(-x), "not finite"),
        (3, "cannot be evaluated"),
    ],
)
def test_a_system_that_is_none_is_refused(mu, sentence):
    with pytest.raises(ModelError, match=sentence):
        l2.target(line, mu, {"x": (0, 2)}, {"slope": l2.Uniform(0, 3)})


def test_a_system_without_a_target_is_refused():
    with pytest.raises(l2.CalibrationFailed, match="flat at its minimum"):
        l2.target(stuck_model, lambda x: -x, {"x": (0, 2)}, {"slope": l2.Uniform(0, 3)})


def test_the_target_of_a_constant_system_is_found():
    found = l2.target(line, lambda x: 1.0, {"x": (0, 2)}, {"slope": l2.Uniform(0, 3)})
    assert found.theta == pytest.approx([0.75])
    with pytest.raises(MethodError, match="must be positive: received -1"):
        found.gamma(-1)


def test_an_estimate_needs_a_problem_and_a_loss():
    with pytest.raises(MethodError, match="must be a Problem"):
        l2.estimate(3)
    with pytest.raises(MethodError, match="the loss is not one: received 'l2'"):
        l2.estimate(build(), "l2")


def test_only_a_saved_result_is_loaded(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        l2.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("no NetCDF")
    with pytest.raises(DataError, match="is no NetCDF file"):
        l2.load(tmp_path / "text.nc")


def test_a_minimum_on_the_boundary_has_a_status():
    result = l2.calibrate(build(prior={"slope": l2.Uniform(2.0, 3.0)}), "gb-ols")
    assert result.status & l2.Status.MINIMUM_ON_BOUNDARY
    assert any("boundary" in sentence for sentence in result.messages)


def test_a_quartic_minimum_is_never_silent():
    # The residual is orthogonal to x, so that the loss is a constant plus (slope - 1.2)^4.
    wave = np.cos(9 * X)
    residual = wave - X * (wave @ X) / (X @ X)
    problem = build(model=lambda x, slope: (slope - 1.2) ** 2 * x, data={"x": X, "y": residual})
    status = l2.estimate(problem, l2.OLS()).status
    assert status & l2.Status.NOT_CONVERGED
    assert any("flat to second order" in sentence for sentence in status.sentences())


def test_a_flat_loss_fails_with_a_sentence():
    with pytest.raises(l2.CalibrationFailed, match="flat at its minimum"):
        # The response falls while the model cannot: it is best anywhere below 1.5, where it does not move at all.
        l2.calibrate(build(model=stuck_model, data={"x": X, "y": -Y}), "gb-ols")


def test_a_prior_far_from_the_data_fails_instead_of_giving_numbers():
    # Two parameters: the last resort of the integration over one takes half a minute to compile.
    x = np.linspace(0, 1, 30)
    y = 1.5 * x + 0.1 * np.random.default_rng(0).standard_normal(30)
    prior = {"a": l2.Normal(100, 1), "b": l2.Normal(0, 1)}
    far = l2.Problem(lambda x, a, b: a * x + b, {"x": x, "y": y}, "y", {"x": (0, 1)}, prior)
    with pytest.raises(l2.CalibrationFailed, match="not finite"):
        l2.calibrate(far, "gb-ols")
