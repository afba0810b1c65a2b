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
from tests.oracles.smoother import Fit
from tests.problems import experiment

FINEST = 1e-12


def dense(number: int, batch: l2.Batch, responses: np.ndarray, row: int) -> Summary:
    """The posterior of one dataset by brute force."""
    chosen, y = configuration(number), responses[row]
    x = design(y.size, chosen.k)
    if batch.gamma is None:
        return summarise(
            lambda theta: -y.size / 2 * np.log(losses.ols_loss(chosen.eta, x, y, theta)), chosen.lower, chosen.upper
        )
    rule, gamma = chosen.quadrature, batch.gamma[row]
    assert batch.psi is not None
    assert batch.kappa is not None
    values = Fit(x, y, batch.psi[row], float(batch.kappa[row])).predict(rule.nodes)
    return summarise(
        lambda theta: -gamma * losses.l2_loss(chosen.eta, rule, values, theta),
        chosen.lower,
        chosen.upper,
        points=121,
        coarse=121,
    )


@pytest.mark.parametrize(
    ("number", "n", "method", "tolerance", "datasets"),
    [(1, 20, "gb-l2", 1e-3, 6), (2, 20, "nlm", 5e-3, 24), (2, 100, "nlm", 1e-3, 24)],
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
        exact = dense(number, batch, responses, int(row))
        wanted = np.stack([exact.mean, exact.sd, exact.quantiles[0], exact.quantiles[2]])
        assert np.abs((found - wanted) / exact.sd).max() < tolerance


def test_the_wiffle_balls_keep_it_too() -> None:
    """A banana whose tail goes to the end of the prior."""
    problem = load_problem(examples()["wiffle"])
    finest, found = (l2.calibrate(problem, "gb-l2", engine=l2.Integrate(each)) for each in (FINEST, 5e-3))
    apart = (found.summary() - finest.summary()).abs().div(finest.summary()["sd"], axis=0)
    assert found.numerical_error < 5e-3
    assert apart.to_numpy().max() < 5e-3 + finest.numerical_error
