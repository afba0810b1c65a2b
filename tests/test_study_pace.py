"""The time that is left: what is known of blocks like those to come, and a guess of what nothing is known of."""

import itertools
from pathlib import Path

import pytest

from l2calib.methods.catalogue import PAPER_METHODS
from l2calib.study.pace import Pace
from l2calib.study.plan import PAPER_SIZES, Cell
from l2calib.study.summary import load_summary

SUMMARY = Path(__file__).parent.parent / "results" / "paper" / "summary.csv"
PARAMETERS = {"1": 2, "4": 3}


def told(seconds, compiling=0.0, preparing=0.0):
    return {"seconds": seconds + compiling, "seconds_compiling": compiling, "seconds_preparing": preparing}


def cells(configurations=("1",), sizes=(20,), methods=("nlm",), blocks=4):
    kinds = itertools.product(configurations, sizes, methods, range(blocks))
    return [Cell(configuration, n, "normal", method, block) for configuration, n, method, block in kinds]


def test_nothing_is_known_at_first():
    assert Pace(cells(), PARAMETERS).seconds_left(2) is None


def test_blocks_of_one_kind_take_what_the_first_took_without_what_is_spent_once():
    every = cells(blocks=4)
    pace = Pace(every, PARAMETERS)
    pace.took(every[0], told(3.0, compiling=20.0, preparing=5.0))
    assert pace.seconds_left(1) == pytest.approx(9)
    assert pace.seconds_left(3) == pytest.approx(3)


def test_a_kind_to_come_is_compiled_once_and_takes_what_the_nearest_size_took():
    every = cells(sizes=(20, 100, 200), blocks=2)
    pace = Pace(every, PARAMETERS)
    for cell in every:
        if cell.n != 100:
            pace.took(cell, told({20: 8.0, 200: 2.0}[cell.n], compiling=10.0 if cell.block == 0 else 0.0))
    assert pace.seconds_left(1) == pytest.approx(10 + 2 * 2)


def test_what_is_left_of_a_dear_configuration_is_not_taken_for_cheap():
    """At a constant pace, a fifth of the blocks that take ten times as long would be a fifth of the time."""
    every = cells(configurations=("1", "4"), methods=("nlm", "koh"), blocks=5)
    pace = Pace(every, PARAMETERS)
    for cell in every:
        if (cell.configuration, cell.method) != ("4", "koh"):
            pace.took(cell, told({"1": 1.0, "4": 3.0}[cell.configuration] * {"nlm": 1, "koh": 20}[cell.method]))
    assert pace.seconds_left(1) == pytest.approx(5 * 60)


def test_the_paper_study_is_not_nearly_done_when_three_quarters_of_its_blocks_are():
    """With the times of the run that is kept: configuration 4, which comes last, has most of the time."""
    kept = load_summary(SUMMARY).drop_duplicates(["configuration", "n", "errors", "method"])
    kept = kept[kept["errors"] == "normal"].set_index(["configuration", "n", "method"])["seconds_per_calibration"]
    every = cells("1234", PAPER_SIZES, PAPER_METHODS, blocks=1)
    truth = {cell: 1000 * kept[cell.configuration, cell.n, cell.method] for cell in every}
    done = [cell for cell in every if cell.configuration != "4"]
    pace = Pace(every, {"1": 2, "2": 1, "3": 1, "4": 3})
    for cell in done:
        pace.took(cell, told(truth[cell]))
    at_a_constant_pace = sum(truth[cell] for cell in done) / 3
    left = sum(truth[cell] for cell in every if cell.configuration == "4")
    assert at_a_constant_pace < left / 3
    assert left / 2 < pace.seconds_left(1) < 2 * left


def test_when_all_is_done_nothing_is_left():
    every = cells(blocks=2)
    pace = Pace(every, PARAMETERS)
    for cell in every:
        pace.took(cell, told(1.0))
    assert pace.seconds_left(2) == 0
