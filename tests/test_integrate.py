"""Integration against densities whose marginals are known: a sharp peak on a skirt, and peaks apart from each other."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import l2calib as l2
from l2calib.engines.integrate import Integrate
from l2calib.engines.integrate.levels import LEVELS
from l2calib.numerics.compile import quickly_compiled
from l2calib.numerics.modes import Survey
from l2calib.posterior.points import PROBABILITIES, Summary, Target, summarise, target_of


class Bells(NamedTuple):
    """A mixture of Gaussians that share one shape: shares (M,), centres (M, p), scales (M,), covariance (p, p)."""

    shares: np.ndarray
    centres: np.ndarray
    scales: np.ndarray
    covariance: np.ndarray

    def target(self) -> Target:
        precision, p = np.linalg.inv(self.covariance), self.centres.shape[1]

        def log_density(z: jax.Array) -> jax.Array:
            away = (z - self.centres) / self.scales[:, None]
            heights = np.log(self.shares) - p * np.log(self.scales) - jnp.sum(away @ precision * away, axis=1) / 2
            return jax.scipy.special.logsumexp(heights)

        return target_of(log_density, jnp.asarray(self.centres))

    def quantile(self, probability: float, j: int) -> float:
        sd = self.scales * np.sqrt(self.covariance[j, j])

        def excess(z: float) -> float:
            return float(self.shares @ norm.cdf(z, self.centres[:, j], sd)) - probability

        return float(brentq(excess, -50, 50, xtol=1e-13))

    def exact(self) -> Summary:
        mean = self.shares @ self.centres
        variance = self.shares @ (self.scales[:, None] ** 2 * np.diag(self.covariance) + (self.centres - mean) ** 2)
        quantiles = [[self.quantile(q, j) for q in PROBABILITIES] for j in range(mean.size)]
        return Summary(mean, np.sqrt(variance), np.array(quantiles), np.array(0.0))


def correlated(p: int) -> np.ndarray:
    """A covariance with sds 0.01, 0.02, ... and correlations of 0.6."""
    sd = 0.01 * np.arange(1, p + 1)
    return np.asarray((0.6 + 0.4 * np.eye(p)) * np.outer(sd, sd))


def surveyed(bells: Bells) -> Survey:
    return quickly_compiled(lambda: Integrate().survey(bells.target()))()


def at_level(bells: Bells, survey: Survey, level: int) -> tuple[Summary, np.ndarray]:
    """What a level finds, and what it missed."""

    def integrate() -> tuple[Summary, jax.Array]:
        points = Integrate().points(bells.target(), survey, level, jax.random.key(0))
        return summarise(points, lambda z: z), points.missed

    return jax.device_get(quickly_compiled(integrate)())


def solved(bells: Bells) -> tuple[Summary, list[int]]:
    """The posterior by the level that suffices, as far as there is one, and the levels that were tried."""
    engine, survey, p, tried = Integrate(), surveyed(bells), bells.centres.shape[1], [0]
    while True:
        summary, missed = at_level(bells, survey, tried[-1])
        following = int(engine.next_level(p, tried[-1], summary.error, missed))
        if summary.error <= engine.tolerance or following == tried[-1]:
            return summary, tried
        tried.append(following)


def difference(found: Summary, exact: Summary) -> float:
    """The largest of all, in standard deviations."""
    apart = [found.mean - exact.mean, found.sd - exact.sd, *(found.quantiles - exact.quantiles).T]
    return float(np.max(np.abs(apart) / exact.sd))


@pytest.mark.parametrize("p", [2, 3])
def test_a_sharp_peak_on_a_broad_skirt(p: int) -> None:
    """The skirt has three quarters of the mass and is twenty times as wide as the Gaussian that fits the peak."""
    shares, scales = np.array([0.25, 0.25, 0.5]), np.array([1.0, 5.0, 20.0])
    bells = Bells(shares, np.full((3, p), 0.3), scales, correlated(p))
    found, tried = solved(bells)
    assert found.error <= Integrate().tolerance
    assert difference(found, bells.exact()) < Integrate().tolerance
    far = next(i for i, level in enumerate(LEVELS[p]) if level.knots.far)
    assert tried[:2] == [0, far]  # what cannot reach far enough is left out


@pytest.mark.parametrize("p", [2, 3])
def test_what_a_rule_does_not_reach_is_reported(p: int) -> None:
    """Every level alone: a result may be wrong, but it says so."""
    bells = Bells(np.array([0.5, 0.5]), np.zeros((2, p)), np.array([1.0, 60.0]), correlated(p))
    survey, exact = surveyed(bells), bells.exact()
    for level in range(4):
        found, _ = at_level(bells, survey, level)
        assert difference(found, exact) < max(found.error, Integrate().tolerance)


@pytest.mark.parametrize("p", [2, 3])
def test_a_second_mode_is_looked_for_at_once(p: int) -> None:
    bells = Bells(np.array([0.6, 0.4]), np.stack([np.zeros(p), np.full(p, 0.9)]), np.ones(2), correlated(p))
    found, tried = solved(bells)
    assert difference(found, bells.exact()) < Integrate().tolerance
    assert tried[:2] == [0, next(i for i, level in enumerate(LEVELS[p]) if level.modes > 1)]


def test_there_is_no_next_level_where_nothing_is_missed() -> None:
    engine = Integrate()
    error, missed = np.array([0.01, 0.01]), np.array([0.0, 1.0])
    for p in (2, 3, 4):
        last = engine.levels(p) - 1
        assert engine.next_level(p, last, error, missed).tolist() == [last, last]
        assert engine.next_level(p, last - 1, error, missed).tolist() == [last - 1, last]
    assert l2.NUTS().next_level(6, 0, error, missed).tolist() == [0, 0]
