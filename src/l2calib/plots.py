"""Pictures of results, as matplotlib axes.

No global state: without `ax` every function draws on a figure of its own, which the axes carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from l2calib.errors import DataError, suggest
from l2calib.methods.catalogue import Style, styles_of
from l2calib.numerics.arrays import jnp
from l2calib.posterior.band import Band
from l2calib.results.calibration import Calibration, problem_of
from l2calib.results.prediction import along

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from l2calib.problem.problem import Problem

Results: TypeAlias = "Calibration | Iterable[Calibration]"

_INK = "#333333"
_PALE = "#999999"
_SHOWN_MASS = 0.99
_PER_ROW = 3
_CURVE_POINTS = 201
_HELD = (0.5, 0.95)
_MODEL = Style("model", "#0072B2", (5, 2), "o")
_SYSTEM = Style("system", "#D55E00", (), "o")


def plot_fit(results: Results, ax: Axes | None = None) -> Axes:
    """Draw the data with the model at each posterior mean; with several inputs, fitted against observed."""
    shown = _several(results)
    ax = _axes(ax)
    problem = problem_of(shown[0], "plotting the fit")
    if len(problem.input_names) == 1:
        _fit_over_input(problem, shown, ax)
    else:
        _fit_against_response(problem, shown, ax)
    ax.legend(frameon=False, loc="upper left", handlelength=3)
    return ax


def plot_marginal(results: Results, parameter: str, ax: Axes | None = None) -> Axes:
    """Draw the marginal posterior density of a parameter by each method, and its prior as a thin line."""
    shown = _several(results)
    ax = _axes(ax)
    ranges, peak = [], 0.0
    for result, style in zip(shown, _styles(shown), strict=True):
        grid, density = result.marginal(parameter)
        ax.plot(grid, density, label=style.label, **_line(style))
        ranges.append(_bulk(grid, density))
        peak = max(peak, float(density.max()))
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    _prior(shown[0], parameter, low, high, ax)
    ax.set(xlim=(low, high), ylim=(0, 1.06 * peak), xlabel=parameter, ylabel="density", yticks=[])
    _bare(ax)
    ax.spines["left"].set_visible(False)
    return ax


def plot_prediction(
    result: Calibration,
    input: str | None = None,  # noqa: A002 - the word for it, here and in a problem
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the data, the model and the system with their bands, along one input.

    With several inputs the curves hold the others at the middle of their ranges, and the data do not.
    """
    ax, problem = _axes(ax), problem_of(result, "plotting a prediction")
    name = _chosen_input(problem, input)
    predicted = result.predict(along(problem.experiment.box, name, _CURVE_POINTS), level)
    alone = len(problem.input_names) == 1
    label = "observed" if alone else "observed, other inputs vary"
    ax.plot(problem.x[:, problem.input_names.index(name)], problem.y, "o", ms=4, mfc="none", mec=_PALE, label=label)
    _band(ax, predicted.inputs[name], predicted.model, _MODEL)
    _band(ax, predicted.inputs[name], predicted.system, _SYSTEM)
    ax.set(xlabel=name, ylabel=problem.response)
    ax.margins(x=0.01)
    ax.legend(frameon=False, handlelength=3)
    _bare(ax)
    return ax


