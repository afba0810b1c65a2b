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

from l2calib.display.words import counted, listed
from l2calib.errors import DataError, SpecError
from l2calib.methods.catalogue import PAPER_METHODS, styles_of
from l2calib.numerics.spread import kronecker
from l2calib.posterior.band import Band
from l2calib.report import default_file, page_of
from l2calib.report.colours import DARK, LIGHT, contrast, legible
from l2calib.report.densities import mass, outlines, scattered, view
from l2calib.report.diagnostics import (
    Note,
    boundary_note,
    design_note,
    error_notes,
    merged,
    modes_note,
    unevenness,
    widest_gap,
)
from l2calib.report.run_charts import excluded
from l2calib.report.run_files import Marginal, Profile, read_run
from l2calib.report.run_page import answer, bias_sentences, subject
from l2calib.report.words import rounded, short
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


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (11.2346, 0.94, "11.235"),  # three digits of the sd
        (11.2346, 0.25, "11.235"),
        (11.2346, 0.9996, "11.23"),  # 1.00
        (4.571, 2.43, "4.57"),
        (-0.000123456, 0.0000012, f"{MINUS}0.00012346"),
        (123456.0, 2100.0, "123460"),
        (1.23456789e8, 2.1e6, "1.2346e8"),
        (3.2e-7, 2.1e-8, f"3.200e{MINUS}7"),
        (-0.0001, 0.9, "0.000"),
        (2.0, 0.0, "2"),
        (np.nan, 1.0, "\N{EN DASH}"),
    ],
)
def test_a_number_has_the_digits_that_its_sd_supports(value, sd, text):
    assert rounded(value, sd) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (12.5, "12.5"), (6802.3, "6802"), (None, "\N{EN DASH}"), (-1e-9, f"{MINUS}1e{MINUS}9")],
)
def test_short_numbers(value, text):
    assert short(value) == text


def test_lists_and_counts():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert counted(1, "method") == "1 method"
    assert counted(1200, "method") == "1,200 methods"


X = np.linspace(0, 10, 11)


def profile(bias):
    bias = np.asarray(bias, dtype=float)
    nothing = np.zeros(11)
    return Profile(X, Band(nothing, nothing, nothing), Band(bias, bias - 1, bias + 1))


def test_the_ranges_where_the_band_excludes_zero():
    assert excluded(profile(np.zeros(11))) == []
    assert excluded(profile([2, 2, 2, 0, 0, -2, -2, 2, 0, 0, 2])) == [
        (0, 2, "above"),
        (5, 6, "below"),
        (7, 7, "above"),
        (10, 10, "above"),
    ]
    assert excluded(profile(np.full(11, -3))) == [(0, 10, "below")]
    assert excluded(profile([np.nan] * 3 + [2, 2] + [0] * 6)) == [(3, 4, "above")]  # the model may have a pole


def test_the_bias_is_told_in_a_sentence_by_all_who_say_the_same():
    none, some, all_along = profile(np.zeros(11)), profile([2, 2, 2, *[0] * 8]), profile(np.full(11, -3))
    assert bias_sentences({"A": none, "B": none}, "x") == [
        "The band holds zero all along x: these data do not show the model to be wrong there."
    ]
    assert bias_sentences({"A": some, "B": none, "C": some}, "x")[0] == (
        "By A and C, the band excludes zero for x from 0.0 to 2.0 (the system lies above the model): "
        "there the model is shown to be wrong."
    )
    assert "excludes zero all along x (the system lies below the model)" in bias_sentences({"A": all_along}, "x")[0]


Z = np.linspace(-4, 4, 201)
NORMAL = Marginal(Z, np.exp(-(Z**2) / 2), np.ones(201))


def test_a_posterior_against_the_end_of_its_prior_is_said():
    grid = np.linspace(0, 20, 201)
    falling = Marginal(grid, np.exp(-grid), np.ones(201))
    assert boundary_note("m", falling, (0, 20)).text.startswith(
        "The posterior of m is cut off by the lower end of its prior, 0:"
    )
    rising = Marginal(grid, np.exp(grid - 20), np.ones(201))
    assert "upper end of its prior, 20" in boundary_note("m", rising, (0, 20)).text
    assert boundary_note("m", falling, (-5, 25)) is None
    assert boundary_note("m", NORMAL, (-20, 20)) is None
    assert boundary_note("m", NORMAL, (-np.inf, np.inf)) is None
    # Three sds away, an end of the support cuts off nothing to speak of.
    assert boundary_note("m", NORMAL, (-3, 3)) is None


def test_several_peaks_are_said_and_ripples_are_not():
    two = NORMAL._replace(density=np.exp(-((Z - 2) ** 2) * 8) + 0.5 * np.exp(-((Z + 2) ** 2) * 8))
    assert modes_note("theta", two).text.startswith(f"The posterior of theta has 2 peaks, near {MINUS}2 and 2:")
    assert modes_note("theta", NORMAL) is None
    assert modes_note("theta", NORMAL._replace(density=NORMAL.density + 0.03 * np.sin(9 * Z))) is None
    at_ends = NORMAL._replace(density=Z**2)
    assert "2 peaks" in modes_note("theta", at_ends).text


