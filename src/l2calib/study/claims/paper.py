"""The paper's claims on its simulations (Section 4.3), each split into statements that a study can refute.

The limits are chosen once, before any study is looked at, from what can be seen in figures like the paper's: where
coverage runs from 0.2 to 1 and the log of the sd over a few units, a plotting symbol is about 0.02 of coverage and a
tenth of the sd wide. So less than that is negligible, and misses that change by a fifth (0.95 to 0.96 or 0.94) matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from l2calib.study.claims import cells
from l2calib.study.claims.cells import GROWTH, LARGE_SIZE, NOMINAL, select
from l2calib.study.claims.judging import HOLDS, Above, Below, Part, Within, critical, quadrature_sum

if TYPE_CHECKING:
    import pandas as pd

OVER, UNDER = NOMINAL + 0.01, NOMINAL - 0.01
COVERAGE, SD, SHIFT = 0.02, 0.10, 0.25
NEAR, TRACE = 0.01, 0.001
FAR_MORE, SAME_TIME = 3.0, 0.25
_BY_METHOD = ("configuration", "method")
_BY_PARAMETER = ("configuration", "parameter")


def convergence(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 1: the means go to the target."""
    last = cells.at_largest_size(rows)
    arrived = last.assign(value=last["bias"] / last["target"].abs(), se=last["bias_se"] / last["target"].abs())
    series = cells.between_sizes(rows)
    reach = critical(len(series)) * series["bias_se_small"]
    series = series[series["bias_small"].abs() > TRACE * series["target"].abs() + reach]
    start = series["bias_small"].abs()
    left = series["bias"].abs() / start
    se = quadrature_sum(series["bias_se"], left * series["bias_se_small"]) / start
    return (
        Part(
            "a",
            "at the largest n the mean posterior mean is at theta_L2",
            f"At the largest n, if that is {LARGE_SIZE} or more, the bias is at most {NEAR:.0%} of theta_L2.",
            Within(0, NEAR),
            arrived,
            _BY_METHOD,
            ".3%",
        ),
        Part(
            "b",
            "what bias there is at the smallest n shrinks as n grows",
            f"Where the bias at the smallest n is shown to exceed {TRACE:.1%} of theta_L2, the bias at the largest n "
            f"(at least {GROWTH} times as large) is less than half of it; the number is bias left / bias at first.",
            Below(0.5),
            series.assign(value=left, se=se),
            _BY_METHOD,
            ".3f",
        ),
    )


