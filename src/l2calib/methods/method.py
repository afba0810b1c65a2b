"""What a method is: prepare an experiment once, map one y to what is learnt from it, and that to a posterior.

A method that is not in a hurry has five members, two of which may be plain attributes of its class. How much memory it
needs at once, and where its integration starts, is only about speed and has a default: see `Workload`. The guide writes
one from nothing: docs/own-method.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from l2calib.numerics.arrays import Array
from l2calib.numerics.derivatives import Jet, OfRows, jet_of_rows
from l2calib.numerics.namespace import AnyArray
from l2calib.posterior.points import Proposals
from l2calib.problem.experiment import Experiment
from l2calib.problem.prior import Prior
from l2calib.smoothers.gcv import GCV, Choice

Shared = TypeVar("Shared")  # what the fits of all datasets share
View = TypeVar("View")  # what the posteriors of all datasets share
Detail = TypeVar("Detail")  # what the posterior of one dataset needs of it


class Prepared(NamedTuple, Generic[Shared, View]):
    """What does not depend on y: trees of arrays, one for the fits and one, mostly small, for the posteriors.

    `view` is an argument of the programs that compute posteriors: where its arrays have the same shapes, one program
    serves every design.
    """

    shared: Shared
    view: View


class Fit(NamedTuple, Generic[Detail]):
    """What a method learns from one y before any posterior is computed; None where it has no such thing."""

    theta_hat: Array  # (p,)
    starts: Array  # (S, p): where the posterior's modes may be
    status: Array  # flags of `Status`, as one whole number
    detail: Detail  # arrays that only the method itself reads
    gamma: Array | None = None
    sigma2: Array | None = None
    psi: Array | None = None
    kappa: Array | None = None
    no_process: Array | None = None  # the probability that the model's bias is none


class Learnt(NamedTuple):
    """What only all of a posterior tells: it takes the place of what a fit said; see `Fit`."""

    theta_hat: Array
    sigma2: Array
    psi: Array
    kappa: Array
    no_process: Array


class Density(NamedTuple):
    """A posterior as a log density of theta (p,), up to a constant; `terms` says how many densities it mixes."""

    log_density: Callable[[Array], Array]
    terms: int = 1


class DensityOfRows(NamedTuple):
    """A posterior as a log density of rows of theta (N, p) -> (N,), written over the array library of its argument.

    `log_share` (N,), if there is one, is the log of a share by which the mass of every theta is multiplied in the end.
    """

    log_density: OfRows
    terms: int = 1
    log_share: OfRows | None = None
    error: AnyArray | float = 0.0  # what is not exact in the density itself, in posterior standard deviations
    learnt: Callable[[AnyArray, AnyArray], Learnt] | None = None  # from rows of theta (N, p) and their weights (N,)
    jet_of_rows: Callable[[OfRows], Jet] = jet_of_rows  # its derivatives, which only say where to look
    proposals: Proposals | None = None
    log_density_and_share: Callable[[AnyArray], tuple[AnyArray, AnyArray]] | None = None  # both in one, if that is less


class Sampler(NamedTuple):
    """A posterior as a function from a key and a number to draws (number, p); `draws` is how many a result rests on."""

    draw: Callable[[Array, int], Array]
    draws: int


class Smoothing(NamedTuple):
    """A smoother, and which of its tables it is used with; see `GCV.prepare`."""

    smoother: GCV
    with_model: bool


class Method(Protocol[Shared, View, Detail]):
    """A calibration method: pure functions of arrays, for one dataset, which others vmap and compile.

    Programs are kept by method, so it is hashed and compared by its options: a frozen dataclass does both.
    """

    @property
    def name(self) -> str: ...

    def __hash__(self) -> int: ...

    @property
    def smoothing(self) -> Smoothing | None:
        """How the method smooths y; None if it does not."""
        ...

    def prepare(self, experiment: Experiment) -> Prepared[Shared, View]:
        """What is computed once for an experiment, whatever y."""
        ...

    def fit(
        self, experiment: Experiment, shared: Shared, y: Array, *, key: Array, choice: Choice | None
    ) -> Fit[Detail]:
        """What is learnt from y (n,); `choice` is what the smoother has chosen for it, if that is known already."""
        ...

    def posterior(self, prior: Prior, view: View, fit: Fit[Detail]) -> Density | DensityOfRows | Sampler:
        """The posterior of theta; it sees no design but through the view."""
        ...


AnyMethod: TypeAlias = Method[Any, Any, Any]


@runtime_checkable
class _InNumpy(Protocol):
    in_numpy: bool


def runs_in_numpy(method: AnyMethod) -> bool:
    """Whether `fit` and `posterior` are written over the array library of y: one dataset need not be compiled then."""
    return isinstance(method, _InNumpy) and method.in_numpy


@runtime_checkable
class _Proposing(Protocol):
    proposes: bool


def proposes(method: AnyMethod) -> bool:
    """Whether posteriors come with proposals, which serve any number of parameters: see `Proposals`."""
    return isinstance(method, _Proposing) and method.proposes


@runtime_checkable
class _WithMoments(Protocol):
    def has_sd(self, experiment: Experiment) -> bool: ...


def has_standard_deviation(method: AnyMethod, experiment: Experiment) -> bool:
    """Whether posteriors have one; with very few observations tails may be too long for it."""
    return not isinstance(method, _WithMoments) or method.has_sd(experiment)


@runtime_checkable
class _Revised(Protocol):
    revision: int


def revision_of(method: AnyMethod) -> int:
    """Which version of a method's numbers: another one where they change by more than 1e-6 posterior sd."""
    return method.revision if isinstance(method, _Revised) else 0


class Workload(NamedTuple):
    """About how many numbers a dataset needs at once, by which batches are cut to fit the caches."""

    fitting: int
    per_evaluation: int  # of the density, or per draw
    besides: int = 0  # whatever the number of evaluations
    first_level: int = 0  # of the engine, where one mode is not the rule

    def looking(self, evaluations: int) -> int:
        """The numbers that a posterior with so many evaluations needs."""
        return self.per_evaluation * evaluations + self.besides


@runtime_checkable
class _Weighed(Protocol):
    def workload(self, experiment: Experiment) -> Workload: ...


def workload_of(method: AnyMethod, experiment: Experiment) -> Workload:
    """The method's own `workload`, or one that is large enough for a method without."""
    if isinstance(method, _Weighed):
        return method.workload(experiment)
    n = experiment.observations
    return Workload(fitting=n * n, per_evaluation=16 * n)
