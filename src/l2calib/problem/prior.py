"""The prior: independent named distributions, and the unconstrained coordinates in which posteriors are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from scipy import special

from l2calib.errors import PriorError
from l2calib.numerics.namespace import AnyArray, namespace_of, special_of
from l2calib.numerics.normal_cdf import distribution_function, log_normal_density
from l2calib.problem.distributions import Distribution, as_distribution

_TINY = 1e-300
T = TypeVar("T")  # arrays of NumPy or of JAX
_TAKEN = ("chain", "draw")  # the dimensions of a posterior's draws


@dataclass(frozen=True, eq=False)
class _Coordinate:
    """A monotone map z -> theta from the line onto one support, scaled so that the prior is about standard normal.

    Bounded supports use the normal distribution function: a density cut off by the support becomes a
    smooth one with Gaussian tails, which a uniform lattice integrates to near machine precision.
    """

    low: float
    high: float
    centre: float
    scale: float

    @classmethod
    def of(cls, distribution: Distribution) -> _Coordinate:
        low, high = distribution.support
        raw = cls(low, high, 0.0, 1.0)
        q = raw.inverse(distribution.quantile(special.ndtr(np.array([-1.0, 0.0, 1.0]))))
        return cls(low, high, float(q[1]), float((q[2] - q[0]) / 2))

    def forward(self, z: AnyArray) -> AnyArray:
        w = self.centre + self.scale * z
        if np.isfinite(self.low) and np.isfinite(self.high):
            return self.low + (self.high - self.low) * distribution_function(w)
        if np.isfinite(self.low):
            return self.low + namespace_of(w).exp(w)
        if np.isfinite(self.high):
            return self.high - namespace_of(w).exp(-w)
        return w

    def log_slope(self, z: AnyArray) -> AnyArray:
        w = self.centre + self.scale * z
        if np.isfinite(self.low) and np.isfinite(self.high):
            log_derivative = log_normal_density(w) + np.log(self.high - self.low)
        elif np.isfinite(self.low):
            log_derivative = w
        elif np.isfinite(self.high):
            log_derivative = -w
        else:
            log_derivative = namespace_of(w).zeros_like(w)
        return log_derivative + np.log(self.scale)

    def inverse(self, theta: np.ndarray) -> np.ndarray:
        theta = np.asarray(theta, dtype=float)
        if np.isfinite(self.low) and np.isfinite(self.high):
            w = special.ndtri((theta - self.low) / (self.high - self.low))
        elif np.isfinite(self.low):
            w = np.log(theta - self.low)
        elif np.isfinite(self.high):
            w = -np.log(self.high - theta)
        else:
            w = theta
        return np.asarray((w - self.centre) / self.scale)

    def finite_inverse(self, theta: AnyArray) -> AnyArray:
        """The inverse, kept finite on the boundary."""
        xp = namespace_of(theta)
        if np.isfinite(self.low) and np.isfinite(self.high):
            share = xp.clip((theta - self.low) / (self.high - self.low), 1e-12, 1 - 1e-12)
            w = special_of(theta).ndtri(share)
        elif np.isfinite(self.low):
            w = xp.log(xp.maximum(theta - self.low, _TINY))
        elif np.isfinite(self.high):
            w = -xp.log(xp.maximum(self.high - theta, _TINY))
        else:
            w = theta
        return (w - self.centre) / self.scale


class Prior:
    """Independent distributions of the named parameters theta_1, ..., theta_p."""

    def __init__(self, distributions: Mapping[str, object]) -> None:
        given: object = distributions
        if not isinstance(given, Mapping) or not given:
            raise PriorError(
                f"the prior names no parameter: received {given!r:.60}; "
                "give a mapping such as {'theta': Uniform(0, 1)}."
            )
        self.distributions = {name: as_distribution(name, value) for name, value in distributions.items()}
        self.names = tuple(self.distributions)
        self._coordinates = tuple(_coordinate(name, each) for name, each in self.distributions.items())
        self.low = np.array([c.low for c in self._coordinates])
        self.high = np.array([c.high for c in self._coordinates])
        quartiles = self.quantile(np.tile([[0.25], [0.75]], (1, self.dimension)))
        self.scale = np.where(
            np.isfinite(self.high - self.low), self.high - self.low, 2 * np.diff(quartiles, axis=0)[0]
        )

    def __eq__(self, other: object) -> bool:
        """The same parameters with the same distributions: what was compiled for one serves the other."""
        return isinstance(other, Prior) and list(self.distributions.items()) == list(other.distributions.items())

    def __hash__(self) -> int:
        return hash(self.names)

    @property
    def dimension(self) -> int:
        return len(self.names)

    def log_density(self, theta: T) -> T:
        """Log prior density of theta (p,), or of rows of theta (..., p)."""
        xp, rows = namespace_of(theta), cast("AnyArray", theta)
        terms = [d.log_density(rows[..., j]) for j, d in enumerate(self.distributions.values())]
        # A distribution that somebody wrote for JAX may answer NumPy with an array of JAX.
        log_density: T = xp.sum(xp.stack([xp.asarray(term) for term in terms]), axis=0)
        return log_density

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """Marginal quantiles of an array (..., p) of probabilities."""
        columns = [d.quantile(probability[..., j]) for j, d in enumerate(self.distributions.values())]
        return np.stack(columns, axis=-1)

    def _columns(self, function: Callable[[_Coordinate, AnyArray], AnyArray], values: T) -> T:
        rows = cast("AnyArray", values)
        # Parameter by parameter: XLA does not vectorise what it sees as a short last axis.
        columns = [function(each, rows[..., j]) for j, each in enumerate(self._coordinates)]
        stacked: T = namespace_of(values).stack(columns, axis=-1)
        return stacked

    def from_line(self, z: T) -> T:
        """theta of unconstrained coordinates z (..., p)."""
        return self._columns(_Coordinate.forward, z)

    def to_line(self, theta: T) -> T:
        """Unconstrained coordinates of theta (..., p), kept finite on the boundary."""
        return self._columns(_Coordinate.finite_inverse, theta)

    def log_slope(self, z: T) -> T:
        """`log |d theta / d z|`, per parameter."""
        return self._columns(_Coordinate.log_slope, z)


def _coordinate(name: str, distribution: Distribution) -> _Coordinate:
    """The coordinate of one parameter; PriorError if there is none in double precision."""
    if not isinstance(name, str):
        raise PriorError(f"the name of a parameter is not text: received {name!r}; give the model's argument.")
    if name in _TAKEN or "/" in name:
        raise PriorError(f"the name '{name}' cannot be given to a parameter: results use it otherwise; rename it.")
    low, high = distribution.support
    with np.errstate(all="ignore"):
        centre = distribution.quantile(np.array([0.5]))
        if not (low < high and np.isfinite(centre).all()):
            raise PriorError(f"the prior of '{name}' has no mass on ({low}, {high}); give a proper distribution.")
        coordinate = _Coordinate.of(distribution)
    if not (np.isfinite(coordinate.centre) and 0 < coordinate.scale < np.inf):
        raise PriorError(
            f"the prior of '{name}' crowds its mass into too little of ({low}, {high}) for double precision: "
            f"received {distribution}; give one that is less extreme."
        )
    return coordinate
