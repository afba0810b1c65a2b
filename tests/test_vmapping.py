"""Functions of one dataset that are computed otherwise for many: the same numbers, however they are mapped."""

import jax
import jax.numpy as jnp
import numpy as np

from l2calib.numerics.vmapping import computed_together, one_after_the_other

RNG = np.random.default_rng(5)
MATRIX, ROWS, SCALES = RNG.standard_normal((4, 3)), RNG.standard_normal((6, 4)), RNG.standard_normal(6)


@computed_together
def scaled_product(matrix, rows, scales):
    return {"product": scales[:, None] * (rows @ matrix), "scale": scales}


def expected(rows, scales):
    return np.asarray(scales)[..., None] * (rows @ MATRIX)


def test_one_dataset_is_a_batch_of_one():
    found = scaled_product(MATRIX, ROWS[0], jnp.asarray(SCALES[0]))
    assert found["product"].shape == (3,)
    np.testing.assert_allclose(found["product"], expected(ROWS[0], SCALES[0]), rtol=1e-14)


def test_a_mapped_function_is_computed_together():
    found = jax.jit(jax.vmap(scaled_product, (None, 0, 0)))(MATRIX, ROWS, SCALES)
    np.testing.assert_allclose(found["product"], expected(ROWS, SCALES), rtol=1e-14)


def test_an_argument_may_be_the_same_for_all_datasets():
    found = jax.vmap(scaled_product, (None, 0, None))(MATRIX, ROWS, jnp.asarray(2.0))
    np.testing.assert_allclose(found["product"], 2 * ROWS @ MATRIX, rtol=1e-14)


def test_maps_may_be_nested():
    def over_scales(row):
        return jax.vmap(scaled_product, (None, None, 0))(MATRIX, row, SCALES)["product"]

    np.testing.assert_allclose(jax.vmap(over_scales)(ROWS), expected(ROWS[:, None], SCALES[None]), rtol=1e-14)


def test_one_after_the_other_gives_what_all_at_once_gives():
    def product(row, scale):
        return scale * (row @ MATRIX)

    found = jax.jit(jax.vmap(one_after_the_other(product)))(jnp.asarray(ROWS), jnp.asarray(SCALES))
    np.testing.assert_allclose(found, expected(ROWS, SCALES), rtol=1e-14)
