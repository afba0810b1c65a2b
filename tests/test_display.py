"""Numbers as people read them: the one rule that terminal, notebook and report share."""

import math
import runpy

import numpy as np
import pytest

from l2calib.display import html as markup
from l2calib.display.numbers import named, rounded, short
from l2calib.display.words import reason_of


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (10.8472, 0.948, "10.847"),
        (0.99964, 0.99964, "1.00"),  # three digits of the sd, also where rounding adds one
        (4.0, 2.43, "4.00"),
        (2140.6, 2140.6, "2140"),
        (-0.00002, 0.0301, "0.0000"),
        (1.5, 1e-300, "1.50000000000000"),  # no more than a double holds
        (1.79e308, 1e308, "1.79e308"),
        (5e-324, 5e-324, "4.94e-324"),
        (0.0, 1e-9, "0"),
        (2.25, math.nan, "2.25"),
        (math.nan, 1.0, "nan"),
        (np.float32(0.5), 0.1, "0.500"),
    ],
)
def test_a_value_ends_where_its_sd_does(value, sd, text):
    assert rounded(value, sd) == text


def test_an_error_can_have_fewer_digits():
    assert rounded(0.2013416, 3.16e-5, 2) == "0.201342"


@pytest.mark.parametrize("exponent", range(-8, 9))
def test_three_digits_of_the_sd_are_shown_and_no_more(exponent):
    for leading in (1.0, 2.344, 9.994, 9.996):
        sd = leading * 10.0**exponent
        shown = rounded(sd, sd)
        assert float(shown) == float(f"{sd:.2e}")
        digits = shown.partition("e")[0].replace(".", "").lstrip("0")
        assert len(digits) == 3 or (len(digits) > 3 and shown.endswith("0") and "." not in shown)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (math.inf, "inf"),
        (-0.0, "0"),
        (100.0, "100"),
        (0.00494, "0.00494"),
        (12345.6, "12350"),
        (999_999.7, "1e6"),
        (0.0001, "0.0001"),
        (-0.000012345, "-1.234e-5"),
    ],
)
def test_short_numbers_have_one_notation(value, text):
    assert short(value) == text


def test_numbers_with_their_names():
    assert named(["a", "b"], np.array([1.0, 2.5e-7])) == "a = 1, b = 2.5e-7"
    assert named([], []) == ""


def test_a_table_of_a_notebook_follows_its_sd():
    rows = [("a", 1.23456, 0.0214), ("b", 123456.0, 2140.6)]
    cells = markup.table(("name", "mean", "sd"), rows, sd="sd")
    assert [text in cells for text in (">1.2346<", ">0.0214<", ">123460<", ">2140<")] == [True] * 4
    assert ">1.235<" in markup.table(("name", "mean", "sd"), rows)


def test_an_exception_is_told_in_a_clause(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text("x = 1\nraise ValueError('two\\n  lines')\n")
    with pytest.raises(ValueError, match="two") as caught:
        runpy.run_path(str(file))
    assert reason_of(caught.value, str(file)) == "ValueError: two lines (line 2)"
    assert reason_of(caught.value) == "ValueError: two lines"
    assert reason_of(SystemExit()) == "SystemExit"
