"""Points of proposals that are known: against distributions whose marginals are known, and the method's own."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import l2calib as l2
from l2calib.compute.solvers import solver_of
from l2calib.compute.stages import posterior_of, prepared
from l2calib.engines.proposed import points_of_proposals
from l2calib.methods.catalogue import method_named
from l2calib.methods.l2.proposals import deviates
from l2calib.numerics.namespace import log_sum_exp
from l2calib.posterior.points import PROBABILITIES, sample_quantiles, summarise
from tests.problems import problem


@pytest.mark.parametrize(("p", "freedom"), [(2, 18.0), (3, 6.0), (4, 30.0)])
def test_deviates_have_the_moments_of_their_distribution(p, freedom):
    for level, t in enumerate(deviates(p, freedom)):
        assert t.mean(axis=0) == pytest.approx(np.zeros(p), abs=1e-15)
        # Radii are spread evenly, at a random place in each of so many strata.
        covariance = t.T @ t / len(t)
        assert covariance == pytest.approx(np.eye(p) / (freedom - 2), rel=(0.2, 0.05)[level], abs=1e-12)
        along = np.sqrt(freedom) * t[:, 0]
        allowed = stats.kstwobign.ppf(1 - 1e-4) / np.sqrt(len(t))
        assert stats.kstest(along, stats.t(freedom).cdf).statistic < allowed


def fitted(chosen, engine=None):
    """The solver of `l2`, and what it needs, in NumPy."""
    method, experiment = method_named("l2"), chosen.experiment
    shared, view = jax.tree.map(np.asarray, tuple(prepared(method, experiment)))
    fit = method.fit(experiment, shared, experiment.whiten(chosen.y), key=jax.random.key(0), choice=None)
    solver = solver_of(method, experiment, engine or l2.Integrate(), view, fit)
    return solver, view, fit


def linear(x, level, slope):
    return level + slope * x


@pytest.fixture(scope="module")
def straight():
    x = np.linspace(0, 1, 12)
    y = 1 + 2 * x + 0.3 * np.sin(5 * x) + 0.1 * np.random.default_rng(3).standard_normal(12)
    prior = {"level": l2.Uniform(-20, 20), "slope": l2.Uniform(-40, 40)}
    return fitted(l2.Problem(linear, {"x": x, "y": y}, "y", {"x": (0, 1)}, prior))


def test_points_of_a_linear_model_weigh_what_they_stand_for(straight):
    """Given rho its posterior is a t distribution, and there are no others."""
    solver, view, fit = straight
    seen = solver._target(view, fit).proposals.weighed(0)
    assert seen.base.sum() == pytest.approx(1, abs=1e-12)
    relative = seen.log_weight - np.log(seen.base)
    assert np.ptp(relative) < 1e-3  # u is met to 1e-4 sd, and some points are several sd away
    assert seen.lost < 1e-6
    assert (np.exp(seen.log_share) > 0.5).all()


def test_the_marginals_of_a_linear_model_are_those_of_its_mixture(straight):
    """Whatever the points: their weights are such that the proposals' distribution functions come out."""
    solver, view, fit = straight
    target = solver._target(view, fit)
    seen, points = target.proposals.weighed(0), points_of_proposals(target, 0)
    found = sample_quantiles(points.z, points.weights, np.asarray(PROBABILITIES))
    _, sd = solver_moments(points)
    for j in range(2):
        order = np.argsort(points.z[:, j])
        exact = np.interp(PROBABILITIES, seen.place[order, j], points.z[order, j])
        # A quantile lies between two points: so far apart are they, where a mixture of t densities has 0.04 left.
        assert np.abs((found[:, j] - exact) / sd[j]).max() < points.weights.max() / 0.04
    assert points.error < 0.05


def solver_moments(points):
    mean = points.weights @ points.z
    return mean, np.sqrt(points.weights @ (points.z - mean) ** 2)


def saturating(x, height, rate):
    return height * (1 - jnp.exp(-rate * x))


@pytest.fixture(scope="module")
def bent():
    x = np.repeat(np.geomspace(0.05, 2, 6), 2)
    y = np.asarray(saturating(x, 2.0, 0.8)) + 0.08 * np.random.default_rng(8).standard_normal(12)
    prior = {"height": l2.Uniform(0.5, 8), "rate": l2.Uniform(0.05, 4)}
    return fitted(l2.Problem(saturating, {"x": x, "y": y}, "y", {"x": (0, 2)}, prior))


def on_a_grid(target, points, number=140):
    """Quantiles of the marginals of a density of two parameters, on a grid that covers the points."""
    low, high = points.z.min(axis=0), points.z.max(axis=0)
    axes = [np.linspace(max(a - 0.2, -8), min(b + 0.2, 8), number) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    parts = [sum(target.log_density_and_share(part)) for part in np.array_split(grid, 40)]
    values = np.nan_to_num(np.concatenate(parts), nan=-np.inf)
    mass = np.exp(values - log_sum_exp(values, axis=0)).reshape(number, number)
    quantiles = []
    for j in range(2):
        own = mass.sum(axis=1 - j)
        quantiles.append(np.interp(PROBABILITIES, np.cumsum(own) - own / 2, axes[j]))
    return np.array(quantiles).T


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_bent_posterior_is_that_of_a_grid_within_what_is_said(bent, level):
    solver, view, fit = bent
    with np.errstate(all="ignore"):
        target = solver._target(view, fit)
        found = solver.points(level, view=view, fit=fit, survey=solver.survey(view, fit), key=None)
        exact = on_a_grid(target, found)
    _, sd = solver_moments(found)
    ours = sample_quantiles(found.z, found.weights, np.asarray(PROBABILITIES))
    # Three standard errors, and what the grid's own cells cost.
    assert np.abs((ours - exact) / sd).max() < 3 * found.error + 0.02
    assert found.error < (0.2, 0.1, 0.3)[level]


def test_a_batch_computes_the_same(bent):
    solver, view, fit = bent
    with np.errstate(all="ignore"):
        alone = solver.points(0, view=view, fit=fit, survey=solver.survey(view, fit), key=None)
    known = jax.tree.map(jnp.asarray, (view, fit))
    together = jax.jit(partial(_points, solver))(*known)
    assert np.asarray(together.weights) == pytest.approx(alone.weights, abs=1e-9)
    assert np.asarray(together.z) == pytest.approx(alone.z, abs=1e-6)


def _points(solver, view, fit):
    return solver.points(0, view=view, fit=fit, survey=solver.survey(view, fit), key=None)


def test_where_few_points_do_not_suffice_there_are_more():
    chosen = problem(1, 20, seed=3)
    solver, view, fit = fitted(chosen)
    errors = []
    for level in (0, 1):
        with np.errstate(all="ignore"):
            solution = posterior_of(chosen.experiment.prior, solver, level, view=view, fit=fit,
                                    survey=solver.survey(view, fit), key=None)  # fmt: skip
        errors.append(float(solution.integration))
        assert summarise(solution.points, chosen.experiment.prior.from_line).error == pytest.approx(errors[-1])
    assert errors[1] < errors[0]
    assert solver.next_level(0, np.array(0.2), np.array(0.0)) == 1
    assert solver.next_level(0, np.array(0.2), np.array(0.2)) == 2
    assert solver.next_level(1, np.array(0.2), np.array(0.0)) == 2
