"""A run or a study as one self-contained HTML page, made from its files alone."""

from __future__ import annotations

from pathlib import Path

from l2calib.errors import SpecError

__all__ = ["default_file", "page_of"]


def page_of(place: Path) -> str:
    """The page of a run's folder, a study's folder, or a file of a study's summary."""
    if place.is_dir() and (place / "results.json").exists():
        return _run(place)
    if place.is_file() or (place / "study.json").exists():
        return _study(place)
    found = "holds neither results.json nor study.json" if place.is_dir() else "does not exist"
    raise SpecError(
        f"there is nothing to report on in '{place}', which {found}; name a folder that "
        "'calibrate --out', 'compare --out' or 'study' has written, or a summary of a study."
    )


def default_file(place: Path) -> Path:
    """Where the page goes unless told: into the folder, or beside the file."""
    return place.with_suffix(".html") if place.is_file() else place / "report.html"


def _run(folder: Path) -> str:
    from l2calib.report.page import render
    from l2calib.report.run_files import read_run
    from l2calib.report.run_page import run_page

    return render("run.html", run_page(read_run(folder)))


def _study(place: Path) -> str:
    from l2calib.report.page import render
    from l2calib.report.study_page import study_page
    from l2calib.study.storage import Archive
    from l2calib.study.summary import load_summary

    frame = load_summary(place)
    if frame.empty:
        raise SpecError(f"the study '{place}' has no finished block yet, so there is nothing to report; run it first.")
    record = Archive.at(place).record if place.is_dir() else None
    return render("study.html", study_page(place.resolve().name, frame, record))
