"""The smoother in its compressed eigenbasis against dense algebra at the rho that it chose."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import l2calib as l2
from l2calib.errors import Status
from l2calib.numerics.compile import quickly_compiled
from l2calib.spec import load_problem
from tests.oracles.smoother import Fit
from tests.problems import problem

PSI_RANGES = [(1e-2, 3e-2), (0.5, 2.0), (50.0, 200.0), (1e-2, 1e3)]
# Dense solves lose about cond(Phi) eps = 1e-10 of their digits with kappa at least 1e-3.
TOLERANCE = 1e-8


class Learnt(NamedTuple):
    """What the smoother says of y; `by_map` is `in_span` from y and the map to it."""

    psi: np.ndarray
    kappa: np.ndarray
    in_span: np.ndarray
    by_map: np.ndarray
    at_design: np.ndarray
    residuals: np.ndarray
    sigma2: np.ndarray
    criterion: np.ndarray
    process_variance: np.ndarray


@cache
def data_named(name: str) -> l2.Problem:
    if name == "replicates":
        return load_problem("wiffle")
    # With two inputs there are hundreds of psi, each with its own matrices at the design and at the nodes.
    return problem(2, 60, seed=3) if name == "configuration 2" else problem(4, 30, seed=3, nodes=8)


def fitted(known: l2.Problem, psi_range: tuple[float, float], with_model: bool):
    smoother = l2.GCV(psi_bounds=psi_range, kappa_bounds=(1e-3, 1e2))
    tables = smoother.prepare(known.experiment, with_model)

    def learn(tables, y):  # in one program: by itself, every small operation is another
        smooth = smoother.fit(tables, y)
        return Learnt(
            smooth.psi,
            smooth.kappa,
            smooth.in_span(),
            y @ smooth.span_map(),
            smooth.at_design(),
            smooth.residuals(y),
            smooth.sigma2(),
            jnp.exp(smooth.criterion),
            smooth.process_variance(),
        )

    smooth = Learnt(*map(np.asarray, quickly_compiled(learn)(tables, jnp.asarray(known.y))))
    return tables, smooth, Fit(known.experiment.x_unit, known.y, smooth.psi, float(smooth.kappa))


@pytest.mark.parametrize("with_model", [False, True])
@pytest.mark.parametrize("psi_range", PSI_RANGES)
@pytest.mark.parametrize("data", ["configuration 2", "configuration 4", "replicates"])
def test_what_is_left_out_is_not_missed(data, psi_range, with_model):
    known = data_named(data)
    tables, smooth, dense = fitted(known, psi_range, with_model)
    if psi_range[1] < (10 if len(known.input_names) == 1 else 0.1):
        assert tables.spectrum.left_out > 0
    n, span = len(known.y), known.experiment.node_span
    expected = dense.predict(known.experiment.quadrature.nodes) @ span.functionals
    scale = np.abs(known.y).max()
    assert smooth.in_span == pytest.approx(expected, abs=TOLERANCE * scale)
    assert smooth.by_map == pytest.approx(expected, abs=TOLERANCE * scale)
    assert smooth.at_design == pytest.approx(dense.hat_matrix @ known.y, abs=TOLERANCE * scale)
    residuals = known.y - dense.hat_matrix @ known.y
    assert smooth.residuals == pytest.approx(residuals, abs=TOLERANCE * scale)
    assert float(smooth.sigma2) == pytest.approx(dense.sigma2, rel=TOLERANCE)
    assert n**2 * float(smooth.criterion) == pytest.approx(dense.gcv, rel=TOLERANCE)
    profile = known.y @ np.linalg.solve(dense.phi, known.y) / n
    assert float(smooth.process_variance) == pytest.approx(profile, rel=TOLERANCE)


def test_nothing_is_left_out_of_the_model_where_it_is_asked_for():
    known = problem(2, 60, seed=3)
    tables, _, _ = fitted(known, (0.5, 2.0), with_model=True)
    basis = known.experiment.design_span.basis
    for vectors in np.asarray(tables.spectrum.vectors):
        assert vectors @ (vectors.T @ basis) == pytest.approx(basis, abs=1e-12)


@pytest.mark.parametrize(("kappa_range", "says_so"), [((1e-8, 1e-7), True), ((1.0, 1e2), False)])
def test_a_smoother_that_leaves_the_errors_few_degrees_of_freedom_says_so(kappa_range, says_so):
    known = problem(2, 30, seed=3)
    smoother = l2.GCV(psi_bounds=(50.0, 200.0), kappa_bounds=kappa_range)
    smooth = quickly_compiled(smoother.fit)(smoother.prepare(known.experiment), jnp.asarray(known.y))
    left = np.eye(30) - Fit(known.experiment.x_unit, known.y, np.asarray(smooth.psi), float(smooth.kappa)).hat_matrix
    assert float(smooth.freedom()) == pytest.approx(np.trace(left @ left), abs=1e-6)
    assert bool(Status(int(smooth.status)) & Status.NEAR_INTERPOLATION) == says_so == (np.trace(left @ left) < 8)


def test_kennedy_ohagan_does_not_rest_on_the_smoothers_error_variance():
    known = problem(3, 12, seed=0)
    interpolating = l2.GCV(psi_bounds=(50.0, 200.0), kappa_bounds=(1e-8, 1e-7))
    flagged = l2.calibrate(known, l2.GeneralBayes(smoother=interpolating)).status
    assert flagged & Status.NEAR_INTERPOLATION
    assert not l2.calibrate(known, l2.KennedyOHagan(smoother=interpolating)).status & Status.NEAR_INTERPOLATION
