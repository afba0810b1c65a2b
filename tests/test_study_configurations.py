"""Configurations are data: the paper's, and a user's own from a Python file; the error laws are standardised."""

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

import l2calib as l2
from l2calib.errors import InputError, ModelError, PriorError, SpecError
from l2calib.study.configurations import (
    Configuration,
    chosen,
    configuration_named,
    configurations_in,
    load_configurations,
    paper_configurations,
    variance,
)
from l2calib.study.error_laws import ERROR_LAWS, error_law
from tests import small_study
from tests.oracles.configurations import configuration as oracle
from tests.oracles.configurations import design
from tests.problems import MODELS

EXAMPLE = Path(__file__).parents[1] / "examples" / "study" / "own_configuration.py"
LINE = {"inputs": {"x": (0.0, 1.0)}, "prior": {"a": l2.Uniform(0, 1)}, "sigma2": 1.0}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_configuration_of_the_paper_is_the_oracles(number):
    ours, theirs = paper_configurations()[str(number)], oracle(number)
    x = design(30, theirs.k)
    np.testing.assert_allclose(ours.system_at(x), theirs.mu(x), rtol=1e-12, atol=1e-12)
    columns = {name: x[:, j] for j, name in enumerate(ours.inputs)}
    for share in (0.1, 0.4, 0.9):
        theta = theirs.lower + share * (theirs.upper - theirs.lower)
        parameters = dict(zip(ours.parameters, theta, strict=True))
        eta = np.asarray(ours.model(**columns, **parameters))
        np.testing.assert_allclose(eta, theirs.eta(x, theta), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(eta, MODELS[number](**columns, **parameters), rtol=1e-12, atol=1e-12)
    supports = [ours.prior[name].support for name in ours.parameters]
    np.testing.assert_array_equal(supports, np.column_stack([theirs.lower, theirs.upper]))
    assert ours.sigma2 == pytest.approx(theirs.sigma2, rel=1e-9)


def test_the_errors_of_configuration_4_have_a_tenth_of_the_variance_of_the_system():
    assert paper_configurations()["4"].sigma2 == pytest.approx(0.74296, abs=5e-6)


@pytest.mark.parametrize(
    ("name", "theta", "discrepancy"),
    [
        ("1", [0.2, 0.3], 0),
        ("2", [1.8772020], 2.865981),
        ("3", [3.5652766], 0.138720),
        ("4", [0.2, 0.3, 0.8], 0.522222),
    ],
)
def test_the_target_is_computed(name, theta, discrepancy):
    target = paper_configurations()[name].target
    np.testing.assert_allclose(target.theta, theta, atol=1e-6)
    assert target.discrepancy == pytest.approx(discrepancy, abs=1e-6)
    assert paper_configurations()[name].target is target


def test_a_design_in_the_unit_cube_becomes_an_experiment_in_the_box():
    assert -0.1 + (0.2 - -0.1) > 0.2  # in rounded arithmetic, the end of the range is beyond it
    box = {"x": (-0.1, 0.2), "z": (1.0, 3.0)}
    made = Configuration("box", lambda x, z, a: a * x + z, box, LINE["prior"], lambda x, z: x * z, 1.0)
    corners = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.5]])
    np.testing.assert_array_equal(made.experiment(corners).x, [[-0.1, 1.0], [0.2, 3.0], [0.2, 2.0]])
    np.testing.assert_allclose(made.system_at(corners), [-0.1, 0.6, 0.4], rtol=1e-12)


def test_a_constant_system_is_as_long_as_its_design():
    made = Configuration("flat", lambda x, a: a * x, system=lambda x: 2.0, **LINE)
    np.testing.assert_array_equal(made.system_at(np.zeros((3, 1))), [2.0, 2.0, 2.0])


def test_the_variance_of_a_system_is_over_its_box():
    assert variance(lambda x: x, {"x": (1.0, 4.0)}) == pytest.approx(9 / 12, rel=1e-12)


