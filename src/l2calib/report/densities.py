"""Posteriors as pictures show them: the range worth showing, and regions of two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from l2calib.report.run_files import Marginal

_SHOWN = 0.995
_CELLS = 48
_HELD = (0.95, 0.5)
_DRAWS, _SHARPER = 4000, 0.8


def view(marginals: Iterable[Marginal]) -> tuple[float, float]:
    """A range that holds nearly all of every posterior, so that a long tail does not squeeze the picture."""
    ends = [
        np.interp([(1 - _SHOWN) / 2, (1 + _SHOWN) / 2], mass(each.value, each.density), each.value)
        for each in marginals
    ]
    return float(min(low for low, _ in ends)), float(max(high for _, high in ends))


def mass(value: np.ndarray, density: np.ndarray) -> np.ndarray:
    """The distribution function of a density on a grid."""
    pieces = np.diff(value) * (density[1:] + density[:-1]) / 2
    return np.asarray(np.concatenate([[0.0], np.cumsum(pieces)]) / pieces.sum())


def outlines(
    x: np.ndarray, y: np.ndarray, x_view: tuple[float, float], y_view: tuple[float, float]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The closed outlines of the densest regions that hold 95% and 50% of the draws, from a kernel density."""
    from matplotlib.figure import Figure

    centres = [np.linspace(*shown, _CELLS) for shown in (x_view, y_view)]
    density = _kernel_density(np.stack([x, y]), *centres)
    levels = [_level(density, share) for share in _HELD]
    if not 0 < levels[0] < levels[1]:
        return [], []
    # A frame of zeros closes the outlines that would run out of the picture.
    framed = [np.concatenate([[c[0] - 1e-9 * np.ptp(c)], c, [c[-1] + 1e-9 * np.ptp(c)]]) for c in centres]
    drawn = Figure().subplots().contour(*framed, np.pad(density, 1).T, levels=levels)
    outer, inner = ([np.asarray(ring) for ring in level.to_polygons()] for level in drawn.get_paths())
    return outer, inner


def _kernel_density(draws: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """On a grid; less smooth than the rule for a normal density says, since a curved ridge is narrower than its sds."""
    from scipy.stats import gaussian_kde

    thinned = draws[:, :: -(-draws.shape[1] // _DRAWS)]
    smooth = gaussian_kde(thinned, bw_method=lambda kernel: _SHARPER * kernel.scotts_factor())
    grid = np.stack(np.meshgrid(x, y, indexing="ij")).reshape(2, -1)
    return np.asarray(smooth(grid)).reshape(len(x), len(y))


def _level(density: np.ndarray, share: float) -> float:
    """The density above which lies that share of the mass."""
    ranked = np.sort(density, axis=None)[::-1]
    held = np.cumsum(ranked)
    return float(ranked[int(np.searchsorted(held, share * held[-1]))])


def scattered(marginal: Marginal, shown: tuple[float, float], shares: np.ndarray) -> np.ndarray:
    """Values of the prior within a range, at given shares of its mass there."""
    grid = np.linspace(*shown, 200)
    density = np.interp(grid, marginal.value, np.nan_to_num(marginal.prior))
    return np.asarray(np.interp(shares, mass(grid, np.maximum(density, 1e-12 * density.max())), grid))
