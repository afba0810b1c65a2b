"""The figures of a study show the numbers of its summary, legibly, and reach the disk whole."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from l2calib.errors import DataError, SpecError
from l2calib.study import figures
from l2calib.study.error_laws import ERROR_LAWS
from l2calib.study.figures import plot_configuration, plot_error_laws, plot_times, write_figures
from tests.study_frames import METHODS, SIZES, paper_like

LABELS = {
    "nlm": "non-linear regression",
    "koh": "modified Kennedy-O'Hagan",
    "projected": "projected $L^2$",
    "gb-l2": "general Bayes, $L^2$",
    "gb-ols": "general Bayes, OLS",
    "gb-l2-boot": "general Bayes, $L^2$, bootstrap",
    "gb-ols-boot": "general Bayes, OLS, bootstrap",
}
ROWS = ("mean_posterior_mean", "mean_posterior_sd", "coverage")


@pytest.fixture(scope="module")
def frame():
    return paper_like()


@pytest.fixture(scope="module")
def fourth(frame):
    return plot_configuration(frame, "4", "t")


def drawn(axes, label):
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


def heights(axes, values):
    """Where values lie on an axis, as shares of its height."""
    pixels = axes.transData.transform([(axes.get_xlim()[0], value) for value in values])[:, 1]
    return axes.transAxes.inverted().transform([(0, pixel) for pixel in pixels])[:, 1]


@pytest.mark.parametrize(("configuration", "parameters"), [("1", 2), ("2", 1), ("4", 3)])
def test_there_are_three_rows_and_a_column_per_parameter(frame, configuration, parameters):
    panels = plot_configuration(frame, configuration).axes
    assert len(panels) == 3 * parameters
    assert [panel.get_title() for panel in panels[:parameters]] == [rf"$\theta_{{{j + 1}}}$" for j in range(parameters)]


@pytest.mark.parametrize("method", METHODS)
def test_every_marker_is_a_number_of_the_summary(frame, fourth, method):
    for row, column in enumerate(ROWS):
        for j in range(3):
            shown = frame.query("configuration == '4' and errors == 't' and method == @method")
            shown = shown[shown["parameter"] == f"theta{j + 1}"].sort_values("n")
            line = drawn(fourth.axes[3 * row + j], LABELS[method])
            np.testing.assert_array_equal(line.get_ydata(), shown[column])
            # Beside its n, so that no method hides another, and nearer to it than to the next.
            assert np.abs(line.get_xdata() - SIZES).max() < 10


def test_bars_are_two_standard_errors_long_and_end_at_one(frame):
    frame = frame.query("configuration == '2' and method == 'nlm'").assign(coverage=0.999, coverage_se=0.002)
    mean, _, coverage = plot_configuration(frame, "2").axes
    shown = frame[frame["errors"] == "normal"]
    ends = np.array([path.vertices[:, 1] for path in mean.collections[0].get_paths()])
    np.testing.assert_allclose(np.ptp(ends, axis=1), 4 * shown["bias_se"], rtol=1e-6)
    top = max(path.vertices[:, 1].max() for path in coverage.collections[0].get_paths())
    assert top == 1


def test_the_target_the_nominal_coverage_and_its_noise_are_drawn(frame):
    rare = frame.assign(replications=np.where(frame["method"] == "koh", 500, 20_000))
    mean, _, coverage = plot_configuration(rare, "2").axes
    assert set(drawn(mean, r"$\theta_{L^2}$").get_ydata()) == {1.8772}
    assert set(drawn(coverage, "nominal coverage, 0.95").get_ydata()) == {0.95}
    (band,) = coverage.patches
    reach = 2 * np.sqrt(0.95 * 0.05 / 500)
    assert (band.get_y(), band.get_height()) == pytest.approx((0.95 - reach, 2 * reach))


def test_methods_are_told_apart_without_colour(fourth):
    lines = [drawn(fourth.axes[0], LABELS[method]) for method in METHODS]
    looks = {(line.get_marker(), line.get_markerfacecolor()) for line in lines}
    assert len(looks) == len(METHODS)
    for method, line in zip(METHODS, lines, strict=True):
        assert len(set(to_rgb(line.get_color()))) == 1  # a grey
        assert (to_rgb(line.get_color())[0] < 0.2) == method.startswith("gb")
        assert (line.get_markerfacecolor() == "white") == method.endswith("boot")


def test_low_and_nominal_coverages_are_both_legible(frame):
    low = frame.assign(coverage=np.where(frame["method"] == "gb-ols", 0.21, 0.95))
    axes = plot_configuration(low, "2").axes[2]
    places = heights(axes, [0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0])
    assert places[0] >= 0
    assert places[-1] <= 1
    assert np.diff(places).min() > 0.06
    assert {0.2, 0.5, 0.95, 0.99} <= set(axes.get_yticks())


def test_one_method_far_away_does_not_press_the_others_onto_the_target(frame):
    far = (frame["configuration"] == "2") & (frame["method"] == "koh")
    moved = frame.assign(mean_posterior_mean=frame["mean_posterior_mean"].where(~far, 1.6))
    axes = plot_configuration(moved, "2").axes[0]
    places = heights(axes, [1.6, 1.8772, drawn(axes, LABELS["gb-ols"]).get_ydata()[0]])
    assert places[0] >= 0
    assert places[2] - places[1] > 0.2
    labels = [axes.yaxis.get_major_formatter()(tick) for tick in axes.get_yticks()]
    assert r"$\theta_{L^2}$" in labels
    assert r"$\theta_{L^2}-0.1$" in labels


def test_the_legend_is_outside_the_panels(fourth):
    fourth.draw_without_rendering()
    (legend,) = fourth.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(panel.get_tightbbox()) for panel in fourth.axes)
    assert set(LABELS.values()) <= {text.get_text() for text in legend.get_texts()}
    assert box.x0 >= 0
    assert box.x1 <= fourth.bbox.width


@pytest.mark.parametrize("replications", [1, 20_000])
def test_a_study_of_one_size_and_one_method_is_drawn(tmp_path, replications):
    small = paper_like(configurations="3", sizes=(40,), errors=("t",), methods=("koh",), replications=replications)
    if replications == 1:
        small = small.assign(bias_se=np.nan, mean_posterior_sd_se=np.nan, coverage_se=0.0, coverage=0.0)
    names = {path.name for path in write_figures(small, tmp_path)}
    stems = ("configuration-3-t", "times", "error-laws")
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}


def test_cells_without_a_posterior_leave_a_gap(frame):
    lost = (frame["n"] == 20) & (frame["method"] == "koh")
    holed = frame.assign(**{column: frame[column].mask(lost) for column in ROWS})
    figure = plot_configuration(holed, "1")
    figure.draw_without_rendering()
    assert np.isnan(drawn(figure.axes[0], LABELS["koh"]).get_ydata()[0])


def test_a_method_of_ones_own_has_a_marker_too(frame):
    own = frame.assign(method=frame["method"].replace("koh", "koh-plumlee"))
    assert drawn(plot_configuration(own, "2").axes[0], "koh-plumlee").get_marker() == "P"


def test_times_have_a_panel_per_configuration(frame):
    figure = plot_times(frame)
    assert [panel.get_title() for panel in figure.axes] == [f"Configuration {j}" for j in "1234"]
    timed = frame.query("errors == 'normal' and method == 'koh' and parameter == 'theta1'").sort_values("n")
    for panel, (_, shown) in zip(figure.axes, timed.groupby("configuration"), strict=True):
        assert panel.get_yscale() == "log"
        np.testing.assert_array_equal(drawn(panel, LABELS["koh"]).get_ydata(), shown["seconds_per_calibration"])


def test_three_configurations_leave_no_empty_panel(frame):
    figure = plot_times(frame[frame["configuration"] != "2"])
    assert len(figure.axes) == 3
    assert [bool(panel.get_xlabel()) for panel in figure.axes] == [False, True, True]


def test_the_error_laws_are_their_densities():
    (axes,) = plot_error_laws().axes
    assert len(axes.lines) == len(ERROR_LAWS)
    for line, law in zip(axes.lines, ERROR_LAWS.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), law.density(line.get_xdata()))


def test_a_configuration_that_is_not_there_is_said(frame):
    with pytest.raises(DataError, match="no configuration '5': it has 1, 2, 3, 4"):
        plot_configuration(frame, "5")


def test_numbered_configurations_may_have_come_as_numbers(frame):
    figure = plot_configuration(frame.assign(configuration=frame["configuration"].astype(int)), "3")
    assert figure.get_suptitle() == "Configuration 3, normal errors"


def test_nothing_is_written_before_all_is_drawn(tmp_path, monkeypatch):
    small = paper_like(configurations="2", sizes=(20,), errors=("normal",), methods=("nlm",))
    write_figures(small, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail():
        raise RuntimeError

    monkeypatch.setattr(figures, "plot_error_laws", fail)
    with pytest.raises(RuntimeError):
        write_figures(small.assign(mean_posterior_mean=0.0), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_same_study_gives_the_same_bytes(tmp_path):
    small = paper_like(configurations="2", sizes=(20, 40), errors=("normal",))
    for name in ("one", "two"):
        write_figures(small, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_folder_that_is_a_file_is_said(tmp_path, frame):
    (tmp_path / "taken").write_text("")
    with pytest.raises(SpecError, match="cannot be written into"):
        write_figures(frame, tmp_path / "taken")


def test_no_figure_is_left_with_pyplot(frame):
    plot_times(frame)
    assert plt.get_fignums() == []