def test_the_example_file_defines_configurations():
    found = load_configurations(EXAMPLE)
    assert list(found) == ["cup", "noisy-cup"]
    assert found["cup"].parameters == ("rate", "room")
    assert found["cup"].source == EXAMPLE.read_text()
    assert found["noisy-cup"].sigma2 == pytest.approx(variance(found["cup"].system, {"minutes": (0, 60)}) / 20)
    target = found["cup"].target
    assert target.status == l2.Status.OK
    # A sum of two decays with rates 0.04 and 0.15 is best imitated by one in between.
    assert 0.04 < target.theta[0] < 0.15
    assert 0 < target.discrepancy < 10


def test_a_worker_finds_a_configuration_in_the_text_of_its_file():
    text = EXAMPLE.read_text()
    here = load_configurations(EXAMPLE)["cup"]
    there = configuration_named(pickle.loads(pickle.dumps(text)), "cup")
    assert there.source == text
    assert there.definition() == here.definition()
    assert configuration_named("", "2") is paper_configurations()["2"]


def test_a_dictionary_of_configurations_serves_as_well():
    text = small_study.SOURCE.replace("configurations = [", "configurations = {'line':").replace("\n]", "\n}")
    assert list(configurations_in(text)) == ["line"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("configurations = [", "others = [", "defines no configurations: received none"),
        ("configurations = [", "configurations = 3\n_ = [", "defines no configurations: received 3"),
        ("configurations = [", "configurations = []\n_ = [", r"defines no configurations: received \[\]"),
        ("configurations = [", "configurations = [3,", "holds a int, which is not a Configuration"),
        ("configurations = [", "configurations = [line,", "holds a function"),
        ("import l2calib as l2", "import l2calib as l2\n1 / 0", r"ZeroDivisionError: division by zero \(line 3\)"),
        ("import l2calib as l2", "import l2calib as l2\nraise SystemExit", r"SystemExit \(line 3\)"),
        ("import l2calib as l2", "import l2calib as l2\nimport nowhere_to_be_found", "put all it needs into it"),
        ("import l2calib as l2", "import l2calib as l2 as", "SyntaxError"),
        ("sigma2=0.04", "sigma2=-1", "in configuration 'line', the variance of the errors must be a positive number"),
        ("sigma2=0.04", "sigma2='x'", "the variance of the errors must be a positive number: received 'x'"),
        ('"line", line', '"li ne", line', "a configuration cannot be called 'li ne'"),
        ('"line", line', '"../line", line', "a configuration cannot be called '../line'"),
        ('"line", line', "7, line", "a configuration cannot be called 7"),
        ("system=bent", "system=line", "in configuration 'line', the system mu cannot be evaluated: TypeError"),
        ("system=bent", "system=lambda x: x[:3]", r"the system mu returns shape \(3,\)"),
        ("system=bent", "system=lambda x: 1 / (x - x)", "values that are not finite"),
        ("system=bent", "system=None", "the system mu cannot be evaluated"),
        ("(0, 2)", "(2, 0)", "in configuration 'line', the range of input 'x' is empty"),
        ("def line(x, a, b)", "def line(x, a, c)", "the model has no argument for the parameter 'b'"),
        ("l2.Normal(0, 5)", "3", "in configuration 'line', "),
    ],
)
def test_a_file_that_defines_none_is_refused_in_a_sentence(tmp_path, old, new, says):
    assert old in small_study.SOURCE
    file = tmp_path / "own.py"
    file.write_text(small_study.SOURCE.replace(old, new, 1))
    with pytest.raises(SpecError, match=says) as caught:
        load_configurations(file)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert str(file) in str(caught.value)


