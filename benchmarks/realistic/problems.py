"""Random problems as people bring them, each wholly determined by its seed.

The shares of designs, sizes, truths, error laws and models are drawn first and kept. The true parameters and what the
system does beyond the model are drawn after them, and again where the target would not be a fair one: where theta_L2 is
not well inside the prior, where another minimum of the distance is within five percent of the lowest, or where the
system cannot be made to differ from the model by as much as it should. `REVISION` counts changes of what a seed means.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.realistic.designs import SHARES, draw_design
from benchmarks.realistic.models import MODELS, TextbookModel
from benchmarks.realistic.systems import no_deviation, random_deviation
from benchmarks.realistic.targets import Distance, Surface, Target, global_minimum, panels
from l2calib.problem.distributions import Uniform
from l2calib.problem.experiment import Experiment
from l2calib.study.error_laws import error_law

REVISION = 1
TRUTHS = {"exact": 0.0, "2%": 0.02, "8%": 0.08}  # the root mean square of the discrepancy, as a share of mu's range
LAWS = ("normal", "t")
SIZES, NOISE = (9, 80), (0.005, 0.08)
FACTORS = (0.6, 1.6)  # by which the true parameters differ from usual ones
_MIX, _DESIGN, _ERRORS, _FIRST_ATTEMPT = range(4)  # streams of random numbers
_ATTEMPTS = 500
_MOST_STRENGTH = 2.0
_SIZE_TOLERANCE = 1e-4


class Mix(NamedTuple):
    """What kind of a problem it is."""

    model: TextbookModel
    design: str
    truth: str
    law: str
    n: int  # about; factorial and replicated designs come as near as they can
    noise: float


def mix(seed: int) -> Mix:
    """The kind of the problem of that seed."""
    rng = _stream(seed, _MIX)
    return Mix(
        model=list(MODELS.values())[rng.integers(len(MODELS))],
        design=str(rng.choice(list(SHARES), p=list(SHARES.values()))),
        truth=str(rng.choice(list(TRUTHS))),
        law=str(rng.choice(LAWS)),
        n=round(_log_uniform(rng, SIZES)),
        noise=float(_log_uniform(rng, NOISE)),
    )


@dataclass(frozen=True, eq=False)
class RealisticProblem:
    """A model, a system, a design, errors, and the target; x (n, k) in physical units, in the order of `inputs`."""

    seed: int
    model_name: str
    model: Callable[..., Any]
    inputs: Mapping[str, tuple[float, float]]
    prior: Mapping[str, tuple[float, float]]
    true_parameters: Mapping[str, float]
    deviation: str
    kink: tuple[int, float] | None  # the input with one, and its place in the unit interval
    design: str
    truth: str
    law: str
    x: np.ndarray
    sigma: float
    target: np.ndarray  # theta_L2 (p,), in the order of `prior`
    discrepancy: float  # the root mean square of mu - eta(.; theta_L2) over the box
    extent: float  # the range of mu over the box
    system: Callable[[np.ndarray], np.ndarray] = field(repr=False)  # mu at points (m, k)

    @property
    def mu_x(self) -> np.ndarray:
        return self.system(self.x)

    @property
    def half(self) -> str:
        """Seeds are for tuning where they are even, and for reporting where they are odd."""
        return "reporting" if self.seed % 2 else "tuning"

    def responses(self, number: int) -> np.ndarray:
        """Datasets (number, n); the i-th is the same however many there are."""
        law = error_law(self.law)
        errors = [law.draw(_stream(self.seed, _ERRORS, i), (len(self.x),)) for i in range(number)]
        return np.asarray(self.mu_x + self.sigma * np.array(errors))

    @functools.cached_property
    def experiment(self) -> Experiment:
        """What the library is told of it; one object, on which prepared tables and compiled programs hang."""
        prior = {name: Uniform(low, high) for name, (low, high) in self.prior.items()}
        return Experiment(self.model, self.inputs, self.x, prior)

    def oracle_sd(self) -> np.ndarray:
        """Of least squares about theta_L2 with sigma known (p,), by the sandwich; infinite where it has none."""
        points = Distance(self._surface, self.mu_x, np.ones(len(self.x)), self.target)
        H, J = points.hessian(np.zeros(len(self.target))), points.jacobian(np.zeros(len(self.target)))
        values, vectors = np.linalg.eigh(H)
        if values[0] < 1e-12 * values[-1]:
            return np.full(len(self.target), np.inf)
        inverse = vectors / values @ vectors.T
        return np.asarray(self.target * self.sigma * np.linalg.norm(J @ inverse, axis=0))

    def oracle_length(self) -> np.ndarray:
        """Of that oracle's 95% interval (p,); no longer than what the prior alone says."""
        ranges = np.array([high - low for low, high in self.prior.values()])
        return np.minimum(2 * 1.959964 * self.oracle_sd(), 0.95 * ranges)

    def _surface(self, theta: np.ndarray) -> np.ndarray:
        return surface_at(self.model, self.x, self.inputs, self.prior)(theta)


