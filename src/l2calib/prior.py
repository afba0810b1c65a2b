"""Independent prior distributions with names, and the unconstrained coordinates in which posteriors are computed.

Each distribution knows its support, its log density (traced by JAX) and its quantiles (NumPy).
Distributions of numpyro are accepted too, through `log_prob`, `support` and `icdf`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import special

from l2calib.arrays import Array, jax, jnp
from l2calib.errors import PriorError

_TINY = 1e-300


@runtime_checkable
class Distribution(Protocol):
    """A continuous distribution on an interval, a half-line or the line."""

    @property
    def support(self) -> tuple[float, float]: ...

    def log_density(self, value: Array) -> Array: ...

    def quantile(self, probability: np.ndarray) -> np.ndarray: ...


def _require(holds: bool, name: str, received: str, remedy: str) -> None:
    if not holds:
        raise PriorError(f"the prior {name} has no mass: received {received}; {remedy}.")


def _inside(value: Array, low: float, high: float, log_density: Array) -> Array:
    return jnp.where((value >= low) & (value <= high), log_density, -jnp.inf)


@dataclass(frozen=True)
class Uniform:
    """Uniform on [low, high]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        holds = bool(np.isfinite([self.low, self.high]).all() and self.low < self.high)
        _require(holds, "uniform", f"low = {self.low}, high = {self.high}", "give finite low < high")

    @property
    def support(self) -> tuple[float, float]:
        return float(self.low), float(self.high)

    def log_density(self, value: Array) -> Array:
        return _inside(value, self.low, self.high, jnp.full_like(value, -np.log(self.high - self.low)))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return self.low + (self.high - self.low) * np.asarray(probability)


