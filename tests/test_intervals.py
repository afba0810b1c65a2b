"""The judge of a study's intervals: its basins, its oracle and its verdict."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.intervals import Basin, oracle_sd, verdict
from scipy import optimize

from l2calib.study.configurations import paper_configurations


def at(configuration, x):
    """The inputs by name, for points (n, 1) of the unit cube."""
    return {name: low + (high - low) * x[:, 0] for name, (low, high) in configuration.inputs.items()}


def test_a_theta_is_in_the_basin_that_it_falls_into():
    configuration = paper_configurations()["2"]
    x, grid = (np.arange(2000)[:, None] + 0.5) / 2000, np.linspace(0.02, 2.98, 149)
    mu = configuration.system_at(x)
    modelled = [np.asarray(configuration.model(**at(configuration, x), theta1=theta)) for theta in grid]
    heights = np.mean((np.array(modelled) - mu) ** 2, axis=1)
    peaks = grid[1:-1][(heights[1:-1] > heights[:-2]) & (heights[1:-1] > heights[2:])]
    basin, (target,) = Basin.of(configuration, np.linspace(0, 1, 20)[:, None]), configuration.target.theta
    low, high = peaks[peaks < target].max(), peaks[peaks > target].min()
    for theta in (low + 0.05, target, high - 0.05):
        assert basin.has(np.array([theta]))
    for theta in (low - 0.05, high + 0.05):
        assert not basin.has(np.array([theta]))


def test_the_oracle_is_the_spread_of_least_squares_on_many_even_points():
    configuration, n, repetitions = paper_configurations()["3"], 1000, 400
    x = (np.arange(n)[:, None] + 0.5) / n
    inputs, mu, rng = at(configuration, x), configuration.system_at(x), np.random.default_rng(2)
    (target,) = configuration.target.theta

    def squares(theta, y):
        return np.mean((np.asarray(configuration.model(**inputs, theta1=theta)) - y) ** 2)

    found = [
        optimize.minimize_scalar(
            squares, bounds=(target - 0.2, target + 0.2), args=(y,), method="bounded", options={"xatol": 1e-7}
        ).x
        for y in mu + np.sqrt(configuration.sigma2) * rng.standard_normal((repetitions, n))
    ]
    # Four standard errors of a standard deviation.
    assert np.std(found) / oracle_sd(configuration, n)[0] == pytest.approx(1, abs=4 / np.sqrt(2 * repetitions))


def made(**columns):
    row = {"configuration": "1", "n": 60, "errors": "normal", "parameter": "theta1", "coverage": 0.95}
    return row | {"length_over_oracle": 1.0, "spread_over_oracle": 1.0, "astray": 0.0} | columns


def test_the_verdict_counts_what_is_outside_and_names_it():
    frame = pd.DataFrame([made(), made(coverage=0.92), made(coverage=0.91, n=20), made(length_over_oracle=1.2)])
    first, lengths, spreads, astray, *named = verdict(frame)
    assert first == "4 coverages: 2 outside (0.93, 0.97) (allowed: 8), 1 outside (0.915, 0.985)."
    assert lengths.startswith("Median length over the oracle's: 1 too high; 1.200")
    assert spreads.startswith("Spread of the means over the oracle's: 0 too high")
    assert astray.startswith("Astray: at most 0.00%")
    assert len(named) == 3
    # Few observations may have longer intervals.
    assert verdict(pd.DataFrame([made(n=20, length_over_oracle=1.2)]))[1].startswith(
        "Median length over the oracle's: 0"
    )
