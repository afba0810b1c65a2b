"""Every verdict follows from the study's numbers: it changes when they do, and noise alone does not change it."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import l2calib.study.claims
from l2calib.study.claims import Part, Wiffle, as_markdown, claims_table, wiffle_evidence
from l2calib.study.claims.judging import CONTRADICTED, HOLDS, OPEN, Above, Below, Claim, Within, critical, group_verdict
from l2calib.study.claims.markdown import evidence
from l2calib.study.summary import write_summary
from tests.study_frames import paper_like

REPRODUCED, NOT, PARTLY, UNTESTED = "reproduced", "not reproduced", "partly reproduced", "not tested"
SIZES = (20, 40, 100, 160, 200)
PARTS = {1: "ab", 2: "abcd", 3: "ab", 4: "abcd", 5: "abc", 6: "abc", 7: "abc", 8: "ab", 9: "abcde"}


def wiffle(**changes):
    """Evidence in which the paper's claim holds, but for the changes: (method, parameter, column) -> value."""
    numbers = {"g": {"mean": 11.1, "sd": 0.9, "median": 11.0}, "m": {"mean": 3.6, "sd": 2.0, "median": 3.5}}
    rows = [
        {"method": method, "parameter": name, **row} for method in ("gb-l2", "koh") for name, row in numbers.items()
    ]
    posteriors = pd.DataFrame(rows)
    for column, values in changes.items():
        posteriors[column] = values
    return posteriors


AGREEING = Wiffle(wiffle(), 0.002)


@pytest.fixture(scope="module")
def frame():
    return paper_like(sizes=SIZES)


def verdicts(frame, evidence=AGREEING, number=None):
    """By number, or by number and letter; of one claim alone if its number is given."""
    claims = [claim for claim in claims_table(frame, evidence) if number in (None, claim.number)]
    found = {claim.number: claim.verdict for claim in claims}
    return found | {f"{claim.number}{part.letter}": part.verdict for claim in claims for part in claim.parts}


def changed(frame, query, **columns):
    """The frame with new numbers in the rows of a query; `times_x` multiplies column x."""
    frame, rows = frame.copy(), frame.query(query).index
    for name, value in columns.items():
        column = name.removeprefix("times_")
        frame.loc[rows, column] = frame.loc[rows, column] * value if name.startswith("times_") else value
    return frame


def test_a_study_like_the_papers_reproduces_every_part(frame):
    claims = claims_table(frame, AGREEING)
    assert [claim.number for claim in claims] == list(range(1, 10))
    assert {claim.number: "".join(part.letter for part in claim.parts) for claim in claims} == PARTS
    assert set(verdicts(frame).values()) == {REPRODUCED}


@pytest.mark.parametrize(
    ("part", "query", "columns"),
    [
        ("1a", "n == 200", {"bias": 0.1}),
        ("1b", "n == 200", {"bias": 0.05}),
        ("2a", "method == 'projected'", {"times_mean_posterior_sd": 5}),
        ("2b", "method == 'nlm'", {"coverage": 0.95}),
        ("2c", "method == 'nlm'", {"coverage": 0.999}),
        ("2d", "method == 'nlm'", {"times_mean_posterior_sd": 2}),
        ("3a", "method == 'projected'", {"coverage": 0.94}),
        ("3b", "method == 'projected'", {"times_sampling_sd": 2}),
        ("4a", "method == 'gb-ols'", {"coverage": 0.95}),
        ("4b", "method == 'gb-ols'", {"times_sampling_sd": 20}),
        ("4c", "method == 'gb-ols'", {"coverage": 0.3}),
        ("4d", "method == 'gb-ols'", {"times_mean_posterior_sd": 1.3}),
        ("5a", "method == 'gb-l2' and parameter == 'theta1'", {"times_bias": -10}),
        ("5b", "method == 'koh'", {"times_bias": 10}),
        ("5c", "method == 'koh'", {"coverage": 0.5}),
        ("6a", "method.str.endswith('boot')", {"coverage": 0.5}),
        ("6b", "method.str.endswith('boot')", {"times_mean_posterior_sd": 0.8}),
        ("6c", "method.str.endswith('boot')", {"bias": 1.0}),
        ("7a", "errors != 'normal'", {"coverage": 0.5}),
        ("7b", "errors != 'normal'", {"times_mean_posterior_sd": 1.2}),
        ("7c", "errors != 'normal'", {"bias": 1.0}),
        ("8a", "method == 'koh'", {"times_seconds_per_calibration": 0.1}),
        ("8b", "method == 'gb-l2'", {"times_seconds_per_calibration": 2}),
    ],
)
def test_each_part_can_fail(frame, part, query, columns):
    found = verdicts(changed(frame, query, **columns), number=int(part[0]))
    assert found[part] == NOT
    assert found[int(part[0])] != REPRODUCED


