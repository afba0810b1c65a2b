"""General Bayesian calibration (paper, Section 3): posterior proportional to exp(-gamma loss) times the prior."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import NamedTuple

from l2calib.errors import MethodError
from l2calib.losses import L2, Loss, loss_candidates, loss_minima, loss_value
from l2calib.methods.method import Density, Fit, Prepared, Smoothing, Workload
from l2calib.numerics.arrays import Array
from l2calib.numerics.minimise import Candidates
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.problem.span import ModelCoordinates
from l2calib.scalings.asymptotic import Asymptotic
from l2calib.scalings.scaling import Fitted, Scaling
from l2calib.smoothers.gcv import GCV, Choice
from l2calib.smoothers.grid import SmootherTables


class _Shared(NamedTuple):
    tables: SmootherTables
    candidates: Candidates


@dataclass(frozen=True)
class GeneralBayes:
    """A loss, a rule for its scaling gamma, and the smoother that both rest on."""

    loss: Loss = field(default_factory=L2)
    scaling: Scaling = field(default_factory=Asymptotic)
    smoother: GCV = field(default_factory=GCV)

    def __post_init__(self) -> None:
        for role, part, example in (("loss", self.loss, "L2()"), ("scaling", self.scaling, "Asymptotic()")):
            if isinstance(part, str | type):
                raise MethodError(f"the {role} is not one: received {part!r}; give for example {example}.")

    @property
    def name(self) -> str:
        return f"gb-{self.loss.name}{self.scaling.suffix}"

    @property
    def smoothing(self) -> Smoothing:
        return Smoothing(self.smoother, with_model=False)

    def prepare(self, experiment: Experiment) -> Prepared[_Shared, ModelCoordinates]:
        shared = _Shared(self.smoother.prepare(experiment), loss_candidates(self.loss, experiment))
        return Prepared(shared, view=self.loss.span(experiment).coordinates)

    def fit(
        self, experiment: Experiment, shared: _Shared, y: Array, *, key: Array, choice: Choice | None = None
    ) -> Fit[Array]:
        smooth = self.smoother.fit(shared.tables, y, choice)
        values = self.loss.values(experiment, smooth, y)
        minima = loss_minima(self.loss, experiment, shared.candidates, values)
        refit = functools.partial(self.smoother.fit, shared.tables)
        fitted = Fitted(y, smooth, values, minima, shared.candidates, refit)
        gamma, status = self.scaling.gamma(self.loss, experiment, fitted, key)
        return Fit(
            theta_hat=minima.theta,
            starts=minima.thetas,
            status=status | minima.status | smooth.status,
            gamma=gamma,
            sigma2=smooth.sigma2(),
            psi=smooth.psi,
            kappa=smooth.kappa,
            detail=values,
        )

    def posterior(self, prior: Prior, view: ModelCoordinates, fit: Fit[Array]) -> Density:
        def log_density(theta: Array) -> Array:
            assert fit.gamma is not None
            return -fit.gamma * loss_value(view, fit.detail, theta) + prior.log_density(theta)

        return Density(log_density)

    def workload(self, experiment: Experiment) -> Workload:
        dimension = self.loss.span(experiment).dimension
        return Workload(self.smoother.working_set(experiment), per_evaluation=16 * dimension)
