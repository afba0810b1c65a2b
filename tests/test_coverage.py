"""Intervals cover at their nominal rate with the right gamma, and a wrong gamma is caught by the same test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

import l2calib as l2
from tests.oracles.configurations import configuration
from tests.problems import experiment

REPETITIONS, N = 2000, 200


@dataclass(frozen=True)
class FourTimes:
    """A deliberately wrong scaling."""

    right: l2.Asymptotic

    @property
    def suffix(self):
        return "-wrong"

    def gamma(self, *arguments):
        gamma, status = self.right.gamma(*arguments)
        return 4 * gamma, status


def covering(scaling) -> int:
    """How many of the intervals in configuration 3, on a midpoint design, hold theta_L2."""
    chosen, known = configuration(3), experiment(3, N)
    rng = np.random.default_rng(20261116)
    noise = np.sqrt(chosen.sigma2) * rng.standard_normal((REPETITIONS, N))
    batch = l2.calibrate_batch(known, chosen.mu(known.x) + noise, l2.GeneralBayes(l2.L2(), scaling))
    return int(batch.covers(chosen.target())[:, 0].sum())


def band() -> tuple[float, float]:
    # A binomial band with a one-in-ten-thousand false alarm.
    return stats.binom.interval(1 - 1e-4, REPETITIONS, 0.95)


def test_intervals_cover_at_their_nominal_rate():
    low, high = band()
    assert low <= covering(l2.Asymptotic()) <= high


def test_a_wrong_gamma_fails_the_same_test():
    low, high = band()
    assert not low <= covering(FourTimes(l2.Asymptotic())) <= high
