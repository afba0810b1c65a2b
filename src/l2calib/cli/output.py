"""Results as text: the JSON of the contract, and a table for people."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from l2calib.calibration import Calibration


def as_json(spec: str, seed: int, results: Sequence[Calibration]) -> str:
    """Return one JSON object; what is not a number is null."""
    answer = {"spec": spec, "seed": seed, "results": [_plain(result.as_json()) for result in results]}
    return json.dumps(answer, indent=2, allow_nan=False)


def table(results: Sequence[Calibration]) -> Table:
    """Lay the posteriors out with one row for each method and parameter."""
    from rich import box
    from rich.table import Table

    layout = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("method", "parameter"):
        layout.add_column(heading, no_wrap=True)
    for heading in ("mean", "sd", "2.5%", "50%", "97.5%", "gamma", "sigma2", "seconds"):
        layout.add_column(heading, justify="right", no_wrap=True)
    layout.add_column("status")
    for result in results:
        once = [_short(result.gamma), _short(result.sigma2), f"{result.seconds:.2f}", str(result.status)]
        label = result.method
        for parameter, row in result.summary().iterrows():
            layout.add_row(label, str(parameter), *_rounded(row.to_numpy(dtype=float), row["sd"]), *once)
            label, once = "", ["", "", "", ""]
        layout.add_section()
    return layout


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _rounded(values: Sequence[float], sd: float) -> list[str]:
    """Show three digits of the standard deviation, and everything else to the same place."""
    if not (math.isfinite(sd) and sd > 0):
        return [_short(value) for value in values]
    places = 2 - math.floor(math.log10(sd))
    return [f"{value:.{places}f}" if 0 <= places <= 6 else f"{value:.6g}" for value in values]


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
