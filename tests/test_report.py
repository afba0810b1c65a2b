"""The text of a report: sentences, rounding, diagnostics, escaping, and what is refused."""

import json
import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from l2calib.errors import DataError, SpecError
from l2calib.methods.catalogue import PAPER_METHODS
from l2calib.report import default_file, page_of
from l2calib.report.run_files import read_run
from l2calib.report.run_page import answer, subject
from l2calib.study.summary import COLUMNS, write_summary
from tests import line_spec
from tests.report_runs import HOSTILE, write_run
from tests.study_frames import paper_like

MINUS = "\N{MINUS SIGN}"
NOT_CLOSED = {"meta", "link", "input", "img", "tr", "th", "td"}  # as HTML allows


class Page(HTMLParser):
    """Elements that are opened and closed in order; the text outside of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.levels, self.words, self.data = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag not in NOT_CLOSED:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.data.append(data)
        elif "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    name = HOSTILE.replace("/", "")  # which no parameter and no group of a NetCDF file may hold
    return write_run(
        tmp_path_factory.mktemp("hostile"),
        inputs={name: (0.0, 2.0), "z": (1.0, 3.0)},
        prior={f"a{name}": "uniform(-5, 5)", "b": "uniform(-9, 9)"},
        response=HOSTILE,
        text=HOSTILE,
        messages=[HOSTILE],
    )


@pytest.fixture(scope="module")
def study_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("study") / "paper.csv"
    write_summary(paper_like(sizes=(20, 100), errors=("normal", "t")), file)
    return file


@pytest.fixture(scope="module")
def pages(plain_run, hostile_run, study_file):
    return {place: page_of(place) for place in (plain_run, hostile_run, study_file)}


def test_pages_are_well_formed_with_headings_in_order(pages):
    for text in pages.values():
        page = Page(text)
        assert page.tags[0] == ("html", {"lang": "en"})
        assert page.levels[0] == 1
        assert page.levels.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(page.levels, page.levels[1:], strict=False))
        assert len(page.ids) == len(set(page.ids))
        assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}


def test_links_lead_somewhere_on_the_page(pages):
    for text in pages.values():
        page = Page(text)
        links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
        assert links
        assert {link.removeprefix("#") for link in links} <= set(page.ids)


def test_every_chart_has_a_label_and_a_table(pages):
    for text in pages.values():
        page = Page(text)
        plots = [attributes for _, attributes in page.tags if attributes.get("class") == "plot"]
        figures = [tag for tag, _ in page.tags if tag == "figure"]
        assert len(plots) == len(figures) > 0
        assert all(attributes["aria-label"] and attributes["tabindex"] == "0" for attributes in plots)
        assert text.count("<figure") == text.count("<summary>Numbers</summary>")


def test_nothing_is_fetched(pages):
    for text in pages.values():
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert "default-src 'none'" in text


def test_what_users_write_is_text_and_nothing_else(pages, hostile_run):
    text = pages[hostile_run]
    page = Page(text)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not any("onerror" in attributes for _, attributes in page.tags)
    assert len([tag for tag, _ in page.tags if tag == "script"]) == len(page.data)
    assert "alert(2)" not in "".join(page.data[-1:])  # the page's own script is the last
    for data in page.data[:-1]:
        json.loads(data)
        assert "<" not in data
    assert HOSTILE in "".join(page.words)


def test_a_hostile_study_is_text_too(tmp_path):
    frame = paper_like(configurations="2", sizes=(20, 40), errors=("normal",), methods=("nlm", "koh"))
    renamed = frame.assign(configuration=HOSTILE, parameter=HOSTILE, levels=HOSTILE)
    renamed["method"] = renamed["method"].replace("koh", HOSTILE)
    write_summary(renamed.astype(COLUMNS), tmp_path / "s.csv")
    page = Page(page_of(tmp_path / "s.csv"))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert HOSTILE in "".join(page.words)
    assert "claims" not in page.ids  # they are about the paper's configurations


def test_the_page_is_small(pages):
    assert max(len(text.encode()) for text in pages.values()) < 400_000


def test_the_whole_study_of_the_paper_fits(tmp_path):
    write_summary(paper_like(), tmp_path / "paper.parquet")
    assert len(page_of(tmp_path / "paper.parquet").encode()) < 400_000


def test_the_order_of_a_run_is_answer_data_bias_posteriors_methods_diagnostics_and_how(pages, plain_run):
    ids = Page(pages[plain_run]).ids
    order = ["fit", "bias", "posteriors", "methods", "diagnostics", "reproduce"]
    assert [each for each in ids if each in order] == order


def test_a_run_is_told_in_sentences(plain_run):
    run = read_run(plain_run)
    assert subject(run) == (
        "A model of y as a function of x, with the parameters a and b, calibrated against 40 observations from "
        "plain.csv by general Bayes L² and modified Kennedy-O'Hagan."
    )
    assert answer(run, "a") == (
        "a is 1.234, 95% interval 0.744 to 1.724, by general Bayes L²; 1.334 (0.844 to 1.824) by modified "
        "Kennedy-O'Hagan."
    )


def test_one_method_needs_no_name(tmp_path):
    run = read_run(write_run(tmp_path, methods=("gb-l2",)))
    assert answer(run, "b") == "b is 2.234, 95% interval 1.744 to 2.724."
    assert 'type="checkbox"' not in page_of(tmp_path)


def test_a_gap_in_a_curve_is_no_obstacle(tmp_path):
    write_run(tmp_path, methods=("gb-l2",), bias=lambda x: np.where(x > 1.9, np.nan, 0.0))
    charts = [json.loads(data) for data in Page(page_of(tmp_path)).data if '"bias of y"' in data]
    assert charts[0]["marks"][1]["y"][-1] is None


def test_many_methods_are_told_together(tmp_path):
    run = read_run(write_run(tmp_path, methods=PAPER_METHODS))
    assert answer(run, "a").endswith("; the other 6 methods put it between 1.334 and 1.834.")


def test_the_command_the_seed_and_the_spec_are_told(pages, plain_run):
    text = Page(pages[plain_run]).text
    assert "l2calib calibrate plain" in text
    assert "with seed 3 and l2calib 0.1.0" in text
    assert "[data] # plain" in text


def test_verdicts_and_evidence_are_on_the_page_of_a_study(pages, study_file):
    text = Page(pages[study_file]).text
    assert "Projected L2 over-covers, from an inflated posterior sd. reproduced" in text
    assert "Its coverage is above 0.96." in text
    assert "Worst cell" in text


def test_the_command_line_writes_the_page_and_prints_where(run, plain_run, tmp_path):
    status, out, err = run("report", plain_run, "--out", tmp_path / "new" / "page.html")
    assert (status, out, err) == (0, f"{tmp_path / 'new' / 'page.html'}\n", "")
    assert (tmp_path / "new" / "page.html").read_text().startswith("<!doctype html>")
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "page.html"]


def test_where_a_page_goes_unless_told(tmp_path):
    (tmp_path / "summary.csv").touch()
    assert default_file(tmp_path) == tmp_path / "report.html"
    assert default_file(tmp_path / "summary.csv") == tmp_path / "summary.html"


def test_a_real_run_becomes_a_page_that_says_so_where_its_method_is_the_default(run, tmp_path):
    spec = line_spec.write(tmp_path)
    assert run("calibrate", spec, "--out", tmp_path / "out")[0] == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["default_since"] == "0.2"
    status, out, err = run("report", tmp_path / "out")
    assert (status, out, err) == (0, f"{tmp_path / 'out' / 'report.html'}\n", "")
    text = Page((tmp_path / "out" / "report.html").read_text()).text
    assert "A model of y as a function of x, with the parameters a and b, calibrated against 10 observations" in text
    assert "from line.csv by l2, the default since 0.2 (projected bias L²)." in text
    assert re.search(r"b is \d\.\d+, 95% interval \d\.\d+ to \d\.\d+\.", text)


def refused(run, place):
    status, out, err = run("report", place)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    return err


def test_what_cannot_be_reported_is_said_in_a_sentence(run, tmp_path, plain_run):
    assert "which does not exist" in refused(run, tmp_path / "nowhere")
    assert "holds neither results.json nor study.json" in refused(run, tmp_path)
    assert "received an empty one" in refused(run, "")
    (tmp_path / "results.json").write_text("{}")
    assert "has no run.json" in refused(run, tmp_path)
    (tmp_path / "run.json").write_text("{")
    assert "is no JSON" in refused(run, tmp_path)
    for name in ("run.json", "results.json"):
        (tmp_path / name).write_text((plain_run / name).read_text())
    assert "gb-l2.nc' does not exist" in refused(run, tmp_path)
    answers = json.loads((plain_run / "results.json").read_text())
    answers["results"][0]["method"] = "another"
    (tmp_path / "results.json").write_text(json.dumps(answers))
    assert "do not belong together" in refused(run, tmp_path)


def test_an_old_netcdf_file_is_said(tmp_path):
    import xarray as xr

    write_run(tmp_path, methods=("gb-l2",))
    xr.DataTree().to_netcdf(tmp_path / "gb-l2.nc", engine="h5netcdf")
    with pytest.raises(DataError, match="incomplete"):
        page_of(tmp_path)


def test_an_empty_study_is_said(tmp_path):
    write_summary(paper_like(sizes=(20,)).iloc[:0].astype(COLUMNS), tmp_path / "s.csv")
    with pytest.raises(SpecError, match="no finished block"):
        page_of(tmp_path / "s.csv")


def test_the_wheel_contains_templates_script_and_style_sheet(tmp_path):
    root = Path(__file__).parent.parent
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("uv is not beside this interpreter")
    build = [str(uv), "build", "--wheel", "--offline", "--quiet", "--out-dir", str(tmp_path), str(root)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no wheel can be built offline here: {done.stderr.strip()[-200:]}")
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("l2calib/report/")}
    here = {
        f"l2calib/report/{file.parent.name}/{file.name}"
        for folder in ("templates", "assets")
        for file in (root / "src" / "l2calib" / "report" / folder).iterdir()
    }
    assert here
    assert here <= names
