"""The bootstrap's gamma where there is nothing to resample."""

import numpy as np

import l2calib as l2
from tests.oracles.configurations import configuration, design
from tests.problems import experiment

DATASETS, N = 256, 20


def test_a_smoother_that_interpolates_leaves_a_posterior_at_the_estimate():
    chosen = configuration(2)
    noise = np.random.default_rng(5).standard_normal((DATASETS, N))
    responses = chosen.mu(design(N, chosen.k)) + np.sqrt(chosen.sigma2) * noise
    batch = l2.calibrate_batch(experiment(2, N), responses, "gb-l2-boot", seed=0)
    interpolated = (batch.sd[:, 0] < 1e-5) & ((batch.status & l2.Status.NEAR_INTERPOLATION) != 0)
    assert 0 < interpolated.sum() < DATASETS / 4
    assert (batch.gamma > 0).all()
    assert np.all(np.abs(batch.mean - batch.theta_hat) < batch.sd)
    assert ((batch.status & l2.Status.INACCURATE) == 0).all()
