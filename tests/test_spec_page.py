"""The page on the spec file says what is true."""

import re
import shlex
from pathlib import Path

import pytest

from l2calib.models.expression import FUNCTIONS
from l2calib.spec import load_problem
from l2calib.spec.priors import prior_forms
from tests.guide import blocks, lay_out

PAGE = Path(__file__).parents[1] / "docs" / "spec.md"


def section(heading):
    return PAGE.read_text(encoding="utf-8").split(f"\n## {heading}")[1].split("\n## ")[0]


@pytest.fixture
def ball(tmp_path, monkeypatch):
    """A folder with the data and the spec of the page."""
    lay_out(tmp_path)
    (tmp_path / "ball.toml").write_text(blocks(PAGE, "toml")[0].text)
    monkeypatch.chdir(tmp_path)


def test_every_function_and_every_prior_is_listed():
    (listed,) = re.findall(r"calls of\n\n((?:    .*\n)+)", section("Expressions"))
    assert listed.split() == sorted(FUNCTIONS)
    assert re.findall(r"^\| `(\w+\(.*?\))` \|", section("Priors"), re.MULTILINE) == prior_forms()


def test_the_spec_is_told_in_these_words(run, ball):
    words, mistakes = (block.text for block in blocks(PAGE, "text"))
    assert run("check", "ball.toml") == (0, words, "")
    spec = Path("ball.toml").read_text().replace("height = [", "heigth = [").replace('g = "uniform', 'g = "unifrom')
    Path("ball.toml").write_text(spec)
    assert run("check", "ball.toml")[:2] == (2, mistakes)


def test_the_options_of_init_lead_to_the_same_spec(run, ball):
    before = load_problem("ball.toml")
    (command,) = re.findall(r"^ {4}l2calib (init ball.csv --(?:.*\\\n)*.*)$", section("Writing one"), re.MULTILINE)
    status, out, _ = run(*shlex.split(command.replace("\\\n", "")), "--force")
    assert (status, out) == (0, "ball.toml\n")
    after = load_problem("ball.toml")
    assert (after.inputs, after.parameter_names) == (before.inputs, before.parameter_names)
    assert after.experiment.prior.distributions == before.experiment.prior.distributions
