"""The oracles against closed forms and against numbers known from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import integrate, stats

from tests.oracles import kennedy_ohagan, losses, metropolis, projected, wiffle
from tests.oracles.configurations import Configuration, configuration, simulate
from tests.oracles.correlation import correlation
from tests.oracles.posteriors import summarise
from tests.oracles.quadrature import gauss_legendre
from tests.oracles.smoother import Fit, best_fit

if TYPE_CHECKING:
    from tests.oracles.arrays import Array


@pytest.mark.parametrize(
    ("number", "target", "discrepancy"),
    [
        (1, [0.2, 0.3], 0.0),
        (2, [1.8772020], 2.865981),
        (3, [3.5652766], 0.138720),
        (4, [0.2, 0.3, 0.8], 0.522222),
    ],
)
def test_targets_and_discrepancies(number: int, target: list[float], discrepancy: float) -> None:
    chosen = configuration(number)
    assert chosen.target() == pytest.approx(target, abs=1e-6)
    assert chosen.discrepancy() == pytest.approx(discrepancy, abs=1e-6)


def test_error_variance_of_configuration_4_is_a_tenth_of_the_variance_of_mu() -> None:
    assert configuration(4).sigma2 == pytest.approx(0.74296, abs=1e-5)


def _large_n(chosen: Configuration, n: int) -> tuple[Array, Array]:
    """V and W of the OLS loss on a uniform design of n points, n large."""
    rule, target = chosen.quadrature, chosen.target()
    truth = chosen.mu(rule.nodes)

    def expected_loss(theta: Array) -> Array:
        return n * losses.l2_loss(chosen.eta, rule, truth, theta)

    V = losses.hessian(expected_loss, target, (chosen.upper - chosen.lower) * 5e-3)
    slope = np.sqrt(n * rule.weights)[:, None] * chosen.gradient(rule.nodes, target)
    return V, losses.score_covariance_ols(slope, chosen.sigma2)


@pytest.mark.parametrize(("number", "limit"), [(1, 12.5), (2, 46.892), (3, 1250.0), (4, 0.67299)])
def test_large_n_scaling_of_the_ols_loss(number: int, limit: float) -> None:
    assert losses.gamma(*_large_n(configuration(number), 100)) == pytest.approx(limit, rel=2e-5)


@pytest.mark.parametrize(("number", "sd"), [(2, [0.00261]), (3, [0.00346]), (4, [0.00333, 0.00386, 0.0498])])
def test_large_n_sd_of_general_bayes(number: int, sd: list[float]) -> None:
    V, W = _large_n(configuration(number), 100)
    covariance = np.linalg.inv(losses.gamma(V, W) * V)
    assert np.sqrt(np.diag(covariance)) == pytest.approx(sd, rel=3e-3)


def test_wiffle_balls_by_least_squares() -> None:
    x, y = wiffle.observations()

    def loss(theta: Array) -> Array:
        return losses.ols_loss(wiffle.fall_time, x, y, theta)

    best = losses.minimise(loss, np.array([0.01, 0.01]), np.array([20.0, 20.0]))
    assert len(y) == 63
    assert best == pytest.approx([10.8735, 3.3208], abs=5e-5)
    assert float(loss(best)) == pytest.approx(0.30133, abs=5e-6)


def test_wiffle_balls_by_non_linear_regression() -> None:
    x, y = wiffle.observations()
    found = summarise(
        lambda theta: -len(y) / 2 * np.log(losses.ols_loss(wiffle.fall_time, x, y, theta)),
        np.array([1e-6, 1e-6]),
        np.array([20.0, 20.0]),
    )
    assert found.mean == pytest.approx([10.50, 4.57], abs=6e-3)
    assert found.sd == pytest.approx([0.94, 2.43], abs=6e-3)
    assert found.quantiles[[0, 2], 1] == pytest.approx([2.23, 11.85], abs=6e-3)


def test_linear_regression_posterior_is_student_t() -> None:
    x, y = simulate(3, 40, seed=4)
    chosen = configuration(3)
    found = summarise(
        lambda theta: -20 * np.log(losses.ols_loss(chosen.eta, x, y, theta)),
        np.array([-40.0]),
        np.array([40.0]),
    )
    centre = x[:, 0] @ y / (x[:, 0] @ x[:, 0])
    rss = np.sum((y - centre * x[:, 0]) ** 2)
    law = stats.t(39, centre, np.sqrt(rss / 39 / (x[:, 0] @ x[:, 0])))
    tolerance = 1e-4 * law.std()
    assert found.mean == pytest.approx(law.mean(), abs=tolerance)
    assert found.sd == pytest.approx(law.std(), abs=tolerance)
    assert found.quantiles[:, 0] == pytest.approx(law.ppf([0.025, 0.5, 0.975]), abs=tolerance)


def test_summaries_of_a_truncated_correlated_normal() -> None:
    shape = np.array([[0.04, 0.03], [0.03, 0.09]])
    inverse = np.linalg.inv(shape)
    found = summarise(
        lambda theta: -0.5 * np.einsum("mi,ij,mj->m", theta - 0.5, inverse, theta - 0.5),
        np.array([-50.0, 0.5]),
        np.array([50.0, 60.0]),
    )
    # theta_2 is half-normal, and theta_1 follows it with slope 1/3.
    half = stats.halfnorm(0.5, 0.3)
    assert found.mean == pytest.approx([0.5 + (half.mean() - 0.5) / 3, half.mean()], abs=2e-5)
    spread = np.sqrt(half.var() / 9 + 0.04 - 0.01)
    assert found.sd == pytest.approx([spread, half.std()], abs=2e-5)
    assert found.quantiles[:, 1] == pytest.approx(half.ppf([0.025, 0.5, 0.975]), abs=2e-5)


def test_hessian_of_a_quadratic_loss() -> None:
    chosen = configuration(3)
    rule = chosen.quadrature
    values = chosen.mu(rule.nodes)
    found = losses.hessian(lambda t: losses.l2_loss(chosen.eta, rule, values, t), np.array([3.0]), np.array([0.01]))
    assert found == pytest.approx(np.array([[2 / 3]]), rel=1e-8)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_gradients_of_the_models(number: int) -> None:
    chosen = configuration(number)
    x = np.random.default_rng(0).random((7, chosen.k))
    theta = chosen.lower + 0.37 * (chosen.upper - chosen.lower)
    step = 1e-6 * np.eye(chosen.p)
    numeric = [(chosen.eta(x, theta + s) - chosen.eta(x, theta - s)) / 2e-6 for s in step]
    assert chosen.gradient(x, theta) == pytest.approx(np.stack(numeric, axis=-1), abs=1e-7)


def test_criterion_of_generalised_cross_validation() -> None:
    x, y = simulate(4, 30, seed=2)
    fit = Fit(x, y, np.array([3.0, 0.7]), 0.02)
    inverse = np.linalg.inv(fit.phi)
    identity = 30**2 * np.sum((inverse @ y) ** 2) / np.trace(inverse) ** 2
    assert fit.gcv == pytest.approx(identity, rel=1e-9)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_random_rho_beats_the_best_fit(number: int) -> None:
    x, y = simulate(number, 40, seed=3)
    best = best_fit(x, y, (1e-2, 1e3), (1e-8, 1e2))
    rng = np.random.default_rng(0)
    psi, kappa = np.exp(rng.uniform(np.log([1e-2, 1e-8]), np.log([1e3, 1e2]), (2000, 2))).T
    others = [Fit(x, y, np.array([a]), b).gcv for a, b in zip(psi, kappa, strict=True)]
    assert best.gcv <= min(others)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_modified_correlation_is_orthogonal_to_the_derivative(number: int) -> None:
    chosen = configuration(number)
    rule = gauss_legendre(30 if chosen.k == 1 else 8, chosen.k)
    theta = chosen.lower + 0.6 * (chosen.upper - chosen.lower)
    slope = chosen.gradient(rule.nodes, theta)
    points = np.vstack([rule.nodes, np.random.default_rng(1).random((5, chosen.k))])
    dense = kennedy_ohagan.projected_correlation(points, rule, slope, np.full(chosen.k, 4.0))
    moments = (rule.weights[:, None] * slope).T @ dense[: len(rule.nodes)]
    assert np.abs(moments).max() < 1e-10 * np.abs(slope).max()


def test_error_variance_is_integrated_out() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((5, 1))
    dense, kappa = correlation(x, x, np.array([2.0])), 0.3
    residuals = rng.standard_normal((2, 5))
    shape = np.eye(5) + dense / kappa

    def numeric(residual: Array) -> float:
        def integrand(log_sigma2: float) -> float:
            covariance = np.exp(log_sigma2) * shape
            return float(stats.multivariate_normal(np.zeros(5), covariance).pdf(residual))

        return float(np.log(integrate.quad(integrand, -15, 25, limit=400)[0]))

    found = kennedy_ohagan.log_marginal_likelihood(dense, kappa, residuals)
    # The closed form is known up to a constant, which a difference removes.
    assert found[0] - found[1] == pytest.approx(numeric(residuals[0]) - numeric(residuals[1]), abs=1e-6)


def _koh(number: int, n: int, orthogonal: kennedy_ohagan.Orthogonal) -> kennedy_ohagan.KennedyOHagan:
    chosen = configuration(number)
    x, y = simulate(number, n, seed=6)
    return kennedy_ohagan.KennedyOHagan(
        x,
        y,
        chosen.eta,
        chosen.gradient,
        gauss_legendre(40, 1),
        chosen.lower,
        chosen.upper,
        orthogonal,
        chosen.target(),
    )


def test_orthogonality_at_theta_and_at_the_estimate_agree_for_a_linear_model() -> None:
    at_estimate = kennedy_ohagan.posterior_of_theta(_koh(3, 15, "estimate"), 16, 61)
    at_theta = kennedy_ohagan.posterior_of_theta(_koh(3, 15, "parameter"), 16, 61)
    assert at_theta.mean == pytest.approx(at_estimate.mean, rel=1e-9)
    assert at_theta.sd == pytest.approx(at_estimate.sd, rel=1e-6)


def test_metropolis_agrees_with_the_grid() -> None:
    model = _koh(3, 20, "estimate")
    expected = kennedy_ohagan.posterior_of_theta(model)
    draws = metropolis.metropolis(model, 20_000, 4_000, seed=1).draws[:, 0]
    batches = draws.reshape(40, -1)
    for statistic, truth in ((batches, expected.mean[0]), ((batches - expected.mean[0]) ** 2, expected.sd[0] ** 2)):
        means = statistic.mean(axis=1)
        # Batch means give a t statistic with 39 degrees of freedom.
        t = (means.mean() - truth) / (means.std(ddof=1) / np.sqrt(40))
        assert abs(t) < stats.t(39).isf(5e-5)


def test_projection_of_a_linear_model_is_a_ratio_of_integrals() -> None:
    chosen = configuration(3)
    x, y = simulate(3, 20, seed=7)
    fit = Fit(x, y, np.array([2.0]), 1e-3)
    rule = gauss_legendre(30, 1)
    processes = projected.draw_process(fit, rule, 0.4, draws=30, seed=1)
    found = projected.projected_l2(chosen.eta, chosen.gradient, rule, processes, np.array([-90.0]), np.array([90.0]))
    weights = rule.weights * rule.nodes[:, 0]
    assert found[:, 0] == pytest.approx(processes @ weights * 3, abs=1e-6)
