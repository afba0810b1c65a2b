"""A method of one's own: least squares with a ridge penalty, and a residual bootstrap as its posterior."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import l2calib as l2
from l2calib.numerics.minimise import candidates, global_minima, nearest_minimum, shortlist


def penalised(model: Any, median: np.ndarray, scale: np.ndarray, theta: jax.Array) -> jax.Array:
    """The model's coordinates and, behind them, theta: the loss is the squared distance from those of y and zeros."""
    return jnp.concatenate([model(theta), (theta - median) / scale])


@dataclass(frozen=True)
class Ridge:
    """theta-hat minimises sum (y - eta)^2 + penalty * sum ((theta - prior's median) / prior's scale)^2."""

    penalty: float = 1.0  # in squared units of the response
    draws: int = 1000
    name = "ridge"
    smoothing = None

    def __post_init__(self) -> None:
        if not (self.penalty > 0 and self.draws >= 2):
            raise ValueError(f"a ridge needs a positive penalty and at least 2 draws: received {self}.")

    def prepare(self, experiment: l2.Experiment) -> l2.Prepared[Any, Any]:
        span, prior, p = experiment.design_span, experiment.prior, experiment.parameters
        median, scale = prior.quantile(np.full(p, 0.5)), prior.scale / np.sqrt(self.penalty)
        model = jax.tree_util.Partial(penalised, span.coordinates, median, scale)
        basis = np.pad(span.basis, ((0, 0), (0, p)))  # between coordinates and values at the design
        known = (model, basis, candidates(prior, model))
        return l2.Prepared(shared=known, view=known)

    def fit(self, experiment: l2.Experiment, shared: Any, y: jax.Array, *, key: jax.Array, choice: Any) -> l2.Fit[Any]:
        model, basis, table = shared
        minima = global_minima(table, model, y @ basis, experiment.prior, keep=3)
        fitted = basis @ model(minima.theta)
        # Residuals have a mean where the model is wrong, and are smaller than the errors where it is right.
        errors = (y - fitted - jnp.mean(y - fitted)) * np.sqrt(y.size / (y.size - experiment.parameters))
        detail = (fitted, errors, minima)
        return l2.Fit(minima.theta, minima.thetas, minima.status, detail, sigma2=jnp.mean(errors**2))

    def posterior(self, prior: l2.Prior, view: Any, fit: l2.Fit[Any]) -> l2.Sampler:
        model, basis, table = view
        fitted, errors, minima = fit.detail
        near = shortlist(table, model, fitted @ basis, minima)

        def draw(key: jax.Array, number: int) -> jax.Array:
            resampled = (fitted + jax.random.choice(key, errors, (number, errors.size))) @ basis
            return jax.vmap(lambda values: nearest_minimum(near, model, values, prior).theta)(resampled)

        return l2.Sampler(draw, self.draws)
