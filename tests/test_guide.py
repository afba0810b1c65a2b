"""The guide builds without a warning, asks nobody for anything, and leads nowhere that is not there.

Its code runs, and so do that of the README and the packaged example that both are about: all of them calibrate the same
wiffle balls, so they are compiled here once.
"""

import contextlib
import csv
import io
import json
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import l2calib
from l2calib import cli
from l2calib.spec import examples
from tests import guide
from tests.shared_programs import shared_programs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if guide.blocks(page, "python", "console")]
METHODS = ["--method", "l2", "--method", "gb-l2", "--method", "koh"]
PARAMETER_KEYS = ["mean", "sd", "q2.5", "q50", "q97.5"]
RESULT_KEYS = [
    "method",
    "parameters",
    "theta_hat",
    "gamma",
    "sigma2",
    "rho",
    "no_process",
    "engine",
    "status",
    "seconds",
]


@pytest.fixture(scope="module", autouse=True)
def _programs():
    with shared_programs():
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, run):
    guide.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    guide.run_page(page, run)


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, run):
    guide.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    guide.run_page(ROOT / "README.md", run)
    assert (tmp_path / "results" / "report.html").is_file()


def test_the_pages_that_should_have_code_have_it():
    assert {"index", "tutorial", "models"} <= {page.stem for page in PAGES}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("g 10.847 0.948", True),
        ("g 10.846 0.948", True),
        ("g ... 0.948", True),
        ("g 10.8 0.948", True),
        ("g 10.849 0.948", False),
        ("g 10.847", False),
        ("m 10.847 0.948", False),
    ],
)
def test_what_a_page_shows_is_held_to_the_output(line, found):
    assert guide.is_shown_in(line, "  method mean\n g  10.847   0.948\n") is found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", folder / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, DOCS, folder / "html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


class _Page(HTMLParser):
    """What a page loads, where it leads, and which places in it can be led to."""

    def __init__(self, file):
        super().__init__()
        self.loads, self.links, self.places = [], [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.places.add(given["id"])
        if tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "preconnect"):
            self.loads.append(given["href"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


@pytest.fixture(scope="module")
def pages(site):
    return {file: _Page(file) for file in sorted(site.rglob("*.html"))}


def test_nothing_is_loaded_from_elsewhere(site, pages):
    assert [load for page in pages.values() for load in page.loads if urlsplit(load).netloc] == []
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")) == [], sheet


def test_links_lead_somewhere(pages):
    astray = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            goal = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if parts.scheme:
                sound = parts.scheme in ("http", "https") and re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc)
            elif goal in pages and parts.fragment:
                sound = parts.fragment in pages[goal].places
            else:
                sound = goal.is_file()
            if not sound:
                astray.append((file.name, link))
    assert astray == []


def test_the_references_name_everything_public(site, pages):
    api, cli = pages[site / "api.html"].places, (site / "cli.html").read_text()
    assert [name for name in l2calib.__all__ if f"l2calib.{name}" not in api] == []
    for command in ("calibrate", "compare", "design", "study paper", "study summary"):
        assert f"l2calib {command}" in cli


def test_formulas_are_drawn_without_a_script(site):
    page = (site / "statistics.html").read_text(encoding="utf-8")
    assert page.count("<math") > 20
    assert "$" not in re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)


@pytest.fixture(scope="module")
def wiffle(tmp_path_factory):
    """What one run of the packaged example prints, says and writes, for the tests that only look at it."""
    out = tmp_path_factory.mktemp("wiffle") / "deep" / "out"
    options = [*METHODS, "--seed", "3", "--json", "--out", str(out)]
    printed, said = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        patch.setattr(sys, "argv", ["l2calib", "calibrate", "wiffle", *options])
        with pytest.raises(SystemExit) as left:
            cli.main()
    assert not left.value.code, said.getvalue()
    return printed.getvalue(), said.getvalue(), out