@pytest.mark.parametrize(
    ("part", "evidence"),
    [
        ("9a", Wiffle(wiffle(mean=[11.1, 3.6, 10.6, 4.6]), 0.002)),
        ("9b", Wiffle(wiffle(sd=[0.9, 2.0, 1.2, 3.0]), 0.002)),
        ("9c", Wiffle(wiffle(), 0.02)),
        ("9d", Wiffle(wiffle(mean=[9.0, 5.0, 9.0, 5.0]), 0.002)),
        ("9e", Wiffle(wiffle(median=[9.0, 5.0, 9.0, 5.0]), 0.002)),
    ],
)
def test_each_part_of_the_wiffle_balls_can_fail(frame, part, evidence):
    found = verdicts(frame, evidence, number=9)
    assert found[part] == NOT
    assert found[9] == PARTLY


@pytest.mark.parametrize(
    ("part", "query", "columns"),
    [
        ("1a", "configuration == '2' and method == 'koh'", {"bias": -0.3, "mean_posterior_sd": 0.5}),
        ("1b", "configuration == '2' and method == 'koh'", {"bias": -0.3}),
        ("2a", "configuration == '2' and method == 'koh'", {"mean_posterior_sd": 0.5}),
        ("3a", "configuration == '1' and method == 'projected'", {"coverage": 0.95}),
        ("4a", "configuration == '2' and method == 'gb-ols'", {"coverage": 0.95}),
        ("5c", "n > 100 and method == 'koh'", {"coverage": 0.8}),
        ("7a", "errors == 't' and method == 'gb-l2' and n < 60", {"coverage": 0.8}),
        ("8a", "configuration == '3' and method == 'koh'", {"times_seconds_per_calibration": 0.1}),
    ],
)
def test_what_fails_for_one_method_or_configuration_is_not_outvoted(frame, part, query, columns):
    assert verdicts(changed(frame, query, **columns), number=int(part[0]))[part] == PARTLY


def test_designs_without_bias_leave_nothing_to_explain_or_to_recover(frame):
    found = verdicts(changed(frame, "method == 'gb-ols'", coverage=0.95, bias=0.0))
    assert [found[part] for part in ("4a", "4b", "4c", "4d", 4)] == [NOT, UNTESTED, UNTESTED, REPRODUCED, PARTLY]


@pytest.mark.parametrize(
    ("query", "untested"),
    [
        ("method != 'nlm'", ["2a", "2b", "2c", "2d", 2]),
        ("method != 'koh'", ["5a", "5b", "5c", 5, "8a"]),
        ("method != 'projected'", ["3a", "3b", 3]),
        ("method != 'gb-ols'", ["4a", "4b", "4c", "4d", 4, "8b"]),
        ("not method.str.endswith('boot')", ["6a", "6b", "6c", 6]),
        ("errors == 'normal'", ["7a", "7b", "7c", 7]),
        ("errors == 't'", ["7a", "8a", "8b", 7, 8]),
        ("configuration == '1'", ["2a", "2b", 4, 5]),
        ("configuration == '4'", ["2c", "2d", 4]),
        ("n == 40", ["1a", "1b", 1, "4c"]),
        ("n >= 100", ["1b", "4c"]),
        ("n < 0", list(range(1, 9))),
    ],
)
def test_what_the_study_lacks_is_not_tested(frame, query, untested):
    found = verdicts(frame.query(query))
    assert {part: found[part] for part in untested} == dict.fromkeys(untested, UNTESTED)


def test_without_wiffle_balls_the_last_claim_is_not_tested(frame):
    assert verdicts(frame, None)[9] == UNTESTED