def nonlinear_regression(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 2: too wide, but where the model is exact."""
    inexact, exact = select(rows, configurations="234"), select(rows, ["nlm"], "1")
    return (
        Part(
            "a",
            "its posterior sd is the largest of all methods in configurations 2, 3 and 4",
            "Its mean posterior sd divided by the largest among the other methods of the study is above 1.",
            Above(1),
            cells.against_largest_sd(inexact, "nlm"),
        ),
        Part(
            "b",
            "it over-covers there",
            f"Its coverage is above {OVER:.2f}, that is it misses at least a fifth less often than it should.",
            Above(OVER),
            cells.coverages(select(inexact, ["nlm"])),
            _BY_PARAMETER,
            ".3f",
        ),
        Part(
            "c",
            "it does not over-cover in configuration 1, where the model is exact",
            f"Its coverage differs from {NOMINAL} by at most {COVERAGE}.",
            Within(NOMINAL, COVERAGE),
            cells.coverages(exact),
            _BY_PARAMETER,
            ".3f",
        ),
        Part(
            "d",
            "its sd is not inflated in configuration 1",
            f"Its mean posterior sd differs from the sampling sd of its posterior mean by at most {SD:.0%}.",
            Within(1, SD),
            cells.inflations(exact),
            _BY_PARAMETER,
            ".3f",
        ),
    )


def projected(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 3: too wide."""
    own = select(rows, ["projected"])
    return (
        Part(
            "a",
            "it over-covers",
            f"Its coverage is above {OVER:.2f}.",
            Above(OVER),
            cells.coverages(own),
            _BY_PARAMETER,
            ".3f",
        ),
        Part(
            "b",
            "because its posterior sd is inflated",
            f"Its mean posterior sd exceeds the sampling sd of its posterior mean by more than {SD:.0%}.",
            Above(1 + SD),
            cells.inflations(own),
            _BY_PARAMETER,
            ".3f",
        ),
    )


def ordinary_least_squares(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 4: biased by the design, less so as n grows."""
    both = select(rows, configurations="23")
    own = cells.coverages(select(both, ["gb-ols"]))
    under = Part(
        "a",
        "it under-covers in configurations 2 and 3",
        f"Its coverage is below {UNDER:.2f}.",
        Below(UNDER),
        own,
        ("configuration",),
        ".3f",
    )
    series = cells.between_sizes(own)
    reach = critical(len(series)) * series["coverage_se_small"]
    series = series[series["coverage_small"] < UNDER - reach]
    first = NOMINAL - series["coverage_small"]
    left = (NOMINAL - series["coverage"]) / first
    se = quadrature_sum(series["coverage_se"], left * series["coverage_se_small"]) / first
    return (
        under,
        Part(
            "b",
            "from bias, not from too small an sd",
            "Where (a) holds: without the bias, normal posterior means with the study's own sampling sd and posterior "
            f"sd would leave less than half of the shortfall from {NOMINAL}; the number is shortfall left / shortfall.",
            Below(0.5),
            _shortfall_without_bias(own[under.outcome == HOLDS]),
            ("configuration",),
            ".3f",
        ),
        Part(
            "c",
            "it recovers as n grows",
            f"Where (a) is shown at the smallest n, the shortfall at the largest n (at least {GROWTH} times as large) "
            "is less than half of it; the number is shortfall left / shortfall at first.",
            Below(0.5),
            series.assign(value=left, se=se),
            ("configuration",),
            ".3f",
        ),
        Part(
            "d",
            "its sd is that of general Bayes L2",
            f"The mean posterior sds of gb-ols and gb-l2 differ by at most {SD:.0%}; the number is their ratio.",
            Within(1, SD),
            cells.sd_ratios(cells.beside(both, "gb-ols", "gb-l2")),
            ("configuration",),
            ".3f",
        ),
    )


def _shortfall_without_bias(rows: pd.DataFrame) -> pd.DataFrame:
    """The share of the shortfall that is left if the posterior means were centred, all else as it is."""
    from scipy.special import ndtr, ndtri

    z = ndtri((1 + NOMINAL) / 2)
    sds = cells.inflations(rows)
    centred = 2 * ndtr(z * sds["value"]) - 1
    slope = 2 * z * np.exp(-np.square(z * sds["value"]) / 2) / np.sqrt(2 * np.pi)
    shortfall = NOMINAL - rows["coverage"]
    left = (NOMINAL - centred) / shortfall
    se = quadrature_sum(slope * sds["se"], left * rows["coverage_se"]) / shortfall
    return rows.assign(value=left, se=se)


def two_contenders(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 5: neither general Bayes L2 nor modified Kennedy-O'Hagan is better in all respects."""
    fourth = select(rows, configurations="4")
    own, other = cells.beside(fourth, "gb-l2", "koh"), cells.beside(fourth, "koh", "gb-l2")
    unit = "the number is the difference in posterior sds of the nearer"
    return (
        Part(
            "a",
            "the mean of general Bayes L2 is closer to the target for theta_1",
            f"The bias of gb-l2 is smaller in size than that of koh; {unit}.",
            Above(0),
            cells.bias_advantages(select(own, parameters=["theta1"])),
            _BY_PARAMETER,
            "+.3f",
        ),
        Part(
            "b",
            "that of modified Kennedy-O'Hagan is closer for theta_2 and theta_3",
            f"The bias of koh is smaller in size than that of gb-l2; {unit}.",
            Above(0),
            cells.bias_advantages(select(other, parameters=["theta2", "theta3"])),
            _BY_PARAMETER,
            "+.3f",
        ),
        Part(
            "c",
            "the coverage of modified Kennedy-O'Hagan is closer to nominal",
            f"The coverage of koh is nearer to {NOMINAL} than that of gb-l2; the number is by how much.",
            Above(0),
            cells.coverage_advantages(other),
            _BY_PARAMETER,
            "+.3f",
        ),
    )


def bootstrap(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 6: the two ways to scale a loss."""
    import pandas as pd

    pairs = pd.concat([cells.beside(rows, f"{name}-boot", name) for name in ("gb-l2", "gb-ols")], ignore_index=True)
    return _negligible(pairs, "the two scalings of a loss", _BY_METHOD)


def error_laws(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 7: t and skew-normal errors against normal ones."""
    import pandas as pd

    pairs = pd.concat([cells.beside_law(rows, law) for law in ("t", "skew-normal")], ignore_index=True)
    return _negligible(pairs, "another law and the normal", (*_BY_METHOD, "errors"))


def _negligible(pairs: pd.DataFrame, what: str, by: tuple[str, ...]) -> tuple[Part, ...]:
    return (
        Part(
            "a",
            f"the coverage under {what} is the same",
            f"The coverages differ by at most {COVERAGE}; the number is the difference.",
            Within(0, COVERAGE),
            cells.coverage_differences(pairs),
            by,
            "+.3f",
        ),
        Part(
            "b",
            f"the posterior sd under {what} is the same",
            f"The mean posterior sds differ by at most {SD:.0%}; the number is their ratio.",
            Within(1, SD),
            cells.sd_ratios(pairs),
            by,
            ".3f",
        ),
        Part(
            "c",
            f"the posterior mean under {what} is the same",
            f"The mean posterior means differ by at most {SHIFT} posterior sds, which alone would move the coverage of "
            "a normal interval by less than 0.01; the number is the difference in posterior sds.",
            Within(0, SHIFT),
            cells.mean_shifts(pairs),
            by,
            "+.3f",
        ),
    )


def computing_time(rows: pd.DataFrame) -> tuple[Part, ...]:
    """Claim 8: seconds per calibration."""
    timed = select(rows, ["nlm", "koh", "projected", "gb-l2", "gb-ols"], errors=["normal"])
    return (
        Part(
            "a",
            "modified Kennedy-O'Hagan costs far more than the rest",
            f"With normal errors, the seconds of koh divided by those of the dearest of nlm, projected, gb-l2 and "
            f"gb-ols exceed {FAR_MORE:g}, half a decade of a logarithmic axis.",
            Above(FAR_MORE),
            cells.against_dearest(timed, "koh"),
        ),
        Part(
            "b",
            "general Bayes L2 and OLS cost the same",
            f"With normal errors, the seconds of gb-l2 and gb-ols differ by at most {SAME_TIME:.0%}; the number is "
            "their ratio.",
            Within(1, SAME_TIME),
            cells.time_ratios(timed, "gb-l2", "gb-ols"),
        ),
    )
