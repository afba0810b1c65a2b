"""The numbers that the paper's configurations and the wiffle balls must give, by the library's public functions."""

from __future__ import annotations

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import l2calib as l2
from l2calib.spec import load_problem
from tests.oracles.configurations import configuration
from tests.problems import MODELS, inputs_and_prior


def _system1(x1):
    return MODELS[1](x1, 0.2, 0.3)


def _system2(x1):
    return 5 * x1 * jnp.cos(7.5 * x1) + 5 * x1


def _system3(x1):
    return 4 * x1 + x1 * jnp.sin(5 * x1)


def _system4(x1, x2):
    return MODELS[4](x1, x2, 0.2, 0.3, 0.8) + jnp.cos(2 * jnp.pi * x1 - jnp.pi) + 2 * (x2**2 - x2 + 1 / 6)


SYSTEMS = {1: _system1, 2: _system2, 3: _system3, 4: _system4}


@cache
def target_of(number: int) -> l2.L2Target:
    return l2.target(MODELS[number], SYSTEMS[number], **inputs_and_prior(number))


@pytest.mark.parametrize(
    ("number", "theta", "discrepancy"),
    [
        (1, [0.2, 0.3], 0.0),
        (2, [1.8772020], 2.865981),
        (3, [3.5652766], 0.138720),
        (4, [0.2, 0.3, 0.8], 0.522222),
    ],
)
def test_targets_and_discrepancies(number, theta, discrepancy):
    target = target_of(number)
    assert target.theta == pytest.approx(theta, abs=1e-6)
    assert target.discrepancy == pytest.approx(discrepancy, abs=1e-6)


@pytest.mark.parametrize(("number", "gamma"), [(1, 12.5), (2, 46.892), (3, 1250.0), (4, 0.67299)])
def test_large_sample_limit_of_the_scaling(number, gamma):
    assert target_of(number).gamma(configuration(number).sigma2) == pytest.approx(gamma, rel=2e-5)


@pytest.mark.parametrize(
    ("number", "general_bayes", "regression"),
    [
        (2, [0.00261], [0.0430]),
        (3, [0.00346], [0.0646]),
        (4, [0.00333, 0.00386, 0.0498], [0.00435, 0.00504, 0.0649]),
    ],
)
def test_large_sample_posterior_sds_at_a_hundred_observations(number, general_bayes, regression):
    target, sigma2 = target_of(number), configuration(number).sigma2
    # The reference figures have three significant digits.
    assert target.general_bayes_sd(100, sigma2) == pytest.approx(general_bayes, rel=5e-3)
    assert target.nonlinear_regression_sd(100, sigma2) == pytest.approx(regression, rel=5e-3)


@pytest.fixture(scope="module")
def wiffle():
    return load_problem("wiffle")


def test_wiffle_balls_by_least_squares(wiffle):
    estimate = l2.estimate(wiffle, l2.OLS())
    assert estimate.theta_hat == pytest.approx([10.8735, 3.3208], abs=5e-5)
    assert estimate.loss == pytest.approx(0.30133, abs=5e-6)


def test_wiffle_balls_have_63_observations_at_21_heights(wiffle):
    assert len(wiffle.y) == 63
    assert len(np.unique(wiffle.x)) == 21


def test_sandwich_covariance_is_v_inverse_w_v_inverse(wiffle):
    estimate = l2.estimate(wiffle)
    inverse = np.linalg.inv(estimate.V)
    assert estimate.covariance == pytest.approx(inverse @ estimate.W @ inverse, rel=1e-10)
    assert (estimate.standard_errors > 0).all()
