"""What a report says and draws, piece by piece: numbers, sentences, diagnostics, regions and colours."""

import sys
from pathlib import Path

import numpy as np
import pytest

from l2calib.display.words import counted, listed
from l2calib.methods.catalogue import COMPARED, PAPER_METHODS, styles_of
from l2calib.numerics.spread import kronecker
from l2calib.posterior.band import Band
from l2calib.report.colours import DARK, LIGHT, contrast, legible
from l2calib.report.densities import mass, outlines, scattered, view
from l2calib.report.diagnostics import (
    Note,
    boundary_note,
    design_note,
    error_notes,
    merged,
    modes_note,
    unevenness,
    widest_gap,
)
from l2calib.report.run_charts import excluded
from l2calib.report.run_files import Marginal, Profile
from l2calib.report.run_page import bias_sentences
from l2calib.report.words import rounded, short

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (11.2346, 0.94, "11.235"),  # three digits of the sd
        (11.2346, 0.25, "11.235"),
        (11.2346, 0.9996, "11.23"),  # 1.00
        (4.571, 2.43, "4.57"),
        (-0.000123456, 0.0000012, f"{MINUS}0.00012346"),
        (123456.0, 2100.0, "123460"),
        (1.23456789e8, 2.1e6, "1.2346e8"),
        (3.2e-7, 2.1e-8, f"3.200e{MINUS}7"),
        (-0.0001, 0.9, "0.000"),
        (2.0, 0.0, "2"),
        (np.nan, 1.0, "\N{EN DASH}"),
    ],
)
def test_a_number_has_the_digits_that_its_sd_supports(value, sd, text):
    assert rounded(value, sd) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (12.5, "12.5"), (6802.3, "6802"), (None, "\N{EN DASH}"), (-1e-9, f"{MINUS}1e{MINUS}9")],
)
def test_short_numbers(value, text):
    assert short(value) == text


def test_lists_and_counts():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert counted(1, "method") == "1 method"
    assert counted(1200, "method") == "1,200 methods"


X = np.linspace(0, 10, 11)


def profile(bias):
    bias = np.asarray(bias, dtype=float)
    nothing = np.zeros(11)
    return Profile(X, Band(nothing, nothing, nothing), Band(bias, bias - 1, bias + 1))


def test_the_ranges_where_the_band_excludes_zero():
    assert excluded(profile(np.zeros(11))) == []
    assert excluded(profile([2, 2, 2, 0, 0, -2, -2, 2, 0, 0, 2])) == [
        (0, 2, "above"),
        (5, 6, "below"),
        (7, 7, "above"),
        (10, 10, "above"),
    ]
    assert excluded(profile(np.full(11, -3))) == [(0, 10, "below")]
    assert excluded(profile([np.nan] * 3 + [2, 2] + [0] * 6)) == [(3, 4, "above")]  # the model may have a pole


def test_the_bias_is_told_in_a_sentence_by_all_who_say_the_same():
    none, some, all_along = profile(np.zeros(11)), profile([2, 2, 2, *[0] * 8]), profile(np.full(11, -3))
    assert bias_sentences({"A": none, "B": none}, "x") == [
        "The band holds zero all along x: these data do not show the model to be wrong there."
    ]
    assert bias_sentences({"A": some, "B": none, "C": some}, "x")[0] == (
        "By A and C, the band excludes zero for x from 0.0 to 2.0 (the system lies above the model): "
        "there the model is shown to be wrong."
    )
    assert "excludes zero all along x (the system lies below the model)" in bias_sentences({"A": all_along}, "x")[0]


Z = np.linspace(-4, 4, 201)
NORMAL = Marginal(Z, np.exp(-(Z**2) / 2), np.ones(201))


def test_a_posterior_against_the_end_of_its_prior_is_said():
    grid = np.linspace(0, 20, 201)
    falling = Marginal(grid, np.exp(-grid), np.ones(201))
    assert boundary_note("m", falling, (0, 20)).text.startswith(
        "The posterior of m is cut off by the lower end of its prior, 0:"
    )
    rising = Marginal(grid, np.exp(grid - 20), np.ones(201))
    assert "upper end of its prior, 20" in boundary_note("m", rising, (0, 20)).text
    assert boundary_note("m", falling, (-5, 25)) is None
    assert boundary_note("m", NORMAL, (-20, 20)) is None
    assert boundary_note("m", NORMAL, (-np.inf, np.inf)) is None
    # Three sds away, an end of the support cuts off nothing to speak of.
    assert boundary_note("m", NORMAL, (-3, 3)) is None


def test_several_peaks_are_said_and_ripples_are_not():
    two = NORMAL._replace(density=np.exp(-((Z - 2) ** 2) * 8) + 0.5 * np.exp(-((Z + 2) ** 2) * 8))
    assert modes_note("theta", two).text.startswith(f"The posterior of theta has 2 peaks, near {MINUS}2 and 2:")
    assert modes_note("theta", NORMAL) is None
    assert modes_note("theta", NORMAL._replace(density=NORMAL.density + 0.03 * np.sin(9 * Z))) is None
    at_ends = NORMAL._replace(density=Z**2)
    assert "2 peaks" in modes_note("theta", at_ends).text


