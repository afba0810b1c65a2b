"""The numbers that claims are about, taken from the summary of a study: one row per cell, with `value` and `se`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from l2calib.methods.catalogue import PAPER_METHODS
from l2calib.study.claims.judging import quadrature_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

PLACE = ["configuration", "n", "errors", "parameter"]
NOMINAL = 0.95
LARGE_SIZE = 100
GROWTH = 4
_PAPER_CONFIGURATIONS = ("1", "2", "3", "4")


def paper_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The summary's rows of the paper's configurations and methods, with standard errors that are nowhere zero."""
    rows = frame.assign(configuration=frame["configuration"].astype(str))
    rows = rows[rows["configuration"].isin(_PAPER_CONFIGURATIONS) & rows["method"].isin(PAPER_METHODS)]
    kept = (rows["replications"] - rows["failed"]).clip(lower=1)
    # Where every interval covered, or none, the estimated error is zero; one replication more could have differed.
    coverage_se = np.maximum(rows["coverage_se"], 1 / kept)
    return rows.assign(coverage_se=coverage_se, sampling_sd_se=rows["sampling_sd"] / np.sqrt(2 * kept))


def select(
    rows: pd.DataFrame,
    methods: Sequence[str] = (),
    configurations: str = "",
    parameters: Sequence[str] = (),
    errors: Sequence[str] = (),
) -> pd.DataFrame:
    """Those rows; an empty choice is no restriction."""
    chosen = {
        "method": methods,
        "configuration": list(configurations),
        "parameter": parameters,
        "errors": errors,
    }
    for column, wanted in chosen.items():
        if wanted:
            rows = rows[rows[column].isin(list(wanted))]
    return rows


def coverages(rows: pd.DataFrame) -> pd.DataFrame:
    """The coverage of 95% intervals."""
    return rows.assign(value=rows["coverage"], se=rows["coverage_se"])


def inflations(rows: pd.DataFrame) -> pd.DataFrame:
    """The posterior sd as a multiple of the sampling sd of the posterior mean."""
    return _ratios(rows, ("mean_posterior_sd", "mean_posterior_sd_se"), ("sampling_sd", "sampling_sd_se"))


def beside(rows: pd.DataFrame, method: str, other: str) -> pd.DataFrame:
    """The rows of a method, with the numbers of another method in the same place under `_other`."""
    left, right = rows[rows["method"] == method], rows[rows["method"] == other]
    return left.merge(right, on=PLACE, suffixes=("", "_other"))


def beside_law(rows: pd.DataFrame, law: str) -> pd.DataFrame:
    """The rows of an error law, with the numbers under normal errors in the same place under `_other`."""
    left, right = rows[rows["errors"] == law], rows[rows["errors"] == "normal"]
    on = ["configuration", "n", "method", "parameter"]
    return left.merge(right, on=on, suffixes=("", "_other"))


def coverage_differences(pairs: pd.DataFrame) -> pd.DataFrame:
    """The coverage less the other's."""
    se = quadrature_sum(pairs["coverage_se"], pairs["coverage_se_other"])
    return pairs.assign(value=pairs["coverage"] - pairs["coverage_other"], se=se)


def sd_ratios(pairs: pd.DataFrame) -> pd.DataFrame:
    """The mean posterior sd as a multiple of the other's."""
    return _ratios(
        pairs, ("mean_posterior_sd", "mean_posterior_sd_se"), ("mean_posterior_sd_other", "mean_posterior_sd_se_other")
    )


def mean_shifts(pairs: pd.DataFrame) -> pd.DataFrame:
    """The difference of the mean posterior means, in posterior sds of the other."""
    scale = pairs["mean_posterior_sd_other"]
    se = quadrature_sum(pairs["bias_se"], pairs["bias_se_other"]) / scale
    return pairs.assign(value=(pairs["bias"] - pairs["bias_other"]) / scale, se=se)


def bias_advantages(pairs: pd.DataFrame) -> pd.DataFrame:
    """How much nearer to the target the method's mean is than the other's, in posterior sds of the method."""
    scale = pairs["mean_posterior_sd"]
    nearer = pairs["bias_other"].abs() - pairs["bias"].abs()
    se = quadrature_sum(pairs["bias_se"], pairs["bias_se_other"])
    return pairs.assign(value=nearer / scale, se=se / scale)


def coverage_advantages(pairs: pd.DataFrame) -> pd.DataFrame:
    """How much nearer to nominal the method's coverage is than the other's."""
    nearer = (pairs["coverage_other"] - NOMINAL).abs() - (pairs["coverage"] - NOMINAL).abs()
    return pairs.assign(value=nearer, se=quadrature_sum(pairs["coverage_se"], pairs["coverage_se_other"]))


def against_largest_sd(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """The method's sd as a multiple of the largest of all others in the same place."""
    pairs = _beside_largest(rows, method, "mean_posterior_sd")
    return sd_ratios(pairs).assign(note="against " + pairs["method_other"])


def against_dearest(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """The method's time as a multiple of the longest of all others in the same place."""
    pairs = _beside_largest(_one_per_calibration(rows), method, "seconds_per_calibration")
    return _time_ratios(pairs).assign(note="against " + pairs["method_other"])


def time_ratios(rows: pd.DataFrame, method: str, other: str) -> pd.DataFrame:
    """The seconds of a method as a multiple of another's."""
    return _time_ratios(beside(_one_per_calibration(rows), method, other))


def at_largest_size(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the largest n of each series, if that is large."""
    large = rows[rows["n"] >= LARGE_SIZE]
    return large[large["n"] == large.groupby(_series())["n"].transform("max")]


def between_sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """The largest n of each series, with the smallest under `_small`, where n grows by enough to tell."""
    series = _series()
    largest = rows[rows["n"] == rows.groupby(series)["n"].transform("max")]
    smallest = rows[rows["n"] == rows.groupby(series)["n"].transform("min")]
    pairs = largest.merge(smallest, on=series, suffixes=("", "_small"))
    return pairs[pairs["n"] >= GROWTH * pairs["n_small"]]


def _beside_largest(rows: pd.DataFrame, method: str, column: str) -> pd.DataFrame:
    """The rows of a method, with the numbers of whichever other has most of the column there under `_other`."""
    others = rows[rows["method"] != method].dropna(subset=column)
    largest = others.loc[others.groupby(PLACE)[column].idxmax()]
    return rows[rows["method"] == method].merge(largest, on=PLACE, suffixes=("", "_other"))


def _series() -> list[str]:
    return ["configuration", "errors", "method", "parameter"]


def _one_per_calibration(rows: pd.DataFrame) -> pd.DataFrame:
    """A calibration has one time, which the rows of its parameters repeat."""
    return rows.drop_duplicates(["configuration", "n", "errors", "method"]).assign(parameter="all")


def _time_ratios(pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs.assign(value=pairs["seconds_per_calibration"] / pairs["seconds_per_calibration_other"], se=0.0)


def _ratios(rows: pd.DataFrame, above: tuple[str, str], below: tuple[str, str]) -> pd.DataFrame:
    value = rows[above[0]] / rows[below[0]]
    relative = quadrature_sum(rows[above[1]] / rows[above[0]], rows[below[1]] / rows[below[0]])
    return rows.assign(value=value, se=value * relative)
