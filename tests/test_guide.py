"""The guide builds without a warning, asks nobody for anything, leads nowhere that is not there, and its code runs."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import l2calib
from tests import guide

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if guide.blocks(page, "python", "console")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, run):
    guide.lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    guide.run_page(page, run)


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
