"""Results as files: each whole or not there, and none before all are ready."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from l2calib.errors import SpecError
from l2calib.results.writing import staged, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from l2calib.results.calibration import Calibration


def check_writable(folder: Path) -> None:
    """Raise SpecError now, not after the work, if results cannot be put into `folder`."""
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise SpecError(f"the results cannot go into '{folder}' because '{nearest}' is a file; name another folder.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise SpecError(
            f"the results cannot go into '{folder}' because '{nearest}' is not writable; name another folder."
        )


def write(folder: Path, texts: Mapping[str, str], results: Sequence[Calibration]) -> list[Path]:
    """Write texts by their names, a NetCDF file per method and the figure, and return their paths."""
    from l2calib.plots import plot_calibration, save_figure

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with staged(folder) as staging:
            for file, text in texts.items():
                (staging / file).write_text(text + "\n", encoding="utf-8")
            for result in results:
                result.save(staging / f"{result.method}.nc")
            save_figure(plot_calibration(results), staging / "calibration")
            written = [folder / path.name for path in sorted(staging.iterdir())]
            _refuse_folders(written, folder)
            return written  # when they have moved
    except OSError as error:
        raise SpecError(f"the results cannot be written into '{folder}': {error.strerror or error}.") from None


def _refuse_folders(written: Sequence[Path], folder: Path) -> None:
    for path in written:
        if path.is_dir():
            raise SpecError(
                f"the results cannot go into '{folder}' because '{path.name}' is a folder there; name another folder."
            )


def write_text(file: Path, text: str, what: str) -> None:
    """Write one file."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode())
    except OSError as error:
        raise SpecError(f"{what} cannot be written as '{file}': {error.strerror or error}.") from None
