"""Priors against scipy, and the coordinates on the line."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import l2calib as l2
from l2calib.errors import PriorError
from l2calib.problem.prior import Prior

CASES = {
    "uniform": (l2.Uniform(-1, 3), stats.uniform(-1, 4)),
    "normal": (l2.Normal(2, 0.5), stats.norm(2, 0.5)),
    "truncated": (l2.TruncatedNormal(0, 1, -0.5, 4), stats.truncnorm(-0.5, 4)),
    "far tail": (l2.TruncatedNormal(0, 1, 9, 12), stats.truncnorm(9, 12)),
    "lognormal": (l2.LogNormal(0.3, 0.8), stats.lognorm(0.8, scale=np.exp(0.3))),
    "gamma": (l2.Gamma(2.5, 4), stats.gamma(2.5, scale=1 / 4)),
    "beta": (l2.Beta(2, 3.5), stats.beta(2, 3.5)),
    "half-normal": (l2.HalfNormal(1.7), stats.halfnorm(scale=1.7)),
}
PROBABILITIES = np.array([0.001, 0.1, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("case", CASES)
def test_density_and_quantiles_are_those_of_scipy(case):
    ours, theirs = CASES[case]
    values = theirs.ppf(PROBABILITIES)
    assert np.asarray(ours.log_density(jnp.asarray(values))) == pytest.approx(theirs.logpdf(values), rel=1e-9, abs=1e-9)
    assert ours.quantile(PROBABILITIES) == pytest.approx(values, rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_coordinates_go_there_and_back_and_carry_the_density(case):
    ours, theirs = CASES[case]
    prior = Prior({"a": ours})
    theta = jnp.asarray(theirs.ppf(PROBABILITIES))[:, None]
    z = prior.to_line(theta)
    assert np.asarray(prior.from_line(z)) == pytest.approx(np.asarray(theta), rel=1e-9)
    step = 1e-5
    slope = (prior.from_line(z + step) - prior.from_line(z - step)) / (2 * step)
    assert np.exp(np.asarray(prior.log_slope(z))) == pytest.approx(np.asarray(slope), rel=1e-6)


def test_no_density_outside_the_support():
    assert l2.Uniform(0, 1).log_density(jnp.asarray(1.5)) == -jnp.inf
    assert l2.Gamma(2, 1).log_density(jnp.asarray(-0.5)) == -jnp.inf


def test_distributions_of_numpyro_are_accepted():
    prior = Prior({"a": dist.Normal(1.0, 2.0), "b": dist.Uniform(0.0, 5.0)})
    assert prior.quantile(np.array([0.5, 0.5])) == pytest.approx([1.0, 2.5])


@pytest.mark.parametrize(
    "build",
    [
        lambda: l2.Uniform(3, 1),
        lambda: l2.Uniform(0, np.inf),
        lambda: l2.Normal(0, 0),
        lambda: l2.TruncatedNormal(0, 1, 60, 61),
        lambda: l2.LogNormal(0, -1),
        lambda: l2.Gamma(0, 1),
        lambda: l2.Beta(1, 0),
        lambda: l2.HalfNormal(np.nan),
        lambda: l2.Uniform("0", 3),
        lambda: l2.Uniform(None, 3),
        lambda: l2.Normal(0, 1j),
        lambda: l2.TruncatedNormal(0, 1, "a", "b"),
        lambda: Prior({"a": l2.LogNormal(1000, 1)}),
    ],
)
def test_a_prior_without_mass_is_refused(build):
    with pytest.raises(PriorError, match="has no mass"):
        build()


@pytest.mark.parametrize("value", [3.0, "uniform(0, 1)", l2.Uniform])
def test_what_is_no_distribution_is_refused(value):
    with pytest.raises(PriorError, match="is not a distribution"):
        Prior({"a": value})


@pytest.mark.parametrize("name", ["chain", "draw", "a/b"])
def test_a_name_that_the_result_could_not_hold_is_refused(name):
    with pytest.raises(PriorError, match=f"the name '{name}' cannot be given"):
        Prior({name: l2.Uniform(0, 1)})


@pytest.mark.parametrize("extreme", [l2.Gamma(1e-5, 1), l2.Beta(1e-5, 1e-5), l2.Normal(1e20, 1e-10)])
def test_a_prior_that_double_precision_cannot_hold_is_refused(extreme):
    with pytest.raises(PriorError, match="less extreme"):
        Prior({"a": extreme})


@pytest.mark.parametrize(
    ("theirs", "sentence"),
    [
        (dist.DiscreteUniform(0, 3), "not a continuous distribution of one number"),
        (dist.Normal(jnp.zeros(2), 1.0), "not a continuous distribution of one number"),
        (dist.Weibull(1.0, 2.0), "has no quantiles"),
    ],
)
def test_distributions_of_numpyro_that_cannot_serve_are_refused(theirs, sentence):
    with pytest.raises(PriorError, match=sentence):
        Prior({"a": theirs})
