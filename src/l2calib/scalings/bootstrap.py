"""The bootstrap scaling (paper, supplement SM2)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from l2calib.errors import Status, whole_number
from l2calib.losses import Loss, is_flat, loss_derivatives
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.minimise import LOSS_ROUNDING, nearest_minimum, shortlist
from l2calib.numerics.vmapping import one_after_the_other
from l2calib.problem.experiment import Experiment
from l2calib.process.smooth import Smooth
from l2calib.scalings.scaling import Fitted


@dataclass(frozen=True)
class Bootstrap:
    """Match the mean of Lambda over residual resamples to p.

    rho-hat is kept over the resamples, so that one factorisation serves all of them; `refit_smoother` chooses it anew
    for each.
    """

    resamples: int = 1000
    refit_smoother: bool = False

    def __post_init__(self) -> None:
        whole_number(self.resamples, "the number of resamples", least=2)

    @property
    def suffix(self) -> str:
        return "-boot"

    def gamma(self, loss: Loss, experiment: Experiment, fitted: Fitted, key: Array) -> tuple[Array, Array]:
        at = loss_derivatives(loss, experiment, fitted.values, fitted.minima.theta)
        # The resamples of one dataset are enough for a batch of their own.
        mean_lambda = functools.partial(self._mean_lambda, loss, experiment, fitted.refit)
        mean = one_after_the_other(mean_lambda)(fitted._replace(refit=None), key)
        # A smoother that interpolates leaves no residuals to resample, and of Lambda only rounding, of either sign.
        mean = jnp.maximum(mean, LOSS_ROUNDING * jnp.sum(fitted.values**2))
        return experiment.parameters / mean, jnp.where(is_flat(at), int(Status.FLAT_LOSS), 0)

    def _mean_lambda(
        self, loss: Loss, experiment: Experiment, refit: Callable[[Array], Smooth] | None, fitted: Fitted, key: Array
    ) -> Array:
        n = experiment.observations
        chosen = _uniform_integers(key, (self.resamples, n), n)
        resamples = fitted.smooth.at_design() + fitted.smooth.residuals(fitted.y)[chosen]
        if self.refit_smoother:
            assert refit is not None
            values = jax.lax.map(lambda y: loss.values(experiment, refit(y), y), resamples, batch_size=64)
        else:
            values = loss.resampled_values(experiment, fitted.smooth, resamples)
        model = loss.span(experiment).coordinates
        short = shortlist(fitted.candidates, model, fitted.values, fitted.minima)
        modelled = model(fitted.minima.theta)

        def lambda_0(resampled: Array) -> Array:
            best = model(nearest_minimum(short, model, resampled, experiment.prior).theta)
            # The difference of the two losses, without subtracting one from the other.
            return 2 * jnp.sum((best - modelled) * (2 * (resampled - best) + best - modelled))

        return jnp.mean(jax.vmap(lambda_0)(values))


def _uniform_integers(key: Array, shape: tuple[int, ...], below: int) -> Array:
    """Uniform on 0, ..., below - 1, up to a bias of below / 2^32; four times quicker than an exact one."""
    bits = jax.random.bits(key, shape, dtype=jnp.uint32)
    return ((bits.astype(jnp.uint64) * below) >> 32).astype(jnp.int32)
