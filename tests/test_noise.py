"""A noise of one's own is one class: it is applied by whitening, and everything that follows is right for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import jax
import numpy as np
import pytest

import l2calib as l2
from l2calib.process.bias import draw_bias
from l2calib.process.correlation import SquaredExponential, squared_differences
from l2calib.process.spectrum import Functionals, Sites, spectrum_over

N = 18


@dataclass(frozen=True)
class Known:
    """Errors whose standard deviations are known up to a factor."""

    sd: tuple[float, ...]

    def scales(self, observations: int) -> np.ndarray:
        assert observations == len(self.sd)
        return np.asarray(self.sd)


X = np.linspace(0, 1, N)
SD = 0.1 + 0.9 * X**2
Y = np.sin(7 * X) + X + 0.25 * SD * np.random.default_rng(8).standard_normal(N)


def line(x, theta1):
    return theta1 * x


@cache  # compiled programs hang on it
def problem(sd: tuple[float, ...] | None = tuple(SD)) -> l2.Problem:
    noise = None if sd is None else Known(sd)
    return l2.Problem(
        line, {"x": X, "y": Y}, "y", inputs={"x": (0, 1)}, prior={"theta1": l2.Uniform(-3, 5)}, noise=noise
    )


def on_a_grid(log_density: np.ndarray, grid: np.ndarray) -> tuple[float, float]:
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ grid
    return mean, np.sqrt(weights @ (grid - mean) ** 2)


def test_regression_weighs_every_observation_by_its_error():
    grid = np.linspace(-3, 5, 200_001)

    def posterior(scales):
        square = (((Y - grid[:, None] * X) / scales) ** 2).sum(axis=1)
        return on_a_grid(-N / 2 * np.log(square), grid)

    mean, sd = posterior(SD)
    row = l2.calibrate(problem(), "nlm").summary().loc["theta1"]
    # The engine's tolerance is 5e-3 sd; on a smooth density of one parameter it is far better than that.
    assert row["mean"] == pytest.approx(mean, abs=1e-4 * sd)
    assert row["sd"] == pytest.approx(sd, rel=1e-4)
    assert abs(posterior(np.ones(N))[0] - mean) > sd  # so the test can tell


def test_the_smoother_is_the_dense_one():
    """mu-hat at the chosen rho, its sigma2 and the sandwich, by dense algebra with kappa S^2 for the errors."""
    found = l2.calibrate(problem(), "gb-l2")
    psi, kappa = found.rho.psi, found.rho.kappa
    experiment = problem().experiment
    nodes, weights = experiment.quadrature.nodes, experiment.quadrature.weights
    c_xx = np.exp(-psi * squared_differences(X[:, None], X[:, None])[:, :, 0])
    c_dx = np.exp(-psi * squared_differences(nodes, X[:, None])[:, :, 0])
    to_mu = c_dx @ np.linalg.inv(c_xx + kappa * np.diag(SD**2))
    left = np.eye(N) - (c_xx @ np.linalg.inv(c_xx + kappa * np.diag(SD**2))).T  # of y, before it is whitened
    whitened_left = np.diag(1 / SD) @ left.T @ np.diag(SD)
    sigma2 = np.sum((whitened_left @ (Y / SD)) ** 2) / np.trace(whitened_left @ whitened_left)
    assert found.sigma2 == pytest.approx(sigma2, rel=1e-7)
    slope = nodes[:, 0]
    theta_hat = (weights * slope) @ (to_mu @ Y) / ((weights * slope) @ slope)
    assert found.theta_hat["theta1"] == pytest.approx(theta_hat, rel=1e-8)
    V = 2 * (weights * slope) @ slope
    W = 4 * sigma2 * np.sum((SD * ((weights * slope) @ to_mu)) ** 2)
    assert found.gamma == pytest.approx(V / W, rel=1e-6)


def test_cross_validation_is_that_of_the_whitened_observations():
    """No rho near the chosen one, on its grid and beside it, has a lower score by dense algebra."""
    found = l2.calibrate(problem(), "gb-l2").rho
    step = np.log(1e5) / 80

    def score(psi: float, kappa: float) -> float:
        c = np.exp(-psi * (X[:, None] - X) ** 2) / np.outer(SD, SD)
        inverse = np.linalg.inv(c + kappa * np.eye(N))
        return float(np.sum((inverse @ (Y / SD)) ** 2) / np.trace(inverse) ** 2)

    best = score(found.psi[0], found.kappa)
    around = [
        score(found.psi[0] * np.exp(i * step), found.kappa * np.exp(j * 0.02)) for i in (-1, 0, 1) for j in (-1, 1)
    ]
    assert best <= min(around) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["nlm", "gb-ols"])
def test_a_common_factor_of_the_scales_is_sigmas(name):
    one, three = (l2.calibrate(problem(tuple(factor * SD)), name) for factor in (1, 3))
    assert three.summary().to_numpy() == pytest.approx(one.summary().to_numpy(), rel=1e-7)
    assert three.sigma2 == pytest.approx(one.sigma2 / 9, rel=1e-7)


def test_equal_scales_change_no_bit():
    plain, written = (problem(sd).experiment for sd in (None, (1.0,) * N))
    for one, other in zip(*(jax.tree.leaves(l2.GCV().prepare(each, True)) for each in (plain, written)), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(plain.design_span.basis, written.design_span.basis)
    assert np.array_equal(plain.whiten(Y), Y)


def test_a_batch_whitens_as_one_calibration_does():
    known = problem().experiment
    batch = l2.calibrate_batch(known, np.stack([Y, Y + 0.1 * X]), "gb-l2", seed=[1, 1])
    alone = l2.calibrate(problem(), "gb-l2", seed=1)
    assert batch.mean[0] == pytest.approx(alone.summary()["mean"].to_numpy(), rel=1e-7)


def test_the_spectrum_is_that_of_the_whitened_process():
    sites = Sites(X[:, None], 1 / SD)
    spectrum = spectrum_over(SquaredExponential(), np.array([[3.0]]), sites, Functionals.none(1)).at(0)
    vectors, values = np.asarray(spectrum.vectors), np.asarray(spectrum.eigenvalues)
    dense = np.exp(-3.0 * (X[:, None] - X) ** 2) / np.outer(SD, SD)
    assert (vectors * values) @ vectors.T == pytest.approx(dense, abs=1e-12 * values.max())


def test_the_bias_given_psi_and_kappa_is_the_dense_one():
    """Its mean and variance at new points, for a process that is observed with unequal errors."""
    residual = Y - X
    at = np.array([[0.05], [0.5], [0.93]])
    for bias in draw_bias(Sites(X[:, None], 1 / SD), np.tile(residual / SD, (4, 1)), np.random.default_rng(0)):
        mean, variance = bias.at(squared_differences(at, X[:, None]))
        inverse = np.linalg.inv(np.exp(-bias.psi * (X[:, None] - X) ** 2) + np.diag(SD**2) * _kappa(bias))
        cross = np.exp(-bias.psi * (at - X) ** 2)
        assert mean[0] == pytest.approx(cross @ inverse @ residual, rel=1e-6, abs=1e-9)
        left = 1 - np.einsum("ai,ij,aj->a", cross, inverse, cross)
        assert variance[0] == pytest.approx(bias.variance[0] * left, rel=1e-5, abs=1e-9 * bias.variance[0])


def _kappa(bias) -> float:
    """The first draw's: the smallest eigenvalue of a smooth process is nothing beside it."""
    return float(1 / bias.inverse[0].max())


def test_what_is_no_noise_is_refused_in_a_sentence():
    @dataclass(frozen=True)
    class Wrong:
        def scales(self, observations: int) -> np.ndarray:
            return np.zeros(observations)

    for noise, said in ((Known, "the noise is not one"), (Wrong(), "18 positive numbers")):
        with pytest.raises(l2.L2CalibError, match=said):
            l2.Problem(
                line, {"x": X, "y": Y}, "y", inputs={"x": (0, 1)}, prior={"theta1": l2.Uniform(-3, 5)}, noise=noise
            )
