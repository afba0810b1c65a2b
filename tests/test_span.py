"""A model in the coordinates of its span against the model itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import l2calib as l2
from l2calib.spec import load_problem
from tests.problems import experiment

# Interpolation from the picked points is checked to 1e-11 of the model's length, over thetas that are not these.
TOLERANCE = 1e-10


def spans(name):
    known = load_problem("wiffle").experiment if name == "wiffle" else experiment(int(name), 40)
    return known, [(known.design_span, known.x), (known.node_span, known.nodes)]


@pytest.mark.parametrize(("name", "dimensions"), [("1", 2), ("2", 14), ("3", 1), ("4", 3), ("wiffle", None)])
def test_coordinates_give_every_value_of_the_model(name, dimensions):
    known, pairs = spans(name)
    thetas = known.prior.quantile(0.02 + 0.96 * np.random.default_rng(0).random((50, known.parameters)))
    for span, points in pairs:
        assert 2 * span.dimension <= len(points)
        assert dimensions is None or abs(span.dimension - dimensions) <= 1
        coordinates = np.asarray(jax.vmap(span.coordinates)(jnp.asarray(thetas)))
        values = np.stack([np.asarray(known.model(jnp.asarray(points), jnp.asarray(theta))) for theta in thetas])
        lengths = np.sqrt((values**2) @ span.weights)
        difference = np.sqrt((coordinates @ span.basis.T - values) ** 2 @ span.weights)
        assert np.all(difference <= TOLERANCE * lengths)


@pytest.mark.parametrize("name", ["2", "4", "wiffle"])
def test_a_loss_is_its_coordinates_and_what_lies_outside(name):
    known, pairs = spans(name)
    rng = np.random.default_rng(1)
    theta = jnp.asarray(known.prior.quantile(np.full((1, known.parameters), 0.4))[0])
    for span, points in pairs:
        values = rng.standard_normal(len(points))
        direct = np.sum(span.weights * (values - np.asarray(known.model(jnp.asarray(points), theta))) ** 2)
        inside = jnp.sum((span.project(jnp.asarray(values)) - span.coordinates(theta)) ** 2)
        assert float(inside + span.outside(jnp.asarray(values))) == pytest.approx(direct, rel=TOLERANCE)


def kinked(x, place, slope):
    return slope * jnp.abs(x - place)


def test_a_model_that_few_values_do_not_determine_keeps_all_of_them():
    x = np.linspace(0, 1, 30)
    known = l2.Experiment(kinked, {"x": (0, 1)}, x, {"place": l2.Uniform(0, 1), "slope": l2.Uniform(1, 2)})
    span = known.design_span
    assert span.dimension == len(x)
    theta = jnp.asarray([0.37, 1.4])
    assert np.asarray(span.basis @ np.asarray(span.coordinates(theta))) == pytest.approx(1.4 * np.abs(x - 0.37))
    assert float(span.outside(jnp.asarray(np.sin(9 * x)))) == pytest.approx(0.0, abs=1e-20)


def test_a_model_that_looks_at_all_of_its_inputs_keeps_them():
    x = np.linspace(0, 1, 30)
    known = l2.Experiment(lambda x, slope: slope * (x - jnp.mean(x) + 1), {"x": (0, 1)}, x, {"slope": l2.Uniform(1, 2)})
    assert known.design_span.dimension == len(x)
