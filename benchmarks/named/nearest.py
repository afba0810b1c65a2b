"""theta_L2 of a named problem, in NumPy and SciPy alone.

As in `benchmarks.realistic.targets`, whose nodes and Newton's method are used, but in any box, and with three inputs.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize
from scipy.stats import qmc

from benchmarks.realistic.targets import Distance, Rule, Surface, panels, slopes

_STARTS, _POLISHED, _APART = 512, 12, 0.05  # the last as a share of the box
_PER_INPUT = 16


def rule(inputs: int, kink: tuple[int, float] | None) -> Rule:
    """Nodes in the unit cube, by panels of one or two inputs; of more, Gauss and Legendre's over the whole of each."""
    if inputs <= 2:
        return panels(inputs, kink)
    points, weights = np.polynomial.legendre.leggauss(_PER_INPUT)
    nodes = np.stack(np.meshgrid(*[(points + 1) / 2] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)
    products = np.stack(np.meshgrid(*[weights / 2] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)
    return Rule(nodes, products.prod(axis=1))


def nearest(surface: Surface, mu: np.ndarray, weights: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The theta that is nearest to mu in a box (p, 2), the distance there, and that at the next lowest minimum."""
    minima: list[tuple[float, np.ndarray]] = []
    for start in _starts(surface, mu, weights, box):
        found = _descend(surface, mu, weights, box, start)
        around = Distance(surface, mu, weights, found)
        t, _ = around.newton(np.zeros(len(box)))
        theta = around.theta(t)
        if all(np.abs((theta - other) / np.ptp(box, axis=1)).max() > 1e-3 for _, other in minima):
            minima.append((around.root(t), theta))
    minima.sort(key=lambda each: each[0])
    return minima[0][1], minima[0][0], minima[1][0] if len(minima) > 1 else np.inf


def _starts(surface: Surface, mu: np.ndarray, weights: np.ndarray, box: np.ndarray) -> list[np.ndarray]:
    """The nearest of many points of the box, none near a better one."""
    low, width = box[:, 0], np.ptp(box, axis=1)
    cube = qmc.Sobol(len(box), scramble=False).random(_STARTS) + 0.5 / _STARTS  # not on the faces, where models may end
    with np.errstate(all="ignore"):
        squares = np.array([weights @ np.square(surface(low + width * u) - mu) for u in cube])
    kept: list[np.ndarray] = []
    for u in cube[np.argsort(np.where(np.isfinite(squares), squares, np.inf))]:
        if len(kept) < _POLISHED and all(np.abs(u - other).max() > _APART for other in kept):
            kept.append(u)
    return [low + width * u for u in kept]


def _descend(surface: Surface, mu: np.ndarray, weights: np.ndarray, box: np.ndarray, start: np.ndarray) -> np.ndarray:
    root = np.sqrt(weights)
    found = optimize.least_squares(
        lambda theta: root * (surface(theta) - mu),
        start,
        lambda theta: root[:, None] * slopes(surface, theta),
        bounds=box.T,
        x_scale=np.ptp(box, axis=1),
        xtol=1e-12,
        ftol=1e-14,
        gtol=1e-14,
    )
    return np.asarray(found.x)
