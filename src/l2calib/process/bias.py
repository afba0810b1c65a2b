"""The bias as a Gaussian process: psi, kappa and sigma2 drawn from their posterior given residuals.

A residual y - eta_X(theta) is a process with correlation c(.; psi) and variance sigma2 / kappa, plus errors of variance
sigma2. The priors are those of Kennedy-O'Hagan; sigma2 is integrated out under 1/sigma2. C_XX is factorised once for
every psi of a set of points, and all kappa on a lattice then cost O(n) each. With one input the points are a lattice;
with more they follow a normal distribution fitted to the posterior at one residual, and some of them the prior.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy import linalg, special
from threadpoolctl import threadpool_limits

from l2calib.numerics.arrays import jnp
from l2calib.numerics.spread import kronecker
from l2calib.process.correlation import SquaredExponential, squared_differences
from l2calib.process.lattice import KAPPA_PRIOR, PSI_PRIOR, kappa_lattice
from l2calib.process.spectrum import Functionals, Sites, spectrum_over

_KAPPA: np.ndarray = np.exp(kappa_lattice())
_CORRELATION = SquaredExponential()
_PSI_ON_LINE = 31
_REACH = 3.0  # of points in psi, in standard deviations of the prior
_FITTED, _FROM_PRIOR = 40, 24  # points with several inputs
_WIDENED = 1.3  # their standard deviations: other residuals have their posterior elsewhere
_STARTS = (0.0, -1.0, 1.0)  # of the search for the mode, in standard deviations of the prior
_STEP = 1e-3  # of the finite differences of the gradient
_LOOKED_AT = 16  # residuals by which the values of psi that carry the mass are chosen
_CAPTURED = 0.999
_KEPT_PSI = 24


class Bias(NamedTuple):
    """Draws with the same psi, in the eigenbasis of C_XX(psi)."""

    draws: np.ndarray  # their indices (G,)
    psi: np.ndarray  # (k,)
    vectors: np.ndarray  # (n, n)
    inverse: np.ndarray  # 1 / (kappa + lambda), (G, n)
    shrunk: np.ndarray  # U' r / (kappa + lambda), (G, n)
    variance: np.ndarray  # of the process, sigma2 / kappa (G,)
    whitening: np.ndarray  # of the residuals (n,)

    def at(self, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (G, N) at points, from their squared differences to the design (N, n, k)."""
        cross = (_CORRELATION(squared, self.psi) * self.whitening) @ self.vectors
        left = np.maximum(1 - self.inverse @ (cross**2).T, 0.0)
        return self.shrunk @ cross.T, self.variance[:, None] * left


class _Points(NamedTuple):
    psi: np.ndarray  # (P, k)
    log_weight: np.ndarray  # log prior of log psi minus the log density of the points (P,)
    eigenvalues: np.ndarray  # of C_XX(psi), (P, n)
    vectors: np.ndarray  # (P, n, n)


