"""The bias that is projected at theta, against dense algebra and against what is known of it in two limits."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
import pytest

from l2calib.process.correlation import Matern, SquaredExponential, squared_differences
from l2calib.process.projected_bias import (
    Rotated,
    RotatedResponses,
    bias_in_span,
    expanded,
    lattice_terms,
    node_terms,
    nodes_of,
    orthonormal_slopes,
)
from tests.oracles.projected_bias import (
    ProjectedProcess,
    log_volume,
    matern32,
    matern52,
    squared_exponential,
    without_process,
)
from tests.oracles.quadrature import gauss_legendre

N, RULE = 15, gauss_legendre(40, 1)
PSI = np.array([8.0])
KAPPA = np.array([[1e-3, 0.1, 10.0]])
CORRELATIONS = [
    (SquaredExponential(), squared_exponential),
    (Matern(2.5), matern52),
    (Matern(1.5), matern32),
]


def design():
    return np.sort(np.random.default_rng(7).random((N, 1)), axis=0)


def residual():
    return np.random.default_rng(8).standard_normal(N)


def functions(x, p, together=1.0):
    """Slopes (n, p): the last is the first but for a share of another function."""
    columns = np.column_stack([np.ones(len(x)), np.cos(3 * x[:, 0]), x[:, 0] ** 2])[:, :p]
    if p > 1:
        columns[:, -1] = columns[:, 0] + together * columns[:, -1]
    return columns


def pieces(correlation):
    x, roots = design(), np.sqrt(RULE.weights)
    eigenvalues, u = np.linalg.eigh(correlation(squared_differences(x, x), PSI))
    rotated = Rotated(
        log_psi=np.log(PSI)[None],
        eigenvalues=np.maximum(eigenvalues, 0)[None],
        cross=(u.T @ (correlation(squared_differences(x, RULE.nodes), PSI) * roots))[None],
        big_h=(correlation(squared_differences(RULE.nodes, RULE.nodes), PSI) * np.outer(roots, roots))[None],
        basis=u.T[None],
        left_out=np.array(0.0),
    )
    return rotated, RotatedResponses((u.T @ residual())[None], np.zeros(1))


def at_every_kappa(rotated, responses):
    """A node for every kappa."""
    times = KAPPA.shape[1]
    repeated = Rotated(*(np.repeat(each, times, axis=0) if each.ndim else each for each in rotated))
    return nodes_of(
        repeated, RotatedResponses(*(np.repeat(each, times, axis=0) for each in responses)), np.log(KAPPA[0])
    )


class Computed(NamedTuple):
    log_likelihood: np.ndarray
    quadratic: np.ndarray


def computed(correlation, p, together=1.0):
    """At one theta and every kappa: the terms, the mean of the bias at the nodes, and the slopes."""
    rotated, responses = pieces(correlation)
    at_nodes = np.sqrt(RULE.weights)[:, None] * functions(RULE.nodes, p, together)
    slopes = orthonormal_slopes(at_nodes[None], functions(design(), p, together)[None], np.ones(p))
    nodes = at_every_kappa(rotated, responses)
    looked = node_terms(nodes, np.zeros((1, N)), slopes, N)
    on_lattice = lattice_terms(rotated, responses, KAPPA, np.zeros((1, N)), slopes, N)
    for node, at in zip(looked.terms, on_lattice, strict=True):  # two ways to the same numbers
        assert node[:, 0] == pytest.approx(at[0, :, 0], rel=1e-7, abs=1e-7)
    bias = bias_in_span(nodes, slopes, looked)[:, :, 0] / np.sqrt(RULE.weights)
    return Computed(looked.terms.log_likelihood[:, 0], looked.terms.quadratic[:, 0]), bias, slopes


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("correlation", "dense"), CORRELATIONS)
def test_it_is_the_dense_formula(correlation, dense, p):
    process = ProjectedProcess(design(), RULE, dense)
    terms, bias, slopes = computed(correlation, p)
    for v, kappa in enumerate(KAPPA[0]):
        slow = process.joint(PSI, kappa, residual(), functions(design(), p), functions(RULE.nodes, p))
        assert terms.log_likelihood[v] == pytest.approx(slow.log_likelihood, abs=1e-9)
        assert terms.quadratic[v] == pytest.approx(slow.quadratic, rel=1e-9)
        assert bias[v] == pytest.approx(slow.bias, abs=1e-9)
    assert slopes.log_volume[0] == pytest.approx(log_volume(RULE, functions(RULE.nodes, p)), abs=1e-12)


# Slopes that agree to 1e-5 lose five of sixteen digits before anything is computed of them, and kappa three more.
@pytest.mark.parametrize("together", [1e-5, -1e-5])
def test_parameters_that_all_but_coincide_keep_their_digits(together):
    assert np.linalg.cond(functions(RULE.nodes, 2, together)) ** 2 > 1e10
    process = ProjectedProcess(design(), RULE, squared_exponential)
    terms, bias, slopes = computed(SquaredExponential(), 2, together)
    for v, kappa in enumerate(KAPPA[0]):
        slow = process.joint(
            PSI, kappa, residual(), functions(design(), 2, together), functions(RULE.nodes, 2, together)
        )
        assert terms.log_likelihood[v] == pytest.approx(slow.log_likelihood, abs=1e-6)
        assert bias[v] == pytest.approx(slow.bias, abs=1e-6)
    assert slopes.moves.all()


def test_a_direction_that_moves_nothing_is_left_out():
    """Two parameters that enter as one, and one that does not matter."""
    process = ProjectedProcess(design(), RULE, squared_exponential)
    for p, together, slow_p in ((2, 0.0, 1), (3, 0.0, 2)):
        terms, bias, slopes = computed(SquaredExponential(), p, together)
        assert slopes.moves[0].tolist() == [True] * slow_p + [False]
        for v, kappa in enumerate(KAPPA[0]):
            slow = process.joint(PSI, kappa, residual(), functions(design(), slow_p), functions(RULE.nodes, slow_p))
            assert terms.log_likelihood[v] == pytest.approx(slow.log_likelihood, abs=1e-9)
            assert bias[v] == pytest.approx(slow.bias, abs=1e-9)


def test_where_a_direction_moves_nothing_the_volume_is_of_the_others():
    """Of the singular values that are not zero, in the parameters' own units whatever these are."""
    rng, scale = np.random.default_rng(3), np.array([1.0, 20.0, 0.03])
    jacobian = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 3)) / scale
    found = orthonormal_slopes(jacobian[None], jacobian[None], scale)
    assert found.moves[0].sum() == 2
    values = np.linalg.svd(jacobian * scale, compute_uv=False)
    assert values[2] < 1e-12 * values[0]
    assert found.log_volume[0] == pytest.approx(np.log(values[:2]).sum() - np.log(scale).sum(), abs=1e-9)
    again = orthonormal_slopes(jacobian[None][..., ::-1], jacobian[None], scale[::-1])
    assert again.log_volume[0] == pytest.approx(found.log_volume[0], abs=1e-9)


