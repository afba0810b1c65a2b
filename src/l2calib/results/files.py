"""Results on disk: written whole or not at all, and read again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from l2calib.errors import DataError

if TYPE_CHECKING:
    import xarray as xr


def load(path: str | os.PathLike[str]) -> xr.DataTree:
    """Read what `Calibration.save` wrote."""
    import xarray as xr

    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            return tree.load()
    except OSError as error:
        found = "is no NetCDF file" if Path(path).is_file() else "does not exist"
        raise DataError(f"the result '{path}' {found}; give a file that was written by save or --out.") from error
