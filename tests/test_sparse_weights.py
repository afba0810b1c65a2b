"""Few terms for many: the sums that they keep, against scipy's non-negative least squares."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

from l2calib.numerics.sparse_weights import sparse_weights


def bells(rows, columns=300, seed=0):
    """Densities of thetas, one for every column, as posteriors given rho are: their centres and widths vary."""
    theta = np.random.default_rng(seed).standard_normal((rows, 1))
    along = np.linspace(-3, 3, columns)
    precision = np.exp(along)
    terms = np.sqrt(precision) * np.exp(-precision * (theta - np.tanh(along)) ** 2 / 2 - along**2 / 2)
    return terms / terms.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_every_row_keeps_its_sum_where_the_terms_are_used_elsewhere_too(seed):
    rows = bells(40, seed=seed)
    place, weight = sparse_weights(rows[:28], rows[:28].sum(axis=1), 24)
    assert (weight >= 0).all()
    assert np.unique(place[weight > 0]).size == (weight > 0).sum()
    assert rows[:28, place] @ weight == pytest.approx(1, abs=1e-5)
    assert rows[28:, place] @ weight == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("keep", [3, 6, 24])
def test_it_is_as_good_as_least_squares_with_the_same_terms(keep):
    rows = bells(28)
    place, weight = sparse_weights(rows, rows.sum(axis=1), keep)
    used = np.unique(place[weight > 0])
    _, least = nnls(rows[:, used], np.ones(28))
    assert np.linalg.norm(rows[:, place] @ weight - 1) == pytest.approx(least, abs=1e-5)
    assert used.size <= keep


def test_a_term_that_is_all_there_is_keeps_its_weight():
    rows = np.zeros((5, 9))
    rows[:, 4] = 0.25
    place, weight = sparse_weights(rows, rows.sum(axis=1), 3)
    assert weight.sum() == pytest.approx(1)
    assert place[weight > 0].tolist() == [4]


def test_one_text_serves_numpy_and_jax():
    rows = bells(28)
    place, weight = sparse_weights(rows, rows.sum(axis=1), 16)
    other_place, other_weight = jax.jit(jax.vmap(lambda each: sparse_weights(each, each.sum(axis=1), 16)))(
        jnp.asarray(rows[None])
    )
    assert rows[:, other_place[0]] @ other_weight[0] == pytest.approx(rows[:, place] @ weight, abs=1e-6)
