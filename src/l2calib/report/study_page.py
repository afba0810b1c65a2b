"""The page of a study: its figures, its times and the paper's claims."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from l2calib.display.words import counted, listed
from l2calib.methods.catalogue import labels_of
from l2calib.report.charts import Axis, Chart, Mark, Table, rule, series, span
from l2calib.report.methods import prose
from l2calib.report.words import NOTHING, rounded, short
from l2calib.study.claims import by_group, claims_table, counts
from l2calib.study.claims.cells import NOMINAL, paper_rows
from l2calib.study.error_laws import ERRORS_IN_WORDS
from l2calib.study.scales import COVERAGES, stretch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from l2calib.study.record import Record

_SIZE = "observations, n"
_SE_DIGITS = 2  # a Monte Carlo error is itself known to a percent or so
_BARS = "Bars: 2 Monte Carlo standard errors."


def study_page(name: str, frame: pd.DataFrame, record: Record | None) -> dict[str, Any]:
    """What the template of a study is filled with."""
    frame = frame.assign(configuration=frame["configuration"].astype(str))
    configurations, laws = (list(dict.fromkeys(frame[column])) for column in ("configuration", "errors"))
    return {
        "title": f"Study: {name}",
        "sentence": _sentence(frame),
        "problems": frame.attrs.get("problems", []),
        "methods": list(labels_of(frame["method"])),
        "choosers": [
            {"name": "configuration", "legend": "Configuration", "options": configurations},
            {"name": "errors", "legend": "Errors", "options": [ERRORS_IN_WORDS.get(law, law) for law in laws]},
        ],
        "groups": [
            _group(rows, configuration, law, {"configuration": i, "errors": j})
            for i, configuration in enumerate(configurations)
            for j, law in enumerate(laws)
            if len(rows := frame[(frame["configuration"] == configuration) & (frame["errors"] == law)])
        ],
        "claims": _claims(frame),
        "made_with": _facts(frame),
        "commands": [request["command"] for request in record.requests] if record else [],
        "versions": record.versions if record else {},
    }


def _sentence(frame: pd.DataFrame) -> str:
    configurations, methods = frame["configuration"].nunique(), frame["method"].nunique()
    sizes = sorted(set(frame["n"]))
    between = f"n = {sizes[0]}" if len(sizes) == 1 else f"n between {sizes[0]} and {sizes[-1]}"
    return (
        f"{counted(methods, 'method')} on {counted(configurations, 'configuration')}, {between}, "
        f"{_replications(frame)} simulated datasets of each kind: where the posterior means lie, how wide the "
        "posteriors are, and how often their 95% intervals hold the target."
    )


def _replications(rows: pd.DataFrame) -> str:
    fewest, most = int(rows["replications"].min()), int(rows["replications"].max())
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def _group(rows: pd.DataFrame, configuration: str, law: str, when: dict[str, int]) -> dict[str, Any]:
    """What is shown for one configuration and one error law."""
    rows = rows.sort_values("n", kind="stable")
    where = f"configuration {configuration}, {ERRORS_IN_WORDS.get(law, law)}"
    parameters = dict.fromkeys(rows["parameter"])
    panels = {name: _panels(rows[rows["parameter"] == name], name, where) for name in parameters}
    return {
        "title": f"Configuration {configuration}, {ERRORS_IN_WORDS.get(law, law)}",
        "when": when,
        "failed": int(rows.drop_duplicates(["n", "method"])["failed"].sum()),
        "replications": _replications(rows),
        "parameters": [{"name": symbol(name), "charts": charts} for name, charts in panels.items()],
        "time": _times(rows.drop_duplicates(["n", "method"]), where),
    }


def _panels(rows: pd.DataFrame, parameter: str, where: str) -> list[Chart]:
    of = f"of {parameter} against n: {where}"
    target = float(rows["target"].iloc[0])
    width = stretch(rows["mean_posterior_mean"], rows["method"], target)
    mean = Axis("", "stretched" if width else "linear", include=(target,), centre=target, width=width or 1.0)
    reach = 2 * np.sqrt(NOMINAL * (1 - NOMINAL) / max(int(rows["replications"].min()), 1))
    noise = span(NOMINAL - reach, min(NOMINAL + reach, 1.0), "Monte Carlo error of a coverage of 0.95")
    coverage = Axis("", "missed", ticks=COVERAGES, include=(NOMINAL,))
    return [
        Chart(
            "Mean posterior mean",
            f"Mean posterior mean {of}",
            _sizes(rows),
            mean,
            [rule("y", target, "target"), *_marks(rows, "mean_posterior_mean", "bias_se")],
            _table(rows, "mean_posterior_mean", "bias_se"),
            f"Line: the target, {short(target, 6)}. {_BARS}",
        ),
        Chart(
            "Mean posterior sd, on a log scale",
            f"Mean posterior standard deviation {of}",
            _sizes(rows),
            Axis("", "log"),
            _marks(rows, "mean_posterior_sd", "mean_posterior_sd_se"),
            _table(rows, "mean_posterior_sd", "mean_posterior_sd_se"),
            _BARS,
        ),
        Chart(
            "Coverage of 95% intervals",
            f"Coverage of 95% intervals {of}",
            _sizes(rows),
            coverage,
            [noise, rule("y", NOMINAL, "nominal"), *_marks(rows, "coverage", "coverage_se")],
            _table(rows, "coverage", "coverage_se"),
            f"Line: 0.95, with its Monte Carlo error. {_BARS}",
        ),
    ]


def _times(rows: pd.DataFrame, where: str) -> Chart:
    return Chart(
        "Seconds per calibration, on a log scale",
        f"Computing time of a calibration against n: {where}",
        _sizes(rows),
        Axis("", "log"),
        _marks(rows, "seconds_per_calibration", None),
        _table(rows, "seconds_per_calibration", None),
        "The time of a batch, once compiled and prepared, divided by the number of its datasets.",
        shape="wide",
    )


def _sizes(rows: pd.DataFrame) -> Axis:
    return Axis(_SIZE, ticks=tuple(sorted(float(n) for n in set(rows["n"]))))


def _marks(rows: pd.DataFrame, column: str, error: str | None) -> list[Mark]:
    sizes = sorted(set(rows["n"]))
    return [_series(rows[rows["method"] == name], name, column, error, sizes) for name in labels_of(rows["method"])]


def _series(rows: pd.DataFrame, method: str, column: str, error: str | None, sizes: list[int]) -> Mark:
    there = rows.drop_duplicates("n").set_index("n").reindex(sizes)
    if error is None:
        return series(method, there[column])
    return series(method, there[column], reach=2 * there[error].fillna(0.0))


def _table(rows: pd.DataFrame, column: str, error: str | None) -> Table:
    names = labels_of(rows["method"])
    cells = {
        (row["n"], row["method"]): _cell(row[column], None if error is None else row[error])
        for row in rows.to_dict("records")
    }
    sizes = sorted(set(rows["n"]))
    body = [[str(n), *(cells.get((n, method), NOTHING) for method in names)] for n in sizes]
    return Table(["n", *names.values()], body)


def _cell(value: float, se: float | None) -> str:
    if se is None or not (np.isfinite(se) and se > 0):
        return short(value, 6 if se is not None else 3)
    return f"{rounded(value, se, _SE_DIGITS)} ± {rounded(se, se, _SE_DIGITS)}"


def _claims(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The verdicts with their evidence; none for a study of configurations of one's own."""
    if paper_rows(frame).empty:
        return []
    return [
        {
            "number": claim.number,
            "text": claim.text,
            "verdict": claim.verdict,
            "looked_at": claim.looked_at,
            "parts": [
                {
                    "letter": part.letter,
                    "text": part.text,
                    "verdict": part.verdict,
                    "rule": part.rule,
                    "counts": counts(part),
                    "table": None if part.cells.empty else Table(*by_group(part), names=len(part.by)),
                }
                for part in claim.parts
            ],
        }
        for claim in claims_table(frame)
    ]


def _facts(frame: pd.DataFrame) -> list[tuple[str, str]]:
    def all_of(column: str, values: Sequence[Any] | None = None) -> str:
        return listed([str(each) for each in values or dict.fromkeys(frame[column])])

    return [
        ("Configurations", all_of("configuration")),
        ("Sizes n", all_of("n", sorted(set(frame["n"])))),
        ("Errors", all_of("errors")),
        ("Methods", listed([prose(method) for method in labels_of(frame["method"])])),
        ("Datasets of each kind", _replications(frame)),
        ("Levels of the designs", all_of("levels")),
        ("Seed", all_of("seed")),
    ]


def symbol(parameter: str) -> str:
    """The name with a Greek theta where it is one."""
    index = re.fullmatch(r"theta_?(\d*)", parameter)
    return parameter if index is None else "θ" + index[1].translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
