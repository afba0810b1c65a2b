"""The report in a real browser: it is quiet, it responds, it fits, it can be read, printed and worked by keyboard."""

import os
import re

import pytest

from l2calib.report import page_of
from l2calib.study.summary import write_summary
from tests.browser import NAMES, chromium, launched
from tests.report_runs import HOSTILE, write_run
from tests.study_frames import paper_like

A4_WIDTH = 688  # the printed width of the page in CSS pixels: 210 mm less two margins of 14 mm
AA = 4.5
SLACK = 1  # a pixel of rounding

FOCUSABLE = """() => [...document.querySelectorAll('a, select, input, summary, [tabindex="0"]')]
  .filter(each => each.checkVisibility({ contentVisibilityAuto: true })).length"""

# The least contrast of any text that can be seen, and the text that has it.
WORST_CONTRAST = """() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (; element; element = element.parentElement) {
      const colour = channels(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let worst = [Infinity, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = luminance(channels(element.ownerSVGElement ? style.fill : style.color));
    const paper = luminance(ground(element));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < worst[0]) worst = [contrast, text];
  }
  return worst;
}"""

# What sticks out of the page: its own scrolling regions may, nothing else.
STICKING_OUT = """() => [...document.querySelectorAll('body *')]
  .filter(each => each.checkVisibility() && !each.closest('.scroll table, .skip, g[clip-path]'))
  .filter(each => each.getBoundingClientRect().right > innerWidth + 1 || each.getBoundingClientRect().left < -1)
  .map(each => each.outerHTML.slice(0, 120))"""

FARTHEST_RIGHT = """() => Math.max(...[...document.querySelectorAll('table, svg, pre')]
  .filter(each => each.checkVisibility()).map(each => each.getBoundingClientRect().right))"""


def executable():
    """Where Chromium is; without one the tests are skipped, or fail where a browser is required."""
    found = chromium()
    if found is None:
        reason = f"no Chromium on the PATH: looked for {', '.join(NAMES)}"
        if os.environ.get("L2CALIB_BROWSER_REQUIRED"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="module")
