"""The judge on named problems: their targets, their datasets, what it keeps and what it tells."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.named import table
from benchmarks.named.parts import PART, PartShelf, joined, measured, parts_of, responses
from benchmarks.named.problems import NAMES, named
from benchmarks.named.run import Plan, run, work
from benchmarks.named.settings import fall_time
from benchmarks.realistic.judged import Answers, judged
from benchmarks.realistic.problems import RealisticProblem, surface_at
from benchmarks.realistic.targets import slopes

import l2calib as l2
from l2calib.spec import examples

SIDES = {1: 2000, 3: 16}


@dataclass(frozen=True)
class Candid:
    """A method that knows the target, errs by a normal amount of the given size and says so."""

    name: str = "candid"
    revision: str = "1"
    fails: int = 0
    asked: list[tuple[str, int]] = field(default_factory=list, compare=False)

    def __call__(self, problem: RealisticProblem, responses: np.ndarray) -> Answers:
        self.asked.append((problem.model_name, len(responses)))
        if self.name == "stumbling":
            raise ValueError("no such thing")
        p = len(problem.target)
        sd = np.full((len(responses), p), 0.01) * np.abs(problem.target)
        mean = problem.target + sd * (responses[:, :p] - responses[:, :p].mean()) / responses[:, :p].std()
        mean[: self.fails] = np.nan
        quantiles = np.stack([mean - 1.959964 * sd, mean, mean + 1.959964 * sd], axis=-1)
        failed = np.arange(len(responses)) < self.fails
        return Answers(mean, sd, quantiles, np.where(failed, 4, 0), failed, mean)


CANDID, STUMBLING = Candid(), Candid(name="stumbling")


def simpson(given: RealisticProblem) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray, np.ndarray]:
    """The model and mu at nodes that have nothing to do with Gauss, and their weights."""
    side = SIDES[len(given.inputs)]
    weights = np.tile([2.0, 4.0], side // 2 + 1)[: side + 1] / (3 * side)
    weights[[0, -1]] /= 2
    axes = [np.linspace(low, high, side + 1) for low, high in given.inputs.values()]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    products = np.stack(np.meshgrid(*[weights] * len(axes), indexing="ij"), axis=-1).reshape(x.shape).prod(axis=1)
    assert products.sum() == pytest.approx(1)
    return surface_at(given.model, x, given.inputs, given.prior), given.system(x), products


@pytest.mark.parametrize("name", NAMES)
def test_no_theta_is_nearer_to_the_system_than_the_target(name: str) -> None:
    given = named(name)
    surface, mu, weights = simpson(given)
    low, high = np.array(list(given.prior.values())).T
    # Where the distance has no slope, one step of Gauss and Newton goes nowhere.
    J, gap = slopes(surface, given.target), surface(given.target) - mu
    step = np.linalg.solve((J.T * weights) @ J, (J.T * weights) @ gap)
    assert np.abs(step / given.target).max() < 1e-4
    side = 12
    u = (np.indices((side,) * len(low)).reshape(len(low), -1).T + 0.5) / side
    squares = [weights @ np.square(surface(theta) - mu) for theta in low + (high - low) * u]
    assert min(squares) > weights @ np.square(gap)
    assert np.sqrt(weights @ np.square(gap)) == pytest.approx(given.discrepancy, rel=1e-3, abs=1e-12)
    assert np.all((given.target - low > 0.02 * (high - low)) & (high - given.target > 0.02 * (high - low)))


def test_exact_problems_have_their_parameters_for_targets() -> None:
    assert named("enzyme").target == pytest.approx([12, 1.5], rel=1e-10)
    assert named("wiffle").target == pytest.approx([10.8735, 3.3208], rel=1e-10)
    assert [name for name in NAMES if named(name).truth == "exact"] == ["enzyme", "wiffle"]
    for name in set(NAMES) - {"enzyme", "wiffle"}:
        assert 0.01 < named(name).discrepancy / named(name).extent < 0.06


@pytest.mark.parametrize("name", NAMES)
def test_problems_are_ordinary(name: str) -> None:
    given = named(name)
    assert 12 <= len(given.x) <= 63
    assert 0.01 < given.sigma / given.extent < 0.08
    low, high = np.array(list(given.inputs.values())).T
    if name not in ("random-design", "wiffle"):
        assert given.x.min(axis=0) == pytest.approx(low)
        assert given.x.max(axis=0) == pytest.approx(high)
    assert given.experiment.observations == len(given.x)  # the library takes it


def test_problems_are_what_their_names_say() -> None:
    def correlation(name: str) -> float:
        given = named(name)
        J = slopes(surface_at(given.model, given.x, given.inputs, given.prior), given.target)
        V = np.linalg.inv(J.T @ J)
        sd = np.sqrt(np.diag(V))
        return float(np.abs(V / np.outer(sd, sd) - np.eye(len(sd))).max())

    assert correlation("polynomial") == pytest.approx(0.99, abs=0.006)
    assert correlation("exponentials") > 0.9
    assert len(named("three-inputs").inputs) == 3
    assert np.unique(named("enzyme").x, return_counts=True)[1].tolist() == [3] * 8
    assert (named("crowded").x <= 20).mean() == pytest.approx(2 / 3)
    assert len(named("twelve").x) == 12
    place, kinked = 6.0, named("kink").system
    bend = np.diff(kinked(np.array([[place - 1e-6], [place], [place + 1e-6]])), 2) / 1e-6
    assert bend == pytest.approx(12, rel=1e-3)


def test_the_wiffle_balls_are_those_of_the_example() -> None:
    folder = examples()["wiffle"].parent
    source = importlib.util.spec_from_file_location("wiffle_model", folder / "model.py")
    example = importlib.util.module_from_spec(source)
    source.loader.exec_module(example)
    given = named("wiffle")
    expected = example.fall_time(l2.numerics.arrays.jnp.asarray(given.x[:, 0]), 10.8735, 3.3208)
    assert fall_time(given.x[:, 0], 10.8735, 3.3208) == pytest.approx(np.asarray(expected), rel=1e-12)
    assert given.x.shape == (63, 1)
    assert len(np.unique(given.x)) == 21


def test_a_dataset_is_the_same_whatever_part_it_is_in() -> None:
    given = named("twelve")
    together = responses(given, range(9))
    apart = [responses(given, part) for part in (range(4), range(4, 5), range(5, 9))]
    assert np.array_equal(together, np.concatenate(apart))
    named.cache_clear()
    assert np.array_equal(together, responses(named("twelve"), range(9)))
    assert len(np.unique(together)) == together.size
    errors = [(responses(named(name), range(1)) - named(name).mu_x)[0, :5] / named(name).sigma for name in NAMES]
    assert len(np.unique(np.round(errors, 6))) == 5 * len(NAMES)
    assert parts_of(600) == [range(250), range(250, 500), range(500, 600)]
    assert parts_of(4) == [range(4)]
    assert [part for part in parts_of(1000) if len(part) == PART] == parts_of(1000)


def test_every_dataset_has_a_seed_of_its_own(monkeypatch) -> None:
    asked = []

    def calibrate_batch(experiment, responses, method, seed):
        asked.append((experiment, method, list(seed)))
        several = np.ones((len(responses), 2))
        rows = np.zeros(len(responses), dtype=int)
        quantiles = np.ones((len(responses), 2, 3))
        return SimpleNamespace(
            mean=several, sd=several, quantiles=quantiles, status=rows, failed=rows > 0, theta_hat=several
        )

    monkeypatch.setattr("l2calib.calibration.calibrate_batch", calibrate_batch)
    for part in (range(3), range(3, 5)):
        measured("twelve", judged("gb-l2"), part, "1")
    assert asked == [(named("twelve").experiment, "gb-l2", [0, 1, 2]), (named("twelve").experiment, "gb-l2", [3, 4])]


def test_parts_that_are_kept_are_not_computed_again(tmp_path: Path) -> None:
    candid = Candid()
    small = Plan(tmp_path, [candid], ["twelve", "kink"], datasets=300)
    work(small, candid, "twelve")
    assert candid.asked == [("twelve", 250), ("twelve", 50)]
    assert small.missing(candid, "twelve") == []
    assert small.missing(candid, "kink") == parts_of(300)
    work(small, candid, "twelve")
    assert len(candid.asked) == 2
    large = dataclasses.replace(small, datasets=500)
    assert large.missing(candid, "twelve") == [range(250, 500)]
    path = PartShelf(tmp_path, "candid", "1", "twelve").path(range(250))
    kept = path.read_bytes()
    for damaged in (kept[:100], kept.replace(b"0.0", b"0.1", 1), b"[]", b"\xff", b""):
        assert damaged != kept
        path.write_bytes(damaged)
        assert small.missing(candid, "twelve") == [range(250)]
    work(large, candid, "twelve")
    assert candid.asked[2:] == [("twelve", 250), ("twelve", 250)]
    (record,) = large.kept()
    assert record.datasets == 500
    assert not [each for each in tmp_path.rglob("*") if each.name.startswith(".")]


def test_what_differs_is_kept_apart(tmp_path: Path, monkeypatch) -> None:
    plan = Plan(tmp_path, [CANDID], ["twelve"], datasets=20)
    work(plan, CANDID, "twelve")
    assert plan.missing(CANDID, "twelve") == []
    assert plan.missing(Candid(revision="2"), "twelve") == [range(20)]
    assert plan.missing(Candid(name="frank"), "twelve") == [range(20)]
    assert dataclasses.replace(plan, revision="new").missing(CANDID, "twelve") == [range(20)]
    assert dataclasses.replace(plan, datasets=10).missing(CANDID, "twelve") == [range(10)]
    monkeypatch.setattr("benchmarks.named.parts.REVISION", -1)
    assert plan.missing(CANDID, "twelve") == [range(20)]


def test_processes_do_what_this_one_does(tmp_path: Path, capfd) -> None:
    here = Plan(tmp_path / "here", [CANDID], ["twelve"], datasets=260)
    work(here, CANDID, "twelve")
    names = ["tests.test_named:CANDID", "tests.test_named:STUMBLING"]
    there = dataclasses.replace(here, folder=tmp_path / "there", methods=names)
    (wrong,) = run(there, workers=2)
    assert wrong == "stumbling, twelve: its process ended with 1; run it again to continue."
    assert "stumbling, twelve: ValueError: no such thing" in capfd.readouterr().err
    (one,), (other,) = here.kept(), there.kept()
    assert one.datasets == other.datasets == 260
    for each, again in zip(one.answers, other.answers, strict=True):
        assert np.array_equal(each, again)


def test_the_table_says_what_was_counted() -> None:
    record = measured("polynomial", Candid(fails=10), range(PART), "1")
    there = ~record.answers.failed
    mean, sd = record.answers.mean[there].copy(), record.answers.sd[there]
    mean[:30] = record.target + 6 * sd[:30]
    moved = record.answers.mean.copy()
    moved[there] = mean
    quantiles = record.answers.quantiles + (moved - record.answers.mean)[..., None]
    answers = record.answers._replace(mean=moved, quantiles=quantiles)
    text = table.markdown([dataclasses.replace(record, seconds=500.0, answers=answers)])
    cells = [line.strip("| ").split(" | ") for line in text.splitlines()[:4]]
    assert cells[0] == list(table.HEADINGS)
    first = dict(zip(cells[0], cells[2], strict=True))
    covered = (np.abs(mean - record.target) <= 1.959964 * sd)[:, 0].mean()
    low, high = np.quantile(mean[:, 0], (0.16, 0.84))
    assert first == {
        "problem": "polynomial",
        "n": "30",
        "method": "candid",
        "parameter": "theta_1",
        "datasets": "250",
        "coverage": f"{covered:.3f} ± {np.sqrt(covered * (1 - covered) / 240):.3f}",
        "length": f"{2 * 1.959964 * sd[0, 0]:.4g}",
        "spread": f"{(high - low) / 2:.4g}",
        "sd / spread": f"{sd[0, 0] / ((high - low) / 2):.2f}",
        "far": "0.1200",
        "ok": "0.960",
        "failed": "10",
        "seconds": "2.00",
    }
    assert cells[3][3] == "theta_2"
    assert table.markdown([]) == "Nothing is kept."


def test_a_table_may_have_no_answers_in_it() -> None:
    record = measured("twelve", Candid(fails=5), range(5), "1")
    assert "| nan ± nan | nan | nan | nan | 0.0000 | 0.000 | 5 |" in table.markdown([joined([record])])