def problem(seed: int) -> RealisticProblem:
    """The problem of that seed."""
    drawn = mix(seed)
    model = drawn.model
    u = draw_design(_stream(seed, _DESIGN), drawn.design, drawn.n, list(model.inputs.values()), len(model.typical))
    for attempt in range(_ATTEMPTS):
        rng = _stream(seed, _FIRST_ATTEMPT + attempt)
        theta0 = np.array(list(model.typical.values())) * _log_uniform(rng, FACTORS, len(model.typical))
        truth = _Truth(model, theta0, TRUTHS[drawn.truth], rng)
        if truth.fair:
            break
    else:
        raise RuntimeError(f"seed {seed}: {_ATTEMPTS} draws of {model.name}, {drawn.truth}, had no fair target.")
    low, high = np.array(list(model.inputs.values()), dtype=float).T
    return RealisticProblem(
        seed=seed,
        model_name=model.name,
        model=model.function,
        inputs={name: (float(a), float(b)) for name, (a, b) in model.inputs.items()},
        prior={name: (float(each / 4), float(each * 4)) for name, each in zip(model.typical, theta0, strict=True)},
        true_parameters=dict(zip(model.typical, theta0.tolist(), strict=True)),
        deviation=truth.deviation.kind,
        kink=truth.deviation.kink,
        design=drawn.design,
        truth=drawn.truth,
        law=drawn.law,
        # In rounded arithmetic low + (high - low) may lie just beyond high.
        x=np.clip(low + (high - low) * u, low, high),
        sigma=drawn.noise * truth.extent,
        target=truth.distance.theta(truth.target.t),
        discrepancy=truth.target.distance,
        extent=truth.extent,
        system=truth.system,
    )


class _Truth:
    """A system that differs from the model by a given share of its range, and its target."""

    def __init__(self, model: TextbookModel, theta0: np.ndarray, share: float, rng: np.random.Generator) -> None:
        self._model, self._theta0, self._share = model, theta0, share
        self._low, self._high = np.array(list(model.inputs.values()), dtype=float).T
        inputs = len(self._low)
        self._everywhere = _grid(inputs)
        values = self._surface(self._everywhere)(theta0)
        lowest, extent = float(values.min()), float(np.ptp(values))
        self.deviation = random_deviation(rng, inputs, lowest, extent) if share else no_deviation()
        self._rule = panels(inputs, self.deviation.kink)
        self._eta = self._surface(self._rule.nodes)
        self.strength, t = share, np.zeros(len(theta0))
        for _ in range(3):  # another minimum may become the lowest on the way
            if share and not self._strengthen(t):
                self.fair = False
                return
            self.target: Target = global_minimum(self.distance)
            t = self.target.t
            off = abs(self.target.distance / self.extent - share)
            if off <= (2 * _SIZE_TOLERANCE * share or 1e-9):
                break
        else:
            self.fair = False
            return
        self.fair = self.target.interior and self.target.alone(self.extent)

    def system(self, x: np.ndarray) -> np.ndarray:
        """mu at points (m, k) in physical units."""
        return self._mu((x - self._low) / (self._high - self._low))

    @property
    def extent(self) -> float:
        """The range of mu."""
        return float(np.ptp(self._mu(self._everywhere)))

    @property
    def distance(self) -> Distance:
        return Distance(self._eta, self._mu(self._rule.nodes), self._rule.weights, self._theta0)

    def _strengthen(self, t: np.ndarray) -> bool:
        """Whether a strength gives the discrepancy at the minimum near t its size."""
        for _ in range(20):
            t = self.distance.descend(t)
            size = self.distance.root(t) / self.extent
            if abs(size / self._share - 1) < _SIZE_TOLERANCE:
                return True
            self.strength *= min(self._share / size, 4.0) if size > 0 else 4.0
            if self.strength > _MOST_STRENGTH:
                return False
        return False

    def _mu(self, u: np.ndarray) -> np.ndarray:
        return self.deviation.apply(u, self._surface(u)(self._theta0), self.strength)

    def _surface(self, u: np.ndarray) -> Surface:
        x = self._low + (self._high - self._low) * u
        return surface_at(self._model.function, x, self._model.inputs, self._model.typical)


def surface_at(
    model: Callable[..., Any], x: Any, inputs: Mapping[str, object], parameters: Mapping[str, object]
) -> Surface:
    """The model at fixed points x (N, k), as a function of thetas (..., p); of NumPy's arrays or of JAX's."""
    columns = dict(zip(inputs, x.T, strict=True))

    def surface(theta: Any) -> Any:
        named = {name: theta[..., j, None] for j, name in enumerate(parameters)}
        return model(**columns, **named)

    return surface


def _grid(inputs: int) -> np.ndarray:
    """Points over the whole unit cube, its corners among them."""
    axis = np.linspace(0, 1, 1025 if inputs == 1 else 65)
    return np.stack(np.meshgrid(*[axis] * inputs, indexing="ij"), axis=-1).reshape(-1, inputs)


def _stream(seed: int, *place: int) -> np.random.Generator:
    return np.random.default_rng([seed, *place])


def _log_uniform(rng: np.random.Generator, limits: tuple[float, float], number: int | None = None) -> Any:
    return np.exp(rng.uniform(*np.log(limits), number))
