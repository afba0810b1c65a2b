"""The columns of a CSV file, as text: what is in the cells is for the data to judge."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from l2calib.errors import DataError
from l2calib.problem.data import rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_columns(path: Path) -> dict[str, list[str]]:
    """Read a CSV file with a header, and refuse one whose columns are ambiguous."""
    header, *lines = read_lines(path)
    for fault in column_faults(path, header, lines):
        raise fault
    return by_name(header, lines)


def by_name(header: list[str], lines: list[list[str]]) -> dict[str, list[str]]:
    """Return the columns of lines that have one cell per name."""
    return {name: [line[column] for line in lines] for column, name in enumerate(header)}


def column_faults(path: Path, header: list[str], lines: list[list[str]]) -> Iterator[DataError]:
    """Every reason why the cells of a CSV file cannot be put into columns."""
    try:
        _check_header(path, header)
    except DataError as error:
        yield error
        return
    for name in sorted({name for name in header if header.count(name) > 1}):
        yield DataError(f"the data file '{path}' has more than one column '{name}'; keep or rename one of them.")
    uneven = np.array([row for row, line in enumerate(lines) if len(line) != len(header)], dtype=int)
    if uneven.size:
        yield DataError(
            f"the data file '{path}' has {len(header)} columns, but {len(lines[uneven[0]])} cells in {rows(uneven)}; "
            "give every row one cell per column."
        )


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) == 1 and any(sign in header[0] for sign in ";\t"):
        raise DataError(
            f"the data file '{path}' does not separate its columns by commas: its header is {header[0]!r:.60}; "
            "save it with commas, and points in its numbers."
        )
    if all(_is_number(name) for name in header):
        raise DataError(
            f"the data file '{path}' has no header: its first line is {', '.join(header)!r:.60}; "
            "name the columns there."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_lines(path: Path) -> list[list[str]]:
    """Read the cells of a CSV file line by line, the header first."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    except FileNotFoundError:
        raise DataError(f"the data file '{path}' does not exist; its path is relative to the spec.") from None
    except OSError as error:
        raise DataError(f"the data file '{path}' cannot be read: {error.strerror}; name a CSV file.") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"the data file '{path}' is not CSV text in UTF-8; save it as such.") from None
    except ValueError:
        raise DataError(f"the name of the data file is {str(path)!r}, which no file can have; correct it.") from None
    if len(lines) < 2:
        raise DataError(f"the data file '{path}' has no observations; give a header and a row for each observation.")
    return lines
