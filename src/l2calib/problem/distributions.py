"""Prior distributions of one parameter.

Each knows its support, its log density (in the array library of its argument) and its quantiles (NumPy). Distributions
of numpyro are accepted too, through `log_prob`, `support` and `icdf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import special

from l2calib.errors import PriorError
from l2calib.numerics.arrays import jnp
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.numerics.normal_cdf import log_normal_density

_TINY = 1e-300


@runtime_checkable
class Distribution(Protocol):
    """A continuous distribution on an interval, a half-line or the line."""

    @property
    def support(self) -> tuple[float, float]: ...

    def log_density(self, value: AnyArray) -> AnyArray: ...

    def quantile(self, probability: np.ndarray) -> np.ndarray: ...


def _require(holds: bool, name: str, given: object, remedy: str) -> None:
    if not holds:
        received = ", ".join(f"{argument} = {value!r}" for argument, value in vars(given).items())
        raise PriorError(f"the prior {name} has no mass: received {received}; {remedy}.")


def _finite(*values: Any) -> bool:
    """Whether all of these are finite numbers."""
    return _numbers(*values) and bool(np.isfinite([float(value) for value in values]).all())


def _numbers(*values: Any) -> bool:
    """Whether all of these are numbers, if perhaps infinite."""
    try:
        return not any(isinstance(value, str) or np.ndim(value) or np.isnan(float(value)) for value in values)
    except (TypeError, ValueError, OverflowError):
        return False


def _inside(value: AnyArray, low: float, high: float, log_density: AnyArray) -> AnyArray:
    return namespace_of(value).where((value >= low) & (value <= high), log_density, -np.inf)


def _log_of(value: AnyArray) -> AnyArray:
    xp = namespace_of(value)
    return xp.log(xp.maximum(value, _TINY))


def _normal(value: AnyArray, mean: float, sd: float) -> AnyArray:
    return log_normal_density((value - mean) / sd) - np.log(sd)


@dataclass(frozen=True)
class Uniform:
    """Uniform on [low, high]."""

    low: float
    high: float

    def __post_init__(self) -> None:
        holds = _finite(self.low, self.high) and self.low < self.high
        _require(holds, "uniform", self, "give finite numbers low < high")

    @property
    def support(self) -> tuple[float, float]:
        return float(self.low), float(self.high)

    def log_density(self, value: AnyArray) -> AnyArray:
        level = namespace_of(value).full_like(value, -np.log(self.high - self.low), dtype=float)
        return _inside(value, self.low, self.high, level)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return self.low + (self.high - self.low) * np.asarray(probability)


@dataclass(frozen=True)
class Normal:
    """Normal with a mean and a standard deviation."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        holds = _finite(self.mean, self.sd) and self.sd > 0
        _require(holds, "normal", self, "give a finite mean and sd > 0")

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def log_density(self, value: AnyArray) -> AnyArray:
        return _normal(value, self.mean, self.sd)

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
        holds = _finite(self.mean, self.sd) and _numbers(self.low, self.high) and self.sd > 0 and self.low < self.high
        _require(holds and self._mass > _TINY, "truncated normal", self, "give sd > 0 and low < high near the mean")

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

    def log_density(self, value: AnyArray) -> AnyArray:
        return _inside(value, self.low, self.high, _normal(value, self.mean, self.sd) - np.log(self._mass))

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
        holds = _finite(self.mean_log, self.sd_log) and self.sd_log > 0
        _require(holds, "log-normal", self, "give a finite mean_log and sd_log > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def log_density(self, value: AnyArray) -> AnyArray:
        log_value = _log_of(value)
        return _inside(value, 0.0, np.inf, _normal(log_value, self.mean_log, self.sd_log) - log_value)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(self.mean_log + self.sd_log * special.ndtri(probability)))


@dataclass(frozen=True)
class Gamma:
    """Gamma with a shape and a rate: mean shape / rate."""

    shape: float
    rate: float

    def __post_init__(self) -> None:
        holds = _finite(self.shape, self.rate) and self.shape > 0 and self.rate > 0
        _require(holds, "gamma", self, "give shape > 0 and rate > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def log_density(self, value: AnyArray) -> AnyArray:
        log_value = _log_of(value)
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
        holds = _finite(self.a, self.b) and self.a > 0 and self.b > 0
        _require(holds, "beta", self, "give a > 0 and b > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    def log_density(self, value: AnyArray) -> AnyArray:
        left = (self.a - 1) * _log_of(value)
        right = (self.b - 1) * _log_of(1 - value)
        return _inside(value, 0.0, 1.0, left + right - special.betaln(self.a, self.b))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(special.betaincinv(self.a, self.b, probability))


@dataclass(frozen=True)
class HalfNormal:
    """The absolute value of Normal(0, sd)."""

    sd: float

    def __post_init__(self) -> None:
        holds = _finite(self.sd) and self.sd > 0
        _require(holds, "half-normal", self, "give sd > 0")

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def log_density(self, value: AnyArray) -> AnyArray:
        return _inside(value, 0.0, np.inf, _normal(value, 0.0, self.sd) + np.log(2.0))

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

    def log_density(self, value: AnyArray) -> AnyArray:
        low, high = self.support
        log_density = self.distribution.log_prob(jnp.clip(value, low, high))
        return _inside(value, low, high, namespace_of(value).asarray(log_density))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(self.distribution.icdf(jnp.asarray(probability)), dtype=float)

    def check(self, name: str) -> None:
        """Raise PriorError unless this is a continuous distribution of one number, with quantiles."""
        kind = type(self.distribution).__name__
        if self.distribution.batch_shape or self.distribution.event_shape or self.distribution.support.is_discrete:
            raise PriorError(
                f"the prior of '{name}' is not a continuous distribution of one number: received numpyro's {kind}; "
                "give for example Uniform(0, 1)."
            )
        try:
            self.quantile(np.array([0.5]))
        except (ImportError, NotImplementedError, TypeError, ValueError):
            raise PriorError(
                f"the prior of '{name}' has no quantiles: numpyro's {kind} cannot compute them here; "
                "give a distribution of l2calib, for example Gamma(2, 1)."
            ) from None


def as_distribution(name: str, value: object) -> Distribution:
    """The distribution of parameter `name`, ours or numpyro's."""
    if isinstance(value, Distribution) and not isinstance(value, type):
        return value
    if all(hasattr(value, attribute) for attribute in ("log_prob", "support", "icdf", "batch_shape")):
        theirs = _Numpyro(value)
        theirs.check(name)
        return theirs
    raise PriorError(
        f"the prior of '{name}' is not a distribution: received {value!r:.80}; give for example Uniform(0, 1)."
    )
