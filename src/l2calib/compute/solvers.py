"""How a posterior is computed: by an engine from its density, or from draws that the method makes itself.

The one place where the two are told apart: everything above sees a solver, and everything below one of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from l2calib.engines.engine import Engine
from l2calib.engines.importance import EFFORTS, number_of_points, points_by_importance
from l2calib.engines.integrate import Integrate
from l2calib.engines.integrate.rejection import Uniforms
from l2calib.engines.proposed import EVALUATIONS, points_of_proposals
from l2calib.errors import MethodError, Status, whole_number
from l2calib.methods.method import Density, DensityOfRows, Fit, Method, Sampler, has_standard_deviation, workload_of
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.modes import Modes, Survey
from l2calib.numerics.namespace import AnyArray, namespace_of
from l2calib.posterior.points import Points, Target, target_of
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior

V = TypeVar("V")
D = TypeVar("D")
V_contra = TypeVar("V_contra", contravariant=True)


class Solver(Protocol[V_contra, D]):
    """From what was learnt of one dataset to its weighted points, at one level of effort after another."""

    @property
    def name(self) -> str: ...

    def __hash__(self) -> int: ...

    @property
    def tolerance(self) -> float:
        """The largest numerical error, in posterior standard deviations, that needs no status."""
        ...

    @property
    def first_level(self) -> int: ...

    @property
    def last_level(self) -> int: ...

    @property
    def most_draws(self) -> int:
        """How many draws are made at once."""
        ...

    @property
    def surveys(self) -> bool:
        """Whether modes are looked for first."""
        ...

    @property
    def has_sd(self) -> bool:
        """Whether the posterior has a standard deviation."""
        ...

    def evaluations(self, level: int) -> int: ...

    def next_level(self, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """What to try where a level did not suffice, by its error and what was missed; itself if nothing."""
        ...

    def survey(self, view: V_contra, fit: Fit[D]) -> Survey: ...

    def points(self, level: int, *, view: V_contra, fit: Fit[D], survey: Survey | None, key: Array) -> Points: ...

    def learnt(self, view: V_contra, fit: Fit[D], points: Points) -> Fit[D]:
        """What was learnt of one dataset, with what only its posterior tells."""
        ...

    def draws(self, level: int, number: int, *, view: V_contra, fit: Fit[D], key: Array) -> tuple[Array, Array]:
        """Candidates of theta (number, p), and which of them are independent draws from the posterior."""
        ...


def solver_of(method: Method[Any, V, D], experiment: Experiment, engine: Engine, view: V, fit: Fit[D]) -> Solver[V, D]:
    """The solver of a method; `view` and `fit` may be arrays or only their shapes.

    Raises MethodError where what the method returns is not what its role says.
    """
    _check_fit(method.name, experiment.parameters, fit)
    posterior = _kind_of_posterior(method, experiment.prior, view, fit)
    if isinstance(posterior, Sampler):
        return ByDraws(method, experiment.prior, whole_number(posterior.draws, "the number of draws", least=2))
    if not isinstance(posterior, Density | DensityOfRows):
        raise MethodError(
            f"the posterior of '{method.name}' is neither a Density nor a Sampler: received a "
            f"{type(posterior).__name__}; return one of the two."
        )
    has_sd = has_standard_deviation(method, experiment)
    proposed = isinstance(posterior, DensityOfRows) and posterior.proposals is not None
    if proposed and isinstance(engine, Integrate):
        return ByProposals(method, experiment.prior, engine, 0, has_sd)
    last = engine.levels(experiment.parameters) - 1
    return ByEngine(method, experiment.prior, engine, min(workload_of(method, experiment).first_level, last), has_sd)


def _kind_of_posterior(method: Method[Any, V, D], prior: Prior, view: V, fit: Fit[D]) -> object:
    """What the method returns for these, or for arrays of these shapes."""
    posteriors: list[object] = []

    def look(view: V, fit: Fit[D]) -> Array:
        posteriors.append(method.posterior(prior, view, fit))
        return jnp.zeros(())

    jax.eval_shape(look, view, fit)
    return posteriors[0]


def _check_fit(name: str, parameters: int, fit: Any) -> None:
    """Raise MethodError unless this is a Fit of so many parameters."""
    if not isinstance(fit, Fit):
        raise MethodError(f"the fit of '{name}' is not a Fit: received a {type(fit).__name__}; return a Fit.")
    rows = fit.starts.shape[0] if fit.starts.ndim == 2 else 1
    expected = {"theta_hat": (parameters,), "starts": (rows, parameters), "status": ()}
    optional = {part: () for part in ("gamma", "sigma2", "kappa") if getattr(fit, part) is not None}
    for part, shape in (expected | optional).items():
        _check_shape(f"'{part}' in the fit of '{name}'", getattr(fit, part), shape)
    if not jnp.issubdtype(fit.status.dtype, jnp.integer):
        raise MethodError(
            f"'status' in the fit of '{name}' must be a whole number: received {fit.status.dtype}; "
            "return 0 or flags of Status."
        )


def _check_shape(what: str, array: Array, expected: tuple[int, ...]) -> Array:
    if jnp.shape(array) != expected:
        raise MethodError(f"{what} must have shape {expected}: received {jnp.shape(array)}; return an array like that.")
    return array


@dataclass(frozen=True)
class ByEngine(Generic[V, D]):
    """A density, integrated or sampled by an engine."""

    method: Method[Any, V, D]
    prior: Prior
    engine: Engine
    first_level: int
    has_sd: bool = True

    surveys = True
    most_draws = 8192

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def tolerance(self) -> float:
        return self.engine.tolerance

    @property
    def last_level(self) -> int:
        return self.engine.levels(self.prior.dimension) - 1

    def evaluations(self, level: int) -> int:
        return self.engine.evaluations(self.prior.dimension, level)

    def next_level(self, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        return self.engine.next_level(self.prior.dimension, level, error, missed)

    def survey(self, view: V, fit: Fit[D]) -> Survey:
        return self.engine.survey(self._target(view, fit))

    def points(self, level: int, *, view: V, fit: Fit[D], survey: Survey | None, key: Array) -> Points:
        posterior = self.method.posterior(self.prior, view, fit)
        points = self._points(self._target(view, fit), survey, level, key)
        if not isinstance(posterior, DensityOfRows):
            return points
        return points._replace(density_error=posterior.error)

    def _points(self, target: Target, survey: Survey | None, level: int, key: Array) -> Points:
        assert survey is not None
        return self.engine.points(target, survey, level, key)

    def learnt(self, view: V, fit: Fit[D], points: Points) -> Fit[D]:
        posterior = self.method.posterior(self.prior, view, fit)
        if not isinstance(posterior, DensityOfRows) or posterior.learnt is None:
            return fit
        found = posterior.learnt(self.prior.from_line(points.z), points.weights)
        return fit._replace(**found._asdict())

    def draws(self, level: int, number: int, *, view: V, fit: Fit[D], key: Array) -> tuple[Array, Array]:
        integrate = self.engine if isinstance(self.engine, Integrate) else Integrate()
        target = self._target(view, fit)
        uniforms = Uniforms.of_key(key, number, self.prior.dimension)
        z, accepted = integrate.draws(target, integrate.survey(target), level, uniforms)
        return self.prior.from_line(z), accepted

    def _target(self, view: V, fit: Fit[D]) -> Target:
        """The posterior on the line."""
        posterior, prior, name = self.method.posterior(self.prior, view, fit), self.prior, self.method.name
        if isinstance(posterior, DensityOfRows):
            return _target_of_rows(posterior, prior, fit.starts)
        assert isinstance(posterior, Density)

        def log_density(z: Array) -> Array:
            value = posterior.log_density(prior.from_line(z))
            return _check_shape(f"the log density of '{name}'", value, ()) + jnp.sum(prior.log_slope(z))

        return target_of(log_density, prior.to_line(fit.starts), posterior.terms)


def _target_of_rows(posterior: DensityOfRows, prior: Prior, starts: AnyArray) -> Target:
    """The posterior on the line, in the array library of the starts."""

    def log_density(z: AnyArray) -> AnyArray:
        return posterior.log_density(prior.from_line(z)) + namespace_of(z).sum(prior.log_slope(z), axis=-1)

    share = posterior.log_share
    log_share = None if share is None else lambda z: share(prior.from_line(z))

    def log_density_and_share(z: AnyArray) -> tuple[AnyArray, AnyArray]:
        assert posterior.log_density_and_share is not None
        found, kept = posterior.log_density_and_share(prior.from_line(z))
        return found + namespace_of(z).sum(prior.log_slope(z), axis=-1), kept

    return Target(
        log_density,
        prior.to_line(starts),
        posterior.terms,
        log_share=log_share,
        own_jet=posterior.jet_of_rows(log_density),
        proposals=posterior.proposals,
        log_density_and_share=None if posterior.log_density_and_share is None else log_density_and_share,
    )


_FEW_POINTS_ERROR = 0.4  # that four times as many points bring down


@dataclass(frozen=True)
class ByProposals(ByEngine[V, D]):
    """A density whose method knows about where it is: by points of that, or where they do not suffice by importance."""

    engine: Integrate

    surveys = False
    last_level = len(EVALUATIONS) + EFFORTS - 1

    @property
    def tolerance(self) -> float:
        """A tenth of a standard deviation: intervals whose ends are off by so much cover by 0.001 less."""
        return 20 * self.engine.tolerance

    def evaluations(self, level: int) -> int:
        if level < len(EVALUATIONS):
            return EVALUATIONS[level]
        return number_of_points(self.prior.dimension, level - len(EVALUATIONS))

    def next_level(self, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        """More points where these are but few; others where they do not reach."""
        if level > 0:
            return np.full(error.shape, min(level + 1, self.last_level))
        return np.where((missed <= self.tolerance) & (error < _FEW_POINTS_ERROR), 1, len(EVALUATIONS))

    def _points(self, target: Target, survey: Survey | None, level: int, key: Array) -> Points:
        if level < len(EVALUATIONS):
            return points_of_proposals(target, level)
        assert target.proposals is not None
        return points_by_importance(target, Modes(*target.proposals.gaussians()), level - len(EVALUATIONS))

    def draws(self, level: int, number: int, *, view: V, fit: Fit[D], key: Array) -> tuple[Array, Array]:
        """From the weighted points, each as often as it weighs: they are thousands."""
        target = self._target(view, fit)
        points = self._points(target, None, max(level, 1), key)
        chosen = jax.random.choice(key, len(points.weights), (number,), p=points.weights)
        return self.prior.from_line(points.z[chosen]), jnp.ones(number, dtype=bool)


@dataclass(frozen=True)
class ByDraws(Generic[V, D]):
    """The method's own draws, equally weighted."""

    method: Method[Any, V, D]
    prior: Prior
    number: int

    name = "draws"
    tolerance = np.inf  # more draws would be another result
    first_level = 0
    last_level = 0
    most_draws = 1024
    surveys = False
    has_sd = True

    def evaluations(self, level: int) -> int:
        return self.number

    def next_level(self, level: int, error: np.ndarray, missed: np.ndarray) -> np.ndarray:
        return np.full(error.shape, level)

    def survey(self, view: V, fit: Fit[D]) -> Survey:
        raise AssertionError("draws have no modes")

    def points(self, level: int, *, view: V, fit: Fit[D], survey: Survey | None, key: Array) -> Points:
        theta, _ = self.draws(level, self.number, view=view, fit=fit, key=key)
        finite = jnp.isfinite(theta).all()
        return Points(
            z=self.prior.to_line(theta),
            weights=jnp.full(self.number, 1 / self.number),
            error=jnp.asarray(self.number**-0.5),
            status=jnp.where(finite, 0, int(Status.NOT_FINITE)),
        )

    def learnt(self, view: V, fit: Fit[D], points: Points) -> Fit[D]:
        return fit

    def draws(self, level: int, number: int, *, view: V, fit: Fit[D], key: Array) -> tuple[Array, Array]:
        posterior = self.method.posterior(self.prior, view, fit)
        assert isinstance(posterior, Sampler)
        theta = posterior.draw(key, number)
        expected = (number, self.prior.dimension)
        return _check_shape(f"what '{self.method.name}' draws", theta, expected), jnp.ones(number, dtype=bool)