def test_the_bias_is_orthogonal_to_the_slopes():
    _, bias, _ = computed(SquaredExponential(), 3)
    assert (RULE.weights * bias) @ functions(RULE.nodes, 3) == pytest.approx(0, abs=1e-12)


def test_without_a_process_it_is_non_linear_regression():
    rotated, responses = pieces(SquaredExponential())
    slopes = orthonormal_slopes(functions(RULE.nodes, 2)[None], functions(design(), 2)[None], np.ones(2))
    terms = lattice_terms(rotated, responses, np.array([[1e9]]), np.zeros((1, N)), slopes, N)
    assert terms.log_likelihood[0, 0, 0] == pytest.approx(without_process(residual()), abs=1e-6)


def test_a_linear_model_is_universal_kriging():
    """The posterior of theta given rho is that of the projection of mu, whose mean is J beta with a flat beta."""
    p, kappa, x = 2, 0.1, design()
    rotated, responses = pieces(SquaredExponential())
    j_x, j_d = functions(x, p), functions(RULE.nodes, p)
    slopes = orthonormal_slopes((np.sqrt(RULE.weights)[:, None] * j_d)[None], j_x[None], np.ones(p))
    repeated = type(slopes)(*(np.repeat(each, 6, axis=0) for each in slopes))
    steps = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [-1, 0], [0, -1]], dtype=float)
    q = lattice_terms(rotated, responses, np.array([[kappa]]), steps @ j_x.T, repeated, N).quadratic[0, 0]
    # q is a quadratic in theta: its centre and its curvature, from six values.
    bend = np.array([[q[1] + q[4] - 2 * q[0], q[3] - q[1] - q[2] + q[0]], [0, q[2] + q[5] - 2 * q[0]]])
    bend[1, 0] = bend[0, 1]
    centre = -np.linalg.solve(bend, [(q[1] - q[4]) / 2, (q[2] - q[5]) / 2])
    c = ProjectedProcess(x, RULE, squared_exponential).c
    phi = c(x, x, PSI) + kappa * np.eye(N)
    inverse = np.linalg.inv(phi)
    beta_covariance = np.linalg.inv(j_x.T @ inverse @ j_x)
    beta = beta_covariance @ j_x.T @ inverse @ residual()
    cross = c(RULE.nodes, x, PSI)
    mean = j_d @ beta + cross @ inverse @ (residual() - j_x @ beta)
    away = j_d - cross @ inverse @ j_x
    covariance = c(RULE.nodes, RULE.nodes, PSI) - cross @ inverse @ cross.T + away @ beta_covariance @ away.T
    weighted = RULE.weights[:, None] * j_d
    project = np.linalg.solve(weighted.T @ j_d, weighted.T)
    assert centre == pytest.approx(project @ mean, rel=1e-8)
    assert np.linalg.inv(bend / 2) == pytest.approx(project @ covariance @ project.T, rel=1e-6)


