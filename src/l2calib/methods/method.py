"""What a method is: prepare an experiment once, then map one y to what was learnt from it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from l2calib.arrays import Array
from l2calib.experiment import Experiment
from l2calib.prior import Prior
from l2calib.smoother import GCV, Choice


class Fit(NamedTuple):
    """What a method learns from one y before any posterior is computed; None where it has no such thing."""

    theta_hat: Array  # (p,)
    starts: Array  # (S, p): where the posterior's modes may be
    status: Array
    gamma: Array | None
    sigma2: Array | None
    psi: Array | None
    kappa: Array | None
    detail: Any  # arrays that only the method itself reads


class Smoothing(NamedTuple):
    """A smoother, and which of its tables it is used with; see `GCV.prepare`."""

    smoother: GCV
    with_model: bool


class Method(Protocol):
    """A calibration method. `shared` is whatever `prepare` returned: arrays common to all datasets of a design."""

    @property
    def name(self) -> str: ...

    def __hash__(self) -> int: ...

    def prepare(self, experiment: Experiment) -> Any: ...

    def fit(self, experiment: Experiment, shared: Any, y: Array, key: Array, choice: Choice | None = None) -> Fit:
        """What is learnt from y; `choice` is what the smoother has chosen for it, if that is known already."""
        ...

    @property
    def smoothing(self) -> Smoothing | None:
        """How the method smooths y; None if it does not."""
        ...

    def fitting_set(self, experiment: Experiment) -> int:
        """About how many numbers the fit of one dataset needs at once."""
        ...

    def looking_set(self, experiment: Experiment, evaluations: int) -> int:
        """The same for its posterior, with so many evaluations of the density."""
        ...


@runtime_checkable
class DensityMethod(Method, Protocol):
    """A method whose posterior has a density, up to a constant."""

    def first_level(self, parameters: int) -> int: ...

    def view(self, experiment: Experiment) -> Any:
        """What the density needs of the experiment, but for the prior.

        Its arrays are arguments of the program that integrates the density: where they have the same shapes, one
        program serves every design.
        """
        ...

    def log_density(self, prior: Prior, view: Any, fit: Fit, theta: Array) -> Array: ...

    def terms(self, fit: Fit) -> int:
        """How many densities it is a mixture of."""
        ...


@runtime_checkable
class DrawingMethod(Method, Protocol):
    """A method that draws from its posterior instead."""

    @property
    def draws(self) -> int: ...

    def draw(self, experiment: Experiment, shared: Any, fit: Fit, key: Array, number: int) -> Array: ...
