"""Put the committed study into the guide: python -m docs.make_results.

From results/paper/summary.csv come the figures, the claims and the tables on which the advice rests; from
results/paper/intervals.csv how the intervals of `l2` cover.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from benchmarks.table import between_markers

from l2calib.display.numbers import short
from l2calib.methods.catalogue import COMPARED
from l2calib.study.claims import as_markdown, claims_table, wiffle_evidence
from l2calib.study.figures import write_figures
from l2calib.study.summary import load_summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from l2calib.study.claims import Wiffle

DOCS = Path(__file__).parent
SUMMARY = DOCS.parent / "results" / "paper" / "summary.csv"
INTERVALS = SUMMARY.with_name("intervals.csv")
FIGURES = DOCS / "images" / "study"
SHOWN = (*(f"configuration-{number}-normal.svg" for number in range(1, 5)), "times.svg", "error-laws.svg")
SIZES = (20, 100, 200)
SIZES_OF_INTERVALS = (20, 40, 60, 100, 200)
NOMINAL = 0.95
INTRODUCTION = (
    "What [the real run](results.md) says of the paper's nine claims: the answer of "
    "`l2calib study claims results/paper/summary.csv`."
)


def coverage(cell: pd.DataFrame, column: str = "coverage") -> str:
    """Of the parameter where it is furthest from nominal."""
    return f"{cell[column].iloc[int((cell[column] - NOMINAL).abs().to_numpy().argmax())]:.2f}"


def told(cell: pd.DataFrame) -> str:
    """How often the status tells of interpolation, and the coverage where it does not."""
    share = cell["interpolated"].iloc[0] / cell["replications"].iloc[0]
    return f"{share:.1%}: {coverage(cell, 'coverage_otherwise')}"


def error(cell: pd.DataFrame) -> str:
    """The root mean square error of the posterior mean over that of general Bayes L2, the worst parameter."""
    return f"{cell['relative_error'].max():.2f}"


def milliseconds(cell: pd.DataFrame) -> str:
    """Of one calibration in a batch on one core."""
    return short(1000 * cell["seconds_per_calibration"].iloc[0], 2)


def with_relative_error(frame: pd.DataFrame) -> pd.DataFrame:
    """The summary, with the error of the posterior mean relative to that of general Bayes L2."""
    key = ["configuration", "n", "errors", "parameter"]
    total = frame.assign(total=(frame["bias"] ** 2 + frame["sampling_sd"] ** 2) ** 0.5)
    reference = total[total["method"] == "gb-l2"][[*key, "total"]].rename(columns={"total": "reference"})
    return total.merge(reference, on=key).assign(relative_error=lambda rows: rows["total"] / rows["reference"])


def by_method(frame: pd.DataFrame, what: Callable[[pd.DataFrame], str]) -> str:
    """One number for every method, configuration and size, with normal errors."""
    rows = frame[(frame["errors"] == "normal") & frame["n"].isin(SIZES)]
    columns = list(rows.groupby(["configuration", "n"]).groups)
    cells = dict(list(rows.groupby(["method", "configuration", "n"])))
    heads = [f"{configuration}, n = {n}" for configuration, n in columns]
    return markdown(
        ["method", *heads],
        [
            [method, *(what(cells[method, *each]) if (method, *each) in cells else "" for each in columns)]
            for method in COMPARED
        ],
    )


def by_size(frame: pd.DataFrame, method: str, what: Callable[[pd.DataFrame], str]) -> str:
    """One entry for every configuration and size, of one method with normal errors."""
    rows = frame[(frame["errors"] == "normal") & (frame["method"] == method)]
    cells = dict(list(rows.groupby(["configuration", "n"])))
    configurations, sizes = (sorted(set(each)) for each in zip(*cells, strict=True))
    heads = ["configuration", *(f"n = {n}" for n in sizes)]
    return markdown(heads, [[each, *(what(cells[each, n]) for n in sizes)] for each in configurations])


def markdown(heads: list[str], rows: list[list[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def evidence(frame: pd.DataFrame) -> str:
    """The tables behind the advice, each with what it shows."""
    full = with_relative_error(frame)
    parts = [
        f"Coverage of the 95% interval; of several parameters, the one furthest from {NOMINAL}:",
        by_method(full, coverage),
        "Root mean square error of the posterior mean, over that of gb-l2; of several parameters, the worst:",
        by_method(full, error),
        "How often the status is `near-interpolation`, and the coverage of gb-l2's intervals in the other datasets:",
        by_size(full, "gb-l2", told),
        "Milliseconds per calibration in a batch, on one core:",
        by_method(full, milliseconds),
    ]
    return "\n\n".join(parts)


def methods_page(frame: pd.DataFrame) -> str:
    """The page on the choice of a method, with its evidence."""
    return between_markers((DOCS / "methods.md").read_text(encoding="utf-8"), evidence(frame), "study")


def intervals_table(frame: pd.DataFrame) -> str:
    """By configuration and size, over all error laws and parameters."""
    heads = ["configuration", "n", "coverage", "median length", "spread of the means", "another basin", "ok"]
    rows = []
    for (configuration, n), cell in frame[frame["n"].isin(SIZES_OF_INTERVALS)].groupby(["configuration", "n"]):
        rows.append(
            [
                str(configuration),
                str(n),
                f"{cell['coverage'].min():.3f} to {cell['coverage'].max():.3f}",
                f"{cell['length_over_oracle'].max():.2f}",
                f"{cell['spread_over_oracle'].max():.2f}",
                f"{cell['astray'].max():.1%}",
                f"{cell['ok'].min():.1%}",
            ]
        )
    return markdown(heads, rows)


def l2_page(frame: pd.DataFrame) -> str:
    """The page on the method `l2`, with how it covers."""
    return between_markers((DOCS / "l2.md").read_text(encoding="utf-8"), intervals_table(frame), "intervals")


def claims_page(frame: pd.DataFrame, wiffle: Wiffle | None) -> str:
    """What `l2calib study claims` says of the study, as a page."""
    return f"# The paper's claims, tested\n\n{INTRODUCTION}\n\n{as_markdown(claims_table(frame, wiffle))}"


def main() -> None:
    """Write the figures, the page of the claims and the tables."""
    frame = load_summary(SUMMARY)
    FIGURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FIGURES) as name:
        for path in write_figures(frame, Path(name)):
            if path.name in SHOWN:
                path.replace(FIGURES / path.name)
    (DOCS / "claims.md").write_text(claims_page(frame, wiffle_evidence()), encoding="utf-8")
    (DOCS / "methods.md").write_text(methods_page(frame), encoding="utf-8")
    (DOCS / "l2.md").write_text(l2_page(pd.read_csv(INTERVALS)), encoding="utf-8")


if __name__ == "__main__":
    main()
