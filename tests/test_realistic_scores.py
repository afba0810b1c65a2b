"""The judge on random problems: what it counts, what it keeps and what it tells."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.realistic import table
from benchmarks.realistic.judged import Answers, judged
from benchmarks.realistic.measure import Record, judge, scores
from benchmarks.realistic.problems import RealisticProblem, problem
from benchmarks.realistic.run import Plan, work
from benchmarks.realistic.storage import Shelf
from scipy import stats

import l2calib as l2
from tests.chance import as_often_as_said


@pytest.fixture(scope="module")
def problems() -> list[RealisticProblem]:
    return [problem(0)]


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
    assert judged("tests.test_realistic_scores:CANDID").name == "candid"


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
