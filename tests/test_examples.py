"""Each example's data can be made again, and its calibration finds the target, which is known from how they were made.

The oracles are NumPy and SciPy: the models are written a second time, theta_L2 is the minimum of an integral by
Gauss and Legendre's rule, and least squares are SciPy's.
"""

import importlib
import importlib.util
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares
from scipy.stats import chi2, norm

import l2calib as l2
from l2calib.spec import load_problem
from tests import guide

FOLDER = Path(__file__).parents[1] / "examples"
# One in ten thousand: how often a sound interval of this many standard deviations misses its target.
SURELY = norm.isf(0.5e-4)


def dimer(minutes, theta):
    def change(_, state):
        formed = theta[0] * state[0] ** 2
        return [-2 * formed, formed - theta[1] * state[1]]

    order = np.argsort(minutes)
    solved = solve_ivp(change, (0, 20), [1.0, 0.0], t_eval=minutes[order], rtol=1e-9, atol=1e-11, method="LSODA")
    return solved.y[1][np.argsort(order)]


@dataclass(frozen=True)
class Example:
    name: str
    system: str  # its function in make_data.py
    model: Callable[[np.ndarray, np.ndarray], np.ndarray]  # of x (n, k) and theta
    start: tuple[float, ...]


EXAMPLES = [
    Example("two-inputs", "period", lambda x, t: 2 * np.pi * np.sqrt((x[:, 0] + t[1]) / t[0]), (9.0, 0.05)),
    Example("replicates", "level", lambda x, t: (np.sqrt(t[0]) - t[1] * x[:, 0] / 2) ** 2, (50.0, 0.25)),
    Example("expression", "rate", lambda x, t: t[0] * x[:, 0] / (t[1] + x[:, 0]), (10.0, 1.0)),
    Example("kinetics", "dimer", lambda x, t: dimer(x[:, 0], t), (1.0, 0.1)),
]
each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


@cache
def problem_of(example):
    return load_problem(FOLDER / example.name / "spec.toml")


