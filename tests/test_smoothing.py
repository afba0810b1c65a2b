"""rho is chosen once for all methods that smooth the same datasets, and it is what each would have chosen."""

import numpy as np
import pytest

import l2calib as l2
from l2calib import smoothing
from l2calib.methods import method_named
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
    chosen = smoothing.choose(way, known, responses).choice
    for row, y in enumerate(responses):
        alone = way.smoother.choose(tables, y)
        assert chosen.psi_index[row] == alone.psi_index
        np.testing.assert_allclose(chosen.log_kappa[row], alone.log_kappa, rtol=1e-10)


def test_two_methods_share_it_and_other_datasets_do_not(known, responses, monkeypatch):
    counted = []
    really = smoothing._choose
    monkeypatch.setattr(smoothing, "_choose", lambda *what: counted.append(what) or really(*what))
    first = l2.calibrate_batch(known, responses, "gb-l2")
    second = l2.calibrate_batch(known, responses, "gb-ols")
    assert len(counted) == 1
    assert np.array_equal(first.kappa, second.kappa)
    l2.calibrate_batch(known, responses + 1e-9, "gb-ols")
    assert len(counted) == 2


def test_with_two_inputs_modified_kennedy_ohagan_shares_it_too():
    """Its tables are half a gigabyte at n = 200, and hardly anything could be left out of the others'."""
    known = experiment(4, 20)
    responses = np.random.default_rng(12).standard_normal((3, 20))
    ways = [method_named(name).smoothing for name in ("koh", "projected", "gb-l2")]
    assert len({id(way.smoother.prepare(known, way.with_model)) for way in ways}) == 1
    assert len({id(smoothing.choose(way, known, responses)) for way in ways}) == 1


def test_what_is_remembered_changes_no_bit(known, responses):
    smoothing._remembered.clear()
    first = l2.calibrate_batch(known, responses, "gb-l2")
    again = l2.calibrate_batch(known, responses, "gb-l2")
    assert np.array_equal(first.mean, again.mean)
    assert np.array_equal(first.quantiles, again.quantiles)


def test_only_so_much_is_remembered(known, responses, monkeypatch):
    monkeypatch.setattr(smoothing, "_REMEMBERED", 2)
    way = method_named("gb-l2").smoothing
    for shift in range(4):
        smoothing.choose(way, known, responses + shift)
    assert len(smoothing._remembered) == 2


def test_non_linear_regression_smooths_nothing():
    assert method_named("nlm").smoothing is None