def test_two_configurations_need_two_names(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(small_study.SOURCE + "configurations *= 2\n")
    with pytest.raises(SpecError, match=r"two configurations of .* are called 'line'"):
        load_configurations(file)
    file.write_text(small_study.SOURCE + "configurations = {'other': configurations[0]}\n")
    with pytest.raises(SpecError, match=r"the keys of 'configurations' .* are not the names in it"):
        load_configurations(file)


def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(SpecError, match="does not exist"):
        load_configurations(tmp_path / "nowhere.py")
    with pytest.raises(SpecError, match="does not exist"):
        load_configurations(tmp_path)
    (tmp_path / "latin.py").write_bytes(b"# caf\xe9\n")
    with pytest.raises(SpecError, match="it is not UTF-8 text"):
        load_configurations(tmp_path / "latin.py")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"inputs": {}}, InputError),
        ({"prior": {}}, PriorError),
        ({"model": 3}, ModelError),
        ({"sigma2": np.inf}, SpecError),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said_by_its_kind(change, kind):
    with pytest.raises(kind, match="in configuration '3', "):
        dataclasses.replace(paper_configurations()["3"], **change)


def test_configurations_are_chosen_by_name():
    four = paper_configurations()
    assert list(chosen(four, ["3", "1"])) == ["3", "1"]
    with pytest.raises(SpecError, match="there is no configuration '5': the configurations are 1, 2, 3, 4"):
        chosen(four, ["5"])
    with pytest.raises(SpecError, match=r"there is no configuration 'lime' \(did you mean 'line'\?\)"):
        chosen({"line": small_study.line()}, ["lime"])


@pytest.mark.parametrize("name", ["normal", "t", "skew-normal"])
def test_a_density_of_the_errors_has_mean_zero_and_variance_one(name):
    law = error_law(name)

    def moment(power):
        # On a bounded line, x = tan(u): the t has heavy tails.
        return integrate.quad(lambda u: np.tan(u) ** power * law.density(np.tan(u)) / np.cos(u) ** 2, *bounds, **fine)[
            0
        ]

    bounds, fine = (-np.pi / 2, np.pi / 2), {"points": [0.0], "limit": 400}
    assert moment(0) == pytest.approx(1, abs=1e-8)
    assert moment(1) == pytest.approx(0, abs=1e-7)
    assert moment(2) == pytest.approx(1, abs=1e-5)


def test_the_densities_are_scipys_standardised():
    x = np.linspace(-4, 4, 41)
    skewed = stats.skewnorm(8)
    expected = {
        "normal": stats.norm.pdf(x),
        "t": stats.t(3).pdf(np.sqrt(3) * x) * np.sqrt(3),
        "skew-normal": skewed.pdf(skewed.mean() + skewed.std() * x) * skewed.std(),
    }
    assert list(expected) == list(ERROR_LAWS)
    for name, density in expected.items():
        np.testing.assert_allclose(error_law(name).density(x), density, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["normal", "t", "skew-normal"])
def test_errors_are_drawn_from_their_law(name):
    drawn = error_law(name).draw(np.random.default_rng(7), (200, 100))
    assert drawn.shape == (200, 100)
    skewed = stats.skewnorm(8)
    distribution = {
        "normal": stats.norm(),
        "t": stats.t(3, scale=1 / np.sqrt(3)),
        "skew-normal": stats.skewnorm(8, loc=-skewed.mean() / skewed.std(), scale=1 / skewed.std()),
    }[name]
    # A false alarm in ten thousand; a normal law fails the test of the two others.
    assert stats.kstest(drawn.ravel(), distribution.cdf).pvalue > 1e-4
    if name != "normal":
        assert stats.kstest(drawn.ravel(), stats.norm.cdf).pvalue < 1e-4
    assert abs(drawn.mean()) < 4 / np.sqrt(drawn.size)


def test_an_unknown_error_law_is_refused():
    with pytest.raises(SpecError, match=r"there is no error law 'skew' \(did you mean|there is no error law 'skew'"):
        error_law("skew")
    with pytest.raises(
        SpecError, match=r"'skewnormal' \(did you mean 'skew-normal'\?\): the laws are normal, t, skew-n"
    ):
        error_law("skewnormal")
