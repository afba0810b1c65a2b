"""A result that was saved comes back with its methods, and says in a sentence what only its problem could answer."""

from __future__ import annotations

import dataclasses
import functools
import json

import matplotlib.figure
import numpy as np
import pytest
import xarray as xr

import l2calib as l2
from l2calib import plots
from l2calib.errors import DataError, MethodError
from l2calib.problem.prior import Prior
from l2calib.results.prior_text import distributions_of_text, text_of_prior
from tests.problems import problem

POINTS = {"x1": np.linspace(0, 1, 7)}
X, Y = np.linspace(0, 1, 12), 1 + np.linspace(0, 2, 12) + 0.1 * np.random.default_rng(1).standard_normal(12)


@dataclasses.dataclass(frozen=True)
class Foreign:
    """A distribution that l2calib does not know."""

    inner: l2.Uniform

    @property
    def support(self):
        return self.inner.support

    def log_density(self, value):
        return self.inner.log_density(value)

    def quantile(self, probability):
        return self.inner.quantile(probability)


@dataclasses.dataclass(frozen=True)
class Growing:
    """Errors that grow from one observation to the next."""

    def scales(self, observations):
        return 1 + np.arange(observations) / observations


def line(x1, a, b):
    return a + b * x1


def line_problem(model=line, **changed):
    told = {
        "data": {"x1": X, "out/put": Y},
        "response": "out/put",
        "inputs": {"x1": (0, 1)},
        "prior": {"a": l2.TruncatedNormal(0, 3, 0, np.inf), "b": l2.Normal(0, 5)},
        "noise": Growing(),
    }
    return l2.Problem(model, **told | changed)


@functools.cache
def of(case):
    if case == "nuts":
        return l2.calibrate(problem(3, 12, 0), "nlm", seed=5, engine=l2.NUTS(draws=4000, chains=2, warmup=100))
    return l2.calibrate(line_problem() if case == "projected" else problem(3, 12, 0), case, seed=5)


@pytest.fixture(scope="module", params=["gb-l2", "projected", "nuts"])
def saved(request, tmp_path_factory):
    """A result and its file."""
    original, path = of(request.param), tmp_path_factory.mktemp("saved") / f"{request.param}.nc"
    original.save(path)
    return original, path


@pytest.fixture(scope="module")
def of_line(tmp_path_factory):
    """A result of two parameters, and its file."""
    original, path = of("projected"), tmp_path_factory.mktemp("line") / "projected.nc"
    original.save(path)
    return original, path


def assert_same(found, expected):
    for fact in dataclasses.fields(l2.Calibration):
        if fact.name not in ("problem", "posterior", "rho", "diagnostics"):
            assert getattr(found, fact.name) == getattr(expected, fact.name), fact.name
            assert type(getattr(found, fact.name)) is type(getattr(expected, fact.name)), fact.name
    assert (found.rho is None) == (expected.rho is None)
    if expected.rho is not None:
        np.testing.assert_array_equal(found.rho.psi, expected.rho.psi)
        assert found.rho.kappa == expected.rho.kappa
    assert found.diagnostics.keys() == expected.diagnostics.keys()
    for name, values in expected.diagnostics.items():
        np.testing.assert_array_equal(found.diagnostics[name], values)
        assert found.diagnostics[name].shape == values.shape
    assert found.parameter_names == expected.parameter_names
    assert found.messages == expected.messages
    assert found.as_json() == expected.as_json()
    assert repr(found) == repr(expected)
    assert found._repr_html_() == expected._repr_html_()


def test_what_was_learnt_comes_back(saved):
    original, path = saved
    found = l2.load(path)
    assert_same(found, original)
    assert found.problem is None
    assert ("r_hat" in found.diagnostics) == (original.engine == "nuts")
    assert l2.load(path, original.problem).problem is original.problem


