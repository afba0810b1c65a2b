"""The judge on random problems: what it draws, the targets that it finds, what it counts and what it keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from benchmarks.realistic import models, table, targets
from benchmarks.realistic.designs import SHARES, draw_design
from benchmarks.realistic.judged import Answers, judged
from benchmarks.realistic.measure import Record, judge, scores
from benchmarks.realistic.models import MODELS
from benchmarks.realistic.problems import LAWS, NOISE, SIZES, TRUTHS, RealisticProblem, mix, problem, surface_at
from benchmarks.realistic.run import Plan, seeds_of, work
from benchmarks.realistic.storage import Shelf
from scipy import stats

import l2calib as l2
from l2calib.numerics.compile import quickly_compiled

FALSE_ALARM = 1e-4
SEEDS = range(14)


@pytest.fixture(scope="module")
def problems() -> list[RealisticProblem]:
    return [problem(seed) for seed in SEEDS]


def first(problems: list[RealisticProblem], chosen: Callable[[RealisticProblem], bool]) -> RealisticProblem:
    return next(each for each in problems if chosen(each))


def as_often_as_said(number: int, of: int, share: float) -> bool:
    low, high = stats.binom.interval(1 - FALSE_ALARM, of, share)
    return low <= number <= high


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


@dataclass(frozen=True)
class Candid:
    """A method that knows the target, errs by a normal amount and says so."""

    name: str = "candid"
    revision: str = "1"
    understated: float = 1.0
    fails: int = 0
    asked: list[int] = field(default_factory=list, compare=False)

    def __call__(self, problem: RealisticProblem, responses: np.ndarray) -> Answers:
        self.asked.append(problem.seed)
        rng, (number, p) = np.random.default_rng(problem.seed), (len(responses), len(problem.target))
        sd = np.full((number, p), 0.01) * problem.target
        mean = problem.target + self.understated * sd * rng.standard_normal((number, p))
        mean[: self.fails] = np.nan
        quantiles = np.stack([mean - 1.959964 * sd, mean, mean + 1.959964 * sd], axis=-1)
        failed = np.arange(number) < self.fails
        return Answers(mean, sd, quantiles, np.where(failed, 4, 0), failed, mean)


CANDID = Candid()


def test_scores_of_one_who_knows(problems: list[RealisticProblem]) -> None:
    number = 2000
    found = judge(problems[0], Candid(), number).scores
    assert all(as_often_as_said(round(share * number), number, 0.95) for share in found.coverage)
    assert found.mean_sd / found.sampling_sd == pytest.approx(np.ones(3), abs=4 / np.sqrt(2 * number))
    assert found.sampling_spread == pytest.approx(found.sampling_sd, rel=0.1)
    assert found.median_length == pytest.approx(2 * 1.959964 * found.median_sd)
    assert (found.failed, found.ok, found.far) == (0, number, 0)
    assert found.near == found.near_and_ok
    assert as_often_as_said(found.near, number, (2 * stats.norm.cdf(2) - 1) ** 3)


def test_scores_of_one_who_understates_and_one_who_fails(problems: list[RealisticProblem]) -> None:
    vain = judge(problems[0], Candid(understated=20), 500).scores
    assert vain.coverage.max() < 0.2
    assert vain.far > 0.9
    assert vain.far_but_ok == vain.far
    failing = judge(problems[0], Candid(fails=50), 500).scores
    assert failing.failed == 50
    assert failing.ok == 450
    assert failing.coverage.min() > 0.9
    assert np.isnan(judge(problems[0], Candid(fails=5), 5).scores.coverage).all()


def test_an_interval_stands_in_for_moments_that_do_not_exist(problems: list[RealisticProblem]) -> None:
    record = judge(problems[0], Candid(), 50)
    without = record.answers._replace(mean=np.full((50, 3), np.nan), sd=np.full((50, 3), np.nan))
    for one, other in zip(scores(record), scores(dataclasses.replace(record, answers=without)), strict=True):
        assert one == pytest.approx(other)


def test_finished_problems_are_kept_and_damaged_ones_are_run_again(tmp_path: Path) -> None:
    candid = Candid()
    plan = Plan(tmp_path, [candid], [0, 2, 4], datasets=20)
    assert plan.missing() == [0, 2, 4]
    assert [work(plan, seed) for seed in (0, 2)] == [[], []]
    assert plan.missing() == [4]
    work(plan, 0)
    assert candid.asked == [0, 2]
    path = Shelf(tmp_path, "candid", "1", 20).path(0)
    kept = path.read_bytes()
    for damaged in (kept[:100], kept.replace(b"0.0", b"0.1", 1), b"[]", b"\xff", b""):
        assert damaged != kept
        path.write_bytes(damaged)
        assert plan.missing() == [0, 4]
    work(plan, 0)
    assert path.read_bytes() != b""
    assert plan.missing() == [4]
    assert candid.asked == [0, 2, 0]
    assert not [each for each in tmp_path.rglob("*") if each.name.startswith(".")]


def test_what_differs_is_kept_apart(tmp_path: Path) -> None:
    work(Plan(tmp_path, [Candid()], [0], datasets=20), 0)
    for other in (
        Plan(tmp_path, [Candid()], [0], datasets=10),
        Plan(tmp_path, [Candid(revision="2")], [0], datasets=20),
        Plan(tmp_path, [Candid(name="frank")], [0], datasets=20),
        Plan(tmp_path, [Candid()], [0], datasets=20, revision="new"),
    ):
        assert other.missing() == [0]


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "candid", "1", 30)
    record = judge(problem(1), Candid(fails=1), 30)
    shelf.write(record)
    again = shelf.read(1)
    assert again is not None
    for one, other in zip(again.scores, record.scores, strict=True):
        assert one == pytest.approx(other, rel=1e-6)
    assert (again.model, again.truth, again.parameters) == (record.model, record.truth, record.parameters)


def test_a_method_that_stumbles_does_not_end_the_run(tmp_path: Path) -> None:
    def stumbling(problem: RealisticProblem, responses: np.ndarray) -> Answers:
        raise ValueError("no such thing")

    stumbling.name, stumbling.revision = "stumbling", "1"
    plan = Plan(tmp_path, [stumbling, Candid()], [0], datasets=5)
    (said,) = work(plan, 0)
    assert said == "stumbling, seed 0: ValueError: no such thing"
    assert list(plan.answered()["candid"]) == [0]


def coverage_of(record: Record) -> float:
    return float(record.scores.coverage.mean())


def test_the_table_says_what_was_counted(tmp_path: Path) -> None:
    plan = Plan(tmp_path, [Candid(), Candid(name="vain", understated=20)], [0, 2, 4, 6], datasets=40)
    for seed in plan.seeds:
        work(plan, seed)
    answered = plan.answered()
    text = table.markdown(answered)
    candid, vain = (line.split(" | ") for line in text.splitlines()[2:4])
    mean = np.mean([coverage_of(each) for each in answered["candid"].values()])
    assert candid[1].startswith(f"{mean:.3f} ± ")
    assert candid[2] == "0 (0%)"
    assert vain[2] == "4 (100%)"
    assert vain[5] == "4"
    assert candid[9] == "1.000"
    assert "- candid, below 0.80: none" in text
    assert (
        f"- vain, below 0.80: {min(answered['vain'], key=lambda seed: coverage_of(answered['vain'][seed]))} (" in text
    )
    assert "4 problems that all methods have answered, 40 datasets each" in text
    del answered["vain"][0]
    assert "3 problems that all methods have answered" in table.markdown(answered)
    assert table.markdown({"none": {}}) == "No problem has been answered by all methods."


def test_standard_errors_are_those_of_independent_problems() -> None:
    values = np.random.default_rng(0).uniform(size=50)
    error = float(table.with_error(values, 10, digits=6).split(" ± ")[1])
    assert error == pytest.approx(stats.sem(values), abs=1e-6)
    assert table.with_error(np.array([0.9]), 100) == "0.900 ± 0.030"


def line(x, slope):
    return slope * x


@pytest.fixture(scope="module")
def straight(problems: list[RealisticProblem]) -> RealisticProblem:
    """Compiles quickly."""
    return dataclasses.replace(
        problems[0],
        model=line,
        inputs={"x": (0.0, 1.0)},
        prior={"slope": (1.0, 16.0)},
        x=np.linspace(0, 1, 9)[:, None],
        sigma=0.1,
        target=np.array([4.0]),
        system=lambda x: 4 * x[:, 0],
    )


def test_methods_of_the_library_are_judged(straight: RealisticProblem) -> None:
    record = judge(straight, judged("nlm"), 3)
    assert (record.method, record.revision) == ("nlm", "0")
    assert record.answers.quantiles.shape == (3, 1, 3)
    assert record.answers.mean == pytest.approx(np.full((3, 1), 4), abs=0.5)
    assert record.scores.failed == 0
    assert judged("tests.test_realistic:CANDID").name == "candid"


def test_they_may_be_judged_dataset_by_dataset(straight: RealisticProblem, monkeypatch) -> None:
    def calibrate(problem, method, seed):
        if seed == 1:
            raise l2.CalibrationFailed("flat")
        row = {"mean": problem.y[-1], "sd": 0.1, "q2.5": 3.8, "q50": 4.0, "q97.5": 4.2}
        return SimpleNamespace(rows={"slope": row}, theta_hat={"slope": 4.0}, status=l2.Status(seed))

    monkeypatch.setattr("l2calib.calibration.calibrate", calibrate)
    given = judge(straight, judged("nlm", one_by_one=True), 3).answers
    assert given.mean[[0, 2], 0] == pytest.approx(straight.responses(3)[[0, 2], -1])
    assert given.quantiles[2] == pytest.approx(np.array([[3.8, 4.0, 4.2]]))
    assert given.failed.tolist() == [False, True, False]
    assert given.status.tolist() == [0, int(l2.Status.NOT_FINITE), 2]
    assert np.isnan(given.sd[1]).all()
