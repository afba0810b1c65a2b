"""The method `l2`: its posterior against brute force, in its limits, and under changes of units."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.stats import beta

import l2calib as l2
from l2calib.errors import MethodError
from l2calib.methods.catalogue import method_named
from l2calib.methods.l2 import PSI_PRIOR, ProjectedBias
from l2calib.methods.l2.measure import log_measure
from l2calib.methods.l2.view import modelled_at
from l2calib.numerics.namespace import log_sum_exp
from l2calib.process.lattice import HalfCauchyRatio
from tests.agreement import assert_agrees
from tests.oracles.configurations import configuration, simulate
from tests.oracles.posteriors import summarise
from tests.oracles.projected_bias import ProjectedProcess, log_volume, mixed, squared_exponential, without_process
from tests.oracles.quadrature import gauss_legendre
from tests.problems import problem

RULE = gauss_legendre(40, 1)


def on_lattice(process, eta, at_design, at_nodes, y):
    """The log posterior of theta, with rho integrated on a lattice of its own and C_theta as it is defined."""
    psi, kappa = np.geomspace(1e-2, 1e3, 31), np.geomspace(1e-8, 1e4, 61)
    log_weights = PSI_PRIOR.log_density(psi)[:, None] + np.log(psi)[:, None]
    log_weights = log_weights + HalfCauchyRatio().log_density(kappa) + np.log(kappa)

    def at(theta):
        residual, j_x, j_d = y - eta(process.x, theta), at_design(theta), at_nodes(theta)
        terms = np.empty((psi.size, kappa.size))
        for row, one in enumerate(psi):
            values, vectors = np.linalg.eigh(process.covariance(np.array([one]), j_x, j_d))
            diagonal = np.maximum(values, 0.0) + kappa[:, None]
            square = ((vectors.T @ residual) ** 2 / diagonal).sum(axis=1)
            terms[row] = -np.log(diagonal).sum(axis=1) / 2 - len(y) / 2 * np.log(square)
        return mixed(terms, log_weights, without_process(residual), 0.5) + log_volume(process.rule, j_d)

    return at


@pytest.mark.parametrize(("number", "n"), [(3, 16), (2, 20)])
def test_the_posterior_is_that_of_brute_force(number, n):
    chosen = configuration(number)
    x, y = simulate(number, n, seed=3)
    process = ProjectedProcess(x, RULE, squared_exponential)

    def slopes_at(points):
        return lambda theta: chosen.gradient(points, theta).reshape(len(points), 1)

    log_density = on_lattice(process, chosen.eta, slopes_at(x), slopes_at(RULE.nodes), y)
    found = l2.calibrate(problem(number, n, seed=3), "l2")
    row = found.rows["theta1"]
    # Configuration 2 has other basins, where theta is no minimiser: brute force stays in the target's,
    # with points closer together where the mass is; what is farther than forty sd away moves no sd by 1e-4.
    grid = row["mean"] + row["sd"] * 2 * np.sinh(np.linspace(-1, 1, 101) * np.arcsinh(20))
    smooth = CubicSpline(grid, [log_density(np.array([theta])) for theta in grid])
    slow = summarise(lambda theta: smooth(theta[..., 0]), grid[:1], grid[-1:])
    # Two lattices of rho, and what is said of the integration over theta.
    assert_agrees(found, slow, tolerance=2e-3 + found.numerical_error)
    assert found.status == l2.Status.OK
    assert found.engine == "integrate"


def test_without_a_process_it_is_non_linear_regression_under_the_same_measure():
    chosen, (x, y) = configuration(2), simulate(2, 20, seed=3)
    found = l2.calibrate(problem(2, 20, seed=3), ProjectedBias(no_process=1 - 1e-15))

    def log_density(theta):
        volume = np.log(((5 * RULE.nodes[:, 0] * np.cos(5 * theta * RULE.nodes[:, 0])) ** 2) @ RULE.weights) / 2
        return -10 * np.log(((y - chosen.eta(x, theta)) ** 2).sum(axis=-1)) + volume

    assert_agrees(found, summarise(log_density, chosen.lower, chosen.upper), tolerance=1e-4 + found.numerical_error)


def saturating(x, height, rate):
    return height * (1 - jnp.exp(-rate * x))


def calibrated(model, inputs, prior, x, y, method="l2"):
    name = next(iter(inputs))
    return l2.calibrate(l2.Problem(model, {name: x, "y": y}, "y", inputs, prior), method)


def ends(result, name):
    return np.array([result.rows[name][each] for each in ("q2.5", "q50", "q97.5")])


def agree(one, other, scale, allowed):
    assert (one - other) / scale == pytest.approx(0, abs=allowed)


@pytest.fixture(scope="module")
def usual():
    x = np.geomspace(0.05, 4, 14)
    y = saturating(x, 2.0, 1.3) + 0.1 * x * np.exp(-x) + 0.04 * np.random.default_rng(5).standard_normal(14)
    prior = {"height": l2.Uniform(0.5, 8), "rate": l2.Uniform(0.3, 5)}
    return x, np.asarray(y), prior, calibrated(saturating, {"x": (0, 4)}, prior, x, y)


def test_units_of_the_response_and_of_the_input_change_nothing_else(usual):
    x, y, prior, known = usual
    moved = calibrated(lambda t, height, rate: 5 - 3 * saturating((7 - t) / 2, height, rate), {"t": (-1, 7)}, prior,
                       7 - 2 * x, 5 - 3 * y)  # fmt: skip
    for name in prior:
        allowed = known.numerical_error + moved.numerical_error
        agree(ends(moved, name), ends(known, name), known.rows[name]["sd"], allowed)
    assert moved.sigma2 == pytest.approx(9 * known.sigma2, rel=1e-5)


def test_a_function_of_a_parameter_has_that_function_of_its_quantiles(usual):
    x, y, _, known = usual
    prior = {"log_height": l2.Uniform(np.log(0.5), np.log(8)), "time": l2.Uniform(1 / 5, 1 / 0.3)}
    other = calibrated(
        lambda x, log_height, time: saturating(x, jnp.exp(log_height), 1 / time), {"x": (0, 4)}, prior, x, y
    )
    allowed = known.numerical_error + other.numerical_error
    height, rate = ends(other, "log_height"), ends(other, "time")[::-1]
    # In sd of the new parameter, where its error is said.
    agree(np.log(ends(known, "height")), height, other.rows["log_height"]["sd"], allowed)
    agree((1 / ends(known, "rate"))[::-1], ends(other, "time"), other.rows["time"]["sd"], allowed)
    assert (rate > 0).all()


def test_a_literal_prior_is_another_one(usual):
    """Where the data say little, what a uniform prior means decides."""
    x, y, prior, _ = usual
    noisy = y + 0.3 * np.random.default_rng(6).standard_normal(len(y))
    volume, literal = (calibrated(saturating, {"x": (0, 4)}, prior, x, noisy, name) for name in ("l2", "l2+literal"))
    allowed = volume.numerical_error + literal.numerical_error
    assert abs(ends(literal, "rate") - ends(volume, "rate")).max() > allowed * volume.rows["rate"]["sd"]


def test_without_data_an_informative_prior_is_its_own_posterior(usual):
    """The measure, summed over the uniform parameter, is the density that is written for the other."""
    x, y, *_ = usual
    prior = {"height": l2.Uniform(0.5, 8), "rate": l2.LogNormal(0.0, 0.5)}
    known = l2.Problem(saturating, {"x": x, "y": y}, "y", {"x": (0, 4)}, prior).experiment
    view = ProjectedBias().prepare(known).view
    heights, rates = 0.5 + 7.5 * (np.arange(64) + 0.5) / 64, np.array([0.4, 1.0, 2.5])
    theta = np.column_stack([np.tile(heights, 3), np.repeat(rates, 64)])
    slopes = modelled_at(known.prior, view, theta)[1]
    measure = log_measure(known.prior, view, slopes, theta, literal=False)
    summed = log_sum_exp(measure.reshape(3, 64), axis=1) + np.log(7.5 / 64)
    assert summed == pytest.approx(np.asarray(l2.LogNormal(0.0, 0.5).log_density(rates)), abs=1e-3)


def test_mass_at_a_maximum_of_the_distance_is_left_out():
    known = problem(2, 20, seed=3)
    method = method_named("l2")
    shared, view = method.prepare(known.experiment)
    fit = method.fit(known.experiment, _arrays(shared), known.y, key=jax.random.key(0))
    share = method.posterior(known.experiment.prior, _arrays(view), fit).log_share
    grid = np.linspace(0.01, 2.99, 150)[:, None]
    kept = np.exp(share(grid))
    assert kept[np.argmin(abs(grid[:, 0] - 1.8772))] == pytest.approx(1)
    assert kept.min() >= 0
    assert kept.max() <= 1 + 1e-12
    distance = [(RULE.weights * (configuration(2).mu(RULE.nodes) - configuration(2).eta(RULE.nodes, t)) ** 2).sum()
                for t in grid]  # fmt: skip
    assert kept[np.argmax(distance)] < 1e-6


def _arrays(tree):
    return jax.tree.map(np.asarray, tree)


def test_the_half_cauchy_prior_of_tau_over_sigma():
    """tau^2 / (tau^2 + sigma^2) = 1 / (1 + kappa) follows the arcsine law."""
    prior, kappa = HalfCauchyRatio(), np.geomspace(1e-4, 1e4, 9)
    share = 1 / (1 + kappa)
    assert prior.log_density(kappa) == pytest.approx(beta(0.5, 0.5).logpdf(share) + 2 * np.log(share), rel=1e-12)
    assert 1 / (1 + prior.quantile(beta(0.5, 0.5).sf(share))) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("name", ["l2", "l2+literal", "l2+matern52", "l2+matern32", "l2+matern32+literal"])
def test_options_are_part_of_the_name(name):
    assert method_named(name).name == name
    assert method_named(name) == method_named(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("l2+litteral", r"'l2' has no option 'litteral' \(did you mean 'literal'\?\)"),
        ("nlm+literal", "'nlm' has no option 'literal': it has none"),
        ("l2+matern52+matern32", "only one of matern52, matern32 goes with 'l2'"),
        ("l3+literal", "there is no method 'l3.literal'"),
    ],
)
def test_options_that_do_not_exist_are_said(name, said):
    with pytest.raises(MethodError, match=said):
        method_named(name)
