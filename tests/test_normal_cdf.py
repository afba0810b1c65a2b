"""The normal distribution function of batches, against the one of SciPy."""

import jax
import numpy as np
import pytest
from scipy import special

from l2calib.numerics.normal_cdf import distribution_function

EPSILON = np.finfo(float).eps


def test_it_is_the_normal_distribution_function():
    z = np.linspace(-37, 9, 46_001)
    # The exponential magnifies the rounding of its argument z^2 / 2 by as much, here and in SciPy; the rest is a
    # polynomial of degree 20.
    allowed = EPSILON * (2 * z**2 / 2 + 40)
    found = np.asarray(jax.jit(distribution_function)(z))
    assert np.all(np.abs(found / special.ndtr(z) - 1) <= allowed)


@pytest.mark.parametrize(("z", "value"), [(-np.inf, 0.0), (np.inf, 1.0), (-1e200, 0.0), (0.0, 0.5)])
def test_it_is_right_at_the_ends(z, value):
    assert float(distribution_function(z)) == pytest.approx(value, rel=4 * EPSILON, abs=0)


def test_nothing_comes_of_nan():
    assert np.isnan(distribution_function(np.nan))


@pytest.mark.parametrize("z", [-9.0, -1.3, 0.0, 0.4, 6.0])
def test_its_derivatives_are_those_of_the_density(z):
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    slope = jax.grad(distribution_function)
    assert float(slope(z)) == pytest.approx(density, rel=1e-14)
    assert float(jax.grad(slope)(z)) == pytest.approx(-z * density, rel=1e-14, abs=1e-300)