def test_what_was_drawn_comes_back(saved):
    original, path = saved
    found = l2.load(path)
    for name, values in original.draws(4000).items():
        np.testing.assert_array_equal(found.draws(4000)[name], values)
        np.testing.assert_array_equal(found.draws(10)[name], values[:10])
        shuffled = found.draws(4000, seed=1)[name]
        np.testing.assert_array_equal(np.sort(shuffled), np.sort(values))  # none of them twice
        np.testing.assert_array_equal(found.draws(10, seed=1)[name], shuffled[:10])
        assert (shuffled != found.draws(4000, seed=2)[name]).any()


def test_no_more_draws_than_were_kept(saved):
    original, path = saved
    for found in (l2.load(path), l2.load(path, original.problem)):
        with pytest.raises(MethodError, match=r"which are 4000: received 4001; ask for no more, or calibrate again\.$"):
            found.draws(4001)
    with pytest.raises(MethodError, match="at least 1: received 0"):
        found.draws(0)
    with pytest.raises(MethodError, match="the seed must be a whole number"):
        found.draws(1, seed=-1)


def test_the_marginals_come_back(saved):
    original, path = saved
    found, name = l2.load(path), original.parameter_names[0]
    for points in (200, 57, 301):
        (value, density), (grid, expected) = found.marginal(name, points), original.marginal(name, points)
        np.testing.assert_allclose(value, grid, rtol=1e-9)
        # A cubic through 200 points of a bell that is 8 sd wide, or of a kernel estimate with a fifth of its width.
        np.testing.assert_allclose(density, expected, atol=1e-4 * expected.max())
    with pytest.raises(MethodError, match="there is no parameter 'thta'"):
        found.marginal("thta")


def test_predictions_need_the_problem_and_are_then_the_same(saved):
    original, path = saved
    with pytest.raises(MethodError) as caught:
        l2.load(path).predict(POINTS)
    assert str(caught.value) == (
        "predicting needs the model, which the file does not hold: received a result that was loaded without its "
        "problem; give it to load(path, problem)."
    )
    found, expected = l2.load(path, original.problem).predict(POINTS, 0.9), original.predict(POINTS, 0.9)
    for name, values in expected.columns.items():
        np.testing.assert_allclose(found.columns[name], values, rtol=1e-10, atol=1e-10, err_msg=name)


def test_the_tree_travels_again(saved, tmp_path):
    original, path = saved
    found = l2.load(path)
    found.save(tmp_path / "again.nc")
    again = l2.load(tmp_path / "again.nc")
    assert_same(again, original)
    xr.testing.assert_identical(again.to_datatree(), found.to_datatree())
    fewer = found.to_datatree(draws=30)
    assert fewer["posterior"].sizes == {"chain": 4, "draw": 8}
    assert fewer["summary"].identical(found.to_datatree()["summary"])
    found.to_datatree()["posterior"][original.parameter_names[0]][:] = 0.0
    assert found.draws(1)[original.parameter_names[0]] != 0.0


def test_a_tree_with_few_draws_is_a_result_too(of_line, tmp_path):
    original, _ = of_line
    original.to_datatree(draws=200).to_netcdf(tmp_path / "few.nc", engine="h5netcdf")
    found = l2.load(tmp_path / "few.nc", original.problem)
    assert found.to_datatree()["posterior"].sizes == {"chain": 4, "draw": 50}
    with pytest.raises(MethodError, match="which are 200: received 201"):
        found.draws(201)
    found.predict(POINTS)
    found.joint("a", "b")


def test_the_joint_posterior_needs_no_problem(of_line):
    original, path = of_line
    for found in (l2.load(path), l2.load(path, original.problem)):
        for values, expected in zip(found.joint("b", "a", 30), original.joint("b", "a", 30), strict=True):
            np.testing.assert_allclose(values, expected, rtol=1e-10)
    assert l2.load(path).prior == original.prior
    with pytest.raises(MethodError, match="received 'a' twice"):
        l2.load(path).joint("a", "a")


