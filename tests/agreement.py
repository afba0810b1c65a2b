"""How a posterior is held to another: to one by brute force, or to draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import l2calib as l2
from l2calib.results.computed import Computed

if TYPE_CHECKING:
    from tests.oracles.arrays import Array
    from tests.oracles.posteriors import Summary


def assert_agrees(result: l2.Calibration, expected: Summary, tolerance: float = 0.01) -> None:
    """Mean, sd and both interval ends, within a share of the posterior sd."""
    table = result.summary()
    found = table[["mean", "sd", "q2.5", "q97.5"]].to_numpy()
    wanted = np.column_stack([expected.mean, expected.sd, expected.quantiles[0], expected.quantiles[2]])
    assert np.abs(found - wanted).max(axis=1) / expected.sd == pytest.approx(0, abs=tolerance)


def assert_chain_agrees(chains: Array, result: l2.Calibration) -> None:
    """Draws (chains, draws, p) against a summary, within 4 standard errors from batch means.

    The moments and interval ends are written as expectations, so that one theory serves them all. Draws beyond an end
    are rare, and where there are too few of them the batches vary too little as well: so the error of their share is at
    least that of a binomial, with as many draws as the chains are worth for the mean.
    """
    table = result.summary()
    mean, sd = table["mean"].to_numpy(), table["sd"].to_numpy()
    worth = sd**2 / _batch_means(chains)[1] ** 2
    for statistic, value, least in (
        (chains, mean, 0.0),
        ((chains - mean) ** 2, sd**2, 0.0),
        (chains <= table["q2.5"].to_numpy(), 0.025, np.sqrt(0.025 * 0.975 / worth)),
        (chains <= table["q97.5"].to_numpy(), 0.975, np.sqrt(0.025 * 0.975 / worth)),
    ):
        found, error = _batch_means(statistic)
        assert np.abs((found - value) / np.maximum(error, least)).max() < 4


def _batch_means(statistic: Array) -> tuple[Array, Array]:
    """The mean (p,) over chains (chains, draws, p), and its standard error from twenty batches of each."""
    batches = statistic.reshape(len(statistic) * 20, -1, statistic.shape[-1]).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(len(batches))


def assert_nuts_agrees(problem: l2.Problem, method: str, result: l2.Calibration) -> None:
    """NUTS with the same method, against a result."""
    sampled = l2.calibrate(problem, method, seed=1, engine=l2.NUTS(draws=8_000, chains=4))
    assert_chain_agrees(own_points(sampled).reshape(4, 2000, -1), result)


def own_points(result: l2.Calibration) -> Array:
    """The points (N, p) that a result was summarised from: draws, if it was computed by them."""
    assert isinstance(result.posterior, Computed)
    return np.asarray(result.prior.from_line(result.posterior.points.z))