@pytest.mark.parametrize(
    ("found", "words", "care"),
    [
        (
            [(0.001, "integrate")],
            "The numerical error is 0.001 posterior standard deviations, which is negligible.",
            False,
        ),
        (
            [(0.001, "integrate"), (0.02, "integrate")],
            "at most 0.02 posterior standard deviations, which is small",
            False,
        ),
        ([(0.3, "integrate")], "which can be seen in the digits shown", True),
        ([(0.02, "draws")], "The Monte Carlo error of the posterior mean is 0.02", False),
        ([(None, "integrate")], "not known", True),
    ],
)
def test_the_numerical_error_in_words(found, words, care):
    (note,) = error_notes(found)
    assert words in note.text
    assert note.care is care


def test_drawn_and_integrated_errors_are_told_apart():
    assert len(error_notes([(0.01, "draws"), (0.001, "integrate")])) == 2


def test_the_unevenness_of_a_design():
    even = (np.arange(20) + 0.5) / 20
    assert unevenness(even, 0, 1) == pytest.approx(0, abs=1e-12)
    assert unevenness(even / 2, 0, 1) == pytest.approx(0.5, abs=0.05)  # half of them must move
    assert widest_gap(np.array([1.0, 2.0, 7.0]), 0, 10) == (2.0, 7.0, 0.5)
    assert not design_note({"x": (0, 1)}, {"x": even}).care
    uneven = design_note({"x": (0, 1), "z": (0, 1)}, {"x": even, "z": even / 2})
    assert uneven.care
    assert "the range of z unevenly" in uneven.text
    assert "None lies between 0.4875 and 1, 51% of the range." in uneven.text
    assert "OLS and non-linear regression" in uneven.text


def test_notes_that_hold_for_all_need_no_name():
    one, two = Note("One.", care=True), Note("Two.", care=True)
    assert merged({"A": [one, two], "B": [one]}) == [("", one), ("A", two)]


def test_the_view_holds_nearly_all_of_every_posterior():
    low, high = view([NORMAL, NORMAL._replace(value=Z + 3)])
    # The 0.25% quantile of the normal law is at -2.807.
    assert (low, high) == pytest.approx((-2.807, 5.807), abs=0.02)
    assert mass(Z, NORMAL.density)[100] == pytest.approx(0.5)


def test_regions_hold_what_they_say():
    from matplotlib.path import Path as Outline

    draws = np.random.default_rng(1).standard_normal((2, 4000))
    outer, inner = outlines(*draws, (-4, 4), (-4, 4))
    for rings, share in ((outer, 0.95), (inner, 0.5)):
        held = np.mean([any(Outline(ring).contains_point(point) for ring in rings) for point in draws.T[::4]])
        # Four standard errors of a share of 1,000 draws, and what the kernel widens the region by.
        assert held == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 1000) + 0.02)
    for ring in outer + inner:
        np.testing.assert_allclose(ring[0], ring[-1])


def test_prior_dots_follow_the_prior():
    rising = Marginal(np.linspace(0, 1, 50), np.ones(50), np.linspace(0, 2, 50))
    values = scattered(rising, (0, 1), kronecker(400, 2)[:, 0])
    # The mean of a triangular law is 2/3, its sd 0.236.
    assert values.mean() == pytest.approx(2 / 3, abs=4 * 0.236 / np.sqrt(400))


@pytest.mark.parametrize("ground", [LIGHT, DARK])
def test_every_method_can_be_seen_on_both_backgrounds(ground):
    for style in styles_of(COMPARED).values():
        assert contrast(legible(style.colour, *ground), ground[0]) >= 3
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert legible("#0072B2", *LIGHT).upper() == "#0072B2"  # what can be seen stays as it is


def test_backgrounds_are_those_of_the_style_sheet():
    sheet = (Path(sys.modules["l2calib.report"].__file__).parent / "assets" / "report.css").read_text()
    for paper, ink in (LIGHT, DARK):
        assert f"--paper: {paper}; --ink: {ink};" in sheet


def test_the_default_looks_like_no_other_method_and_comes_first():
    styles = styles_of(reversed(COMPARED))
    assert list(styles) == list(COMPARED)
    for look in ("label", "colour", "dashes"):
        assert len({getattr(style, look) for style in styles.values()}) == len(COMPARED)
    ours = styles["l2"]
    assert all(
        (ours.marker, ours.hollow) != (style.marker, style.hollow) for name, style in styles.items() if name != "l2"
    )


def test_unknown_methods_take_looks_that_are_left():
    styles = styles_of(["gb-l2", "mine", "koh", "yours"])
    assert list(styles) == ["koh", "gb-l2", "mine", "yours"]
    assert len({(style.colour, style.marker) for style in styles.values()}) == 4
    assert styles_of([*PAPER_METHODS, "mine"])["mine"].label == "mine"
