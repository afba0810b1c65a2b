"""The method `l2`: its posterior against brute force, in its limits, and under changes of units."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


def three_standard_errors(one, other):
    """Of a difference, as far as points that are spread evenly have any."""
    return 3 * np.hypot(one.numerical_error, other.numerical_error)


def agree(one, other, scale, allowed):
    assert (one - other) / scale == pytest.approx(0, abs=allowed)


@pytest.fixture(scope="module")
def usual():
    x = np.geomspace(0.05, 4, 14)
    y = saturating(x, 2.0, 1.3) + 0.1 * x * np.exp(-x) + 0.04 * np.random.default_rng(5).standard_normal(14)
    prior = {"height": l2.Uniform(0.5, 8), "rate": l2.Uniform(0.3, 5)}
    return x, np.asarray(y), prior, calibrated(saturating, {"x": (0, 4)}, prior, x, y)


FEW = settings(max_examples=6, deadline=None, derandomize=True)
signs = st.sampled_from([-1, 1])
sizes = st.floats(-6, 6).map(lambda power: 10.0**power)
offsets = st.floats(-100, 100)  # in units of what is moved


@FEW
@given(sign=signs, unit=sizes, offset=offsets)
def test_units_of_the_response_change_nothing_else(usual, sign, unit, offset):
    x, y, prior, known = usual
    a, b = offset * unit, sign * unit
    moved = calibrated(lambda x, height, rate: a + b * saturating(x, height, rate), {"x": (0, 4)}, prior, x, a + b * y)
    for name in prior:
        # Only rounding differs, of responses with an offset a hundred times their size.
        agree(ends(moved, name), ends(known, name), known.rows[name]["sd"], 1e-4)
    assert moved.sigma2 == pytest.approx(b**2 * known.sigma2, rel=1e-4)


@FEW
@given(sign=signs, unit=sizes, offset=offsets)
def test_units_of_the_input_change_nothing_else(usual, sign, unit, offset):
    x, y, prior, known = usual
    a, b = offset * unit, sign * unit
    moved = calibrated(
        lambda t, height, rate: saturating((t - a) / b, height, rate),
        {"t": tuple(sorted((a, a + 4 * b)))},
        prior,
        np.clip(a + b * x, *sorted((a, a + 4 * b))),
        y,
    )
    for name in prior:
        # Another direction is another set of points.
        allowed = 1e-4 if sign > 0 else three_standard_errors(known, moved)
        agree(ends(moved, name), ends(known, name), known.rows[name]["sd"], allowed)


# A monotone function, its inverse for the model, and what it does to bounds.
FUNCTIONS = {
    "logarithm": (np.log, jnp.exp),
    "reciprocal": (lambda value: 1 / value, lambda value: 1 / value),
    "root": (np.sqrt, lambda value: value**2),
    "cube": (lambda value: value**3, lambda value: value ** (1 / 3)),
    "odds": (lambda value: value / (10 - value), lambda value: 10 * value / (1 + value)),
}


@FEW
@given(of_height=st.sampled_from(list(FUNCTIONS)), of_rate=st.sampled_from(list(FUNCTIONS)))
def test_a_function_of_a_parameter_has_that_function_of_its_quantiles(usual, of_height, of_rate):
    x, y, old, known = usual
    (height, height_of), (rate, rate_of) = FUNCTIONS[of_height], FUNCTIONS[of_rate]
    prior = {
        name: l2.Uniform(*sorted((function(old[name].low), function(old[name].high))))
        for name, function in (("height", height), ("rate", rate))
    }
    other = calibrated(
        lambda x, height, rate: saturating(x, height_of(height), rate_of(rate)), {"x": (0, 4)}, prior, x, y
    )
    allowed = three_standard_errors(known, other)
    for name, function in (("height", height), ("rate", rate)):
        # In sd of the new parameter, where its error is said.
        mapped = np.sort(function(ends(known, name)))
        agree(mapped, ends(other, name), other.rows[name]["sd"], allowed)


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