def test_a_claim_of_which_a_part_is_untested_is_reproduced_in_part_at_most(frame):
    found = verdicts(frame[frame["configuration"] != "1"])
    assert (found["2a"], found["2b"], found["2c"], found[2]) == (REPRODUCED, REPRODUCED, UNTESTED, PARTLY)


def test_too_few_replications_decide_nothing():
    found = verdicts(paper_like(replications=50))
    assert (found["5a"], found["5b"]) == (UNTESTED, UNTESTED)


def test_configurations_and_methods_of_ones_own_are_left_aside(frame):
    own = frame.assign(configuration="mine", coverage=0.5, bias=1.0)
    other = frame.assign(method=frame["method"] + "-x", mean_posterior_sd=9.0)
    assert verdicts(pd.concat([frame, own, other], ignore_index=True)) == verdicts(frame)


def test_cells_without_a_posterior_are_open_and_counted(frame):
    numbers = dict.fromkeys(("coverage", "coverage_se", "bias", "bias_se", "mean_posterior_sd", "sampling_sd"), np.nan)
    lost = changed(frame, "method == 'projected' and n == 20", **numbers, failed=20_000)
    claim = claims_table(lost)[2]
    assert claim.verdict == REPRODUCED
    # 4 configurations and 3 laws are 12 cells of 20,000 calibrations, with 7 parameters in all.
    assert (claim.parts[0].outcome == OPEN).sum() == 21
    assert "240,000 calibrations without a posterior" in claim.looked_at
    assert as_markdown([claim])


def test_a_cell_where_every_interval_covers_has_an_error_all_the_same(frame):
    claim = claims_table(changed(frame, "method == 'projected'", coverage=1.0, coverage_se=0.0))[2]
    assert set(claim.parts[0].cells["se"]) == {1 / 20_000}


def part_of(values, se, statement, by=()):
    cells = pd.DataFrame({"value": values, "se": se, "n": np.arange(len(values))})
    return Part("a", "text", "rule", statement, cells, by)


@pytest.mark.parametrize(
    ("statement", "outcomes"),
    [
        (Above(1), [CONTRADICTED, CONTRADICTED, OPEN, OPEN, OPEN, HOLDS]),
        (Below(1), [HOLDS, HOLDS, OPEN, OPEN, OPEN, CONTRADICTED]),
        (Within(1, 0.2), [CONTRADICTED, OPEN, HOLDS, HOLDS, HOLDS, CONTRADICTED]),
    ],
)
def test_a_difference_needs_proof_and_a_likeness_needs_the_estimate(statement, outcomes):
    # Beyond the limit by more than z = 2.64 standard errors of 0.1 counts as shown.
    part = part_of([0.5, 0.7, 0.9, 1.0, 1.1, 1.5], 0.1, statement)
    assert list(part.outcome) == outcomes


def test_noise_at_the_limit_decides_any_cell_as_rarely_as_promised():
    rng = np.random.default_rng(20250101)
    studies, cells = 400, 60
    alarms = sum(
        bool((part_of(1 + 0.1 * rng.standard_normal(cells), 0.1, Above(1)).outcome != OPEN).any())
        for _ in range(studies)
    )
    # Each of the independent cells has its share of 0.05; a binomial band with a one-in-ten-thousand false alarm.
    low, high = stats.binom.interval(1 - 1e-4, studies, 1 - (1 - 0.05 / cells) ** cells)
    assert low <= alarms <= high


def test_the_critical_value_grows_with_the_number_of_cells():
    assert critical(1) == pytest.approx(1.959964, abs=1e-6)
    assert critical(100) == pytest.approx(3.480756, abs=1e-6)


@pytest.mark.parametrize(
    ("holds", "contradicted", "opened", "verdict"),
    [
        (9, 1, 0, REPRODUCED),
        (8, 2, 0, PARTLY),
        (2, 8, 0, PARTLY),
        (1, 9, 0, NOT),
        (2, 0, 8, REPRODUCED),
        (1, 0, 9, UNTESTED),
        (0, 0, 1, UNTESTED),
    ],
)
def test_a_group_has_the_verdict_of_nearly_all_of_its_decided_cells(holds, contradicted, opened, verdict):
    outcome = pd.Series([HOLDS] * holds + [CONTRADICTED] * contradicted + [OPEN] * opened)
    assert group_verdict(outcome) == verdict


