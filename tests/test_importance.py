"""Importance sampling that learns, held to densities whose moments and quantiles are known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from l2calib.engines.importance import EFFORTS, number_of_points, points_by_importance
from l2calib.numerics.modes import Modes
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.points import PROBABILITIES, Target, sample_quantiles

BEND = 1.5  # of the ridge
ALONG, ACROSS = 0.6, 0.2  # its length and its thickness, in sd of the prior
_MODES = 2


def bent_ridge(z: AnyArray) -> AnyArray:
    """z_1 is normal, and all others follow its square closely."""
    xp = namespace_of(z)
    along, across = z[:, 0] / ALONG, (z[:, 1:] - BEND * z[:, :1] ** 2) / ACROSS
    return -(along**2 + xp.sum(across**2, axis=1)) / 2


def known_quantiles(p: int) -> np.ndarray:
    """Of every parameter (Q, p): the thickness adds a normal to a scaled chi-squared."""
    first = ALONG * stats.norm.ppf(PROBABILITIES)
    drawn = np.random.default_rng(1).standard_normal((2, 4_000_000))
    others = np.quantile(BEND * (ALONG * drawn[0]) ** 2 + ACROSS * drawn[1], PROBABILITIES)
    return np.stack([first, *[others] * (p - 1)], axis=1)


def as_told(p: int, xp: AnyArray = np) -> Modes:
    """What a fit at the mode knows: nothing of the bend. The second is a place that is not filled."""
    factor = np.diag([ALONG, *[ACROSS] * (p - 1)])
    return Modes(*map(xp.asarray, (np.zeros((_MODES, p)), np.stack([factor] * _MODES), np.array([0.0, -np.inf]))))


def target(log_density: AnyArray, p: int) -> Target:
    return Target(log_density, np.zeros((1, p)))


@pytest.mark.parametrize("p", [2, 3, 4])
@pytest.mark.parametrize("effort", range(EFFORTS))
def test_a_ridge_that_bends_is_followed_to_its_ends(p, effort):
    found = points_by_importance(target(bent_ridge, p), as_told(p), effort)
    assert found.z.shape == (number_of_points(p, effort), p)
    assert found.weights.sum() == pytest.approx(1)
    mean, sd = np.array([0.0, *[BEND * ALONG**2] * (p - 1)]), ALONG * np.array([1.0, *[0.0] * (p - 1)])
    sd[1:] = np.sqrt(2 * BEND**2 * ALONG**4 + ACROSS**2)
    off = np.abs(sample_quantiles(found.z, found.weights, np.asarray(PROBABILITIES)) - known_quantiles(p)) / sd
    # The error is the largest standard error of them all.
    assert off.max() < 3 * found.error
    away = (np.abs(found.weights @ found.z - mean) / sd).max()
    assert away < 3 * found.error
    if effort:
        assert away < 0.1


def test_more_effort_is_worth_more_points():
    found = [points_by_importance(target(bent_ridge, 3), as_told(3), effort) for effort in range(EFFORTS)]
    effective = [1 / np.sum(each.weights**2) for each in found]
    assert effective == sorted(effective)
    assert effective[-1] > 1000


def test_in_numpy_and_compiled_it_finds_the_same():
    ours = points_by_importance(target(bent_ridge, 3), as_told(3))
    theirs = jax.jit(lambda: points_by_importance(target(bent_ridge, 3), as_told(3, jnp)))()
    np.testing.assert_allclose(theirs.weights @ theirs.z, ours.weights @ ours.z, rtol=0, atol=1e-6)
    assert float(theirs.error) == pytest.approx(ours.error, rel=1e-3)


def test_what_a_share_takes_away_is_told():
    def both(z):
        return bent_ridge(z), np.where(z[:, 0] > 0, np.log(0.25), 0.0)

    given = Target(bent_ridge, np.zeros((1, 2)), log_density_and_share=both)
    found = points_by_importance(given, as_told(2))
    # A quarter of one half is left beside the other.
    assert found.weights[found.z[:, 0] > 0].sum() == pytest.approx(0.2, abs=0.02)
    assert found.doubt == pytest.approx(1 - (0.2 * 0.25 + 0.8), abs=0.02)


def test_a_density_that_is_nowhere_finite_is_said_to_be():
    found = points_by_importance(target(lambda z: np.full(len(z), np.nan), 2), as_told(2))
    assert found.status != 0
    assert found.error == np.inf
