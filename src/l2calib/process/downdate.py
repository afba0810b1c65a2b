"""The correlation c_P of a bias that is orthogonal to the model's slopes (paper, Section 2.3.2): c, downdated."""

from __future__ import annotations

from typing import NamedTuple

from l2calib.numerics.arrays import Array, jnp
from l2calib.numerics.small_matrices import cholesky, lower_solve

_RELATIVE_FLOOR = 1e-12


class Downdate(NamedTuple):
    """(kappa I + C_P) in the basis U, where C_P = C - C_XD F H^-1 F' C_DX.

    With D = kappa + lambda and b = U' C_XD F it is D - b H^-1 b', so that its inverse and determinant cost
    O(n p^2): everything needed is D^-1, G = D^-1 b and the inverse square root of the Schur complement.
    """

    inverse_diagonal: Array  # D^-1, (n,)
    projector: Array  # L^-1 b' D^-1, (p, n), with L L' = H - b' D^-1 b
    log_determinant: Array

    def quadratic(self, rotated: Array) -> Array:
        """r' (kappa I + C_P)^-1 r for the rotated residual U' r."""
        return self.inverse_diagonal @ rotated**2 + jnp.sum((self.projector @ rotated) ** 2)


def downdate(eigenvalues: Array, kappa: Array, b: Array, big_h: Array) -> Downdate:
    """The downdated matrix for one (psi, kappa); `big_h` is H = F' C_DD F (p, p) and `b` is U' C_XD F (n, p)."""
    diagonal = kappa + eigenvalues
    scaled = b / diagonal[:, None]
    # The Schur complement is a posterior variance: positive, but below rounding when the design determines the
    # integrals of the bias exactly (kappa -> 0, psi -> 0). The floor keeps it positive definite there.
    floor = _RELATIVE_FLOOR * jnp.diag(big_h)
    root = cholesky(big_h - b.T @ scaled + jnp.diag(floor), floor)
    h_root = cholesky(big_h + jnp.diag(floor), floor)
    log_determinant = (
        jnp.sum(jnp.log(diagonal)) + 2 * jnp.sum(jnp.log(jnp.diag(root))) - 2 * jnp.sum(jnp.log(jnp.diag(h_root)))
    )
    return Downdate(1 / diagonal, lower_solve(root, scaled.T), log_determinant)
