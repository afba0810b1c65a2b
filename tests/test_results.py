"""The committed study has every cell of the paper's, and the pages that quote it say what it says."""

import itertools

import pytest
from docs.make_results import DOCS, SUMMARY, claims_page, methods_page

from l2calib.methods.catalogue import PAPER_METHODS
from l2calib.study.plan import PAPER_SIZES
from l2calib.study.summary import load_summary

QUICK = ("nlm", "gb-l2", "gb-ols")
PARAMETERS = {"1": 2, "2": 1, "3": 1, "4": 3}


@pytest.fixture(scope="module")
def frame():
    return load_summary(SUMMARY)


def test_every_cell_is_there(frame):
    cells = {key: len(rows) for key, rows in frame.groupby(["configuration", "n", "errors", "method"])}
    laws = ("normal", "t", "skew-normal")
    assert cells == {
        (configuration, n, law, method): PARAMETERS[configuration]
        for configuration, n, law, method in itertools.product(PARAMETERS, PAPER_SIZES, laws, PAPER_METHODS)
    }
    assert (frame.loc[frame["method"].isin(QUICK), "replications"] == 20_000).all()
    assert (frame["replications"] >= 2_000).all()


def test_the_advice_quotes_it(frame):
    assert (DOCS / "methods.md").read_text(encoding="utf-8") == methods_page(frame)


def test_the_claims_are_judged_by_it(frame):
    # The ninth is about the wiffle balls, which are calibrated anew in another test.
    def without_the_ninth(page):
        return [line for line in page.split("## 9. ")[0].splitlines() if not line.startswith("| 9 |")]

    page = (DOCS / "claims.md").read_text(encoding="utf-8")
    assert without_the_ninth(page) == without_the_ninth(claims_page(frame, None))
