"""The nine problems: model, system, design, errors and prior, each for one thing that makes a calibration hard.

A formula is written once, over the array library of its inputs. A system is what is measured, without its errors; where
it is not the model, the model lacks something that one meets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import l2calib
from benchmarks.realistic.models import freundlich, michaelis_menten, oxygen_demand, ricker
from l2calib.numerics.namespace import namespace_of

Limits = Mapping[str, tuple[float, float]]

_DESIGNS_SEED = 20260601
_AMBIENT, _DOSE, _INHIBITION, _Q10 = 20.0, 10.0, 4.0, 2.0  # known to the models that have them


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem without its target; x (n, k) in physical units, and `kink` where mu has one, in them too."""

    model: Callable[..., Any]
    inputs: Limits
    prior: Limits
    x: np.ndarray
    sigma: float
    system: Callable[..., np.ndarray]  # of the inputs, by name
    design: str
    truth: str
    kink: float | None = None


def polynomial(x: Any, theta_1: Any, theta_2: Any) -> Any:
    return theta_1 * x + theta_2 * x**2


def two_exponentials(hour: Any, share: Any, fast: Any, slow: Any) -> Any:
    """What is left of a known dose that leaves in two ways."""
    xp = namespace_of(hour)
    return _DOSE * (share * xp.exp(-fast * hour) + (1 - share) * xp.exp(-slow * hour))


def warm_inhibited_growth(substrate: Any, inhibitor: Any, celsius: Any, rate20: Any, saturation: Any) -> Any:
    inhibited = rate20 * _INHIBITION / (_INHIBITION + inhibitor)
    return inhibited * substrate / (saturation + substrate) * _Q10 ** ((celsius - 20) / 10)


def cooling(minute: Any, hot: Any, rate: Any) -> Any:
    return _AMBIENT + (hot - _AMBIENT) * namespace_of(minute).exp(-rate * minute)


def fall_time(height: Any, g: Any, m: Any) -> Any:
    """The model of the wiffle balls, for NumPy too."""
    xp = namespace_of(height)
    return xp.sqrt(m / g) * xp.arccosh(xp.exp(height / m))


def _even(low: float, high: float, n: int) -> np.ndarray:
    return np.linspace(low, high, n)[:, None]


def _polynomial() -> Setting:
    """Slopes x and x² are nearly proportional on [1, 2]."""
    return Setting(
        model=polynomial,
        inputs={"x": (1.0, 2.0)},
        prior={"theta_1": (-10.0, 10.0), "theta_2": (-10.0, 10.0)},
        x=_even(1, 2, 30),
        sigma=0.2,
        system=lambda x: 1 + x**3,
        design="even",
        truth="cubic, with a constant",
    )


def _exponentials() -> Setting:
    """What leaves slowly can be more, or faster."""
    return Setting(
        model=two_exponentials,
        inputs={"hour": (0.0, 8.0)},
        prior={"share": (0.0, 1.0), "fast": (0.3, 4.8), "slow": (0.05, 0.8)},
        x=_even(0, 8, 32),
        sigma=0.2,
        system=lambda hour: two_exponentials(hour, 0.6, 1.2, 0.2) + 0.8 * np.exp(-(((hour - 5) / 0.7) ** 2)),
        design="even",
        truth="some comes back in the fifth hour",
    )


def _three_inputs() -> Setting:
    levels = np.linspace(0.5, 12.5, 4), np.linspace(0, 10, 3), np.linspace(10, 35, 4)

    def system(substrate: np.ndarray, inhibitor: np.ndarray, celsius: np.ndarray) -> np.ndarray:
        growth = warm_inhibited_growth(substrate, inhibitor, celsius, 0.6, 3 * 1.3 ** ((celsius - 20) / 10))
        return np.asarray(growth / (1 + np.exp((celsius - 45) / 4)))

    return Setting(
        model=warm_inhibited_growth,
        inputs={"substrate": (0.5, 12.5), "inhibitor": (0.0, 10.0), "celsius": (10.0, 35.0)},
        prior={"rate20": (0.15, 2.4), "saturation": (0.75, 12.0)},
        x=np.stack([each.ravel() for each in np.meshgrid(*levels, indexing="ij")], axis=1),
        sigma=0.05,
        system=system,
        design="factorial",
        truth="heat slows it down and weakens binding",
    )