def plot_bias(
    results: Results,
    input: str | None = None,  # noqa: A002 - as above
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw what the system has beyond the model, with its band, along one input; zero is a thin line."""
    shown = _several(results)
    problem = problem_of(shown[0], "plotting the bias")
    ax, name = _axes(ax), _chosen_input(problem, input)
    ax.axhline(0, color=_PALE, lw=0.8, zorder=1)
    for result, style in zip(shown, _styles(shown), strict=True):
        predicted = result.predict(along(problem.experiment.box, name, _CURVE_POINTS), level)
        _band(ax, predicted.inputs[name], predicted.bias, style)
    ax.set(xlabel=name, ylabel=f"bias of {problem.response}")
    ax.margins(x=0.01)
    ax.legend(frameon=False, handlelength=3)
    _bare(ax)
    return ax


def plot_joint(results: Results, first: str, second: str, ax: Axes | None = None) -> Axes:
    """Draw the regions that hold half and 95% of the posterior of two parameters.

    They are those of highest density on the line, where the bounds of a prior are far away.
    """
    shown = _several(results)
    ax = _axes(ax)
    for result, style in zip(shown, _styles(shown), strict=True):
        joint = result.joint(first, second)
        heights = _heights(joint.mass, _HELD)
        only, dashes = [style.colour], [(0, style.dashes)] if style.dashes else ["solid"]
        ax.contourf(joint.first, joint.second, joint.mass, [*heights, np.inf], colors=only, alpha=0.15)
        ax.contour(joint.first, joint.second, joint.mass, heights, colors=only, linewidths=1.4, linestyles=dashes)
        ax.plot([], [], label=style.label, **_line(style))
    ax.set(xlabel=first, ylabel=second)
    ax.legend(frameon=False, handlelength=3)
    _bare(ax)
    return ax


def plot_calibration(results: Results) -> Figure:
    """Draw the data with the fitted curves, and below them the marginal density of each parameter."""
    shown = _several(results)
    parameters = shown[0].parameter_names
    columns = min(len(parameters), _PER_ROW)
    rows = -(-len(parameters) // columns)
    figure = Figure(figsize=(7.2, 3.4 + 2.5 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, columns, height_ratios=[3.4] + [2.4] * rows)
    panels = [plot_fit(shown, figure.add_subplot(grid[0, :]))]
    for position, parameter in enumerate(parameters):
        row, column = divmod(position, columns)
        panels.append(plot_marginal(shown, parameter, figure.add_subplot(grid[1 + row, column])))
    for letter, panel in zip("abcdefghijklmnopqrstuvwxyz", panels, strict=False):
        panel.set_title(f"({letter})", loc="left", fontsize="medium", color=_INK)
    return figure


def save_figure(figure: Figure, stem: Path) -> None:
    """Write stem.png and stem.svg; the same figure gives the same bytes."""
    figure.savefig(stem.with_suffix(".png"), dpi=200)
    with mpl.rc_context({"svg.hashsalt": "l2calib"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})


def _fit_over_input(problem: Problem, shown: Sequence[Calibration], ax: Axes) -> None:
    (name,) = problem.input_names
    low, high = problem.inputs[name]
    x = np.linspace(low, high, 300)
    ax.plot(problem.x[:, 0], problem.y, "o", ms=4, mfc="none", mec=_PALE, label="observed")
    for result, style in zip(shown, _styles(shown), strict=True):
        ax.plot(x, problem.predict_model(_mean(result), {name: x}), label=style.label, **_line(style))
    ax.set(xlabel=name, ylabel=problem.response)
    ax.margins(x=0.01)
    _bare(ax)


def _fit_against_response(problem: Problem, shown: Sequence[Calibration], ax: Axes) -> None:
    columns = dict(zip(problem.input_names, problem.x.T, strict=True))
    ax.axline((float(problem.y.mean()),) * 2, slope=1, color=_PALE, lw=0.8)
    for (result, style), marker in zip(zip(shown, _styles(shown), strict=True), "osD^vP*X<>", strict=False):
        fitted = problem.predict_model(_mean(result), columns)
        ax.plot(fitted, problem.y, marker, ms=4, mfc="none", mec=style.colour, label=style.label)
    ax.set(xlabel=f"fitted {problem.response}", ylabel=f"observed {problem.response}")
    _bare(ax)


def _chosen_input(problem: Problem, name: str | None) -> str:
    names = problem.input_names
    if name is None:
        return names[0]
    if name not in names:
        raise DataError(f"there is no input '{name}'{suggest(str(name), names)}: the inputs are {', '.join(names)}.")
    return name


def _band(ax: Axes, x: NDArray[np.float64], band: Band, style: Style) -> None:
    ax.fill_between(x, band.low, band.high, color=style.colour, alpha=0.18, lw=0)
    ax.plot(x, band.mean, label=style.label, **_line(style))


def _heights(mass: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.float64]:
    """The masses of a grid's points, lowest first, above which these shares of the whole lie."""
    falling = np.sort(mass.ravel())[::-1]
    return np.sort(falling[np.searchsorted(np.cumsum(falling), shares)])


def _prior(result: Calibration, parameter: str, low: float, high: float, ax: Axes) -> None:
    distribution = result.prior.distributions[parameter]
    grid = np.linspace(low, high, 200)
    density = np.exp(np.asarray(distribution.log_density(jnp.asarray(grid))))
    ax.plot(grid, density, color=_PALE, lw=0.8, label="prior", zorder=1)
    # Named at the right, where the tails of most posteriors are thinner than their label is high.
    ax.annotate(
        "prior", (high, density[-1]), (-2, 2), textcoords="offset points", ha="right", color=_PALE, fontsize="small"
    )


def _bulk(grid: NDArray[np.float64], density: NDArray[np.float64]) -> tuple[float, float]:
    """Return the range that holds nearly all of the mass, so that a long tail does not squeeze the picture."""
    mass = np.cumsum(density * np.gradient(grid))
    tail = (1 - _SHOWN_MASS) / 2
    low, high = np.interp([tail, 1 - tail], mass / mass[-1], grid)
    return float(low), float(high)


def _several(results: Results) -> list[Calibration]:
    return [results] if isinstance(results, Calibration) else list(results)


def _styles(shown: Sequence[Calibration]) -> list[Style]:
    styles = styles_of(each.method for each in shown)
    return [styles[each.method] for each in shown]


def _line(style: Style) -> dict[str, Any]:
    return {"color": style.colour, "lw": 1.8, "dashes": style.dashes or (None, None)}


def _mean(result: Calibration) -> NDArray[np.float64]:
    return np.asarray(result.summary()["mean"], dtype=float)


def _axes(ax: Axes | None) -> Axes:
    return Figure(layout="constrained").subplots() if ax is None else ax


def _bare(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=_INK)
