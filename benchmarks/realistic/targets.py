"""theta_L2 of a known system in NumPy alone: what the library says of it is not taken on trust here.

The squared L2 distance is a sum over Gauss-Legendre nodes, in panels that grow from the lower end of every input, where
textbook models bend most, and that end where the system has a kink. It is minimised over the logarithms of the
parameters, which are all positive, from many starts; the lowest minima are then Newton's, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.stats import qmc

Surface = Callable[[np.ndarray], np.ndarray]  # thetas (..., p) to the model at some points (..., N)

SPAN = np.log(4.0)  # the prior goes from a quarter to four times the true parameters
_EDGES = {1: (0, 1 / 256, 1 / 64, 1 / 16, 1 / 4, 1 / 2, 3 / 4, 1), 2: (0, 1 / 16, 1 / 4, 1 / 2, 3 / 4, 1)}
_PER_PANEL = {1: 16, 2: 12}
_STARTS, _POLISHED = 512, 8
_TINY = 1e-200  # complex steps have no rounding, so they may be as small as one likes


@dataclass(frozen=True)
class Rule:
    """Nodes (Q, k) in the unit cube and their weights (Q,)."""

    nodes: np.ndarray
    weights: np.ndarray


def panels(inputs: int, kink: tuple[int, float] | None = None, finer: int = 0) -> Rule:
    """The rule for a system with one kink or none; `finer` adds nodes to every panel."""
    points, weights = np.polynomial.legendre.leggauss(_PER_PANEL[inputs] + finer)
    axes = []
    for axis in range(inputs):
        extra = [kink[1]] if kink is not None and kink[0] == axis else []
        edges = np.array(sorted([*_EDGES[inputs], *extra]))
        half = np.diff(edges) / 2
        axes.append(((edges[:-1] + half)[:, None] + half[:, None] * points, half[:, None] * weights))
    nodes = np.stack(np.meshgrid(*(axis[0].ravel() for axis in axes), indexing="ij"), axis=-1).reshape(-1, inputs)
    products = axes[0][1].ravel()
    for _, others in axes[1:]:
        products = np.outer(products, others.ravel()).ravel()
    return Rule(nodes, products)


def slopes(surface: Surface, theta: np.ndarray) -> np.ndarray:
    """Derivatives of the surface by the parameters (N, p), by complex steps and so to rounding."""
    steps = np.diag(theta) * 1j * _TINY
    return np.asarray(surface(theta + steps).imag.T / (theta * _TINY))


@dataclass(frozen=True)
class Distance:
    """Half the squared distance between the system mu (N,) at nodes and the model, over t = log(theta / theta_0)."""

    surface: Surface
    mu: np.ndarray
    weights: np.ndarray
    centre: np.ndarray

    def theta(self, t: np.ndarray) -> np.ndarray:
        return self.centre * np.exp(t)

    def residuals(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(self.weights) * (self.surface(self.theta(t)) - self.mu))

    def jacobian(self, t: np.ndarray) -> np.ndarray:
        theta = self.theta(t)
        return np.asarray(np.sqrt(self.weights)[:, None] * slopes(self.surface, theta) * theta)

    def gradient(self, t: np.ndarray) -> np.ndarray:
        return np.asarray(self.jacobian(t).T @ self.residuals(t))

    def hessian(self, t: np.ndarray, step: float = 1e-5) -> np.ndarray:
        columns = [
            (self.gradient(t + step * e) - self.gradient(t - step * e)) / (2 * step) for e in np.eye(len(self.centre))
        ]
        return np.asarray((np.array(columns) + np.array(columns).T) / 2)

    def root(self, t: np.ndarray) -> float:
        """The root of the mean square."""
        return float(np.linalg.norm(self.residuals(t)))

    def descend(self, t: np.ndarray) -> np.ndarray:
        """The minimum in the box of the prior that one start leads to."""
        inside = np.clip(t, -0.999 * SPAN, 0.999 * SPAN)
        found = optimize.least_squares(
            self.residuals, inside, self.jacobian, bounds=(-SPAN, SPAN), xtol=1e-12, ftol=1e-14, gtol=1e-14
        )
        return np.asarray(found.x)

    def newton(self, t: np.ndarray) -> tuple[np.ndarray, bool]:
        """A minimum to rounding from nearby, and whether it is one; where Newton leads away, what it was given."""
        polished = t
        for _ in range(10):
            try:
                step = np.linalg.solve(self.hessian(polished), self.gradient(polished))
            except np.linalg.LinAlgError:
                break
            polished = polished - step
            if not np.abs(polished - t).max() < 1e-2:
                break
            if np.abs(step).max() < 1e-11:
                return polished, bool(np.linalg.eigvalsh(self.hessian(polished))[0] > 0)
        return t, False


@dataclass(frozen=True)
class Target:
    """The lowest minimum, the distance there, and that at the lowest of the others (infinite if there is none)."""

    t: np.ndarray
    distance: float
    next_lowest: float
    sharp: bool

    @property
    def interior(self) -> bool:
        """Whether it is well inside the prior's box (in logarithms, less than 95% of the way), and exact."""
        return self.sharp and bool(np.abs(self.t).max() < 0.95 * SPAN)

    def alone(self, extent: float) -> bool:
        """Whether no other minimum is within five percent of the lowest, or as good as exact where that one is."""
        return self.next_lowest > 1.05 * self.distance + 1e-4 * extent


def global_minimum(distance: Distance) -> Target:
    """The lowest minimum of the distance in the box of the prior, from many starts."""
    p = len(distance.centre)
    cube = qmc.Sobol(p, scramble=False).random(_STARTS)
    # The prior is even in theta, which leaves more of its upper end than logarithms do.
    starts = np.concatenate([np.zeros((1, p)), (2 * cube - 1) * SPAN, np.log(0.25 + 3.75 * cube)])
    gaps = distance.surface(distance.theta(starts)) - distance.mu
    order = np.argsort(np.square(gaps) @ distance.weights)
    minima: list[tuple[float, np.ndarray, bool]] = []
    for start in _apart(starts[order]):
        found, sharp = distance.newton(distance.descend(start))
        if all(np.abs(found - other).max() > 1e-3 for _, other, _ in minima):
            minima.append((distance.root(found), found, sharp))
    minima.sort(key=lambda each: each[0])
    root, lowest, sharp = minima[0]
    return Target(lowest, root, minima[1][0] if len(minima) > 1 else np.inf, sharp)


def _apart(starts: np.ndarray) -> list[np.ndarray]:
    """The first few that are not near an earlier one."""
    kept: list[np.ndarray] = []
    for start in starts:
        if all(np.abs(start - other).max() > 0.25 for other in kept):
            kept.append(start)
        if len(kept) == _POLISHED:
            break
    return kept