def _kink() -> Setting:
    """Nitrification begins on the sixth day."""
    return Setting(
        model=oxygen_demand,
        inputs={"day": (0.0, 10.0)},
        prior={"ultimate": (50.0, 800.0), "rate": (0.0875, 1.4)},
        x=_even(0, 10, 25),
        sigma=7.0,
        system=lambda day: oxygen_demand(day, 200.0, 0.35) + 12 * np.maximum(0, day - 6),
        design="even",
        truth="a second slope begins",
        kink=6.0,
    )


def _enzyme() -> Setting:
    return Setting(
        model=michaelis_menten,
        inputs={"substrate": (0.1, 16.0)},
        prior={"vmax": (3.0, 48.0), "km": (0.375, 6.0)},
        x=np.repeat([0.1, 0.25, 0.5, 1, 2, 4, 8, 16], 3)[:, None],
        sigma=0.25,
        system=lambda substrate: michaelis_menten(substrate, 12.0, 1.5),
        design="dilutions, three times each",
        truth="exact",
    )


def _random_design() -> Setting:
    return Setting(
        model=ricker,
        inputs={"spawners": (0.0, 200.0)},
        prior={"productivity": (0.625, 10.0), "optimum": (15.0, 240.0)},
        x=np.random.default_rng(_DESIGNS_SEED).uniform(0, 200, (30, 1)),
        sigma=4.0,
        system=lambda spawners: 2.2 * spawners / (1 + (spawners / 70) ** 2.2),
        design="random",
        truth="Shepherd's curve",
    )


def _crowded() -> Setting:
    """The first twenty minutes are watched closely."""
    return Setting(
        model=cooling,
        inputs={"minute": (0.0, 60.0)},
        prior={"hot": (40.0, 160.0), "rate": (0.0125, 0.2)},
        x=np.concatenate([_even(0, 20, 24), _even(20, 60, 13)[1:]]),
        sigma=1.5,
        system=lambda minute: _AMBIENT + 45 * np.exp(-0.1 * minute) + 20 * np.exp(-0.015 * minute),
        design="two thirds in a third",
        truth="skin and core",
    )


def _twelve() -> Setting:
    return Setting(
        model=freundlich,
        inputs={"concentration": (0.2, 50.0)},
        prior={"capacity": (0.75, 12.0), "intensity": (0.5, 8.0)},
        x=_even(0.2, 50, 12),
        sigma=0.8,
        system=lambda concentration: 24 * (0.1 * concentration) ** 0.8 / (1 + (0.1 * concentration) ** 0.8),
        design="even",
        truth="saturates",
    )


def _wiffle() -> Setting:
    file = Path(l2calib.__file__).parent / "examples" / "wiffle" / "wiffle.csv"
    return Setting(
        model=fall_time,
        inputs={"height": (0.175, 4.275)},
        prior={"g": (0.0, 20.0), "m": (0.0, 20.0)},
        x=np.loadtxt(file, delimiter=",", skiprows=1)[:, :1],
        sigma=0.0703,
        system=lambda height: fall_time(height, 10.8735, 3.3208),
        design="the wiffle balls'",
        truth="exact",
    )


SETTINGS: dict[str, Callable[[], Setting]] = {
    "polynomial": _polynomial,
    "exponentials": _exponentials,
    "three-inputs": _three_inputs,
    "kink": _kink,
    "enzyme": _enzyme,
    "random-design": _random_design,
    "crowded": _crowded,
    "twelve": _twelve,
    "wiffle": _wiffle,
}
