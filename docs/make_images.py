"""Take the pictures of the report in this folder: python -m docs.make_images [RUN].

RUN is a folder that `l2calib calibrate wiffle --method gb-l2 --method koh --out RUN` has written; without it, it is
made. Needs Chromium, and pdftoppm of poppler for the printed page.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import chromium, launched

from l2calib.report import page_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = Path(__file__).parent / "images"
CALIBRATE = ("calibrate", "wiffle", "--method", "gb-l2", "--method", "koh", "--out")


def main() -> None:
    """Make all three."""
    executable, to_png = chromium(), shutil.which("pdftoppm")
    if executable is None or to_png is None:
        sys.exit("Chromium and pdftoppm are needed on the PATH.")
    with tempfile.TemporaryDirectory() as name, launched(executable) as browser:
        folder = Path(name)
        page = folder / "report.html"
        page.write_text(page_of(_run(folder)), encoding="utf-8")
        _screenshot(browser, page, "desktop", 1280, 1500)
        _screenshot(browser, page, "phone", 360, 1500)
        _print(browser, page, to_png)


def _run(folder: Path) -> Path:
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    command = [str(Path(sys.executable).with_name("l2calib")), *CALIBRATE, str(folder / "run")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  our own command
    return folder / "run"


def _screenshot(browser: Browser, page: Path, name: str, width: int, height: int) -> None:
    shown = browser.new_page(viewport={"width": width, "height": height})
    shown.goto(page.as_uri())
    shown.screenshot(path=IMAGES / f"report-{name}.png")
    shown.close()


def _print(browser: Browser, page: Path, to_png: str) -> None:
    shown = browser.new_page()
    shown.goto(page.as_uri())
    shown.pdf(path=page.with_suffix(".pdf"), format="A4")
    shown.close()
    options = ["-png", "-r", "96", "-f", "1", "-l", "1", "-singlefile"]
    subprocess.run([to_png, *options, page.with_suffix(".pdf"), IMAGES / "report-print"], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
