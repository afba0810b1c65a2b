"""Columns of numbers from a CSV file."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from l2calib.errors import DataError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})


def read_columns(path: Path, wanted: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Read the wanted columns; an empty or NA cell becomes NaN, which the problem then reports."""
    header, *rows = _lines(path)
    for name in wanted:
        if name not in header:
            raise DataError(
                f"the data file '{path}' has no column '{name}'{suggest(name, header)}; "
                f"its columns are {', '.join(header)}."
            )
        if header.count(name) > 1:
            raise DataError(
                f"the data file '{path}' has {header.count(name)} columns called '{name}'; keep or rename one."
            )
    uneven = [row for row, cells in enumerate(rows, start=1) if len(cells) != len(header)]
    if uneven:
        raise DataError(
            f"the data file '{path}' has {len(header)} columns, but {listed(uneven)} of it another number of cells."
        )
    return {name: _numbers(path, name, [row[header.index(name)] for row in rows]) for name in wanted}


def listed(rows: Sequence[int], most: int = 5) -> str:
    """Name rows (counted from 1, below the header), the first few of many."""
    names = ", ".join(str(row) for row in rows[:most])
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {names}{more}"


def _lines(path: Path) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    except FileNotFoundError:
        raise DataError(f"the data file '{path}' does not exist; paths are relative to the spec.") from None
    except OSError as error:
        raise DataError(f"the data file '{path}' cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"the data file '{path}' is not CSV text in UTF-8; save it as such.") from None
    if not lines:
        raise DataError(f"the data file '{path}' is empty; it needs a header and a row for each observation.")
    return lines


def _numbers(path: Path, name: str, cells: Sequence[str]) -> NDArray[np.float64]:
    values = [_number(cell) for cell in cells]
    wrong = [row for row, value in enumerate(values, start=1) if value is None]
    if wrong:
        raise DataError(
            f"column '{name}' of '{path}' is not a number in {listed(wrong)} "
            f"(received {cells[wrong[0] - 1]!r:.40}); correct or drop them."
        )
    return np.array(values, dtype=np.float64)


def _number(cell: str) -> float | None:
    if cell.lower() in _MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return None
