"""The non-parametric predictor mu-hat at one rho = (psi, kappa), in the eigenbasis of C_XX (paper, Section 2.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l2calib.numerics.arrays import Array, jnp
from l2calib.process.correlation import Correlation, squared_differences
from l2calib.process.spectrum import Sites, Spectrum


class Smooth(NamedTuple):
    """mu-hat for one y, in the eigenbasis of its psi."""

    spectrum: Spectrum
    psi_index: Array  # in the tabulated grid; minus one off it
    kappa: Array
    rotated: Array  # U' y, (s,)
    rest: Array  # the sum of squares of y along the eigenvectors that are left out
    criterion: Array  # log of the cross-validation score
    status: Array

    @property
    def psi(self) -> Array:
        return jnp.exp(self.spectrum.log_psi)

    @property
    def inverse_diagonal(self) -> Array:
        """The eigenvalues 1 / (kappa + lambda) of Phi^-1."""
        return 1 / (self.kappa + self.spectrum.eigenvalues)

    def in_span(self) -> Array:
        """mu-hat at the quadrature nodes, in the coordinates of the model's span there (m,)."""
        return (self.inverse_diagonal * self.rotated) @ self.spectrum.cross

    def at(self, correlation: Correlation, points: np.ndarray, sites: Sites) -> Array:
        """mu-hat at points (N, k) of the unit cube, for the design that it was fitted on."""
        shrunk = self.inverse_diagonal * self.rotated
        cross = correlation(jnp.asarray(squared_differences(points, sites.x)), self.psi) * sites.whitening
        return cross @ (self.spectrum.vectors @ shrunk)

    def at_design(self) -> Array:
        """mu-hat at the design points, whitened: R(rho) y."""
        shrunk = self.spectrum.eigenvalues * self.inverse_diagonal * self.rotated
        return self.spectrum.vectors @ shrunk

    def residuals(self, y: Array) -> Array:
        """y minus mu-hat at the design points, kappa Phi^-1 y: exact also where mu-hat all but interpolates."""
        vectors = self.spectrum.vectors
        kept = vectors @ (self.kappa * self.inverse_diagonal * self.rotated)
        return kept + jnp.where(self.rest > 0, y - vectors @ self.rotated, 0.0)

    def span_map(self) -> Array:
        """The matrix (n, m) that takes y to mu-hat in the coordinates of the model's span, for this rho."""
        return self.spectrum.vectors @ (self.inverse_diagonal[:, None] * self.spectrum.cross)

    def sigma2(self) -> Array:
        """sigma2-hat: residual sum of squares over tr (I - R)^2."""
        kept = self.kappa * self.inverse_diagonal
        return (jnp.sum((kept * self.rotated) ** 2) + self.rest) / self.freedom()

    def freedom(self) -> Array:
        """tr (I - R)^2: the degrees of freedom that are left for the errors."""
        return jnp.sum((self.kappa * self.inverse_diagonal) ** 2) + self.spectrum.left_out

    def process_variance(self) -> Array:
        """y' Phi^-1 y / n, the maximum likelihood estimate of the process variance given rho."""
        square = jnp.sum(self.inverse_diagonal * self.rotated**2) + self.rest / self.kappa
        return square / self.spectrum.vectors.shape[0]
