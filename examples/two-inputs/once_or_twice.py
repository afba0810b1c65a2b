"""Does the smoother find the variance of the errors? 60 points measured once, against 30 measured twice.

    python examples/two-inputs/once_or_twice.py

For 200 simulated datasets of each kind, quantiles of the estimated variance over the true one.
"""

import jax
import jax.numpy as jnp
import numpy as np
from make_data import HIGH, LOW, SIGMA, period
from model import period as model

import l2calib as l2
from l2calib.designs import maxpro_design

INPUTS = {"length": (LOW[0], HIGH[0]), "amplitude": (LOW[1], HIGH[1])}
PRIOR = {"g": l2.Uniform(5, 15), "bob": l2.Uniform(0, 0.1)}
PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)


def ratios(points, times, datasets=200):
    """sigma2-hat over sigma2, for simulated datasets of a design of so many points."""
    x = np.repeat(LOW + (HIGH - LOW) * maxpro_design(points, 2, seed=1), times, axis=0)
    smoother = l2.GCV()
    tables = smoother.prepare(l2.Experiment(model, INPUTS, x, PRIOR))
    noise = SIGMA * np.random.default_rng(1).standard_normal((datasets, len(x)))
    fitted = jax.jit(jax.vmap(lambda y: smoother.fit(tables, y).sigma2()))(jnp.asarray(period(*x.T) + noise))
    return np.asarray(fitted) / SIGMA**2


if __name__ == "__main__":
    for points, times in ((60, 1), (30, 2)):
        quantiles = np.quantile(ratios(points, times), PROBABILITIES)
        print(f"{points} points, measured {times}x:", *quantiles.round(3))  # noqa: T201 (a script for people)
