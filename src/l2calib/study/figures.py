"""The figures of a study, from its summary: those of the paper (Section 4.3, supplements SM3 and SM4).

They show mean, sd and coverage against n, computing time, and the error laws.

Black is general Bayes and grey is standard Bayes, as in the paper, and what is not the paper's has a colour; every
method has a marker of its own, hollow when its scaling is by the bootstrap.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from l2calib.errors import DataError, SpecError
from l2calib.methods.catalogue import PAPER_METHODS, Style, styles_of
from l2calib.plots import save_figure
from l2calib.results.writing import staged
from l2calib.study.error_laws import ERROR_LAWS, ERRORS_IN_WORDS
from l2calib.study.scales import show_coverage, show_decades, show_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_INK, _PALE, _BAND = "#222222", "#8A8A8A", "#E4E4E4"
_WIDTH = 7.2
_SIZE = "observations, $n$"
_NORMAL = "normal"


def write_figures(frame: pd.DataFrame, folder: Path) -> list[Path]:
    """Write every figure of the study as PNG and SVG: each file whole or not there, and none before all are drawn."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with staged(folder) as staging:
            for stem, figure in _all_figures(frame):
                save_figure(figure, staging / stem)
            return [folder / path.name for path in sorted(staging.iterdir())]  # when they have moved
    except OSError as error:
        raise SpecError(f"the figures cannot be written into '{folder}': {error.strerror or error}.") from None


def plot_configuration(frame: pd.DataFrame, configuration: str, errors: str = _NORMAL) -> Figure:
    """Draw mean posterior mean, mean posterior sd and coverage against n, a column per parameter."""
    rows = _rows(frame, configuration=configuration, errors=errors)
    parameters = list(dict.fromkeys(rows["parameter"]))
    figure = Figure(figsize=(_WIDTH, 8.0), layout="constrained")
    panels = figure.subplots(3, len(parameters), sharex=True, squeeze=False)
    for column, parameter in zip(panels.T, parameters, strict=True):
        shown = rows[rows["parameter"] == parameter]
        column[0].set_title(_symbol(parameter), color=_INK)
        _mean_panel(shown, column[0])
        _sd_panel(shown, column[1])
        _coverage_panel(shown, column[2])
        column[2].set_xlabel(_SIZE)
        for panel in column:
            _tidy(panel, shown)
    for panel, label in zip(
        panels[:, 0], ("mean posterior mean", "mean posterior sd (log)", "95% interval coverage"), strict=True
    ):
        panel.set_ylabel(label)
    figure.align_ylabels(panels[:, 0])
    figure.suptitle(f"Configuration {_plain(configuration)}, {ERRORS_IN_WORDS.get(errors, _plain(errors))}", color=_INK)
    _legend(figure, _caption(rows))
    return figure


