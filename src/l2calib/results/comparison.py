"""Several methods side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from l2calib.display import html as markup
from l2calib.results.calibration import SUMMARY_COLUMNS, Calibration

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Comparison:
    """Several methods on one problem."""

    results: list[Calibration]

    def __iter__(self) -> Iterator[Calibration]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def summary(self) -> pd.DataFrame:
        """One row per method and parameter."""
        import pandas as pd

        return pd.concat(
            [result.summary() for result in self.results],
            keys=[result.method for result in self.results],
            names=["method", "parameter"],
        )

    def _repr_html_(self) -> str:
        rows = [
            (result.method, name, *row.values(), str(result.status))
            for result in self.results
            for name, row in result.rows.items()
        ]
        headings = ("method", "parameter", *SUMMARY_COLUMNS, "status")
        return markup.block(f"Comparison of {len(self.results)} methods", markup.table(headings, rows, sd="sd"))
