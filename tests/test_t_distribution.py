"""The table of Student's t distribution, against SciPy's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from l2calib.numerics.t_distribution import t_distribution, t_table


@pytest.mark.parametrize("freedom", [1.0, 2.0, 5.0, 17.0, 97.0, 300.0])
def test_the_table_is_the_distribution_function(freedom):
    t = np.concatenate([np.linspace(-30, 30, 4001), [-1e6, 1e6]])
    table = t_table(freedom)
    found = t_distribution(table, t / np.sqrt(freedom))
    # A chord misses an arc by an eighth of the cell's square times the bend, less than a quarter of the freedom here.
    assert found == pytest.approx(stats.t.cdf(t, freedom), abs=freedom / 32 * (np.pi / 4096) ** 2 + 1e-12)
    traced = jax.jit(t_distribution)(jnp.asarray(table), jnp.asarray(t / np.sqrt(freedom)))
    assert np.asarray(traced) == pytest.approx(found, abs=1e-14)
