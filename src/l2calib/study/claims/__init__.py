"""The paper's nine claims (Sections 4.3 and 5), each tested by a stated rule on a study's own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from l2calib.study.claims import paper
from l2calib.study.claims.cells import paper_rows, select
from l2calib.study.claims.judging import Claim, Part, Verdict
from l2calib.study.claims.markdown import as_markdown, by_group, counts
from l2calib.study.claims.wiffle import Wiffle, no_evidence, wiffle_balls, wiffle_evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

__all__ = [
    "Claim",
    "Part",
    "Verdict",
    "Wiffle",
    "as_markdown",
    "by_group",
    "claims_table",
    "counts",
    "wiffle_evidence",
]


class _Assertion(NamedTuple):
    """What the paper says, the parts to judge it by, and what it is about; empty means everything."""

    text: str
    parts: Callable[[pd.DataFrame], tuple[Part, ...]]
    methods: tuple[str, ...] = ()
    configurations: str = ""
    errors: tuple[str, ...] = ()
    caveat: str = ""


_ASSERTIONS = (
    _Assertion("The posterior means of all methods converge to theta_L2.", paper.convergence),
    _Assertion(
        "Non-linear regression has the largest posterior sd and over-covers, except where the model is exact.",
        paper.nonlinear_regression,
    ),
    _Assertion("Projected L2 over-covers, from an inflated posterior sd.", paper.projected, methods=("projected",)),
    _Assertion(
        "General Bayes OLS under-covers in configurations 2 and 3 because of bias, and recovers as n grows; its "
        "posterior sd is that of general Bayes L2.",
        paper.ordinary_least_squares,
        methods=("gb-ols", "gb-l2"),
        configurations="23",
        caveat="The bias comes from the design, so it hangs on the levels.",
    ),
    _Assertion(
        "In configuration 4 general Bayes L2 is nearer to the target for theta_1, modified Kennedy-O'Hagan for theta_2 "
        "and theta_3, and the latter's coverage is nearer to nominal.",
        paper.two_contenders,
        methods=("gb-l2", "koh"),
        configurations="4",
    ),
    _Assertion(
        "Scaling by the bootstrap or by asymptotics makes no difference to speak of.",
        paper.bootstrap,
        methods=("gb-l2", "gb-l2-boot", "gb-ols", "gb-ols-boot"),
    ),
    _Assertion("The law of the errors makes no difference to speak of.", paper.error_laws),
    _Assertion(
        "Modified Kennedy-O'Hagan takes far more computing time than the rest; general Bayes L2 and OLS take the same.",
        paper.computing_time,
        methods=("nlm", "koh", "projected", "gb-l2", "gb-ols"),
        errors=("normal",),
        caveat="These are times of numerical integration in batches, not of Markov chains as in the paper.",
    ),
)


def claims_table(frame: pd.DataFrame, wiffle: Wiffle | None = None) -> list[Claim]:
    """Judge each claim by the summary of a study; the ninth by two calibrations of the packaged example, if given."""
    rows = paper_rows(frame)
    claims = [
        Claim(number, each.text, each.parts(rows), f"{_looked_at(rows, each)} {each.caveat}".rstrip())
        for number, each in enumerate(_ASSERTIONS, start=1)
    ]
    text = "On the wiffle balls general Bayes L2 and modified Kennedy-O'Hagan agree, and (g, m) is about (11, 3.5)."
    seen = "The packaged example, integrated; m is skewed to the right, so its mean and its median differ."
    return [*claims, Claim(9, text, wiffle_balls(wiffle or no_evidence()), seen if wiffle else "Nothing calibrated.")]


def _looked_at(rows: pd.DataFrame, assertion: _Assertion) -> str:
    """What of the study a claim was judged by."""
    rows = select(rows, assertion.methods, assertion.configurations, errors=assertion.errors)
    if rows.empty:
        return "The study has nothing on it."

    def listed(column: str) -> str:
        return ", ".join(str(value) for value in dict.fromkeys(rows.sort_values("n", kind="stable")[column]))

    fewest, most = int(rows["replications"].min()), int(rows["replications"].max())
    number = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    failed = int(rows.drop_duplicates(["configuration", "n", "errors", "method"])["failed"].sum())
    without = f", {failed:,} calibrations without a posterior left out" if failed else ""
    return (
        f"Looked at: configurations {listed('configuration')}; n = {listed('n')}; errors {listed('errors')}; methods "
        f"{listed('method')}; {number} replications{without}; design levels: {listed('levels')}."
    )
