"""What an integration accepts is as accurate as its tolerance promises: coarse levels against the finest."""

from __future__ import annotations

import numpy as np
import pytest

import l2calib as l2
from l2calib.spec import examples, load_problem
from tests.oracles.configurations import configuration, design
from tests.problems import experiment

DATASETS = 24
FINEST = 1e-12


@pytest.mark.parametrize(
    ("number", "n", "method", "tolerance"),
    [(1, 20, "gb-l2", 1e-3), (2, 20, "nlm", 5e-3), (2, 100, "nlm", 1e-3), (4, 40, "gb-ols", 5e-3)],
)
def test_what_is_accepted_keeps_the_tolerance(number: int, n: int, method: str, tolerance: float) -> None:
    chosen = configuration(number)
    noise = np.random.default_rng(5).standard_normal((DATASETS, n))
    responses = chosen.mu(design(n, chosen.k)) + np.sqrt(chosen.sigma2) * noise

    def solved(tolerance: float) -> tuple[l2.Batch, np.ndarray]:
        batch = l2.calibrate_batch(experiment(number, n), responses, method, engine=l2.Integrate(tolerance))
        return batch, np.dstack([batch.mean, batch.sd, batch.quantiles[..., 0], batch.quantiles[..., 2]])

    finest, expected = solved(FINEST)
    assert finest.error.max() < l2.Integrate().tolerance
    batch, found = solved(tolerance)
    difference = np.abs((found - expected) / finest.sd[..., None]).max(axis=(1, 2))
    accepted = (batch.status & l2.Status.INACCURATE) == 0
    assert accepted.any()
    assert np.all(difference[accepted] < tolerance + finest.error[accepted])


def test_the_wiffle_balls_keep_it_too() -> None:
    """A banana whose tail goes to the end of the prior."""
    problem = load_problem(examples()["wiffle"])
    finest, found = (l2.calibrate(problem, "gb-l2", engine=l2.Integrate(each)) for each in (FINEST, 5e-3))
    apart = (found.summary() - finest.summary()).abs().div(finest.summary()["sd"], axis=0)
    assert found.numerical_error < 5e-3
    assert apart.to_numpy().max() < 5e-3 + finest.numerical_error
