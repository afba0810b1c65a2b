"""rho is chosen once for all methods that smooth the same datasets, and it is what each would have chosen."""

import numpy as np
import pytest

import l2calib as l2
from l2calib.compute.choices import choose, shared_smoothing
from l2calib.methods.catalogue import method_named
from l2calib.numerics.compile import quickly_compiled
from tests.problems import experiment


@pytest.fixture
def known():
    return experiment(2, 24)


@pytest.fixture
def responses(known):
    rng = np.random.default_rng(11)
    return np.sin(8 * known.x[:, 0]) + 0.2 * rng.standard_normal((9, 24))


def test_it_is_what_the_smoother_chooses_one_by_one(known, responses):
    way = method_named("gb-l2").smoothing
    tables = way.smoother.prepare(known, way.with_model)
    chosen = choose(way, known, responses).choice
    choose_one = quickly_compiled(way.smoother.choose)
    for row, y in enumerate(responses):
        alone = choose_one(tables, y)
        assert chosen.psi_index[row] == alone.psi_index
        np.testing.assert_allclose(chosen.log_kappa[row], alone.log_kappa, rtol=1e-10)


def test_a_method_uses_what_it_is_handed(known, responses):
    """The choice for other datasets makes other posteriors; their own makes the same, to the last bit."""
    own = choose(method_named("gb-l2").smoothing, known, responses).choice
    by_itself = l2.calibrate_batch(known, responses, "gb-l2")
    handed = l2.calibrate_batch(known, responses, "gb-l2", choice=own)
    assert np.array_equal(by_itself.mean, handed.mean)
    assert np.array_equal(by_itself.quantiles, handed.quantiles)
    other = l2.calibrate_batch(known, responses, "gb-l2", choice=own._replace(log_kappa=own.log_kappa + 1))
    assert not np.array_equal(by_itself.kappa, other.kappa)
    assert np.array_equal(by_itself.kappa, l2.calibrate_batch(known, responses, "gb-ols", choice=own).kappa)


def test_with_two_inputs_modified_kennedy_ohagan_shares_it_too():
    """Its tables are half a gigabyte at n = 200, and hardly anything could be left out of the others'."""
    known = experiment(4, 20)
    ways = [method_named(name).smoothing for name in ("koh", "projected", "gb-l2")]
    assert len({id(way.smoother.prepare(known, way.with_model)) for way in ways}) == 1
    assert len({shared_smoothing(way, known) for way in ways}) == 1


def test_with_one_input_modified_kennedy_ohagan_has_its_own(known):
    ways = [method_named(name).smoothing for name in ("koh", "projected", "gb-l2")]
    assert len({shared_smoothing(way, known) for way in ways}) == 2


def test_non_linear_regression_smooths_nothing():
    assert method_named("nlm").smoothing is None
