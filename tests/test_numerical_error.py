"""What an integration accepts is as accurate as its tolerance promises: coarse levels against dense grids.

`python -m benchmarks.numerical_error` holds more datasets, and three parameters, to the finest level.
"""

from __future__ import annotations

import numpy as np
import pytest

import l2calib as l2
from l2calib.spec import examples, load_problem
from tests.oracles import losses
from tests.oracles.configurations import configuration, design
from tests.oracles.posteriors import Summary, summarise
from tests.oracles.quadrature import gauss_legendre
from tests.oracles.smoother import Fit
from tests.problems import experiment


def dense(number: int, y: np.ndarray) -> Summary:
    """The posterior of non-linear regression by brute force."""
    chosen = configuration(number)
    x = design(y.size, chosen.k)
    return summarise(
        lambda theta: -y.size / 2 * np.log(losses.ols_loss(chosen.eta, x, y, theta)), chosen.lower, chosen.upper
    )


@pytest.mark.parametrize(
    ("number", "n", "method", "tolerance", "datasets"),
    [(1, 20, "nlm", 1e-3, 6), (2, 20, "nlm", 5e-3, 24), (2, 100, "nlm", 1e-3, 24)],
)
def test_what_is_accepted_keeps_the_tolerance(number, n, method, tolerance, datasets) -> None:
    chosen = configuration(number)
    noise = np.random.default_rng(5).standard_normal((datasets, n))
    responses = chosen.mu(design(n, chosen.k)) + np.sqrt(chosen.sigma2) * noise
    batch = l2.calibrate_batch(experiment(number, n), responses, method, engine=l2.Integrate(tolerance))
    accepted = np.flatnonzero((batch.status & l2.Status.INACCURATE) == 0)
    assert accepted.size
    for row in accepted:
        found = np.stack([batch.mean[row], batch.sd[row], batch.quantiles[row, :, 0], batch.quantiles[row, :, 2]])
        exact = dense(number, responses[row])
        wanted = np.stack([exact.mean, exact.sd, exact.quantiles[0], exact.quantiles[2]])
        assert np.abs((found - wanted) / exact.sd).max() < tolerance


def fall_time(height: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Of the wiffle balls, for parameters (..., 2); arccosh(exp(u)) in a form that does not overflow."""
    g, m = theta[..., :1], theta[..., 1:]
    far = height / m
    return np.asarray(np.sqrt(m / g) * (far + np.log1p(np.sqrt(-np.expm1(-2 * far)))))


def test_the_wiffle_balls_keep_it_too() -> None:
    """A banana whose tail goes to the end of the prior, against a dense grid."""
    problem, tolerance = load_problem(examples()["wiffle"]), 5e-3
    found = l2.calibrate(problem, "gb-l2", engine=l2.Integrate(tolerance))
    assert found.gamma is not None
    assert found.rho is not None
    rule, (low, high) = gauss_legendre(64, 1), problem.inputs["height"]
    values = Fit(problem.experiment.x_unit, problem.y, found.rho.psi, found.rho.kappa).predict(rule.nodes)
    height, gamma = low + (high - low) * rule.nodes[:, 0], found.gamma

    def log_density(theta: np.ndarray) -> np.ndarray:
        return -gamma * np.asarray((values - fall_time(height, theta)) ** 2 @ rule.weights)

    exact = summarise(log_density, np.full(2, 1e-6), np.full(2, 20.0))
    wanted = np.column_stack([exact.mean, exact.sd, exact.quantiles.T])
    apart = np.abs(found.summary().to_numpy() - wanted) / exact.sd[:, None]
    assert found.numerical_error < tolerance
    assert apart.max() < tolerance
