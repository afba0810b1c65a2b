"""One text for NumPy and for JAX: integrations against each other, and against marginals that are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import l2calib as l2
from l2calib.engines.integrate import Integrate
from l2calib.engines.integrate.levels import LEVELS
from l2calib.engines.integrate.rejection import Uniforms
from l2calib.numerics.compile import quickly_compiled
from l2calib.numerics.derivatives import jet_of_rows
from l2calib.posterior.points import Points, Summary, Target, marginal_density, summarise
from l2calib.problem.prior import Prior
from tests.known_posteriors import KNOWN, Known, gaussian, skewed

ROUNDING = 1e-8  # in standard deviations: searches for quantiles stop at a tenth of it
COMPILED: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def _listening() -> None:
    def hear(event: str, seconds: float, **_: object) -> None:
        if "compile" in event:
            COMPILED.append(event)

    jax.monitoring.register_event_duration_secs_listener(hear)


def integrated(known: Known, target: Target, compiled: bool) -> tuple[Points, Summary, list[int]]:
    """By the level that suffices, and the levels that were tried; compiled as one dataset of a batch is."""
    engine, p = Integrate(), known.starts.shape[1]
    run = quickly_compiled if compiled else lambda function: function

    def at_level(survey: Any, level: int) -> tuple[Points, Summary]:
        points = engine.points(target, survey, level)
        return points, summarise(points, known.from_line)

    survey, tried = run(lambda: engine.survey(target))(), [0]
    while True:
        points, summary = run(lambda survey, level=tried[-1]: at_level(survey, level))(survey)
        following = int(engine.next_level(p, tried[-1], np.asarray(summary.error), np.asarray(points.missed)))
        if summary.error <= engine.tolerance or following == tried[-1]:
            return points, summary, tried
        tried.append(following)


def difference(one: Summary, other: Summary) -> float:
    """The largest of all, in standard deviations."""
    apart = [one.mean - other.mean, one.sd - other.sd, *np.transpose(one.quantiles - other.quantiles)]
    return float(np.max(np.abs(np.array(apart)) / other.sd))


@pytest.mark.parametrize("case", KNOWN)
def test_both_find_what_is_known(case: str) -> None:
    known = KNOWN[case]
    _, ours, tried = integrated(known, Target(known.log_density, known.starts), compiled=False)
    _, theirs, also_tried = integrated(known, Target(known.log_density, jnp.asarray(known.starts)), compiled=True)
    exact = known.exact()
    assert difference(ours, exact) < ours.error + ROUNDING
    assert difference(ours, jax.device_get(theirs)) < ours.error + theirs.error + ROUNDING
    assert ours.error <= Integrate().tolerance
    assert tried == also_tried


class Counted:
    """A log density that counts how often it is called."""

    def __init__(self, known: Known) -> None:
        self._known, self.calls = known, 0

    def __call__(self, z: np.ndarray) -> np.ndarray:
        assert type(z) is np.ndarray
        self.calls += 1
        return np.asarray(self._known.log_density(z))


@pytest.mark.parametrize("case", KNOWN)
def test_numpy_stays_numpy_and_compiles_nothing(case: str) -> None:
    known = KNOWN[case]
    counted, before = Counted(known), len(COMPILED)
    points, summary, tried = integrated(known, Target(counted, known.starts), compiled=False)
    density = marginal_density(points, 0, points.z[:5, 0])
    assert len(COMPILED) == before
    leaves = [*jax.tree.leaves((points, summary)), density]
    assert not any(isinstance(leaf, jax.Array) for leaf in leaves)
    assert tried != [0] or counted.calls <= 40


def test_what_is_compiled_is_heard() -> None:
    before = len(COMPILED)
    jax.jit(lambda z: z * 7.25)(jnp.ones(3)).block_until_ready()
    assert len(COMPILED) > before


class Shared:
    """Shares Phi((at - z1) / width) of a Gaussian without correlation: what is left of z1 is a skew normal variable."""

    mean, sd, at, width = 0.3, 0.05, 0.32, 0.02

    def __init__(self, p: int) -> None:
        self.known = gaussian(p, 0.0)
        spread = np.hypot(self.sd, self.width)
        cut = (self.at - self.mean) / spread
        self.kept, share = stats.norm.cdf(cut), self.sd**2 / spread**2
        ratio = stats.norm.pdf(cut) / self.kept
        self.left_mean = self.mean - self.sd**2 / spread * ratio
        self.left_sd = self.sd * np.sqrt(1 - share * ratio * (cut + ratio))
        z = np.linspace(self.mean - 8 * self.sd, self.mean + 8 * self.sd, 4001)
        kept = stats.norm.pdf(z, self.mean, self.sd) * stats.norm.cdf((self.at - z) / self.width)
        self.shared_again = kept @ stats.norm.cdf((self.at - z) / self.width) / kept.sum()

    def log_share(self, z: Any) -> Any:
        of = jax.scipy.special if isinstance(z, jax.Array) else special
        return of.log_ndtr((self.at - z[:, 0]) / self.width)

    def target(self, in_jax: bool) -> Target:
        starts = jnp.asarray(self.known.starts) if in_jax else self.known.starts
        return Target(self.known.log_density, starts, log_share=self.log_share)


@pytest.mark.parametrize("in_jax", [False, True])
@pytest.mark.parametrize("p", [1, 2])
def test_a_share_takes_away_what_it_should(p: int, in_jax: bool) -> None:
    case = Shared(p)
    points, summary, _ = integrated(case.known, case.target(in_jax), compiled=in_jax)
    assert points.doubt == pytest.approx(1 - case.shared_again, abs=Integrate().tolerance)
    assert abs(summary.mean[0] - case.left_mean) / case.left_sd < summary.error
    assert abs(summary.sd[0] - case.left_sd) / case.left_sd < summary.error
    assert summary.error < Integrate().tolerance
    if p == 2:
        assert summary.mean[1] == pytest.approx(0.3, abs=0.1 * float(summary.error))


@pytest.mark.parametrize("p", [1, 2])
def test_draws_are_of_what_a_share_has_left(p: int) -> None:
    case, engine = Shared(p), Integrate()
    rng = np.random.default_rng(4)
    uniforms = Uniforms(rng.random(4000), rng.random((4000, p)), rng.random(4000))
    target = case.target(in_jax=False)
    z, accepted = engine.draws(target, engine.survey(target), 0, uniforms)
    drawn = z[accepted, 0]
    assert len(drawn) > 200
    assert abs(drawn.mean() - case.left_mean) < 4 * case.left_sd / np.sqrt(len(drawn))


def test_there_is_no_doubt_without_shares() -> None:
    known = gaussian(2)
    points, _, _ = integrated(known, Target(known.log_density, known.starts), compiled=False)
    assert points.doubt == 0


@pytest.mark.parametrize("case", ["Gaussian, p = 1", "Gaussian, p = 3", "two modes, p = 2"])
def test_draws_are_the_same_text_too(case: str) -> None:
    known, engine, number = KNOWN[case], Integrate(), 400
    p = known.starts.shape[1]
    several = next((i for i, each in enumerate(LEVELS.get(p, ())) if each.modes > 1), 0)
    level = several if "two" in case else 0
    uniforms = jax.device_get(Uniforms.of_key(jax.random.key(3), number, p))
    target = Target(known.log_density, known.starts)
    z, accepted = engine.draws(target, engine.survey(target), level, uniforms)
    in_jax = Target(known.log_density, jnp.asarray(known.starts))
    theirs, also = quickly_compiled(
        lambda: engine.draws(in_jax, engine.survey(in_jax), level, Uniforms(*map(jnp.asarray, uniforms)))
    )()
    assert type(z) is np.ndarray
    np.testing.assert_allclose(z, theirs, atol=1e-6)
    np.testing.assert_array_equal(accepted, also)
    drawn, exact = z[accepted], known.exact()
    assert len(drawn) > number / 5
    assert (np.abs(drawn.mean(axis=0) - exact.mean) < 4 * exact.sd / np.sqrt(len(drawn))).all()


@pytest.mark.parametrize("scale", [1e-2, 1e-3, 1e-4])
def test_a_narrow_posterior_is_found_from_beside_it(scale: float) -> None:
    """The first look knows nothing of its width, and differences are taken over many of its standard deviations."""
    known = skewed(2, shape=4.0, scale=scale)
    from_beside = replace(known, starts=known.starts + 5 * scale)
    _, summary, _ = integrated(from_beside, Target(known.log_density, from_beside.starts), compiled=False)
    assert difference(summary, known.exact()) < summary.error + ROUNDING
    assert summary.error <= Integrate().tolerance


def test_differences_see_what_derivatives_do() -> None:
    """Along the axes and along others, for a function that is no quadratic."""
    rng = np.random.default_rng(2)
    z, directions = rng.standard_normal((5, 3)), rng.standard_normal((5, 2, 3))

    def function(z: Any) -> Any:
        xp = jnp if isinstance(z, jax.Array) else np
        return xp.sin(z[:, 0]) * xp.exp(z[:, 1] / 2) + z[:, 2] ** 3

    look = jet_of_rows(function)
    for along, d in ((None, 3), (directions, 2)):
        scale = np.full((5, d), 0.1)
        for ours, theirs in zip(look(z, scale, along), look(jnp.asarray(z), scale, along), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


PRIOR = Prior(
    {
        "uniform": l2.Uniform(-1, 3),
        "normal": l2.Normal(2, 0.5),
        "truncated": l2.TruncatedNormal(0, 1, -0.5, 4),
        "from below": l2.TruncatedNormal(0, 1, -np.inf, 0.3),
        "log-normal": l2.LogNormal(0.3, 0.8),
        "gamma": l2.Gamma(2.5, 4),
        "beta": l2.Beta(2, 3.5),
        "half-normal": l2.HalfNormal(1.7),
        "theirs": dist.Gumbel(0.5, 2.0),
    }
)


def test_priors_are_the_same_in_both() -> None:
    z = np.random.default_rng(1).uniform(-2.5, 2.5, (50, PRIOR.dimension))
    theta = PRIOR.from_line(z)
    beyond = theta + np.where(np.arange(50) % 2 == 0, 100.0, 0.0)[:, None]
    for ours, theirs in (
        (theta, PRIOR.from_line(jnp.asarray(z))),
        (PRIOR.log_slope(z), PRIOR.log_slope(jnp.asarray(z))),
        (PRIOR.to_line(theta), PRIOR.to_line(jnp.asarray(theta))),
        (PRIOR.log_density(theta), PRIOR.log_density(jnp.asarray(theta))),
        (PRIOR.log_density(beyond), PRIOR.log_density(jnp.asarray(beyond))),
    ):
        assert type(ours) is np.ndarray
        assert isinstance(theirs, jax.Array)
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