def test_pictures_ask_for_the_problem_where_they_need_it(of_line):
    original, path = of_line
    found = l2.load(path)
    assert plots.plot_marginal(found, "a").get_xlabel() == "a"
    assert plots.plot_joint(found, "a", "b").get_ylabel() == "b"
    for draw, doing in [
        (plots.plot_fit, "plotting the fit"),
        (plots.plot_prediction, "plotting a prediction"),
        (plots.plot_bias, "plotting the bias"),
        (plots.plot_calibration, "plotting the fit"),
    ]:
        with pytest.raises(MethodError, match=f"^{doing} needs the model, which the file does not hold: .*problem"):
            draw(found)
        shown = draw(l2.load(path, original.problem))
        assert isinstance(shown if draw is plots.plot_calibration else shown.figure, matplotlib.figure.Figure)


def test_a_prior_that_only_the_problem_knows(of_line, tmp_path):
    original, path = of_line
    prior = {"a": Foreign(l2.Uniform(-5, 5)), "b": l2.Normal(0, 5)}
    tree = l2.load(path).to_datatree()
    tree.attrs["prior"] = text_of_prior(Prior(prior))
    tree.to_netcdf(tmp_path / "foreign.nc", engine="h5netcdf")
    found = l2.load(tmp_path / "foreign.nc")
    with pytest.raises(MethodError, match=r"^this needs the prior of 'a', which .*; give it to load\(path, problem"):
        found.joint("a", "b")
    xr.testing.assert_identical(found.to_datatree(), tree)
    known = l2.load(tmp_path / "foreign.nc", original.problem)
    np.testing.assert_allclose(known.joint("a", "b", 9).mass, original.joint("a", "b", 9).mass, rtol=1e-10)


@pytest.mark.parametrize(
    "distribution",
    [
        l2.Uniform(-1, 1 / 3),
        l2.Normal(np.float64(0.1), 2),
        l2.TruncatedNormal(0, 1, -np.inf, 4),
        l2.LogNormal(0, 1),
        l2.Gamma(2, 3),
        l2.Beta(2, 0.5),
        l2.HalfNormal(1e-3),
    ],
    ids=lambda distribution: type(distribution).__name__,
)
def test_a_prior_as_text_is_the_same_prior(distribution):
    text = text_of_prior(Prior({"a": distribution}))
    json.loads(text, parse_constant=pytest.fail)  # what any program can read
    assert distributions_of_text(text) == {"a": distribution}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a": 3}', '{"a": {"distribution": "Cauchy"}}', '{"a": {"low": "x"}}']
)
def test_a_prior_that_cannot_be_read_is_not_known(text):
    assert distributions_of_text(text).get("a") is None