@dataclass(frozen=True)
class Normal:
    """Normal with a mean and a standard deviation."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        holds = bool(np.isfinite([self.mean, self.sd]).all() and self.sd > 0)
        _require(holds, "normal", f"mean = {self.mean}, sd = {self.sd}", "give a finite mean and sd > 0")

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def log_density(self, value: Array) -> Array:
        return jax.scipy.stats.norm.logpdf(value, self.mean, self.sd)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(self.mean + self.sd * special.ndtri(probability))


@dataclass(frozen=True)
class TruncatedNormal:
    """Normal(mean, sd) restricted to [low, high]; either end may be infinite."""

    mean: float
    sd: float
    low: float
    high: float

    def __post_init__(self) -> None:
        holds = bool(np.isfinite([self.mean, self.sd]).all() and self.sd > 0 and self.low < self.high)
        received = f"mean = {self.mean}, sd = {self.sd}, low = {self.low}, high = {self.high}"
        _require(holds and self._mass > _TINY, "truncated normal", received, "give sd > 0 and low < high near the mean")

    @property
    def _tails(self) -> tuple[float, float]:
        return (self.low - self.mean) / self.sd, (self.high - self.mean) / self.sd

    @property
    def _mass(self) -> float:
        a, b = self._tails
        # The smaller tail is subtracted, so that a support far above the mean keeps its digits.
        return float(special.ndtr(-a) - special.ndtr(-b) if a > 0 else special.ndtr(b) - special.ndtr(a))

    @property
    def support(self) -> tuple[float, float]:
        return float(self.low), float(self.high)

    def log_density(self, value: Array) -> Array:
        log_density = jax.scipy.stats.norm.logpdf(value, self.mean, self.sd) - np.log(self._mass)
        return _inside(value, self.low, self.high, log_density)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        a, _ = self._tails
        u = np.asarray(probability)
        if a > 0:
            z = -special.ndtri(special.ndtr(-a) - u * self._mass)
        else:
            z = special.ndtri(special.ndtr(a) + u * self._mass)
        return np.asarray(np.clip(self.mean + self.sd * z, self.low, self.high))


@dataclass(frozen=True)
class LogNormal:
    """The logarithm is Normal(mean_log, sd_log)."""

    mean_log: float
    sd_log: float

    def __post_init__(self) -> None:
        holds = bool(np.isfinite([self.mean_log, self.sd_log]).all() and self.sd_log > 0)
        received = f"mean_log = {self.mean_log}, sd_log = {self.sd_log}"
        _require(holds, "log-normal", received, "give a finite mean_log and sd_log > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def log_density(self, value: Array) -> Array:
        log_value = jnp.log(jnp.maximum(value, _TINY))
        log_density = jax.scipy.stats.norm.logpdf(log_value, self.mean_log, self.sd_log) - log_value
        return _inside(value, 0.0, np.inf, log_density)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(self.mean_log + self.sd_log * special.ndtri(probability)))


@dataclass(frozen=True)
class Gamma:
    """Gamma with a shape and a rate: mean shape / rate."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        holds = bool(np.isfinite([self.shape, self.rate]).all() and self.shape > 0 and self.rate > 0)
        _require(holds, "gamma", f"shape = {self.shape}, rate = {self.rate}", "give shape > 0 and rate > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def log_density(self, value: Array) -> Array:
        log_value = jnp.log(jnp.maximum(value, _TINY))
        constant = self.shape * np.log(self.rate) - special.gammaln(self.shape)
        return _inside(value, 0.0, np.inf, constant + (self.shape - 1) * log_value - self.rate * value)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(special.gammaincinv(self.shape, probability) / self.rate)


@dataclass(frozen=True)
class Beta:
    """Beta(a, b) on [0, 1]."""

    a: float
    b: float

    def __post_init__(self) -> None:
        holds = bool(np.isfinite([self.a, self.b]).all() and self.a > 0 and self.b > 0)
        _require(holds, "beta", f"a = {self.a}, b = {self.b}", "give a > 0 and b > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    def log_density(self, value: Array) -> Array:
        left = (self.a - 1) * jnp.log(jnp.maximum(value, _TINY))
        right = (self.b - 1) * jnp.log(jnp.maximum(1 - value, _TINY))
        return _inside(value, 0.0, 1.0, left + right - special.betaln(self.a, self.b))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(special.betaincinv(self.a, self.b, probability))


@dataclass(frozen=True)
class HalfNormal:
    """The absolute value of Normal(0, sd)."""

    sd: float

    def __post_init__(self) -> None:
        holds = bool(np.isfinite(self.sd) and self.sd > 0)
        _require(holds, "half-normal", f"sd = {self.sd}", "give sd > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def log_density(self, value: Array) -> Array:
        log_density = jax.scipy.stats.norm.logpdf(value, 0.0, self.sd) + np.log(2.0)
        return _inside(value, 0.0, np.inf, log_density)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(self.sd * special.ndtri((1 + np.asarray(probability)) / 2))


@dataclass(frozen=True)
class _Numpyro:
    """A distribution of numpyro, seen through the three things that a prior needs."""

    distribution: Any

    @property
    def support(self) -> tuple[float, float]:
        constraint = self.distribution.support
        low = float(getattr(constraint, "lower_bound", -np.inf))
        return low, float(getattr(constraint, "upper_bound", np.inf))

    def log_density(self, value: Array) -> Array:
        low, high = self.support
        return _inside(value, low, high, self.distribution.log_prob(jnp.clip(value, low, high)))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(self.distribution.icdf(jnp.asarray(probability)))


def as_distribution(name: str, value: object) -> Distribution:
    """The distribution of parameter `name`, ours or numpyro's."""
    if isinstance(value, Distribution):
        return value
    if all(hasattr(value, attribute) for attribute in ("log_prob", "support", "icdf")):
        return _Numpyro(value)
    raise PriorError(
        f"the prior of '{name}' is not a distribution: received {value!r}; give for example Uniform(0, 1)."
    )


@dataclass(frozen=True)
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

    def forward(self, z: Array) -> Array:
        w = self.centre + self.scale * z
        if np.isfinite(self.low) and np.isfinite(self.high):
            return self.low + (self.high - self.low) * jax.scipy.special.ndtr(w)
        if np.isfinite(self.low):
            return self.low + jnp.exp(w)
        if np.isfinite(self.high):
            return self.high - jnp.exp(-w)
        return w

    def log_slope(self, z: Array) -> Array:
        w = self.centre + self.scale * z
        if np.isfinite(self.low) and np.isfinite(self.high):
            log_derivative = np.log(self.high - self.low) + jax.scipy.stats.norm.logpdf(w)
        elif np.isfinite(self.low):
            log_derivative = w
        elif np.isfinite(self.high):
            log_derivative = -w
        else:
            log_derivative = jnp.zeros_like(w)
        return jnp.asarray(log_derivative + np.log(self.scale))

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

    def traced_inverse(self, theta: Array) -> Array:
        if np.isfinite(self.low) and np.isfinite(self.high):
            share = jnp.clip((theta - self.low) / (self.high - self.low), 1e-12, 1 - 1e-12)
            w = jax.scipy.special.ndtri(share)
        elif np.isfinite(self.low):
            w = jnp.log(jnp.maximum(theta - self.low, _TINY))
        elif np.isfinite(self.high):
            w = -jnp.log(jnp.maximum(self.high - theta, _TINY))
        else:
            w = theta
        return (w - self.centre) / self.scale


class Prior:
    """Independent distributions of the named parameters theta_1, ..., theta_p."""

    def __init__(self, distributions: Mapping[str, object]) -> None:
        if not distributions:
            raise PriorError("the prior names no parameter: received an empty mapping; give at least one distribution.")
        self.distributions = {name: as_distribution(name, value) for name, value in distributions.items()}
        self.names = tuple(self.distributions)
        for name, distribution in self.distributions.items():
            low, high = distribution.support
            centre = distribution.quantile(np.array([0.5]))
            if not (low < high and np.isfinite(centre).all()):
                raise PriorError(f"the prior of '{name}' has no mass on ({low}, {high}); give a proper distribution.")
        self._coordinates = tuple(_Coordinate.of(d) for d in self.distributions.values())
        self.low = np.array([c.low for c in self._coordinates])
        self.high = np.array([c.high for c in self._coordinates])
        quartiles = self.quantile(np.tile([[0.25], [0.75]], (1, self.dimension)))
        self.scale = np.where(
            np.isfinite(self.high - self.low), self.high - self.low, 2 * np.diff(quartiles, axis=0)[0]
        )

    @property
    def dimension(self) -> int:
        return len(self.names)

    def log_density(self, theta: Array) -> Array:
        """Log prior density of theta (p,), or of rows of theta (..., p)."""
        terms = [d.log_density(theta[..., j]) for j, d in enumerate(self.distributions.values())]
        return jnp.sum(jnp.stack(terms), axis=0)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """Marginal quantiles of an array (..., p) of probabilities."""
        columns = [d.quantile(probability[..., j]) for j, d in enumerate(self.distributions.values())]
        return np.stack(columns, axis=-1)

    def _columns(self, function: Callable[[_Coordinate, Array], Array], values: Array) -> Array:
        return jnp.stack([function(c, values[..., j]) for j, c in enumerate(self._coordinates)], axis=-1)

    def from_line(self, z: Array) -> Array:
        """theta of unconstrained coordinates z (..., p)."""
        return self._columns(_Coordinate.forward, z)

    def to_line(self, theta: Array) -> Array:
        """Unconstrained coordinates of theta (..., p), kept finite on the boundary."""
        return self._columns(_Coordinate.traced_inverse, theta)

    def log_slope(self, z: Array) -> Array:
        """log |d theta / d z|, per parameter."""
        return self._columns(_Coordinate.log_slope, z)