@pytest.mark.parametrize(
    ("found", "words", "care"),
    [
        (
            [(0.001, "integrate")],
            "The numerical error is 0.001 posterior standard deviations, which is negligible.",
            False,
        ),
        (
            [(0.001, "integrate"), (0.02, "integrate")],
            "at most 0.02 posterior standard deviations, which is small",
            False,
        ),
        ([(0.3, "integrate")], "which can be seen in the digits shown", True),
        ([(0.02, "draws")], "The Monte Carlo error of the posterior mean is 0.02", False),
        ([(None, "integrate")], "not known", True),
    ],
)
def test_the_numerical_error_in_words(found, words, care):
    (note,) = error_notes(found)
    assert words in note.text
    assert note.care is care


def test_drawn_and_integrated_errors_are_told_apart():
    assert len(error_notes([(0.01, "draws"), (0.001, "integrate")])) == 2


def test_the_unevenness_of_a_design():
    even = (np.arange(20) + 0.5) / 20
    assert unevenness(even, 0, 1) == pytest.approx(0, abs=1e-12)
    assert unevenness(even / 2, 0, 1) == pytest.approx(0.5, abs=0.05)  # half of them must move
    assert widest_gap(np.array([1.0, 2.0, 7.0]), 0, 10) == (2.0, 7.0, 0.5)
    assert not design_note({"x": (0, 1)}, {"x": even}).care
    uneven = design_note({"x": (0, 1), "z": (0, 1)}, {"x": even, "z": even / 2})
    assert uneven.care
    assert "the range of z unevenly" in uneven.text
    assert "None lies between 0.4875 and 1, 51% of the range." in uneven.text
    assert "OLS and non-linear regression" in uneven.text


def test_notes_that_hold_for_all_need_no_name():
    one, two = Note("One.", care=True), Note("Two.", care=True)
    assert merged({"A": [one, two], "B": [one]}) == [("", one), ("A", two)]


def test_the_view_holds_nearly_all_of_every_posterior():
    low, high = view([NORMAL, NORMAL._replace(value=Z + 3)])
    # The 0.25% quantile of the normal law is at -2.807.
    assert (low, high) == pytest.approx((-2.807, 5.807), abs=0.02)
    assert mass(Z, NORMAL.density)[100] == pytest.approx(0.5)


def test_regions_hold_what_they_say():
    from matplotlib.path import Path as Outline

    draws = np.random.default_rng(1).standard_normal((2, 4000))
    outer, inner = outlines(*draws, (-4, 4), (-4, 4))
    for rings, share in ((outer, 0.95), (inner, 0.5)):
        held = np.mean([any(Outline(ring).contains_point(point) for ring in rings) for point in draws.T[::4]])
        # Four standard errors of a share of 1,000 draws, and what the kernel widens the region by.
        assert held == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 1000) + 0.02)
    for ring in outer + inner:
        np.testing.assert_allclose(ring[0], ring[-1])


def test_prior_dots_follow_the_prior():
    rising = Marginal(np.linspace(0, 1, 50), np.ones(50), np.linspace(0, 2, 50))
    values = scattered(rising, (0, 1), kronecker(400, 2)[:, 0])
    # The mean of a triangular law is 2/3, its sd 0.236.
    assert values.mean() == pytest.approx(2 / 3, abs=4 * 0.236 / np.sqrt(400))


@pytest.mark.parametrize("ground", [LIGHT, DARK])
def test_every_method_can_be_seen_on_both_backgrounds(ground):
    for style in styles_of(PAPER_METHODS).values():
        assert contrast(legible(style.colour, *ground), ground[0]) >= 3
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert legible("#0072B2", *LIGHT).upper() == "#0072B2"  # what can be seen stays as it is


def test_backgrounds_are_those_of_the_style_sheet():
    sheet = (Path(sys.modules["l2calib.report"].__file__).parent / "assets" / "report.css").read_text()
    for paper, ink in (LIGHT, DARK):
        assert f"--paper: {paper}; --ink: {ink};" in sheet


def test_unknown_methods_take_looks_that_are_left():
    styles = styles_of(["gb-l2", "mine", "koh", "yours"])
    assert list(styles) == ["koh", "gb-l2", "mine", "yours"]
    assert len({(style.colour, style.marker) for style in styles.values()}) == 4
    assert styles_of([*PAPER_METHODS, "mine"])["mine"].label == "mine"


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


def test_a_real_run_becomes_a_page(run, tmp_path):
    spec = line_spec.write(tmp_path)
    assert run("calibrate", spec, "--method", "gb-ols", "--out", tmp_path / "out")[0] == 0
    status, out, err = run("report", tmp_path / "out")
    assert (status, out, err) == (0, f"{tmp_path / 'out' / 'report.html'}\n", "")
    text = Page((tmp_path / "out" / "report.html").read_text()).text
    assert "A model of y as a function of x, with the parameters a and b, calibrated against 10 observations" in text
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