def plot_times(frame: pd.DataFrame, errors: str = _NORMAL) -> Figure:
    """Draw the computing time of a calibration against n, a panel per configuration."""
    rows = _rows(frame, errors=errors).drop_duplicates(["configuration", "n", "method"])
    configurations = list(dict.fromkeys(rows["configuration"]))
    columns = min(2, len(configurations))
    lines = -(-len(configurations) // columns)
    figure = Figure(figsize=(_WIDTH, 1.4 + 2.6 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for position, (panel, configuration) in enumerate(zip(panels.flat, configurations, strict=False)):
        shown = rows[rows["configuration"] == configuration]
        for method, style, shift in _methods(rows):
            _draw(shown[shown["method"] == method], "seconds_per_calibration", None, style, shift, panel)
        show_decades(panel)
        panel.set_title(f"Configuration {_plain(configuration)}", fontsize="medium", color=_INK)
        _tidy(panel, rows)
        if position % columns == 0:
            panel.set_ylabel("seconds per calibration")
        if position + columns >= len(configurations):  # the lowest of its column
            panel.set_xlabel(_SIZE)
            panel.tick_params(labelbottom=True)
    for panel in panels.flat[len(configurations) :]:
        panel.remove()
    figure.suptitle(f"Computing time, {ERRORS_IN_WORDS.get(errors, _plain(errors))}", color=_INK)
    _legend(figure, "time of a batch, once compiled and prepared, divided by the number of its datasets")
    return figure


def plot_error_laws() -> Figure:
    """Draw the densities of the error laws, each with mean 0 and variance 1."""
    figure = Figure(figsize=(_WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    x = np.linspace(-4, 4, 801)
    for law, colour, dashes in zip(
        ERROR_LAWS.values(), (_INK, "#0072B2", "#D55E00"), ((), (6, 2), (2, 1)), strict=True
    ):
        axes.plot(
            x, law.density(x), color=colour, lw=1.6, dashes=dashes or (None, None), label=ERRORS_IN_WORDS[law.name]
        )
    axes.set(xlabel="error / $\\sigma_0$", ylabel="density", xlim=(-4, 4))
    axes.set_ylim(bottom=0)
    axes.set_title("The error laws, each with mean 0 and variance 1", color=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _all_figures(frame: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    combinations = frame[["configuration", "errors"]].astype(str).drop_duplicates()
    for configuration, errors in combinations.itertuples(index=False):
        yield _file_name("configuration", configuration, errors), plot_configuration(frame, configuration, errors)
    laws = list(combinations["errors"])
    if laws:
        yield "times", plot_times(frame, _NORMAL if _NORMAL in laws else laws[0])
    yield "error-laws", plot_error_laws()


def _rows(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    rows = frame.assign(configuration=frame["configuration"].astype(str))
    for column, value in wanted.items():
        if value not in set(rows[column]):
            known = ", ".join(dict.fromkeys(rows[column])) or "none"
            raise DataError(f"the study has no {column} '{value}': it has {known}; choose one of them.")
        rows = rows[rows[column] == value]
    return rows.sort_values("n", kind="stable")


def _methods(rows: pd.DataFrame) -> list[tuple[str, Style, float]]:
    """The methods in the paper's order, each with its style and its shift, so that none hides another at the same n."""
    styles = styles_of(rows["method"])
    step, middle = 0.09 * _gap(rows), (len(styles) - 1) / 2
    return [(name, _grey(name, style), step * (i - middle)) for i, (name, style) in enumerate(styles.items())]


def _grey(method: str, style: Style) -> Style:
    if method not in PAPER_METHODS:
        return style
    return style._replace(colour=_INK if method.startswith("gb-") else _PALE)


def _draw(rows: pd.DataFrame, column: str, error: str | None, style: Style, shift: float, axes: Axes) -> None:
    if rows.empty:
        return
    x = rows["n"].to_numpy(dtype=float) + shift
    y = rows[column].to_numpy(dtype=float)
    if error is not None:
        reach = 2 * np.nan_to_num(rows[error].to_numpy(dtype=float))
        top = np.minimum(y + reach, 1.0) if column == "coverage" else y + reach
        axes.vlines(x, y - reach, top, color=style.colour, lw=0.7, zorder=2)
    axes.plot(
        x,
        y,
        color=style.colour,
        marker=style.marker,
        mfc="white" if style.hollow else style.colour,
        ms=4.2,
        mew=0.9,
        lw=0.5,
        ls=":" if style.hollow else "-",
        label=style.label,
        zorder=3,
        clip_on=False,
    )


def _gap(rows: pd.DataFrame) -> float:
    """The least distance of two sizes, and no more than a ninth of their range, as in the paper."""
    sizes = np.unique(rows["n"].to_numpy(dtype=float))
    return float(min(np.diff(sizes).min(), np.ptp(sizes) / 9)) if len(sizes) > 1 else 1.0


def _mean_panel(rows: pd.DataFrame, axes: Axes) -> None:
    target = float(rows["target"].iloc[0])
    axes.axhline(target, color="#0072B2", lw=1.0, label="$\\theta_{L^2}$", zorder=1)
    for method, style, shift in _methods(rows):
        _draw(rows[rows["method"] == method], "mean_posterior_mean", "bias_se", style, shift, axes)
    show_mean(axes, rows["mean_posterior_mean"], rows["method"], target)


def _sd_panel(rows: pd.DataFrame, axes: Axes) -> None:
    for method, style, shift in _methods(rows):
        _draw(rows[rows["method"] == method], "mean_posterior_sd", "mean_posterior_sd_se", style, shift, axes)
    show_decades(axes)


def _coverage_panel(rows: pd.DataFrame, axes: Axes) -> None:
    axes.axhline(0.95, color="#0072B2", lw=1.0, label="nominal coverage, 0.95", zorder=1)
    reach = 2 * np.sqrt(0.95 * 0.05 / max(int(rows["replications"].min()), 1))
    axes.axhspan(0.95 - reach, min(0.95 + reach, 1.0), color=_BAND, zorder=0)
    for method, style, shift in _methods(rows):
        _draw(rows[rows["method"] == method], "coverage", "coverage_se", style, shift, axes)
    show_coverage(axes, rows["coverage"])


def _caption(rows: pd.DataFrame) -> str:
    fewest, most = int(rows["replications"].min()), int(rows["replications"].max())
    number = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    levels = "/".join(dict.fromkeys(rows["levels"].astype(str)))
    return (
        f"{number} replications, design levels: {_plain(levels)}\n"
        f"bars: 2 Monte Carlo standard errors; band: those of a coverage of 0.95 with {fewest:,} replications"
    )


def _tidy(axes: Axes, rows: pd.DataFrame) -> None:
    sizes = np.unique(rows["n"].to_numpy(dtype=float))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK, labelsize="small")
    step = -(-len(sizes) // 5)
    axes.xaxis.set_major_locator(FixedLocator(sizes[step - 1 :: step].tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    margin = 0.6 * _gap(rows)
    axes.set_xlim(sizes[0] - margin, sizes[-1] + margin)


def _legend(figure: Figure, title: str) -> None:
    handles: dict[str, Any] = {}
    for panel in figure.axes:
        found: tuple[list[Line2D], list[str]] = panel.get_legend_handles_labels()  # type: ignore[assignment]
        handles.update(zip(found[1], found[0], strict=True))
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize="small",
        title=title,
        title_fontsize="small",
    )


def _symbol(parameter: str) -> str:
    index = re.fullmatch(r"theta_?(\d*)", parameter)
    if index is None:
        return _plain(parameter)
    return f"$\\theta_{{{index[1]}}}$" if index[1] else "$\\theta$"


def _plain(text: str) -> str:
    return text.replace("$", r"\$")


def _file_name(*words: str) -> str:
    return "-".join(re.sub(r"[^\w.-]+", "_", word) for word in words)
