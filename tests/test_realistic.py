"""The judge on random problems: what it draws, and the targets that it finds."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest
from benchmarks.realistic import models, targets
from benchmarks.realistic.designs import SHARES, draw_design
from benchmarks.realistic.models import MODELS
from benchmarks.realistic.problems import LAWS, NOISE, SIZES, TRUTHS, RealisticProblem, mix, problem, surface_at
from benchmarks.realistic.run import seeds_of
from scipy import stats

import l2calib as l2
from l2calib.numerics.compile import quickly_compiled
from tests.chance import FALSE_ALARM, as_often_as_said

SEEDS = range(14)


@pytest.fixture(scope="module")
def problems() -> list[RealisticProblem]:
    return [problem(seed) for seed in SEEDS]


def first(problems: list[RealisticProblem], chosen: Callable[[RealisticProblem], bool]) -> RealisticProblem:
    return next(each for each in problems if chosen(each))


def test_the_mix_has_the_shares_that_are_said() -> None:
    drawn = [mix(seed) for seed in range(400)]
    thirds, halves = dict.fromkeys(TRUTHS, 1 / 3), dict.fromkeys(LAWS, 1 / 2)
    for attribute, shares in (("design", SHARES), ("truth", thirds), ("law", halves)):
        for value, share in shares.items():
            assert as_often_as_said(sum(getattr(each, attribute) == value for each in drawn), 400, share), value
    for name in MODELS:
        assert as_often_as_said(sum(each.model.name == name for each in drawn), 400, 1 / len(MODELS))
    assert sum(SHARES.values()) == pytest.approx(1)


def test_sizes_and_noise_are_even_in_their_logarithms() -> None:
    drawn = [mix(seed) for seed in range(400)]
    for values, limits in (([each.n for each in drawn], SIZES), ([each.noise for each in drawn], NOISE)):
        assert min(values) >= limits[0]
        assert max(values) <= limits[1]
        spread = np.log(np.array(values) / limits[0]) / np.log(limits[1] / limits[0])
        # Rounding moves a size by half a point at most, which is one in eighteen at the least of them.
        critical = stats.kstwo.isf(FALSE_ALARM, 400) + (0.5 / limits[0] / np.log(limits[1] / limits[0]))
        assert stats.kstest(spread, "uniform").statistic < critical


def test_a_seed_determines_the_problem_and_its_datasets(problems: list[RealisticProblem]) -> None:
    again = problem(3)
    for one, other in ((problems[3].x, again.x), (problems[3].target, again.target), (problems[3].mu_x, again.mu_x)):
        assert np.array_equal(one, other)
    assert np.array_equal(problems[3].responses(5), again.responses(8)[:5])
    assert not np.array_equal(problems[3].responses(2)[0], problems[3].responses(2)[1])
    assert {each.half for each in problems[::2]} == {"tuning"}
    assert {each.half for each in problems[1::2]} == {"reporting"}
    assert set(seeds_of("tuning", 9)).isdisjoint(seeds_of("reporting", 9))


def test_a_problem_is_of_the_kind_that_was_drawn(problems: list[RealisticProblem]) -> None:
    for each in problems:
        drawn = mix(each.seed)
        assert (each.model_name, each.design, each.truth, each.law) == (
            drawn.model.name,
            drawn.design,
            drawn.truth,
            drawn.law,
        )
        assert each.sigma / each.extent == pytest.approx(drawn.noise)
        assert each.x.shape[1] == len(each.inputs)
        assert len(each.x) >= 9
        for (low, high), true in zip(each.prior.values(), each.true_parameters.values(), strict=True):
            assert (low, high) == pytest.approx((true / 4, true * 4))


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize(
    "ranges", [[(0.0, 1.0)], [(0.5, 100.0)], [(0.0, 1.0), (1.0, 20.0)]], ids=["1", "positive", "2"]
)
def test_designs_are_inside_the_box_and_have_enough_distinct_points(kind, ranges) -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = round(np.exp(rng.uniform(*np.log(SIZES)))), int(rng.integers(2, 5))
        u = draw_design(rng, kind, n, ranges, p)
        distinct, times = np.unique(u.round(12), axis=0, return_counts=True)
        assert u.min() >= 0
        assert u.max() <= 1
        assert u.shape[1] == len(ranges)
        assert len(u) >= 9
        assert abs(len(u) / n - 1) < 0.34
        assert len(distinct) >= p + (2 if kind == "replicated" else 3)
        assert set(times) <= ({2, 3, 4, 5} if kind == "replicated" else {1})


def test_crowded_designs_have_two_thirds_of_the_points_in_a_third_of_the_range() -> None:
    for seed in range(30):
        x = np.sort(draw_design(np.random.default_rng(seed), "crowded", 40, [(0.0, 1.0)], 2)[:, 0])
        densest = max(np.searchsorted(x, start + 1 / 3 + 1e-9, "right") - i for i, start in enumerate(x))
        assert 26 <= densest <= 33  # three quarters, and chance neighbours


def test_there_are_enough_models_of_both_numbers_of_inputs() -> None:
    assert len(MODELS) >= 16
    assert sum(len(model.inputs) == 2 for model in MODELS.values()) >= 5
    assert {len(model.typical) for model in MODELS.values()} == {2, 3, 4}


def test_models_agree_in_numpy_and_jax_with_their_slopes() -> None:
    rng = np.random.default_rng(1)
    at, thetas, found = {}, {}, {}
    for name, model in MODELS.items():
        low, high = np.array(list(model.inputs.values()), dtype=float).T
        at[name] = low + (high - low) * np.vstack(
            [np.zeros(len(low)), rng.uniform(size=(5, len(low))), np.ones(len(low))]
        )
        thetas[name] = np.array(list(model.typical.values())) * rng.uniform(0.5, 2, len(model.typical))
        surface = surface_at(model.function, at[name], model.inputs, model.typical)
        found[name] = surface(thetas[name]), targets.slopes(surface, thetas[name])

    def all_of_them(at, thetas):
        surfaces = {n: surface_at(m.function, at[n], m.inputs, m.typical) for n, m in MODELS.items()}
        return {name: (surface(thetas[name]), jax.jacfwd(surface)(thetas[name])) for name, surface in surfaces.items()}

    expected = quickly_compiled(all_of_them)(at, thetas)
    for name, (values, slopes) in found.items():
        assert values == pytest.approx(np.asarray(expected[name][0]), rel=1e-12), name
        scale = np.abs(slopes).max(axis=0)
        assert np.abs(slopes - expected[name][1]).max(axis=0) == pytest.approx(0 * scale, abs=1e-12 * scale.max()), name


def test_absorption_may_be_as_quick_as_elimination() -> None:
    hour = np.linspace(0, 24, 50)
    for gap in (0.3, 0.02, 0.008, 1e-3):
        direct = 8 * 0.4 / gap * np.exp(-(0.4 - gap) * hour) * -np.expm1(-gap * hour)
        assert models.bateman(hour, 8, 0.4, 0.4 - gap) == pytest.approx(direct, rel=1e-10)
    assert models.bateman(hour, 8, 0.4, 0.4) == pytest.approx(3.2 * hour * np.exp(-0.4 * hour))


def mean_squares(given: RealisticProblem, thetas: np.ndarray) -> np.ndarray:
    """The squared distance by a rule that has nothing to do with Gauss: Simpson's."""
    side = 2000 if len(given.inputs) == 1 else 60
    axis, weights = np.linspace(0, 1, side + 1), np.tile([2.0, 4.0], side // 2 + 1)[: side + 1]
    weights[[0, -1]] = 1.0
    low, high = np.array(list(given.inputs.values())).T
    u = np.stack(np.meshgrid(*[axis] * len(low), indexing="ij"), axis=-1).reshape(-1, len(low))
    products = (weights if len(low) == 1 else np.outer(weights, weights).ravel()) / (3 * side) ** len(low)
    x = low + (high - low) * u
    surface, mu = surface_at(given.model, x, given.inputs, given.prior), given.system(x)
    return np.array([products @ np.square(mu - surface(theta)) for theta in thetas])


@pytest.mark.parametrize("truth", ["exact", "8%"])
@pytest.mark.parametrize("inputs", [1, 2])
def test_no_theta_is_nearer_to_the_system_than_the_target(problems, truth, inputs) -> None:
    given = first(problems, lambda each: each.truth == truth and len(each.inputs) == inputs and not each.kink)
    rng = np.random.default_rng(0)
    low, high = np.array(list(given.prior.values())).T
    anywhere = rng.uniform(low, high, (800, len(low)))
    nearby = given.target * np.exp(1e-2 * rng.standard_normal((200, len(low))))
    (least,) = mean_squares(given, given.target[None])
    assert mean_squares(given, np.concatenate([anywhere, nearby])).min() > least
    assert np.all((low < given.target) & (given.target < high))


def test_the_discrepancy_has_the_size_that_was_drawn(problems: list[RealisticProblem]) -> None:
    for given in problems:
        share = TRUTHS[given.truth]
        assert given.discrepancy / given.extent == pytest.approx(share, rel=1e-3, abs=1e-10)
        if share:
            assert np.sqrt(mean_squares(given, given.target[None]))[0] == pytest.approx(given.discrepancy, rel=1e-3)
        else:
            assert given.target == pytest.approx(list(given.true_parameters.values()), rel=1e-8)


def test_targets_are_exact_to_rounding(problems: list[RealisticProblem]) -> None:
    """Newton's method on a finer rule goes nowhere."""
    for given in problems[:12]:
        low, high = np.array(list(given.inputs.values())).T
        rule = targets.panels(len(low), given.kink, finer=8)
        x = low + (high - low) * rule.nodes
        surface = surface_at(given.model, x, given.inputs, given.prior)
        distance = targets.Distance(surface, given.system(x), rule.weights, given.target)
        moved, sharp = distance.newton(np.zeros(len(given.target)))
        assert sharp
        assert np.abs(moved).max() < 1e-8


def test_the_library_finds_the_same_target(problems: list[RealisticProblem]) -> None:
    given = first(problems, lambda each: each.truth != "exact" and not each.kink and len(each.inputs) == 1)

    def mu(**columns):
        return given.system(np.stack([np.asarray(columns[name]) for name in given.inputs], axis=1))

    prior = {name: l2.Uniform(*limits) for name, limits in given.prior.items()}
    found = l2.target(given.model, mu, given.inputs, prior)
    assert found.theta == pytest.approx(given.target, rel=1e-6)
    assert np.sqrt(found.discrepancy) == pytest.approx(given.discrepancy, rel=1e-6)
