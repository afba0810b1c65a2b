"""A prediction with its labels: the model, the system and the bias at new inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.display import html as markup
from l2calib.errors import DataError, MethodError
from l2calib.posterior.band import Band, Bands
from l2calib.problem.data import Box, column

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LEVEL = 0.95  # of a band, unless told otherwise
_SHOWN_POINTS = 10


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a calibration says at some inputs (dict of columns), each as a mean and an interval of probability `level`.

    `model` is eta(x; theta), `system` is mu(x), the model corrected for its bias, and `bias` is mu(x) - eta(x; theta).
    """

    inputs: dict[str, np.ndarray]
    model: Band
    system: Band
    bias: Band
    level: float

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The inputs, then model, model_low, model_high, and so on; an input of such a name becomes input_NAME."""
        bands: dict[str, np.ndarray] = {}
        for name in Bands._fields:
            band: Band = getattr(self, name)
            bands |= {name: band.mean, f"{name}_low": band.low, f"{name}_high": band.high}
        return {f"input_{name}" if name in bands else name: values for name, values in self.inputs.items()} | bands

    def to_frame(self) -> pd.DataFrame:
        """One row per point."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def to_dataset(self, dimension: str) -> xr.Dataset:
        """One variable per column."""
        import xarray as xr

        variables = {tree_name(name): (dimension, values) for name, values in self.columns.items()}
        return xr.Dataset(variables, attrs={"level": self.level})

    def __repr__(self) -> str:
        return f"Prediction({len(self.model.mean)} points, {100 * self.level:g}% bands)\n{self.to_frame()}"

    def _repr_html_(self) -> str:
        columns, points = self.columns, len(self.model.mean)
        rows = list(zip(*(values[:_SHOWN_POINTS].tolist() for values in columns.values()), strict=True))
        more = [markup.paragraph(f"and {points - len(rows)} more points")] if points > len(rows) else []
        title = f"Prediction at {points} points with {100 * self.level:g}% bands"
        return markup.block(title, markup.table(tuple(columns), rows), *more)


def tree_name(name: str) -> str:
    """A column's name in a DataTree, where a slash would be a path."""
    return name.replace("/", "_")


def points_of(x: Any, box: Box) -> np.ndarray:
    """The points (N, k) that a frame or mapping of input columns holds, in physical units."""
    columns = [column(x, name) for name in box.names]
    lengths = {name: len(values) for name, values in zip(box.names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"'{name}' has {length}" for name, length in lengths.items())
        raise DataError(f"the inputs differ in their number of values: {said}; give one of each for every point.")
    points = np.column_stack(columns)
    if not len(points):
        raise DataError("there is no point to predict at: received empty columns; give at least one value.")
    box.check_inside(points)
    return points


def along(box: Box, name: str, number: int) -> dict[str, np.ndarray]:
    """Columns of points along one input, the others at the middle of their ranges."""
    middles = zip(box.names, box.from_unit(np.full(len(box.names), 0.5)), strict=True)
    j = box.names.index(name)
    line = np.linspace(box.low[j], box.high[j], number)
    return {each: np.full(number, middle) for each, middle in middles} | {name: line}


def checked_level(level: Any) -> float:
    """The probability of an interval as a float; MethodError if it is none."""
    try:
        value = float("nan") if isinstance(level, str | bool) else float(level)
    except (TypeError, ValueError):
        value = float("nan")
    if not 0 < value < 1:
        raise MethodError(f"the level of a band must lie between 0 and 1: received {level!r:.60}; give 0.95, say.")
    return value