def browser():
    """One for the whole file."""
    with launched(executable()) as running:
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A run with two inputs and hostile names, a run with one input, and a study."""
    folder = tmp_path_factory.mktemp("pages")
    name = HOSTILE.replace("/", "")
    places = {"hostile": folder / "hostile", "run": folder / "run", "study": folder / "study.csv"}
    for each in ("hostile", "run"):
        places[each].mkdir()
    hostile_inputs = {name: (0.0, 2.0), "z": (1.0, 3.0)}
    hostile_prior = {f"a{name}": "uniform(-5, 5)", "b": "uniform(-9, 9)"}
    write_run(places["hostile"], inputs=hostile_inputs, prior=hostile_prior, response=HOSTILE, text=HOSTILE)
    write_run(places["run"], bias=lambda x: 0.3 * (x - 1))
    write_summary(paper_like(configurations="24", sizes=(20, 60, 100), errors=("normal", "t")), places["study"])
    written = {}
    for kind, place in places.items():
        written[kind] = folder / f"{kind}.html"
        written[kind].write_text(page_of(place), encoding="utf-8")
    return written


@pytest.fixture
def visit(browser, files):
    """Open a page; at the end nothing may have been said on the console, and nothing but the page been asked for."""
    contexts, heard, asked, visited = [], [], [], []

    def go(kind, width=1280, scheme="light", media="screen"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.emulate_media(media=media, color_scheme=scheme)
        visited.append(files[kind].as_uri())
        page.goto(visited[-1])
        return page

    yield go
    for context in contexts:
        context.close()
    assert heard == []
    assert asked == visited


def plot(page, label):
    return page.locator(".plot:visible").filter(has=page.locator("svg")).and_(page.get_by_label(label)).first


def test_the_answer_and_the_pictures_are_there(visit):
    page = visit("run")
    assert page.title() == "Calibration: plain"
    assert page.locator(".answers li").all_inner_texts() == [
        f"{name} is {first}, by general Bayes L²; {other} by modified Kennedy-O'Hagan."
        for name, first, other in (
            ("a", "1.234, 95% interval 0.744 to 1.724", "1.334 (0.844 to 1.824)"),
            ("b", "2.234, 95% interval 1.744 to 2.724", "2.334 (1.844 to 2.824)"),
        )
    ]
    assert "the band excludes zero" in page.locator("#bias p").first.inner_text().lower()
    assert page.locator(".plot").count() == page.locator(".plot svg").count() == 7
    assert plot(page, "Posterior density of a").locator("g.curve path").count() == 3  # two methods and the prior
    assert plot(page, "y against x").locator("g.points path").count() == 40


def test_hostile_names_are_shown_as_they_are(visit):
    page = visit("hostile")
    assert page.locator("h1").inner_text() == f"Calibration: {HOSTILE}"
    assert page.locator("img").count() == 0
    assert page.locator("select[name=input] option").first.inner_text() == HOSTILE.replace("/", "")


def test_hovering_shows_the_values(visit):
    page = visit("study")
    shown = plot(page, "Coverage of 95% intervals of theta1")
    shown.scroll_into_view_if_needed()
    assert shown.locator(".tip").is_hidden()
    box = shown.locator("g.series[data-method=koh] path").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert shown.locator(".tip").is_visible()
    assert re.search(r"observations, n 100\n0\.9\d* \(0\.9\d* to 0\.9\d*\)", shown.locator(".tip").inner_text())
    page.mouse.move(0, 0)
    assert shown.locator(".tip").is_hidden()


def test_focus_and_arrow_keys_show_the_values(visit):
    page = visit("run")
    page.locator("summary").first.focus()
    page.keyboard.press("Shift+Tab")
    shown = page.locator(".plot:focus")
    assert shown.get_attribute("aria-label").startswith("y against x")
    first = shown.locator(".tip").inner_text()
    assert first.startswith("observed\nx 0\n")
    page.keyboard.press("ArrowRight")
    second = shown.locator(".tip").inner_text()
    assert second.startswith("observed\nx 0.0")
    page.keyboard.press("ArrowDown")
    assert shown.locator(".tip").inner_text().startswith("general Bayes, L²")
    page.keyboard.press("Escape")
    assert shown.locator(".tip").is_hidden()


def test_the_chooser_changes_the_picture(visit):
    page = visit("study")
    assert page.locator("#figures .plot:visible").count() == 3
    before = plot(page, "Coverage of 95% intervals").inner_html()
    page.get_by_label("Configuration", exact=True).select_option(label="4")
    assert page.locator("#figures .plot:visible").count() == 9
    page.get_by_label("Errors", exact=True).select_option(label="t errors (3 degrees of freedom)")
    labels = page.locator(".plot:visible").evaluate_all("plots => plots.map(each => each.ariaLabel)")
    assert len(labels) == 10
    assert all("configuration 4, t errors" in label for label in labels)
    assert plot(page, "Coverage of 95% intervals").inner_html() != before


def test_the_input_can_be_chosen(visit):
    page = visit("hostile")
    page.get_by_label("Along the input", exact=True).select_option(label="z")
    assert (
        page.locator("#bias .plot:visible")
        .get_attribute("aria-label")
        .startswith("Estimated bias of the model along z")
    )
    assert page.locator("#fit .plot:visible").count() == 2  # along z, and fitted against observed


@pytest.mark.parametrize("kind", ["run", "study"])
def test_a_checkbox_hides_the_marks_of_its_method(visit, kind):
    page = visit(kind)
    own, other = (page.locator(f".plot:visible g.mark[data-method={name}]") for name in ("koh", "gb-l2"))
    before = own.count(), other.count()
    assert min(before) > 0
    page.get_by_label("modified Kennedy-O'Hagan", exact=True).uncheck()
    assert (own.count(), other.count()) == (0, before[1])
    page.get_by_label("modified Kennedy-O'Hagan", exact=True).check()
    assert (own.count(), other.count()) == before


def test_charts_follow_the_window(visit):
    page = visit("run")
    widths = []
    for width in (1280, 500):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            """() => [...document.querySelectorAll('.plot')]
                 .every(each => each.firstChild.viewBox.baseVal.width === each.clientWidth)"""
        )
        widths.append(page.locator(".plot").first.evaluate("each => each.clientWidth"))
    assert widths[1] < widths[0]


@pytest.mark.parametrize("kind", ["run", "hostile", "study"])
def test_nothing_sticks_out_of_a_phone(visit, kind):
    page = visit(kind, width=360)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(STICKING_OUT) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["run", "study"])
def test_all_text_stands_out_from_its_background(visit, kind, scheme):
    page = visit(kind, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    contrast, text = page.evaluate(WORST_CONTRAST)
    assert contrast >= AA, text


def test_dark_mode_is_dark(visit):
    grounds = [
        visit("run", scheme=each).evaluate("getComputedStyle(document.documentElement).backgroundColor")
        for each in ("light", "dark")
    ]
    assert grounds == ["rgb(253, 253, 251)", "rgb(21, 24, 27)"]


@pytest.mark.parametrize("kind", ["run", "hostile", "study"])
def test_print_has_everything_and_no_controls(visit, kind):
    page = visit(kind, width=A4_WIDTH)
    page.emulate_media(media="print")
    page.wait_for_function("() => document.querySelectorAll('details:not([open])').length === 0")
    assert page.locator("nav:visible, select:visible, input:visible, summary:visible").count() == 0
    assert page.locator(".controls label:visible").count() == (7 if kind == "study" else 2)  # the key to the looks
    visible = page.locator("figure.chart:visible")
    assert visible.count() > 0
    assert visible.locator("table").count() == visible.count()
    assert page.evaluate(FARTHEST_RIGHT) <= A4_WIDTH + SLACK
    page.emulate_media(media="screen")
    page.wait_for_function("() => document.querySelectorAll('details[open]').length === 0")


def test_print_is_on_white_paper_in_dark_mode_too(visit):
    page = visit("run", scheme="dark", media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(253, 253, 251)"
    assert page.evaluate(WORST_CONTRAST)[0] >= AA


@pytest.mark.parametrize("kind", ["hostile", "study"])
def test_the_keyboard_reaches_every_control_and_it_shows(visit, kind):
    page = visit(kind)
    expected = page.evaluate(FOCUSABLE)
    reached = []
    for _ in range(expected):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                """() => { const each = document.activeElement; each.dataset.reached = "yes";
                           return getComputedStyle(each).outlineStyle + getComputedStyle(each).outlineWidth; }"""
            )
        )
    assert page.locator("[data-reached]").count() == expected
    assert all(outline.startswith("solid") and outline != "solid0px" for outline in reached)


def test_no_script_is_needed_for_the_numbers(browser, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files["run"].as_uri())
    assert page.locator("noscript p").is_visible()
    assert page.locator("#methods table").last.is_visible()
    context.close()


def test_a_machine_without_chromium_skips_unless_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("L2CALIB_BROWSER_REQUIRED", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium on the PATH"):
        executable()
    monkeypatch.setenv("L2CALIB_BROWSER_REQUIRED", "1")
    with pytest.raises(pytest.fail.Exception, match="no Chromium on the PATH"):
        executable()
