"""Results as text: the JSON of the contract, and a table for people."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from l2calib.display.numbers import rounded, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pandas as pd
    from rich.console import Group
    from rich.table import Table

    from l2calib.results.calibration import Calibration


def as_json(spec: str, seed: int, results: Sequence[Calibration]) -> str:
    """Return one JSON object; what is not a number is null."""
    answer = {"spec": spec, "seed": seed, "results": [_plain(result.as_json()) for result in results]}
    return json.dumps(answer, indent=2, allow_nan=False)


def run_json(origin: dict[str, Any], seed: int, results: Sequence[Calibration]) -> str:
    """Return one JSON object that says where the results come from."""
    from l2calib.cli.provenance import provenance

    return json.dumps(_plain(provenance(origin, seed, results)), indent=2, allow_nan=False)


def tables(results: Sequence[Calibration]) -> Group:
    """Lay the results out: the posteriors by method and parameter, and below them what each method learnt besides."""
    from rich.console import Group

    posteriors = _table(["method", "parameter"], ["mean", "sd", "2.5%", "50%", "97.5%"])
    besides = _table(["method"], ["gamma", "sigma2", "seconds"])
    besides.add_column("status")
    for result in results:
        label = result.method
        for parameter, row in result.rows.items():
            posteriors.add_row(label, parameter, *(rounded(value, row["sd"]) for value in row.values()))
            label = ""
        posteriors.add_section()
        numbers = [short(result.gamma), short(result.sigma2), f"{result.seconds:.2f}"]
        besides.add_row(result.method, *numbers, str(result.status))
    return Group(posteriors, besides)


def summary_json(study: str, frame: pd.DataFrame) -> str:
    """Return one JSON object with the rows of a study's summary; what is not a number is null."""
    return json.dumps(_plain({"study": study, "rows": frame.to_dict("records")}), indent=2, allow_nan=False)


def summary_table(frame: pd.DataFrame) -> Table:
    """Lay out the summary of a study: all but what only a program would ask for."""
    words = ["configuration", "n", "errors", "method", "parameter"]
    numbers = ["datasets", "failed", "mean", "sd", "coverage", "±", "bias", "sampling sd", "ms"]
    table = _table(["", *words[1:]], numbers)
    table.padding = 0  # so that it fits a terminal
    before = None
    for row in frame.to_dict("records"):
        names = [str(row[word]) for word in words]
        if before is not None and names[:3] != before:
            table.add_section()
        before = names[:3]
        table.add_row(
            *names,
            str(row["replications"]),
            str(row["failed"]),
            *(rounded(row[name], row["mean_posterior_sd"]) for name in ("mean_posterior_mean", "mean_posterior_sd")),
            f"{row['coverage']:.3f}",
            f"{row['coverage_se']:.3f}",
            *(rounded(row[name], row["sampling_sd"]) for name in ("bias", "sampling_sd")),
            short(1000 * row["seconds_per_calibration"], 3),
        )
    return table


def plan_table(rows: Sequence[tuple[str, str, int, int]]) -> Table:
    """Lay out what a study would compute: configuration, method, blocks in all, and those of them that are there."""
    table = _table(["configuration", "method"], ["blocks", "there", "missing"])
    for configuration, method, blocks, there in rows:
        table.add_row(configuration, method, f"{blocks:,}", f"{there:,}", f"{blocks - there:,}")
    blocks, there = sum(row[2] for row in rows), sum(row[3] for row in rows)
    table.add_section()
    table.add_row("all", "", f"{blocks:,}", f"{there:,}", f"{blocks - there:,}")
    return table


def design_csv(design: np.ndarray) -> str:
    """Return a design (n, k) with every digit, a point in a line."""
    header = ",".join(f"x{j + 1}" for j in range(design.shape[1]))
    lines = [",".join(repr(value) for value in point) for point in design.tolist()]
    return "\n".join([header, *lines]) + "\n"


def _table(words: Sequence[str], numbers: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
