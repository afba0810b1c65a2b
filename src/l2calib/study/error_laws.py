"""The laws of the errors, each with mean zero and variance one (paper, Section 4.2 and supplement SM3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from l2calib.errors import SpecError, suggest

_DEGREES_OF_FREEDOM = 3  # the least whole number with a variance
_T_SD = math.sqrt(_DEGREES_OF_FREEDOM / (_DEGREES_OF_FREEDOM - 2))
_SLANT = 8.0  # alpha
_DELTA = _SLANT / math.hypot(1, _SLANT)
_SKEW_MEAN = _DELTA * math.sqrt(2 / math.pi)
_SKEW_SD = math.sqrt(1 - _SKEW_MEAN**2)
ERRORS_IN_WORDS = {
    "normal": "normal errors",
    "t": f"t errors ({_DEGREES_OF_FREEDOM} degrees of freedom)",
    "skew-normal": "skew-normal errors",
}


@dataclass(frozen=True)
class ErrorLaw:
    """A standardised law: `draw(rng, shape)` and `density(x)`."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    density: Callable[[np.ndarray], np.ndarray]


def _draw_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def _normal_density(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-np.square(x) / 2) / math.sqrt(2 * math.pi))


def _draw_t(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_t(_DEGREES_OF_FREEDOM, shape) / _T_SD


def _t_density(x: np.ndarray) -> np.ndarray:
    nu = _DEGREES_OF_FREEDOM
    peak = math.gamma((nu + 1) / 2) / (math.gamma(nu / 2) * math.sqrt(nu * math.pi))
    return np.asarray(_T_SD * peak * (1 + np.square(_T_SD * np.asarray(x)) / nu) ** (-(nu + 1) / 2))


def _draw_skew_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    slanted = _DELTA * np.abs(rng.standard_normal(shape)) + math.sqrt(1 - _DELTA**2) * rng.standard_normal(shape)
    return np.asarray((slanted - _SKEW_MEAN) / _SKEW_SD)


def _skew_normal_density(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    raw = _SKEW_MEAN + _SKEW_SD * np.asarray(x)
    return np.asarray(2 * _SKEW_SD * _normal_density(raw) * ndtr(_SLANT * raw))


ERROR_LAWS = {
    law.name: law
    for law in (
        ErrorLaw("normal", _draw_normal, _normal_density),
        ErrorLaw("t", _draw_t, _t_density),
        ErrorLaw("skew-normal", _draw_skew_normal, _skew_normal_density),
    )
}


def error_law(name: str) -> ErrorLaw:
    """The law of that name."""
    if name not in ERROR_LAWS:
        near = suggest(str(name), ERROR_LAWS)
        raise SpecError(f"there is no error law '{name}'{near}: the laws are {', '.join(ERROR_LAWS)}.")
    return ERROR_LAWS[name]
