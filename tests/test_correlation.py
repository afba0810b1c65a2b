"""Spectra and the low-rank downdate against dense algebra, and where dense algebra ends."""

from __future__ import annotations

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l2calib.numerics.arrays import adoptable_zeros
from l2calib.numerics.small_matrices import cholesky, solve
from l2calib.numerics.spread import kronecker
from l2calib.problem.measure import gauss_legendre
from l2calib.process.correlation import SquaredExponential, squared_differences
from l2calib.process.downdate import downdate
from l2calib.process.spectrum import Functionals, Sites, compressed_spectrum_over, spectrum_over
from tests.oracles.kennedy_ohagan import projected_correlation
from tests.oracles.quadrature import gauss_legendre as oracle_rule

NODES = 40
FLOOR = 1e-12  # what `downdate` adds, relative to the diagonal of H


def _pieces(x, psi, kappa, slopes):
    rule = gauss_legendre(1, NODES)
    weighted = rule.weights[:, None] * slopes
    spectrum = spectrum_over(
        SquaredExponential(), np.array([[psi]]), Sites(x, np.ones(len(x))), Functionals(rule.nodes, weighted)
    ).at(0)
    c_dd = np.exp(-psi * squared_differences(rule.nodes, rule.nodes)[:, :, 0])
    b, big_h = np.asarray(spectrum.cross), weighted.T @ c_dd @ weighted
    return spectrum, b, big_h, downdate(spectrum.eigenvalues, jnp.asarray(kappa), jnp.asarray(b), jnp.asarray(big_h))


def _slopes(p):
    chi = gauss_legendre(1, NODES).nodes[:, 0]
    return np.column_stack([chi ** (j + 1) * np.cos(3 * j * chi) for j in range(p)])


@settings(max_examples=40, deadline=None)
@given(
    psi=st.floats(2.0, 200.0),
    kappa=st.floats(1e-2, 10.0),
    p=st.integers(1, 3),
    n=st.sampled_from((5, 12, 30)),  # every size is compiled anew
    seed=st.integers(0, 1000),
)
def test_downdate_equals_the_dense_formula(psi, kappa, p, n, seed):
    rng = np.random.default_rng(seed)
    x, residual = np.sort(rng.random((n, 1)), axis=0), rng.standard_normal(n)
    spectrum, b, big_h, fast = _pieces(x, psi, kappa, _slopes(p))
    dense = kappa * np.eye(n) + projected_correlation(x, oracle_rule(NODES, 1), _slopes(p), np.array([psi]))
    # The formula's own error is its floor over the smallest eigenvalue of the Schur complement, in units of H's
    # diagonal: well-conditioned means that ten times that is below 1e-9.
    unit = np.sqrt(np.diag(big_h))
    schur = big_h - b.T @ (b / (kappa + np.asarray(spectrum.eigenvalues))[:, None])
    smallest = np.linalg.eigvalsh(schur / np.outer(unit, unit))[0]
    tolerance = max(1e-9, 10 * FLOOR / smallest)
    assert float(fast.quadratic(spectrum.vectors.T @ residual)) == pytest.approx(
        residual @ np.linalg.solve(dense, residual), rel=tolerance
    )
    assert float(fast.log_determinant) == pytest.approx(np.linalg.slogdet(dense)[1], rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("psi", [1e-6, 1e-2, 1e3])
@pytest.mark.parametrize("kappa", [1e-14, 1e-8])
def test_downdate_stays_finite_on_the_worst(psi, kappa):
    x = np.repeat(np.linspace(0, 1, 21), 3)[:, None]
    spectrum, _, _, fast = _pieces(x, psi, kappa, _slopes(2))
    value = float(fast.quadratic(spectrum.vectors.T @ np.sin(40 * np.arange(63.0))))
    assert np.isfinite(value)
    assert value > 0
    assert np.isfinite(float(fast.log_determinant))


@given(st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_small_matrices_match_lapack(p, seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((p, p)) + 3 * np.eye(p)
    matrix, right = root @ root.T, rng.standard_normal(p)
    assert np.asarray(cholesky(jnp.asarray(matrix))) == pytest.approx(np.linalg.cholesky(matrix), rel=1e-8, abs=1e-8)
    assert np.asarray(solve(jnp.asarray(matrix), jnp.asarray(right))) == pytest.approx(
        np.linalg.solve(matrix, right), rel=1e-7, abs=1e-9
    )


def test_a_matrix_that_is_not_positive_definite_gives_nan():
    assert np.isnan(np.asarray(solve(jnp.asarray([[1.0, 2.0], [2.0, 1.0]]), jnp.ones(2)))).any()


def test_a_table_of_spectra_is_made_without_a_second_copy_of_it():
    """With two inputs and n = 200 it has half a gigabyte, and every worker of a study has two of them."""
    points = kronecker(60, 2)
    psi = np.exp(4 + kronecker(200, 2))  # large, so that no eigenvector can be left out
    functionals, seen = np.ones((len(points), 1)), np.zeros((len(points), 0))
    tracemalloc.start()
    try:
        spectrum, sizes = compressed_spectrum_over(
            SquaredExponential(), psi, Sites(points, np.ones(len(points))), Functionals(points, functionals), seen
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (sizes == len(points)).all()
    assert peak < 1.5 * spectrum.vectors.nbytes
    dense = np.exp(-squared_differences(points, points) @ psi[-1])
    again = spectrum.at(-1)
    np.testing.assert_allclose((again.vectors * again.eigenvalues) @ again.vectors.T, dense, atol=1e-12)


def test_jax_takes_a_large_table_as_it_is():
    table = adoptable_zeros((100, 50, 3))
    assert table.shape == (100, 50, 3)
    assert not table.any()
    assert jax.device_put(table).unsafe_buffer_pointer() == table.ctypes.data