def test_one_text_serves_numpy_and_jax():
    rotated, responses = pieces(Matern(2.5))
    at_nodes, at_design = functions(RULE.nodes, 3)[None], functions(design(), 3)[None]

    def all_of(rotated, responses, kappa, at_nodes, at_design):
        slopes = orthonormal_slopes(at_nodes, at_design, np.ones(3))
        terms = lattice_terms(rotated, responses, kappa, at_design[:, :, 0], slopes, N)
        nodes = nodes_of(rotated, responses, kappa[:, 0])
        looked = node_terms(nodes, at_design[:, :, 0], slopes, N)
        return slopes, terms, looked.terms, bias_in_span(nodes, slopes, looked)

    given = (rotated, responses, KAPPA, at_nodes, at_design)
    plain, compiled = all_of(*given), jax.jit(all_of)(*given)
    assert all(type(each) is np.ndarray for each in jax.tree.leaves(plain))
    for one, other in zip(jax.tree.leaves(plain), jax.tree.leaves(compiled), strict=True):
        assert np.asarray(other) == pytest.approx(one, rel=1e-9, abs=1e-9)


def test_nodes_with_rows_of_their_own_are_nodes_with_all_rows():
    rotated, responses = pieces(SquaredExponential())
    nodes, rng = at_every_kappa(rotated, responses), np.random.default_rng(3)
    at_nodes = rng.standard_normal((6, len(RULE.nodes), 2))
    at_design, modelled = rng.standard_normal((6, N, 2)), rng.standard_normal((6, N))
    slopes = orthonormal_slopes(at_nodes, at_design, np.ones(2))
    together = node_terms(nodes, modelled, slopes, N)
    own = type(slopes)(*(each.reshape(3, 2, *each.shape[1:]) for each in slopes))
    apart = node_terms(nodes, modelled.reshape(3, 2, N), own, N)
    bias, own_bias = bias_in_span(nodes, slopes, together), bias_in_span(nodes, own, apart)
    for node in range(3):
        rows = slice(2 * node, 2 * node + 2)
        assert apart.terms.log_likelihood[node] == pytest.approx(together.terms.log_likelihood[node, rows], rel=1e-12)
        assert own_bias[node] == pytest.approx(bias[node, :, rows], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_an_expansion_is_the_likelihood_of_a_model_that_is_linear(p):
    """At any u, against the likelihood of the residual that the model leaves there."""
    rotated, responses = pieces(SquaredExponential())
    roots = np.sqrt(RULE.weights)
    slopes = orthonormal_slopes(
        roots[:, None] * functions(RULE.nodes, p)[None], functions(design(), p)[None], np.ones(p)
    )
    found = expanded(rotated, responses, KAPPA, np.zeros((1, N)), slopes, N)
    for u in np.random.default_rng(9).standard_normal((3, p)):
        moved = (slopes.at_design[0] @ u)[None]
        known = lattice_terms(rotated, responses, KAPPA, moved, slopes, N).log_likelihood
        assert found.log_likelihood(np.broadcast_to(u, found.centre.shape), N) == pytest.approx(known, rel=1e-9)


def test_the_mass_of_an_expansion_is_its_integral():
    rotated, responses = pieces(SquaredExponential())
    roots = np.sqrt(RULE.weights)
    slopes = orthonormal_slopes(
        roots[:, None] * functions(RULE.nodes, 1)[None], functions(design(), 1)[None], np.ones(1)
    )
    found = expanded(rotated, responses, KAPPA, np.zeros((1, N)), slopes, N)
    scale = (found.root[..., 0, 0] * np.sqrt(found.square)).max()
    grid = found.centre[0, 1, 0, 0] + scale * 60 * np.sinh(np.linspace(-6, 6, 4001)) / np.sinh(6)
    values = np.array([found.log_likelihood(np.full(found.centre.shape, each), N) for each in grid])
    integral = np.log(np.trapezoid(np.exp(values - values.max()), grid, axis=0)) + values.max()
    away = integral - found.log_mass()
    assert away == pytest.approx(np.full(away.shape, away[0, 0, 0]), abs=1e-5)