BESIDE = Y + 1e-6 * (np.arange(12) == 3)
OTHERS = {
    "response": ({"data": {"x1": X, "z": Y}, "response": "z"}, r"with the response 'z' instead of 'out_put'"),
    "inputs": (
        {"data": {"u": X, "out/put": Y}, "inputs": {"u": (0, 1)}, "model": lambda u, a, b: a + b * u},
        "with the inputs u instead of x1",
    ),
    "range": ({"inputs": {"x1": (0, 2)}}, r"whose input 'x1' has the range \(0.0, 2.0\) instead of \(0.0, 1.0\)"),
    "parameters": (
        {"prior": {"a": l2.Normal(0, 1), "c": l2.Normal(0, 5)}, "model": lambda x1, a, c: a + c * x1},
        "with the parameters a, c instead of a, b",
    ),
    "order": (
        {"prior": {"b": l2.Normal(0, 5), "a": l2.TruncatedNormal(0, 3, 0, np.inf)}},
        "with the parameters b, a instead of a, b",
    ),
    "prior": (
        {"prior": {"a": l2.TruncatedNormal(0, 3, 0, np.inf), "b": l2.Normal(0, 6)}},
        r"whose prior of 'b' is Normal\(mean=0, sd=6\) instead of Normal\(mean=0.0, sd=5.0\)",
    ),
    "data": ({"data": {"x1": X, "out/put": BESIDE}}, r"whose data differ in 'out_put' \(row 4\)"),
    "fewer data": ({"data": {"x1": X[:9], "out/put": Y[:9]}}, "with 9 observations instead of 12"),
    "noise": ({"noise": None}, r"whose errors have other scales \(rows 2, 3, 4, 5, 6 and 6 more\)"),
    "model": ({"model": lambda x1, a, b: a + 1.001 * b * x1}, "whose model gives other values at the observations"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_problem_is_refused(of_line, case):
    changed, said = OTHERS[case]
    with pytest.raises(DataError, match=f"received one {said}; give the problem that was calibrated") as caught:
        l2.load(of_line[1], line_problem(**changed))
    assert "\n" not in str(caught.value)


def test_what_is_no_problem_is_refused(of_line):
    with pytest.raises(MethodError, match="with its Problem: received a str; build one"):
        l2.load(of_line[1], "problem")


def test_a_file_of_an_earlier_version_answers_what_it_can(of_line, tmp_path):
    original, path = of_line
    tree = l2.load(path).to_datatree()
    for later in ("response", "inputs", "prior", "level"):
        del tree.attrs[later]
    for later in ("marginals", "profiles", "fitted"):
        del tree[later]
    tree.to_netcdf(tmp_path / "early.nc", engine="h5netcdf")
    found = l2.load(tmp_path / "early.nc")
    assert repr(found) == repr(original)
    assert found.level is None
    with pytest.raises(MethodError, match="the prior of 'a', which the file does not hold"):
        found.joint("a", "b")
    with pytest.raises(DataError, match=r"early\.nc' has no 'value' in the group 'marginals': .*; give one that was"):
        found.marginal("a")
    complete = l2.load(tmp_path / "early.nc", original.problem)
    np.testing.assert_allclose(complete.predict(POINTS).system.low, original.predict(POINTS).system.low, rtol=1e-10)
    with pytest.raises(DataError, match="with the response 'z'"):
        l2.load(tmp_path / "early.nc", line_problem(data={"x1": X, "z": Y}, response="z"))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda tree: tree.attrs.pop("method"), "has no attribute 'method'"),
        (lambda tree: tree.attrs.pop("seed"), "has no attribute 'seed'"),
        (lambda tree: tree.__delitem__("summary"), "has no 'parameter' in the group 'summary'"),
        (
            lambda tree: tree.attrs.update(status="ok, enchanted"),
            "has a status that this version .*'enchanted'",
        ),
    ],
)
def test_a_file_that_is_no_result_is_one_sentence(of_line, tmp_path, spoil, said):
    tree = l2.load(of_line[1]).to_datatree()
    spoil(tree)
    tree.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(DataError, match=rf"^the result '.*other\.nc' {said}") as caught:
        l2.load(tmp_path / "other.nc")
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # of h5netcdf, which closes what it never opened
def test_a_missing_or_damaged_file_is_one_sentence(of_line, tmp_path):
    with pytest.raises(DataError, match="does not exist; give a file"):
        l2.load(tmp_path / "none.nc")
    with pytest.raises(DataError, match="is a folder; give a file"):
        l2.load(tmp_path)
    whole = of_line[1].read_bytes()
    second = whole.index(b"OHDR", whole.index(b"OHDR") + 1)  # the head of a group, which has a checksum
    for damaged in (b"", whole[: len(whole) // 2], whole[: second + 9] + b"????" + whole[second + 13 :]):
        (tmp_path / "damaged.nc").write_bytes(damaged)
        with pytest.raises(DataError, match="is no NetCDF file, or a damaged one; give a file"):
            l2.load(tmp_path / "damaged.nc")