def test_a_part_with_too_few_decided_groups_is_not_tested():
    clear, unclear = (
        part_of([5.0] + [1.0] * 5, 0.1, Above(1), ("n",)),
        part_of([5.0] + [1.0] * 3, 0.1, Above(1), ("n",)),
    )
    assert (clear.verdict, unclear.verdict) == (UNTESTED, REPRODUCED)


def test_the_markdown_has_a_table_of_verdicts_and_the_evidence_under_it(frame):
    broken = changed(frame, "method == 'projected' and n == 40 and configuration == '3'", coverage=0.712)
    claims = claims_table(broken, AGREEING)
    text = as_markdown(claims)
    table, *sections = text.split("\n## ")
    assert len(sections) == 9
    for claim, section in zip(claims, sections, strict=True):
        assert f"| {claim.number} | {claim.text} | {claim.verdict} |" in table
        assert section.startswith(f"{claim.number}. {claim.text}")
        assert evidence(claim) in section
        assert all(part.rule in section and part.rule in claim.rule for part in claim.parts)
    assert "n = 40" in sections[2]
    assert "0.712 (se" in sections[2]
    assert "Markov chains" in sections[7]
    assert "endpoints" in sections[3]


def test_tables_have_as_many_cells_in_every_row(frame):
    lines = as_markdown(claims_table(frame, AGREEING)).splitlines()
    for before, line in itertools.pairwise(lines):
        if before.startswith("|") and line.startswith("|"):
            assert before.count("|") == line.count("|")


def test_a_study_without_numbers_can_be_told_too(frame):
    text = as_markdown(claims_table(frame.iloc[:0]))
    assert text.count("The study has no cells for this.") == sum(map(len, PARTS.values()))


def test_a_claim_is_what_its_parts_are():
    good, bad = part_of([2.0], 0.1, Above(1)), part_of([0.0], 0.1, Above(1))
    for parts, verdict in (((good, good), REPRODUCED), ((bad, bad), NOT), ((good, bad), PARTLY)):
        assert Claim(1, "text", parts, "").verdict == verdict


@pytest.fixture(scope="module")
def wiffle_balls():
    """The real ones, calibrated once."""
    return wiffle_evidence()


def test_the_wiffle_balls_are_calibrated_by_both_methods(wiffle_balls):
    evidence = wiffle_balls
    table = evidence.posteriors.set_index(["method", "parameter"])
    assert list(table.index) == [(method, name) for method in ("gb-l2", "koh") for name in ("g", "m")]
    # Integrated, so known to more digits than these.
    assert table["mean"].to_numpy() == pytest.approx([10.847, 4.172, 10.727, 4.249], abs=2e-3)
    assert table.loc["gb-l2", "median"]["m"] == pytest.approx(3.616, abs=2e-3)
    assert 0 < evidence.curve_gap < 0.01
    found = {part.letter: part.verdict for part in claims_table(paper_like(sizes=(20,)), evidence)[8].parts}
    # The right-hand tail of m draws its mean away from 3.5, but not its median.
    assert found == {"a": REPRODUCED, "b": REPRODUCED, "c": REPRODUCED, "d": PARTLY, "e": REPRODUCED}


def test_the_command_tests_claims_on_a_summary_and_on_the_wiffle_balls(run, tmp_path, monkeypatch, wiffle_balls):
    monkeypatch.setattr(l2calib.study.claims, "wiffle_evidence", lambda: wiffle_balls)
    write_summary(paper_like(configurations="3", sizes=(20, 100), errors=("normal",)), tmp_path / "paper.csv")
    status, out, err = run("study", "claims", tmp_path / "paper.csv")
    assert (status, err) == (0, "")
    table = [line.split(" | ") for line in out.splitlines() if line.startswith("| ")]
    verdicts = {cells[0].removeprefix("| "): cells[2] for cells in table if len(cells) > 3}
    assert verdicts["5"] == "not tested"  # configuration 4 is not there
    assert verdicts["9"].endswith("reproduced")
