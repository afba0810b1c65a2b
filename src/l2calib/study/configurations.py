"""Configurations: a known system, a model of it and the size of the errors (paper, Section 4.2).

The paper's four are here; others are read from a Python file that defines `configurations`, a list of `Configuration`.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from l2calib.display.words import reason_of
from l2calib.errors import InputError, SpecError, suggest
from l2calib.estimates import L2Target, system_values, target
from l2calib.models.kinds import as_model
from l2calib.numerics.arrays import jnp
from l2calib.numerics.spread import kronecker
from l2calib.problem.data import Box
from l2calib.problem.experiment import Experiment
from l2calib.problem.measure import default_quadrature
from l2calib.problem.prior import Prior

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # it becomes the name of a folder and a word of a command
_PROBES = 32


@dataclass(frozen=True, eq=False)
class Configuration:
    """A system mu and a model eta of the same named inputs, the box, the prior and the variance of the errors.

    The model and the system are written with jax.numpy. The target theta_L2 is computed, never given. `source` is the
    text of the file that defines the configuration, by which a worker elsewhere finds it; the paper's need none.
    """

    name: str
    model: Callable[..., Any]
    inputs: Mapping[str, tuple[float, float]]
    prior: Mapping[str, object]
    system: Callable[..., Any]
    sigma2: float
    source: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        name: object = self.name
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise SpecError(
                f"a configuration cannot be called {name!r:.60}; "
                "use letters, digits, points, dashes and underscores, and begin with a letter or a digit."
            )
        try:
            as_model(self.model, self.box.names, self.parameters)
            self.system_at(kronecker(_PROBES, len(self.box.names)))
            _check_variance(self.sigma2)
        except InputError as error:
            raise type(error)(f"in configuration '{self.name}', {error}") from None

    @functools.cached_property
    def box(self) -> Box:
        return Box(self.inputs)

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        """Their names."""
        return Prior(self.prior).names

    @functools.cached_property
    def target(self) -> L2Target:
        """theta_L2 and the discrepancy there; the first access computes it."""
        return target(self.model, self.system, self.inputs, self.prior)

    def experiment(self, design: np.ndarray) -> Experiment:
        """The experiment on a design (n, k) in the unit cube."""
        return Experiment(self.model, self.inputs, self._physical(design), self.prior)

    def system_at(self, design: np.ndarray) -> np.ndarray:
        """mu at the points (n, k) of the unit cube."""
        return system_values(self.system, self.box, self._physical(design))

    def _physical(self, design: np.ndarray) -> np.ndarray:
        # In rounded arithmetic low + (high - low) may lie just beyond high.
        return np.asarray(np.clip(self.box.from_unit(np.asarray(design, dtype=float)), self.box.low, self.box.high))

    def definition(self) -> dict[str, dict[str, list[float]]]:
        """What it is, in numbers that change with it: the box, the prior, and the functions at some points.

        Numbers, and not the text of the file: a new comment or a new neighbour in the file changes nothing.
        """
        prior = Prior(self.prior)
        points = kronecker(_PROBES, len(self.box.names))
        thetas = prior.quantile(kronecker(_PROBES, prior.dimension))
        eta = as_model(self.model, self.box.names, self.parameters)
        pairs = zip(self._physical(points), thetas, strict=True)
        model = [eta(jnp.asarray(x[None]), jnp.asarray(theta))[0] for x, theta in pairs]
        return {
            "inputs": {name: [float(low), float(high)] for name, (low, high) in self.inputs.items()},
            "prior": {name: column.tolist() for name, column in zip(prior.names, thetas.T, strict=True)},
            "model": {"values": [float(value) for value in model]},
            "system": {"values": self.system_at(points).tolist()},
            "variance of the errors": {"sigma2": [float(self.sigma2)]},
        }


def variance(system: Callable[..., Any], inputs: Mapping[str, tuple[float, float]]) -> float:
    """Var(mu) over the box: the errors of a configuration may be a share of it."""
    box = Box(inputs)
    rule = default_quadrature(len(box.names))
    mu = system_values(system, box, box.from_unit(rule.nodes))
    return float(rule.weights @ np.square(mu - rule.weights @ mu))


def _check_variance(sigma2: Any) -> None:
    try:
        number = math.nan if isinstance(sigma2, str | bool) else float(sigma2)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise SpecError(f"the variance of the errors must be a positive number: received {sigma2!r:.60}.")


def _model1(x1: Any, theta1: Any, theta2: Any) -> Any:
    level = 7 * jnp.sin(2 * jnp.pi * theta1 - jnp.pi) ** 2
    return level + 2 * (2 * jnp.pi * theta2 - jnp.pi) ** 2 * jnp.sin(2 * jnp.pi * x1 - jnp.pi)


def _system1(x1: Any) -> Any:
    return _model1(x1, 0.2, 0.3)


def _model2(x1: Any, theta1: Any) -> Any:
    return jnp.sin(5 * theta1 * x1) + 5 * x1


def _system2(x1: Any) -> Any:
    return 5 * x1 * jnp.cos(15 * x1 / 2) + 5 * x1


def _model3(x1: Any, theta1: Any) -> Any:
    return theta1 * x1


def _system3(x1: Any) -> Any:
    return 4 * x1 + x1 * jnp.sin(5 * x1)


def _model4(x1: Any, x2: Any, theta1: Any, theta2: Any, theta3: Any) -> Any:
    return _model1(x1, theta1, theta2) + 6 * theta3 * (x2 - 0.5)


def _system4(x1: Any, x2: Any) -> Any:
    exact = _model4(x1, x2, 0.2, 0.3, 0.8)
    return exact + jnp.cos(2 * jnp.pi * x1 - jnp.pi) + 2 * (x2**2 - x2 + 1 / 6)


@functools.cache
def paper_configurations() -> dict[str, Configuration]:
    """The paper's four, "1" to "4"."""
    from l2calib.problem.distributions import Uniform

    one, two = {"x1": (0.0, 1.0)}, {"x1": (0.0, 1.0), "x2": (0.0, 1.0)}
    wave = {"theta1": Uniform(0, 0.25), "theta2": Uniform(0, 0.5)}
    # The paper prints an integral of mu squared for the last one, which would be 170.4; Var(mu) / 10 is what it uses.
    share = variance(_system4, two) / 10
    four = (
        Configuration("1", _model1, one, wave, _system1, 0.2**2),
        Configuration("2", _model2, one, {"theta1": Uniform(0, 3)}, _system2, 0.2**2),
        Configuration("3", _model3, one, {"theta1": Uniform(2, 5)}, _system3, 0.02**2),
        Configuration("4", _model4, two, {**wave, "theta3": Uniform(0, 1)}, _system4, share),
    )
    return {each.name: each for each in four}


