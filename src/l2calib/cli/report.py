"""The command that writes a report: one HTML page of a run or of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from l2calib.cli.terminal import failures_as_sentences, show, silent_stdout
from l2calib.errors import SpecError


def report(
    place: Annotated[
        str,
        typer.Argument(metavar="DIR", help="A folder that calibrate, compare or study has written, or a summary file."),
    ],
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE.html", help="Where the page goes.", show_default="DIR/report.html"),
    ] = None,
) -> None:
    """Write one self-contained HTML page on a run or a study, and print its path."""
    with failures_as_sentences():
        if not place or out == "":  # a variable of the shell that was never set
            raise SpecError("a folder or file has no name: received an empty one; name it.")
        from l2calib.cli.files import write_text
        from l2calib.report import default_file, page_of

        file = default_file(Path(place)) if out is None else Path(out)
        with silent_stdout():
            page = page_of(Path(place))
        write_text(file, page, "the report")
        show(str(file))
