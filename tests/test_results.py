"""The committed study has every cell of the paper's, and the pages that quote it say what it says."""

import itertools

import pandas as pd
import pytest
from docs.make_results import DOCS, INTERVALS, SUMMARY, claims_page, l2_page, methods_page

from l2calib.methods.catalogue import COMPARED
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
        for configuration, n, law, method in itertools.product(PARAMETERS, PAPER_SIZES, laws, COMPARED)
    }
    assert (frame.loc[frame["method"].isin(QUICK), "replications"] == 20_000).all()
    assert (frame["replications"] >= 2_000).all()


def test_intervals_of_l2_were_judged_in_all_of_its_cells(frame):
    known = frame[frame["method"] == "l2"].set_index(["configuration", "n", "errors", "parameter"])["coverage"]
    judged = pd.read_csv(INTERVALS, dtype={"configuration": str})
    judged = judged.set_index(["configuration", "n", "errors", "parameter"])["coverage"]
    pd.testing.assert_series_equal(judged.sort_index(), known.sort_index(), check_exact=False, rtol=1e-12)


def test_the_page_on_l2_quotes_them():
    assert (DOCS / "l2.md").read_text(encoding="utf-8") == l2_page(pd.read_csv(INTERVALS))


def test_the_advice_quotes_it(frame):
    assert (DOCS / "methods.md").read_text(encoding="utf-8") == methods_page(frame)


def test_the_claims_are_judged_by_it(frame):
    # The ninth is about the wiffle balls, which are calibrated anew in another test.
    def without_the_ninth(page):
        return [line for line in page.split("## 9. ")[0].splitlines() if not line.startswith("| 9 |")]

    page = (DOCS / "claims.md").read_text(encoding="utf-8")
    assert without_the_ninth(page) == without_the_ninth(claims_page(frame, None))