def draw_bias(sites: Sites, residuals: np.ndarray, rng: np.random.Generator) -> tuple[Bias, ...]:
    """One draw of psi, kappa and sigma2 for every whitened residual (S, n)."""
    with threadpool_limits(1, user_api="blas"):  # matrices of this size gain nothing from threads
        if sites.x.shape[1] == 1:
            points = _on_line(sites.x.tobytes(), sites.whitening.tobytes())
        else:
            points = _fitted(sites, residuals.mean(axis=0))
        some = residuals[:: max(1, len(residuals) // _LOOKED_AT)]
        everywhere, _ = _log_mass(points, some)
        chosen = _heaviest(special.softmax(everywhere, axis=(0, 2)).sum(axis=(1, 2)))
        points = _Points(*(field[chosen] for field in points))
        log_mass, quadratic = _log_mass(points, residuals)
        at_psi, at_kappa = _drawn(np.swapaxes(log_mass, 0, 1), rng)
        number, n = residuals.shape
        variance = quadratic[at_psi, np.arange(number), at_kappa] / rng.chisquare(n, number)
        return tuple(
            _bias(points, index, np.flatnonzero(at_psi == index), at_kappa, residuals, variance, sites.whitening)
            for index in np.unique(at_psi)
        )


def _bias(
    points: _Points,
    index: int,
    draws: np.ndarray,
    at_kappa: np.ndarray,
    residuals: np.ndarray,
    variance: np.ndarray,
    whitening: np.ndarray,
) -> Bias:
    vectors = points.vectors[index]
    inverse = 1 / (_KAPPA[at_kappa[draws], None] + points.eigenvalues[index])
    shrunk = inverse * (residuals[draws] @ vectors)
    return Bias(draws, points.psi[index], vectors, inverse, shrunk, variance[draws], whitening)


def _log_mass(points: _Points, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log posterior (P, R, K) of all psi and kappa given residuals (R, n), and r' Phi^-1 r."""
    inverse = 1 / (_KAPPA + points.eigenvalues[:, :, None])
    quadratic = np.maximum((residuals @ points.vectors) ** 2 @ inverse, np.finfo(float).tiny)
    log_determinant = -np.log(inverse).sum(axis=1)
    log_prior = points.log_weight[:, None] + _log_prior_of_kappa()
    n = residuals.shape[1]
    return (log_prior - log_determinant / 2)[:, None] - n / 2 * np.log(quadratic), quadratic


@functools.cache
def _log_prior_of_kappa() -> np.ndarray:
    return np.asarray(KAPPA_PRIOR.log_density(jnp.asarray(_KAPPA)) + kappa_lattice())


def _heaviest(mass: np.ndarray) -> np.ndarray:
    """The fewest indices that carry nearly all of the mass."""
    order = np.argsort(-mass)
    enough = int(np.searchsorted(np.cumsum(mass[order]), _CAPTURED * mass.sum())) + 1
    return order[: min(enough, _KEPT_PSI)]


def _drawn(log_mass: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One cell (p, k) of each table (S, P, K), by its mass."""
    flat = log_mass.reshape(len(log_mass), -1)
    below = np.cumsum(special.softmax(flat, axis=1), axis=1)
    cell = np.sum(below < rng.uniform(size=(len(flat), 1)) * below[:, -1:], axis=1)
    at_psi, at_kappa = np.unravel_index(cell, log_mass.shape[1:])
    return at_psi, at_kappa


@functools.lru_cache(maxsize=4)
def _on_line(x: bytes, whitening: bytes) -> _Points:
    """A lattice over the prior of log psi, for sites with one input."""
    standard = np.linspace(-_REACH, _REACH, _PSI_ON_LINE)[:, None]
    sites = Sites(np.frombuffer(x)[:, None], np.frombuffer(whitening))
    return _factorised(sites, standard, -(standard[:, 0] ** 2) / 2)


def _fitted(sites: Sites, residual: np.ndarray) -> _Points:
    """Points that follow the posterior of log psi at one residual, some of them its prior; weighted accordingly."""
    inputs = sites.x.shape[1]
    mode, covariance = _laplace(sites, residual)
    root = _WIDENED * np.linalg.cholesky(covariance)
    normal = special.ndtri(kronecker(_FITTED, inputs))
    standard = np.vstack([mode + normal @ root.T, special.ndtri(kronecker(_FROM_PRIOR, inputs))])
    away = linalg.solve_triangular(root, (standard - mode).T, lower=True)
    log_fitted = np.log(_FITTED) - (away**2).sum(axis=0) / 2 - np.log(np.diag(root)).sum()
    log_prior = -(standard**2).sum(axis=1) / 2
    return _factorised(sites, standard, log_prior - np.logaddexp(log_fitted, np.log(_FROM_PRIOR) + log_prior))


def _factorised(sites: Sites, standard: np.ndarray, log_weight: np.ndarray) -> _Points:
    """Points of log psi in standard deviations of its prior (P, k)."""
    psi = np.exp(PSI_PRIOR.mean_log + PSI_PRIOR.sd_log * standard)
    spectrum = spectrum_over(_CORRELATION, psi, sites, Functionals.none(psi.shape[1]))
    return _Points(psi, log_weight, np.asarray(spectrum.eigenvalues), np.asarray(spectrum.vectors))


def _laplace(sites: Sites, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mode and covariance of log psi in standard deviations of its prior, and no wider than it in any direction."""
    from scipy import optimize

    inputs = sites.x.shape[1]
    descend = functools.partial(_negative_log_posterior, sites, squared_differences(sites.x, sites.x), residual)
    bounds = [(-_REACH, _REACH)] * (inputs + 1)
    found = [
        optimize.minimize(descend, np.append(np.full(inputs, start), 0.0), jac=True, method="L-BFGS-B", bounds=bounds)
        for start in _STARTS
    ]
    mode = min(found, key=lambda each: float(each.fun)).x
    steps = _STEP * np.eye(inputs + 1)
    bends = np.array([(descend(mode + step)[1] - descend(mode - step)[1]) / (2 * _STEP) for step in steps])
    precision, axes = np.linalg.eigh((bends + bends.T) / 2)
    covariance = (axes / np.maximum(precision, 1.0)) @ axes.T
    return mode[:inputs], covariance[:inputs, :inputs]


def _negative_log_posterior(
    sites: Sites, squared: np.ndarray, residual: np.ndarray, standard: np.ndarray
) -> tuple[float, np.ndarray]:
    """Of (log psi, log kappa) in standard deviations of their priors, and its gradient."""
    n = residual.size
    psi = np.exp(PSI_PRIOR.mean_log + PSI_PRIOR.sd_log * standard[:-1])
    kappa = np.exp(KAPPA_PRIOR.mean_log + KAPPA_PRIOR.sd_log * standard[-1])
    both = np.outer(sites.whitening, sites.whitening)
    root = np.linalg.cholesky(both * _CORRELATION(squared, psi) + kappa * np.eye(n))
    inverse = linalg.cho_solve((root, True), np.eye(n))
    shrunk = inverse @ residual
    quadratic = residual @ shrunk
    value = np.log(np.diag(root)).sum() + n / 2 * np.log(quadratic) + standard @ standard / 2
    pull = inverse - n / quadratic * np.outer(shrunk, shrunk)
    by_psi = PSI_PRIOR.sd_log * np.einsum("ij,ijk->k", pull * both, _CORRELATION.slopes(squared, psi)) / 2
    by_kappa = KAPPA_PRIOR.sd_log * kappa * np.trace(pull) / 2
    return float(value), np.append(by_psi, by_kappa) + standard
