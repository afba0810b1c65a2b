"""Results read from disk again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from l2calib.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from l2calib.problem.problem import Problem
    from l2calib.results.calibration import Calibration


def load(path: str | os.PathLike[str], problem: Problem | None = None) -> Calibration:
    """The result that `Calibration.save` wrote.

    Without its problem it can all but predict; with it, it is as it was, but for draws beyond those that were kept.
    """
    from l2calib.results.belonging import check_belongs  # here, since a report reads trees without JAX
    from l2calib.results.saved import Held, restored

    held = Held(str(path), read_tree(path))
    result = restored(held, problem)
    if problem is not None:
        check_belongs(problem, held)
    return result


def read_tree(path: str | os.PathLike[str]) -> xr.DataTree:
    """All that a result's file holds, read into memory; DataError if it cannot be read."""
    import xarray as xr

    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            return tree.load()
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:  # by what is damaged where
        raise DataError(
            f"the result '{path}' {_found(Path(path), error)}; give a file that was written by save or --out."
        ) from error


def _found(path: Path, error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "may not be read"
    if path.is_dir():
        return "is a folder"
    return "is no NetCDF file, or a damaged one" if path.exists() else "does not exist"
