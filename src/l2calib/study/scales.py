"""Axes that show a study's numbers legibly where a straight scale does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

COVERAGES = (0.0, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
_ROOM_BELOW, _ROOM_ABOVE_ONE = 0.02, 0.0015
_STRETCH_BEYOND = 40.0  # times the bias of the middle method


def show_coverage(axes: Axes, coverage: pd.Series) -> None:
    """Make equal steps of the square root of 1 - coverage: 0.95 and 0.99 are told apart, and 0.2 still fits."""

    def forward(value: NDArray[np.float64]) -> NDArray[np.float64]:
        missed = 1 - np.asarray(value, dtype=float)
        return np.asarray(-np.sign(missed) * np.sqrt(np.abs(missed)))

    def inverse(value: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 + np.sign(value) * np.square(value)

    finite = coverage[np.isfinite(coverage)]
    lowest = min(float(finite.min()) if len(finite) else 1.0, 0.93)
    bottom = max(tick for tick in COVERAGES if tick < lowest - _ROOM_BELOW or tick == 0)
    axes.set_yscale("function", functions=(forward, inverse))
    axes.set_ylim(bottom, 1 + _ROOM_ABOVE_ONE)
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in COVERAGES if tick >= bottom]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def show_mean(axes: Axes, mean: pd.Series, method: pd.Series, target: float) -> None:
    """Stretch the axis about the target where one method lies so far off that the others would lie on one line."""
    width = stretch(mean, method, target)
    if width is None:
        axes.ticklabel_format(axis="y", useOffset=False)
        return
    axes.set_yscale(
        "function",
        functions=(
            lambda value: np.arcsinh((np.asarray(value) - target) / width),
            lambda value: target + width * np.sinh(value),
        ),
    )
    bottom = target + 1.5 * min(float(mean.min()) - target, -3 * width)
    top = target + 1.5 * max(float(mean.max()) - target, 3 * width)
    axes.set_ylim(bottom, top)
    # Within its width the scale is all but straight, and more labels would lie on each other.
    decades = 10.0 ** np.arange(np.ceil(np.log10(width)), np.ceil(np.log10((mean - target).abs().max())) + 1)
    ticks = target + np.concatenate([-decades[::-1], [0.0], decades])
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if bottom <= tick <= top]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _from_target(value - target)))
    axes.yaxis.set_minor_locator(NullLocator())


def stretch(mean: pd.Series, method: pd.Series, target: float) -> float | None:
    """The distance from the target within which the axis stays straight; None where all of it may be."""
    by_method = (mean - target).abs().groupby(method).median()
    width, farthest = float(by_method.median()), float(by_method.max())
    return width if farthest > _STRETCH_BEYOND * width > 0 else None


def show_decades(axes: Axes) -> None:
    """Make the scale logarithmic, with numbers enough to read when the data span less than a decade."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _from_target(step: float) -> str:
    if abs(step) < 1e-12:
        return "$\\theta_{L^2}$"
    return f"$\\theta_{{L^2}}{step:+.9f}".rstrip("0") + "$"