def test_json_obeys_the_contract(wiffle):
    printed, _, _ = wiffle
    answer = json.loads(printed)
    assert list(answer) == ["spec", "seed", "results"]
    assert (answer["spec"], answer["seed"]) == ("wiffle", 3)
    assert [result["method"] for result in answer["results"]] == ["l2", "gb-l2", "koh"]
    for result in answer["results"]:
        assert list(result) == RESULT_KEYS
        assert "inaccurate" not in result["status"]
        assert list(result["parameters"]) == ["g", "m"]
        for summary in result["parameters"].values():
            assert list(summary) == PARAMETER_KEYS
            assert summary["q2.5"] < summary["q50"] < summary["q97.5"]
    ours, gb, _ = answer["results"]
    assert list(ours["theta_hat"]) == ["g", "m"]
    assert [each["gamma"] is None for each in answer["results"]] == [True, False, True]
    assert [each["no_process"] is None for each in answer["results"]] == [False, True, True]
    assert 0 < ours["no_process"] < 1
    # No process is about as probable as one, and where it is more so, rho is null.
    assert [len(ours["rho"]["psi"]), ours["rho"]["psi"][0] is None] == [1, ours["rho"]["kappa"] is None]
    assert list(gb["theta_hat"]) == ["g", "m"]
    assert gb["gamma"] > 0
    assert list(gb["rho"]) == ["psi", "kappa"]
    assert len(gb["rho"]["psi"]) == 1
    # The paper's conclusion: its methods say about (11, 3.5); so does ours.
    for result in answer["results"]:
        for name, value in (("g", 11), ("m", 3.5)):
            summary = result["parameters"][name]
            assert summary["q2.5"] < value < summary["q97.5"]


def test_out_holds_everything_and_nothing_else(wiffle):
    printed, _, out = wiffle
    names = {path.name for path in out.iterdir()}
    assert names == {"results.json", "run.json", "l2.nc", "gb-l2.nc", "koh.nc", "calibration.png", "calibration.svg"}
    assert json.loads((out / "results.json").read_text()) == json.loads(printed)
    assert (out / "calibration.png").read_bytes().startswith(b"\x89PNG")
    assert l2calib.load(out / "koh.nc").draws(4000)["g"].size == 4000


def test_the_run_tells_where_its_results_come_from(wiffle):
    printed, _, out = wiffle
    run, answer = json.loads((out / "run.json").read_text()), json.loads(printed)
    assert run["l2calib"] == l2calib.__version__
    assert {"python", "numpy", "jax"} <= set(run["versions"])
    assert run["default_since"] is None
    command = ["l2calib", "calibrate", "wiffle", *METHODS, "--seed", "3", "--json"]
    assert shlex.split(run["command"]) == [*command, "--out", str(out)]
    example = examples()["wiffle"]
    assert run["spec"] == {"name": "wiffle", "text": example.read_text()}
    assert run["model"]["kind"] == "python"
    assert run["model"]["text"].startswith("def fall_time(height")
    assert run["model"]["text"] in example.with_name("model.py").read_text()
    assert (run["response"], run["seed"]) == ("time", 3)
    assert run["inputs"] == {"height": [0.175, 4.275]}
    assert run["prior"] == {"g": "uniform(0, 20)", "m": "uniform(0, 20)"}
    assert run["data"]["file"] == "wiffle.csv"
    rows = list(csv.DictReader(example.with_name("wiffle.csv").read_text().splitlines()))
    assert run["data"]["columns"] == {name: [float(row[name]) for row in rows] for name in ("time", "height")}
    for about, result in zip(run["results"], answer["results"], strict=True):
        assert [about[key] for key in ("method", "status", "engine")] == [
            result[key] for key in ("method", "status", "engine")
        ]
        assert len(about["messages"]) == len(result["status"].split(", ")) - (result["status"] == "ok")
        assert 0 < about["numerical_error"] < 0.1


def test_statuses_are_notes_on_stderr(wiffle):
    printed, said, _ = wiffle
    # GCV has no interior optimum for these data, and that must not be silent.
    assert "gcv-at-bound" in json.loads(printed)["results"][1]["status"]
    assert "note on gb-l2: " in said
    assert "default" not in said
    assert "Traceback" not in said
