"""Problems from Python: frames and mappings in, one sentence out when something is wrong."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import l2calib as l2
from l2calib.errors import DataError, MethodError, ModelError

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
        ({"inputs": {"x": (2.0, 0.0)}}, DataError, "give low < high"),
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
    ],
)
def test_bad_input_is_one_sentence(changes, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        build(**changes)
    assert "\n" not in str(caught.value)


def test_unknown_methods_are_refused_with_the_near_one():
    with pytest.raises(MethodError, match="did you mean 'gb-ols'"):
        l2.calibrate(build(), "gb-old")


def test_a_batch_refuses_responses_that_do_not_fit():
    with pytest.raises(DataError, match=r"must have shape \(datasets, 12\)"):
        l2.calibrate_batch(build(), np.ones((3, 5)))
    with pytest.raises(DataError, match="dataset 2 of the batch"):
        l2.calibrate_batch(build(), np.stack([Y, np.full(12, np.nan)]))


def test_a_minimum_on_the_boundary_has_a_status():
    result = l2.calibrate(build(prior={"slope": l2.Uniform(2.0, 3.0)}), "gb-ols")
    assert result.status & l2.Status.MINIMUM_ON_BOUNDARY
    assert any("boundary" in sentence for sentence in result.messages)


def test_a_flat_loss_fails_with_a_sentence():
    with pytest.raises(l2.CalibrationFailed, match="flat at its minimum"):
        # The response falls while the model cannot: it is best anywhere below 1.5, where it does not move at all.
        l2.calibrate(build(model=stuck_model, data={"x": X, "y": -Y}), "gb-ols")
