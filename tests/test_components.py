"""A posterior that is a sum of components: against the sum's own marginals, which are known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from l2calib.engines.components import LEVELS, points_of_components, survey_starts
from l2calib.engines.integrate import Integrate
from l2calib.numerics.namespace import log_sum_exp, namespace_of
from l2calib.posterior.points import Components, Target, summarise

FREEDOM = 8.0


class Mixture:
    """Multivariate t distributions with weights, centres (C, p) and covariances (C, p, p), most far from the mode."""

    def __init__(self, p: int, bimodal: bool = False) -> None:
        rng = np.random.default_rng(p)
        self.weights = np.array([0.5, 0.3, 0.15, 0.05])
        self.centres = 0.1 * rng.standard_normal((4, p)) * np.array([0, 1, 2, 1])[:, None]
        if bimodal:
            self.centres[:2] += 0.8 * np.array([1.0, -1.0])[:, None]
        spread = rng.standard_normal((4, p, p + 2)) * 0.05
        sizes = np.array([1, 2, 5, 0.3])[:, None, None]
        self.factors = np.linalg.cholesky(spread @ spread.transpose(0, 2, 1)) * sizes
        self.p = p

    def log_terms(self, index, z):
        """Of components (S,) at z (S, n, p)."""
        xp = namespace_of(z)
        inverse = xp.asarray(np.linalg.inv(self.factors))[index]
        away = (z - xp.asarray(self.centres)[index][:, None]) @ xp.swapaxes(inverse, 1, 2)
        log_size = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        constant = xp.asarray(np.log(self.weights) - log_size)[index]
        bell = xp.log1p(xp.sum(away**2, axis=2) / FREEDOM)
        return constant[:, None] - (FREEDOM + self.p) / 2 * bell

    def target(self, in_jax=False):
        xp = jnp if in_jax else np
        every = np.arange(4)

        def log_density(z):
            return log_sum_exp(self.log_terms(every, xp.broadcast_to(z, (4, *z.shape))), axis=0)

        return Target(
            log_density, xp.asarray(self.centres[:2]), components=Components(4, (FREEDOM + self.p) / 2, self.log_terms)
        )

    def known(self, j):
        """Mean, sd and quantiles of one coordinate."""
        scale = np.sqrt(np.einsum("cij,cij->ci", self.factors, self.factors)[:, j])
        centre = self.centres[:, j]
        mean = self.weights @ centre
        variance = self.weights @ (scale**2 * FREEDOM / (FREEDOM - 2) + centre**2) - mean**2

        def below(x):
            return self.weights @ stats.t.cdf((x - centre) / scale, FREEDOM)

        ends = [optimize.brentq(lambda x, q=q: below(x) - q, -20, 20, xtol=1e-12) for q in (0.025, 0.5, 0.975)]
        return mean, np.sqrt(variance), np.array(ends)


def largest_error(mixture, summary):
    errors = []
    for j in range(mixture.p):
        mean, sd, ends = mixture.known(j)
        off = [summary.mean[j] - mean, summary.sd[j] - sd, *(np.asarray(summary.quantiles[j]) - ends)]
        errors.append(np.abs(off).max() / sd)
    return max(errors)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize(("p", "bimodal"), [(2, False), (2, True), (3, False)])
def test_marginals_are_right_within_what_is_said_of_them(p, bimodal, level):
    mixture = Mixture(p, bimodal)
    target = mixture.target()
    points = points_of_components(target, survey_starts(target), level)
    summary = summarise(points, lambda z: z)
    assert largest_error(mixture, summary) <= summary.error
    assert summary.error < (0.05, 0.01)[level]  # a fine level is for what a coarse one leaves


def test_four_parameters():
    mixture = Mixture(4)
    target = mixture.target()
    summary = summarise(points_of_components(target, survey_starts(target), 0), lambda z: z)
    assert largest_error(mixture, summary) <= summary.error < 0.05


def test_the_whole_posterior_is_integrated_to_the_same_numbers():
    mixture, engine = Mixture(2), Integrate()
    target = mixture.target()
    survey = engine.survey(target)
    whole = summarise(engine.points(target, survey, 4), lambda z: z)
    parts = summarise(points_of_components(target, survey_starts(target), 1), lambda z: z)
    assert np.abs(parts.mean - whole.mean).max() / whole.sd.min() < whole.error + parts.error


def test_one_text_serves_numpy_and_jax():
    mixture = Mixture(2)
    plain = mixture.target()
    one = summarise(points_of_components(plain, survey_starts(plain), 0), lambda z: z)
    traced = mixture.target(in_jax=True)
    other = jax.jit(lambda: summarise(points_of_components(traced, survey_starts(traced), 0), lambda z: z))()
    for each, same in zip(one, other, strict=True):
        assert np.asarray(same) == pytest.approx(np.asarray(each), abs=1e-4)


def test_every_level_of_a_dimension_is_finer_than_the_one_before():
    for coarse, fine in LEVELS.values():
        assert fine.knots.spacing < coarse.knots.spacing
        assert fine.knots.reach >= coarse.knots.reach
        assert fine.rule.spacing < coarse.rule.spacing
