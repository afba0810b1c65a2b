"""Observations with units, and their scaling to the unit cube."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from l2calib.errors import DataError, suggest

_MISSING = {"", "na", "n/a", "nan", "nat", "<na>", "null", "none"}


@dataclass(frozen=True)
class Box:
    """The input space: a range in physical units for every named input."""

    ranges: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        given: object = self.ranges
        if not isinstance(given, Mapping) or not given:
            raise DataError(f"no input has a range: received {given!r:.60}; give a mapping such as {{'x': (0, 1)}}.")
        for name, limits in self.ranges.items():
            if not isinstance(name, str):
                raise DataError(f"the name of an input is not text: received {name!r}; rename the column.")
            _check_range(name, limits)

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


def _check_range(name: str, limits: Any) -> None:
    try:
        low, high = (np.nan, np.nan) if isinstance(limits, str) else (float(limit) for limit in limits)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"the range of input '{name}' is not (low, high): received {limits!r:.60}; give two numbers."
        ) from None
    if not (low < high and np.isfinite(high - low)):
        raise DataError(
            f"the range of input '{name}' is empty or infinite: received {limits!r:.60}; "
            "give finite numbers low < high."
        )


def rows(indices: np.ndarray) -> str:
    """'row 4' or 'rows 4, 17, 40': data rows counted from one."""
    shown = ", ".join(str(int(i) + 1) for i in indices[:5])
    more = f" and {len(indices) - 5} more" if len(indices) > 5 else ""
    return f"row{'s' if len(indices) > 1 else ''} {shown}{more}"


def column(data: Any, name: str) -> np.ndarray:
    """A finite float64 column of a frame (pandas, polars) or of a mapping of columns."""
    known = _column_names(data)
    if name not in known:
        raise DataError(
            f"the data have no column '{name}'{suggest(name, known)}: the columns are {', '.join(known) or 'none'}; "
            "name one of them."
        )
    cells = _cells(data[name], name)
    values = np.array([_as_float(cell) for cell in cells], dtype=float)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        kinds = {_trouble(cells[i]) for i in wrong}
        count = f"{wrong.size} {' or '.join(sorted(kinds))} value{'s' if wrong.size > 1 else ''}"
        raise DataError(f"column '{name}' has {count} ({rows(wrong)}); drop or correct them before calibrating.")
    return values


def _column_names(data: Any) -> list[str]:
    is_lazy = hasattr(data, "collect")
    if is_lazy or not (hasattr(data, "columns") or hasattr(data, "keys")):
        remedy = "collect it first" if is_lazy else "give a pandas or polars frame or a mapping of columns"
        raise DataError(f"the data are not a table: received a {type(data).__name__}; {remedy}.")
    return [str(key) for key in (data.columns if hasattr(data, "columns") else data)]


def _cells(raw: Any, name: str) -> list[Any]:
    try:
        array = np.ma.asarray(raw)
    except ValueError:
        raise DataError(f"column '{name}' holds lists of different lengths; give one value per row.") from None
    if array.ndim != 1:
        raise DataError(
            f"column '{name}' is not one-dimensional: received shape {array.shape}; give one value per row."
        )
    # Dates would turn into counts of nanoseconds; masked cells turn into None.
    return list((array.astype(str) if array.dtype.kind in "mM" else array).tolist())


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return float("nan")


def _trouble(value: object) -> str:
    if np.isinf(_as_float(value)):
        return "infinite"
    return "missing" if str(value).strip().lower() in _MISSING else "non-numeric"


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
        if not isinstance(response, str):
            raise DataError(f"the response is not the name of a column: received {response!r:.60}; give one as text.")
        if response in box.names:
            raise DataError(f"'{response}' is both the response and an input; name two different columns.")
        y = observed_response(data, response)
        columns = [observed_input(data, name, limits) for name, limits in box.ranges.items()]
        for name, values in zip(box.names, columns, strict=True):
            if len(values) != len(y):
                raise DataError(
                    f"input '{name}' has {len(values)} values and the response '{response}' has {len(y)}; "
                    "give one input for every response."
                )
        return cls(response, box, np.column_stack(columns), y)


def observed_response(data: Any, response: str) -> np.ndarray:
    """The column of the response; DataError unless it can be calibrated against."""
    y = column(data, response)
    if len(y) > 1 and np.ptp(y) == 0:
        raise DataError(
            f"the response '{response}' is constant: received {y[0]:g} in all {len(y)} rows; "
            "a model cannot be calibrated against it, so name another column."
        )
    return y


def observed_input(data: Any, name: str, limits: tuple[float, float]) -> np.ndarray:
    """The column of an input; DataError unless it lies in its range."""
    x = column(data, name)
    Box({name: limits}).check_inside(x[:, None])
    return x
