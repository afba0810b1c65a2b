"""The README says what is true; that its code runs is tested with that of the guide."""

import re
from pathlib import Path

import pytest

from l2calib.spec import load_problem
from tests import guide

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def ball(tmp_path, monkeypatch):
    """A folder with the data file that the README speaks of."""
    guide.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_exactly_two_commands_and_make_has_both():
    commands = re.findall(r"^ {4}(\S.*)$", README.split("## From Python")[0], re.MULTILINE)
    assert commands == ["make wiffle", "make test"]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"wiffle", "test"} <= set(targets)


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_spec_of_the_readme_is_the_problem_of_the_package(ball):
    (spec,) = guide.blocks(PAGE, "toml")
    (ball / "spec.toml").write_text(spec.text)
    ours, theirs = load_problem(ball / "spec.toml"), load_problem("wiffle")
    assert ours.inputs == theirs.inputs
    assert ours.y.tolist() == theirs.y.tolist()
    at = {"height": ours.x[:, 0]}
    assert ours.predict_model([11.0, 3.5], at) == pytest.approx(theirs.predict_model([11.0, 3.5], at), rel=1e-12)
