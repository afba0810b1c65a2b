"""Observations with units, and their scaling to the unit cube."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from l2calib.errors import DataError, suggest


@dataclass(frozen=True)
class Box:
    """The input space: a range in physical units for every named input."""

    ranges: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        if not self.ranges:
            raise DataError("no input is named: received an empty mapping; give a range for at least one input.")
        for name, limits in self.ranges.items():
            try:
                low, high = (float(limit) for limit in limits)
            except (TypeError, ValueError):
                raise DataError(f"the range of input '{name}' is not (low, high): received {limits!r}.") from None
            if not (np.isfinite([low, high]).all() and low < high):
                raise DataError(f"the range of input '{name}' is empty: received ({low}, {high}); give low < high.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.ranges)

    @property
    def low(self) -> np.ndarray:
        return np.array([float(low) for low, _ in self.ranges.values()])

    @property
    def high(self) -> np.ndarray:
        return np.array([float(high) for _, high in self.ranges.values()])

    def to_unit(self, x: np.ndarray) -> np.ndarray:
        return np.asarray((x - self.low) / (self.high - self.low))

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(self.low + (self.high - self.low) * u)

    def check_inside(self, x: np.ndarray) -> None:
        """Raise DataError when a row of x (n, k) lies outside."""
        for j, name in enumerate(self.names):
            outside = np.flatnonzero((x[:, j] < self.low[j]) | (x[:, j] > self.high[j]))
            if outside.size:
                raise DataError(
                    f"input '{name}' leaves its range [{self.low[j]:g}, {self.high[j]:g}] in {rows(outside)}: "
                    f"received {x[outside[0], j]:g}; widen the range or drop the rows."
                )


def rows(indices: np.ndarray) -> str:
    """'row 4' or 'rows 4, 17, 40': data rows counted from one."""
    shown = ", ".join(str(int(i) + 1) for i in indices[:5])
    more = f" and {len(indices) - 5} more" if len(indices) > 5 else ""
    return f"row{'s' if len(indices) > 1 else ''} {shown}{more}"


def column(data: Any, name: str) -> np.ndarray:
    """A finite float64 column of a frame (pandas, polars) or of a mapping of columns."""
    known = [str(key) for key in (data.columns if hasattr(data, "columns") else data)]
    if name not in known:
        raise DataError(
            f"the data have no column '{name}'{suggest(name, known)}: the columns are {', '.join(known) or 'none'}."
        )
    raw = np.asarray(data[name])
    if raw.ndim != 1:
        raise DataError(f"column '{name}' is not one-dimensional: received shape {raw.shape}; give one value per row.")
    values = np.array([_as_float(value) for value in raw.tolist()])
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        kinds = {_trouble(raw.tolist()[i]) for i in wrong}
        count = f"{wrong.size} {' or '.join(sorted(kinds))} value{'s' if wrong.size > 1 else ''}"
        raise DataError(f"column '{name}' has {count} ({rows(wrong)}); drop or correct them before calibrating.")
    return values


def _as_float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _trouble(value: object) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        return "missing"
    if isinstance(value, str) and np.isnan(_as_float(value)):
        return "missing" if value.strip().lower() in ("na", "nan", "null", "none") else "non-numeric"
    return "missing" if np.isnan(_as_float(value)) else "infinite"


@dataclass(frozen=True, eq=False)
class Observations:
    """Responses y (n,) at inputs x (n, k), in physical units, with the names that they had."""

    response: str
    box: Box
    x: np.ndarray
    y: np.ndarray

    @classmethod
    def from_columns(cls, data: Any, response: str, box: Box) -> Observations:
        """Read and check the response and the inputs of a frame or mapping."""
        if response in box.names:
            raise DataError(f"'{response}' is both the response and an input; name two different columns.")
        y = column(data, response)
        columns = [column(data, name) for name in box.names]
        for name, values in zip(box.names, columns, strict=True):
            if len(values) != len(y):
                raise DataError(
                    f"input '{name}' has {len(values)} values and the response '{response}' has {len(y)}; "
                    "give one input for every response."
                )
        x = np.column_stack(columns)
        box.check_inside(x)
        if len(y) and np.ptp(y) == 0:
            raise DataError(
                f"the response '{response}' is constant: received {y[0]:g} in all {len(y)} rows; "
                "a model cannot be calibrated against it."
            )
        return cls(response, box, x, y)
