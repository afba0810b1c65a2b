"""Log densities on the line whose marginals are known, each written once for NumPy and for JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from l2calib import Uniform
from l2calib.numerics.namespace import log_sum_exp, namespace_of
from l2calib.posterior.points import PROBABILITIES, Summary
from l2calib.problem.prior import Prior


class NormalMixture:
    """Of shares, means and standard deviations (M,)."""

    def __init__(self, shares: Any, means: Any, sds: Any) -> None:
        self.shares, self.means, self.sds = (np.asarray(each, dtype=float) for each in (shares, means, sds))

    def mean(self) -> float:
        return float(self.shares @ self.means)

    def std(self) -> float:
        return float(np.sqrt(self.shares @ (self.sds**2 + (self.means - self.mean()) ** 2)))

    def ppf(self, probabilities: Any) -> np.ndarray:
        def excess(z: float, probability: float) -> float:
            return float(self.shares @ stats.norm.cdf(z, self.means, self.sds)) - probability

        return np.array([brentq(excess, -60, 60, args=(each,), xtol=1e-13) for each in probabilities])


def _itself(z: Any) -> Any:
    return z


@dataclass(frozen=True)
class Known:
    """A log density of rows z (N, p), where its modes may be (S, p), and its marginals in theta = from_line(z)."""

    log_density: Callable[[Any], Any]
    starts: np.ndarray
    marginals: list[Any]
    from_line: Callable[[Any], Any] = _itself

    def exact(self) -> Summary:
        of = self.marginals
        quantiles = np.array([each.ppf(PROBABILITIES) for each in of])
        return Summary(
            np.array([each.mean() for each in of]), np.array([each.std() for each in of]), quantiles, np.array(0.0)
        )


def gaussian(p: int, correlation: float = 0.99) -> Known:
    """Standard deviations of 0.05, 0.1, ... about 0.3."""
    sd = 0.05 * np.arange(1, p + 1)
    precision = np.linalg.inv((correlation + (1 - correlation) * np.eye(p)) * np.outer(sd, sd))

    def log_density(z: Any) -> Any:
        away = z - 0.3
        return -namespace_of(z).sum(away * (away @ precision), axis=-1) / 2

    return Known(log_density, np.zeros((1, p)), [stats.norm(0.3, each) for each in sd])


def banana() -> Known:
    """z2 follows the square of z1."""
    mean, sd, bend, across = 0.5, 0.15, 2.0, 0.1

    def log_density(z: Any) -> Any:
        first, second = z[..., 0], z[..., 1]
        return -(((first - mean) / sd) ** 2) / 2 - ((second - bend * first**2) / across) ** 2 / 2

    nodes = np.linspace(-8, 8, 1001)  # near enough to each other for bells as wide as that to make one smooth curve
    shares = stats.norm.pdf(nodes) / stats.norm.pdf(nodes).sum()
    second = NormalMixture(shares, bend * (mean + sd * nodes) ** 2, np.full(nodes.size, across))
    return Known(log_density, np.zeros((1, 2)), [stats.norm(mean, sd), second])


def skewed(p: int, shape: float = 2.0, scale: float = 0.2) -> Known:
    """Independent logarithms of gamma variables."""

    def log_density(z: Any) -> Any:
        xp = namespace_of(z)
        return xp.sum(shape * z / scale - xp.exp(z / scale), axis=-1)

    return Known(log_density, np.zeros((1, p)), [stats.loggamma(shape, scale=scale)] * p)


def two_modes(p: int) -> Known:
    """Of one shape, the second with 0.4 of the mass."""
    shares, centres, sd = np.array([0.6, 0.4]), np.array([-0.3, 0.9]), 0.1

    def log_density(z: Any) -> Any:
        away = (z - centres.reshape(2, 1, 1)) / sd
        xp = namespace_of(z)
        return log_sum_exp(np.log(shares)[:, None] - xp.sum(away**2, axis=-1) / 2, axis=0)

    return Known(log_density, np.repeat(centres[:, None], p, axis=1), [NormalMixture(shares, centres, [sd, sd])] * p)


def cut_off(p: int) -> Known:
    """Normal about a point beyond the upper bound of a uniform prior."""
    prior, mean, sd = Prior({f"theta{j}": Uniform(0, 1) for j in range(p)}), 1.02, 0.1

    def log_density(z: Any) -> Any:
        xp, theta = namespace_of(z), prior.from_line(z)
        of_theta = prior.log_density(theta) - xp.sum(((theta - mean) / sd) ** 2, axis=-1) / 2
        return of_theta + xp.sum(prior.log_slope(z), axis=-1)

    marginal = stats.truncnorm(-mean / sd, (1 - mean) / sd, mean, sd)
    return Known(log_density, prior.to_line(np.full((1, p), 0.9)), [marginal] * p, prior.from_line)


KNOWN = {
    "Gaussian, p = 1": gaussian(1),
    "Gaussian, p = 2": gaussian(2),
    "Gaussian, p = 3": gaussian(3),
    "Gaussian, p = 4": gaussian(4),
    "banana": banana(),
    "skewed, p = 1": skewed(1),
    "skewed, p = 2": skewed(2),
    "skewed, p = 3": skewed(3),
    "two modes, p = 1": two_modes(1),
    "two modes, p = 2": two_modes(2),
    "cut off, p = 1": cut_off(1),
    "cut off, p = 2": cut_off(2),
}