def making(example):
    spec = importlib.util.spec_from_file_location("make_data", FOLDER / example.name / "make_data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fitted(example, x, values, weights):
    """The theta that minimises the weighted sum of squares."""
    root = np.sqrt(weights)
    found = least_squares(
        lambda theta: root * (values - example.model(x, theta)),
        example.start,
        jac="3-point",
        x_scale=example.start,
        ftol=1e-15,
        xtol=1e-15,
        gtol=1e-15,
    )
    assert found.success
    return found.x


def target(example, problem):
    """theta_L2 of the system that made the data, over the box of the spec."""
    points, weights = np.polynomial.legendre.leggauss(30)
    grid = np.meshgrid(*([points] * len(problem.inputs)), indexing="ij")
    products = np.prod(np.meshgrid(*([weights] * len(problem.inputs)), indexing="ij"), axis=0).ravel()
    low, high = np.array(list(problem.inputs.values())).T
    x = low + (high - low) * (np.column_stack([axis.ravel() for axis in grid]) + 1) / 2
    return fitted(example, x, getattr(making(example), example.system)(*x.T), products)


def test_every_example_is_here_and_explains_itself():
    folders = {spec.parent.name for spec in FOLDER.glob("*/spec.toml")}
    assert folders == {example.name for example in EXAMPLES}
    assert [name for name in sorted(folders) if not (FOLDER / name / "README.md").is_file()] == []


@each
def test_the_data_are_what_make_data_makes(example):
    assert making(example).table() == (FOLDER / example.name / "data.csv").read_text()


@pytest.mark.parametrize(
    ("example", "method"),
    [
        *((example, "gb-l2") for example in EXAMPLES),
        *((example, "l2") for example in EXAMPLES if example.name != "kinetics"),
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_the_calibration_finds_the_target(example, method):
    """By general Bayes, and by the default where the model is quick to compile."""
    problem = problem_of(example)
    result = l2.calibrate(problem, method)
    rows = result.summary()
    off = (rows["mean"] - target(example, problem)) / rows["sd"]
    assert off.abs().max() < SURELY
    # The smoother, or the process, takes fewer than half of the degrees of freedom.
    spared = len(problem.y) / 2
    low, high = np.array(chi2.interval(1 - 1e-4, spared)) / spared
    assert low < result.sigma2 / making(example).SIGMA ** 2 < high


@pytest.mark.parametrize("example", EXAMPLES[1:3], ids=lambda example: example.name)
def test_the_least_squares_are_those_of_scipy(example):
    problem = problem_of(example)
    ours = l2.estimate(problem, l2.OLS()).theta_hat
    np.testing.assert_allclose(ours, fitted(example, problem.x, problem.y, np.ones(len(problem.y))), rtol=1e-6)


def test_the_equation_of_the_kinetics_is_solved_as_scipy_solves_it():
    problem = problem_of(EXAMPLES[-1])
    theta = np.array([0.8, 0.13])
    minutes = problem.x[::-7, 0]  # in any order
    # The steps are a hundred times smaller than the equation's own times; the errors of measurement are 0.005.
    np.testing.assert_allclose(problem.predict_model(theta, {"minutes": minutes}), dimer(minutes, theta), atol=1e-6)


OWN = FOLDER / "own-method"


@pytest.fixture
def ridge(monkeypatch):
    monkeypatch.syspath_prepend(OWN)
    return importlib.import_module("ridge").Ridge


def test_a_method_of_ones_own_is_one_short_file_and_stands_beside_gb_ols(ridge, monkeypatch, capsys):
    assert len((OWN / "ridge.py").read_text().splitlines()) <= 60
    monkeypatch.setattr("sys.argv", ["beside_gb_ols.py"])
    both = runpy.run_path(str(OWN / "beside_gb_ols.py"))["both"]
    printed = capsys.readouterr().out
    (table,) = guide.blocks(OWN / "README.md", "text")
    assert [line for line in table.text.splitlines() if not guide.is_shown_in(line, printed)] == []
    # The penalty is a residual of each parameter: half of uniform(40, 60) and of uniform(0.1, 0.4), over their widths.
    ours, problem = both.results[1], both.results[1].problem

    def residuals(theta):
        apart = (theta - [50, 0.25]) / [20, 0.3]
        return np.append(problem.y - EXAMPLES[1].model(problem.x, theta), 0.8 * apart)

    found = least_squares(residuals, [50.0, 0.25], x_scale=[20, 0.3], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(list(ours.theta_hat.values()), found.x, rtol=1e-7)


def test_the_bootstrap_of_the_ridge_has_its_exact_moments_in_a_linear_model(ridge):
    x, penalty, draws = np.linspace(0, 1, 30), 200.0, 2000
    X = np.vander(x, 4, increasing=True)
    known = l2.Experiment(
        lambda x, a, b, c, d: a + b * x + c * x**2 + d * x**3,
        {"x": (0, 1)},
        x,
        {name: l2.Uniform(-20, 20) for name in "abcd"},
    )
    rng = np.random.default_rng(1)
    y = X @ [3, -2, 5, 1] + rng.normal(0, 0.3, 30)
    beyond = y + 30  # the constant is at most 20
    found = l2.calibrate_batch(known, np.stack([y, beyond]), ridge(penalty, draws), seed=4)
    inverse = np.linalg.inv(X.T @ X + penalty / 40**2 * np.eye(4))
    fitted = X @ inverse @ X.T @ y
    errors = y - fitted - np.mean(y - fitted)
    variance = np.diag(inverse @ X.T @ X @ inverse) * np.sum(errors**2) / (30 - 4)
    # Sampling theory: of a mean of independent draws, and of the standard deviation of nearly normal ones.
    error = SURELY * np.sqrt(variance / draws)
    assert (np.abs(found.mean[0] - inverse @ X.T @ fitted) < error).all()
    assert (np.abs(found.sd[0] - np.sqrt(variance)) < error / np.sqrt(2)).all()
    assert l2.Status(int(found.status[0])) == l2.Status.OK
    assert l2.Status(int(found.status[1])) == l2.Status.MINIMUM_ON_BOUNDARY
    assert np.abs(found.quantiles[1]).max() <= 20


@pytest.mark.parametrize("options", [{"penalty": 0}, {"penalty": float("nan")}, {"draws": 1}])
def test_a_ridge_that_is_none_is_refused(ridge, options):
    with pytest.raises(ValueError, match="a positive penalty and at least 2 draws: received Ridge"):
        ridge(**options)