def load_configurations(path: str | Path) -> dict[str, Configuration]:
    """The configurations that a Python file defines, by name."""
    file = Path(path)
    if not file.is_file():
        raise SpecError(f"the file of configurations '{file}' does not exist; name a Python file.")
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(f"the file of configurations '{file}' cannot be read: {said}.") from None
    return configurations_in(source, str(file))


@functools.lru_cache(maxsize=8)
def configurations_in(source: str, origin: str = "own configurations") -> dict[str, Configuration]:
    """The configurations that the text of a Python file defines."""
    module = types.ModuleType(f"l2calib_study_{zlib.crc32(source.encode()):08x}")
    module.__file__ = origin
    sys.modules[module.__name__] = module  # dataclasses look for theirs there
    try:
        exec(compile(source, origin, "exec"), vars(module))  # noqa: S102 - the user's own file is the study
    except ModuleNotFoundError as error:
        raise SpecError(
            f"the file of configurations '{origin}' cannot be imported: {reason_of(error, origin)}; "
            "a worker elsewhere has nothing but its text, so put all it needs into it."
        ) from None
    except InputError as error:
        raise SpecError(f"the file '{origin}' cannot be used: {error}") from None
    except (Exception, SystemExit) as error:
        raise SpecError(
            f"the file of configurations '{origin}' cannot be imported: {reason_of(error, origin)}."
        ) from None
    given = _listed(vars(module).get("configurations"), origin)
    return {each.name: replace(each, source=source) for each in given}


def _listed(given: Any, origin: str) -> list[Configuration]:
    """`configurations` as a list of them, whose names differ."""
    several = list(given.values()) if isinstance(given, Mapping) else given
    if not isinstance(several, list | tuple) or not several:
        received = "none" if given is None else f"{given!r:.60}"
        raise SpecError(
            f"the file '{origin}' defines no configurations: received {received}; "
            "end it with 'configurations = [Configuration(...)]'."
        )
    for each in several:
        if not isinstance(each, Configuration):
            raise SpecError(
                f"'configurations' of '{origin}' holds a {type(each).__name__}, which is not a Configuration: "
                f"received {each!r:.60}; build one with l2calib.study.configurations.Configuration."
            )
    names = [each.name for each in several]
    if isinstance(given, Mapping) and list(given) != names:
        raise SpecError(f"the keys of 'configurations' of '{origin}' are not the names in it; make them the same.")
    folded = [name.casefold() for name in names]
    for index, name in enumerate(folded):
        if name in folded[:index]:
            raise SpecError(f"two configurations of '{origin}' are called '{names[index]}'; rename one of them.")
    return several if isinstance(several, list) else list(several)


def configuration_named(source: str, name: str) -> Configuration:
    """The configuration of that name in the text of a file, or the paper's if there is no text."""
    return (configurations_in(source) if source else paper_configurations())[name]


def chosen(configurations: Mapping[str, Configuration], names: Sequence[str]) -> dict[str, Configuration]:
    """Those of the names given, in their order."""
    for name in names:
        if name not in configurations:
            raise SpecError(
                f"there is no configuration '{name}'{suggest(str(name), configurations)}: "
                f"the configurations are {', '.join(configurations)}."
            )
    return {name: configurations[name] for name in names}
