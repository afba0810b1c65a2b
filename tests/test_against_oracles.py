"""The library against the slow oracles, on one dataset of each configuration at n = 40.

Most of the time goes into compiling, so each method is here in the configurations that are a test of it, and in all of
them in `python -m benchmarks.against_oracles`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import optimize, stats

import l2calib as l2
from tests.agreement import assert_agrees, assert_chain_agrees, assert_nuts_agrees, own_points
from tests.oracles import kennedy_ohagan, losses
from tests.oracles.configurations import configuration, simulate
from tests.oracles.metropolis import metropolis
from tests.oracles.posteriors import Summary, summarise
from tests.oracles.projected import draw_process, projected_l2
from tests.oracles.quadrature import gauss_legendre
from tests.oracles.smoother import Fit, best_fit
from tests.problems import problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracles.arrays import Array
    from tests.oracles.quadrature import Quadrature

N, SEED = 40, 1
NUMBERS = (1, 2, 3, 4)
GENERAL_BAYES = ("gb-l2", "gb-ols", "gb-l2-boot", "gb-ols-boot")
WITH_DENSITY = ("nlm", "koh", *GENERAL_BAYES)
ORTHOGONAL: dict[str, kennedy_ohagan.Orthogonal] = {
    "koh": "estimate",
    "koh-plumlee": "parameter",
    "kennedy-ohagan-plain": "none",
}


@cache
def calibration(number: int, method: str) -> l2.Calibration:
    return l2.calibrate(problem(number, N, SEED), method, seed=1)


def theta_hat(result: l2.Calibration) -> Array:
    return np.array(list(result.theta_hat.values()))


@cache
def dense_fit(number: int) -> Fit:
    """The oracle's mu-hat at the library's rho."""
    rho = calibration(number, "gb-l2").rho
    assert rho is not None
    return Fit(*simulate(number, N, SEED), rho.psi, rho.kappa)


def loss_of(number: int, method: str, rule: Quadrature | None = None) -> Callable[[Array], Array]:
    """The loss behind a method, by the oracles."""
    chosen = configuration(number)
    if "l2" in method:
        rule = rule or chosen.quadrature
        values = dense_fit(number).predict(rule.nodes)
        return lambda theta: losses.l2_loss(chosen.eta, rule, values, theta)
    x, y = simulate(number, N, SEED)
    return lambda theta: losses.ols_loss(chosen.eta, x, y, theta)


def dense_kennedy_ohagan(number: int, method: str, nodes: int) -> kennedy_ohagan.KennedyOHagan:
    chosen = configuration(number)
    return kennedy_ohagan.KennedyOHagan(
        *simulate(number, N, SEED),
        chosen.eta,
        chosen.gradient,
        gauss_legendre(nodes, chosen.k),
        chosen.lower,
        chosen.upper,
        ORTHOGONAL[method],
        theta_hat(calibration(number, method)),
    )


@cache
def brute_force(number: int, method: str) -> Summary:
    if method in ORTHOGONAL:
        dense = dense_kennedy_ohagan(number, method, nodes=64)
        # Where 16 points are chosen, 24 of them move no answer by more than 2e-4 posterior standard deviations.
        grid = {1: (16 if method == "koh-plumlee" else 24, 401), 2: (16, 61)}[configuration(number).p]
        return kennedy_ohagan.posterior_of_theta(dense, *grid)
    chosen = configuration(number)
    # Twelve nodes an input move no answer by more than 1e-6 posterior sd, and three parameters need many thetas.
    loss = loss_of(number, method, gauss_legendre(12, 2) if chosen.p == 3 else None)
    if method == "nlm":
        return summarise(lambda theta: -N / 2 * np.log(loss(theta)), chosen.lower, chosen.upper)
    gamma = calibration(number, method).gamma
    assert gamma is not None
    return summarise(lambda theta: -gamma * loss(theta), chosen.lower, chosen.upper)


@pytest.mark.parametrize("number", NUMBERS)
def test_cross_validation_is_as_good_as_its_grid_allows(number: int) -> None:
    """No worse than the searched psi that is nearest to the true optimum, kappa being free."""
    smoother = l2.GCV()
    x, y = simulate(number, N, SEED)
    best = best_fit(x, y, smoother.psi_bounds, smoother.kappa_bounds, per_axis=40 if number < 4 else 12)
    grid = smoother.grid(x.shape[1]).values()[smoother.grid(x.shape[1]).searched()]
    nearest = grid[np.argmin(np.abs(np.log(grid / best.psi)).sum(axis=1))]

    def at(log_kappa: float) -> float:
        return Fit(x, y, nearest, float(np.exp(log_kappa))).gcv

    around = np.log(best.kappa) + np.array([-3.0, 3.0])
    low, high = np.clip(around, *np.log(smoother.kappa_bounds))
    allowed = optimize.minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-8}).fun
    assert dense_fit(number).gcv <= allowed * (1 + 1e-6)


@pytest.mark.parametrize(
    ("method", "number"), [*(("gb-l2", number) for number in NUMBERS), ("gb-ols", 1), ("gb-ols", 2)]
)
def test_estimates_and_their_matrices(number: int, method: str) -> None:
    chosen, fit, loss = configuration(number), dense_fit(number), loss_of(number, method)
    best = losses.minimise(loss, chosen.lower, chosen.upper)
    V = losses.hessian(loss, best, 1e-3 * (chosen.upper - chosen.lower))
    rule = chosen.quadrature
    if method == "gb-l2":
        slope = chosen.gradient(rule.nodes, best)
        W = losses.score_covariance_l2(slope, rule, fit.x, fit.psi, fit.kappa, fit.sigma2)
    else:
        W = losses.score_covariance_ols(chosen.gradient(fit.x, best), fit.sigma2)
    found = l2.estimate(problem(number, N, SEED), l2.L2() if method == "gb-l2" else l2.OLS())
    result = calibration(number, method)
    assert found.sigma2 == pytest.approx(fit.sigma2, rel=1e-7)
    # The oracle's simplex stops within 1e-8 of the box's width.
    assert (theta_hat(result) - best) / (chosen.upper - chosen.lower) == pytest.approx(0, abs=1e-7)
    assert found.theta_hat == pytest.approx(theta_hat(result), rel=1e-9)
    assert np.abs(found.V - V).max() / np.abs(V).max() == pytest.approx(0, abs=1e-6)
    assert np.abs(found.W - W).max() / np.abs(W).max() == pytest.approx(0, abs=1e-6)
    assert result.gamma == pytest.approx(losses.gamma(V, W), rel=1e-6)


@pytest.mark.parametrize("method", ["gb-l2-boot", "gb-ols-boot"])
def test_bootstrap_scaling(method: str) -> None:
    """gamma over 1,000 resamples, against as many slow minimisations with draws of their own."""
    number, resamples = 2, 1000
    chosen, fit = configuration(number), dense_fit(2)
    rule, centre = chosen.quadrature, fit.hat_matrix @ fit.y
    residuals = fit.y - centre
    estimate = theta_hat(calibration(number, method))
    rng = np.random.default_rng(8)

    def statistic() -> float:
        y = centre + rng.choice(residuals, N)
        values = Fit(fit.x, y, fit.psi, fit.kappa).predict(rule.nodes)

        def loss(theta: Array | float) -> float:
            at = np.atleast_1d(theta)
            l2_loss = losses.l2_loss(chosen.eta, rule, values, at)
            return float(l2_loss if method == "gb-l2-boot" else losses.ols_loss(chosen.eta, fit.x, y, at))

        near = (estimate[0] - 0.1, estimate[0] + 0.1)
        best = optimize.minimize_scalar(loss, bounds=near, method="bounded", options={"xatol": 1e-9})
        return 2 * (loss(estimate) - float(best.fun))

    statistics = np.array([statistic() for _ in range(resamples)])
    found = calibration(number, method).gamma
    assert found is not None
    # Both sides are means of as many resamples, so the errors are alike and add.
    error = np.sqrt(2) * statistics.std(ddof=1) / np.sqrt(resamples)
    assert abs(1 / found - statistics.mean()) < 4 * error


def hold_posterior(number: int, method: str, by_nuts: bool) -> None:
    """Integration against brute force, but for `koh` with three parameters, and against NUTS."""
    result = calibration(number, method)
    if configuration(number).p <= 2 or method not in ORTHOGONAL:
        assert_agrees(result, brute_force(number, method))
    if by_nuts:
        assert_nuts_agrees(problem(number, N, SEED), method, result)
    assert not result.status & l2.Status.INACCURATE, result.numerical_error


@pytest.mark.parametrize(
    ("number", "method", "by_nuts"),
    [
        *((1, method, method == "gb-l2") for method in ("nlm", "koh", "gb-l2", "gb-ols")),
        # The bootstrap's densities differ from the others by a factor.
        *((2, method, method == "gb-ols-boot") for method in WITH_DENSITY),
        (3, "koh", False),
        (3, "gb-l2", False),
        *((4, method, method == "koh") for method in ("nlm", "koh", "gb-l2", "gb-ols")),
    ],
)
def test_posterior(number: int, method: str, by_nuts: bool) -> None:
    hold_posterior(number, method, by_nuts)


@pytest.mark.parametrize(
    ("number", "method", "oracle"),
    [
        (2, "koh-plumlee", "koh-plumlee"),
        (2, "kennedy-ohagan-plain", "kennedy-ohagan-plain"),
        (3, "kennedy-ohagan-plain", "kennedy-ohagan-plain"),
        # The slopes of a linear model are the same at every theta, and so is the posterior.
        (3, "koh-plumlee", "koh"),
    ],
)
def test_relatives_of_kennedy_ohagan(number: int, method: str, oracle: str) -> None:
    assert_agrees(calibration(number, method), brute_force(number, oracle))


def test_kennedy_ohagan_with_three_parameters_against_dense_metropolis() -> None:
    """NUTS samples the library's own density; this chain knows only the paper's dense matrices.

    About one in a hundred of its draws is independent, so that a shift of a quarter of a standard deviation is seen.
    """
    chain = metropolis(dense_kennedy_ohagan(4, "koh", nodes=10), 30_000, 6_000, seed=3)
    assert_chain_agrees(chain.draws[None, :, :3], calibration(4, "koh"))


@pytest.mark.parametrize(
    ("number", "variance"), [(1, "smoother"), (2, "smoother"), (3, "smoother"), (4, "smoother"), (2, "profile")]
)
def test_projected(number: int, variance: str) -> None:
    """The same law as one scipy minimisation per drawn mu: 300 of them see a shift of a quarter of a posterior sd."""
    chosen, fit = configuration(number), dense_fit(number)
    rule = gauss_legendre(40 if chosen.k == 1 else 12, chosen.k)
    scale = fit.sigma2 / fit.kappa if variance == "smoother" else fit.y @ np.linalg.solve(fit.phi, fit.y) / N
    processes = draw_process(fit, rule, float(scale), draws=300, seed=2)
    slow = projected_l2(chosen.eta, chosen.gradient, rule, processes, chosen.lower, chosen.upper)
    method = l2.ProjectedL2(draws=2000, process_variance="smoother" if variance == "smoother" else "profile")
    fast = own_points(l2.calibrate(problem(number, N, SEED), method, seed=1))
    centre = fast.mean(axis=0)
    for ours, theirs in ((fast, slow), ((fast - centre) ** 2, (slow - centre) ** 2)):
        error = np.sqrt(ours.var(axis=0) / len(ours) + theirs.var(axis=0) / len(theirs))
        assert np.abs((ours.mean(axis=0) - theirs.mean(axis=0)) / error).max() < 4
    for a, b in zip(slow.T, fast.T, strict=True):
        # 6.3e-5 is the chance of being 4 standard errors away.
        assert stats.ks_2samp(a, b).pvalue > 6.3e-5
