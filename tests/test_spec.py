"""A spec file becomes the problem that it describes, or one sentence about what is wrong with it."""

import math

import numpy as np
import pytest

import l2calib.problem.distributions as priors
from l2calib.errors import DataError, InputError, ModelError, PriorError, SpecError
from l2calib.spec import examples, load_problem
from l2calib.spec.columns import read_columns
from l2calib.spec.priors import parse_prior
from tests import line_spec

ROWS = line_spec.csv(*line_spec.ROWS)


@pytest.fixture
def spec(tmp_path):
    return line_spec.write(tmp_path)


def refused(spec, kind, match, **changes):
    """Change the spec by replacing text, and expect one sentence of that kind."""
    text = spec.read_text()
    for old, new in changes.get("replace", []):
        assert old in text
        text = text.replace(old, new)
    spec.write_text(text)
    with pytest.raises(kind, match=match) as caught:
        load_problem(spec)
    assert isinstance(caught.value, InputError)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_spec_becomes_a_problem(spec):
    problem = load_problem(spec)
    assert problem.parameter_names == ("a", "b")
    assert problem.inputs == {"x": (0.0, 1.0)}
    assert problem.response == "y"
    assert problem.y[0] == pytest.approx(1.05)
    np.testing.assert_allclose(problem.predict_model(np.array([1.0, 2.0]), {"x": np.array([0.0, 0.5])}), [1.0, 2.0])


def test_the_wiffle_balls_are_packaged():
    assert "wiffle" in examples()
    problem = load_problem("wiffle")
    assert problem.x.shape == (63, 1)
    assert len(np.unique(problem.x)) == 21
    # Least squares of the notes on the data: (10.8735, 3.3208) leaves 0.30133.
    residual = problem.y - problem.predict_model(np.array([10.8735, 3.3208]), {"height": problem.x[:, 0]})
    assert residual @ residual == pytest.approx(0.30133, abs=5e-6)


def test_a_python_model_is_found_beside_the_spec_and_may_import_its_neighbours(spec):
    (spec.parent / "slope.py").write_text("def times(b, x):\n    return b * x\n")
    (spec.parent / "line.py").write_text("from slope import times\n\ndef line(x, a, b):\n    return a + times(b, x)\n")
    spec.write_text(spec.read_text().replace('expression = "a + b * x"', 'python = "line.py:line"'))
    problem = load_problem(spec)
    np.testing.assert_allclose(problem.predict_model(np.array([1.0, 2.0]), {"x": np.array([0.5])}), [2.0])


def test_an_existing_file_wins_over_an_example_of_its_name(spec, monkeypatch):
    monkeypatch.chdir(spec.parent)
    spec.rename(spec.parent / "wiffle")
    assert load_problem("wiffle").response == "y"


def test_an_unknown_spec_lists_the_examples(tmp_path):
    with pytest.raises(SpecError, match=r"'wifle' does not exist \(did you mean 'wiffle'\?\).*\(wiffle\)"):
        load_problem("wifle")
    with pytest.raises(SpecError, match="is a folder"):
        load_problem(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("file =", "fiel =", r"unknown key 'fiel' in \[data\] \(did you mean 'file'\?\)"),
        ("[prior]", "[priors]", r"unknown key 'priors' at the top level \(did you mean 'prior'\?\)"),
        ("expression =", "expresion =", r"unknown key 'expresion' in \[model\] \(did you mean 'expression'\?\)"),
        ('response = "y"', "", r"lacks the key 'response' in \[data\]"),
        ("x = [0, 1]", "x = [0]", r"wrong value for 'x' in \[data.inputs\]"),
        ("x = [0, 1]", 'x = [0, "one"]', r"wrong value for '1' in \[data.inputs.x\]"),
        ("x = [0, 1]", "x = [0, inf]", r"finite"),
        ("x = [0, 1]", "", r"wrong value for 'inputs'"),
        ('a = "uniform(-5, 5)"', "a = 3", r"wrong value for 'a' in \[prior\].*received 3"),
        ("[model]", '[model]\npython = "m.py:f"', r"both of 'python' and 'expression'"),
        ('expression = "a + b * x"', "", r"neither of 'python' and 'expression'"),
        ("[data]", "[data", r"not valid TOML.*line 2"),
        ("[data]", "[data]\nfile = 'again.csv'", r"not valid TOML"),
    ],
)
def test_the_tables_are_checked(spec, old, new, match):
    refused(spec, SpecError, match, replace=[(old, new)])


def test_a_byte_order_mark_does_no_harm(spec):
    spec.write_text("\ufeff" + spec.read_text(), encoding="utf-8")
    assert load_problem(spec).response == "y"


def test_a_spec_that_is_no_text(spec):
    spec.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="UTF-8"):
        load_problem(spec)


@pytest.mark.parametrize(
    ("old", "new", "kind", "match"),
    [
        ('"line.csv"', '"lin.csv"', DataError, r"lin\.csv' does not exist"),
        ('"line.csv"', '"li\\u0000n.csv"', DataError, r"which no file can have"),
        ('response = "y"', 'response = "Y"', DataError, r"no column 'Y'.*x, y, note"),
        ('response = "y"', 'response = "nota"', DataError, r"did you mean 'note'"),
        ('response = "y"', 'response = "note"', DataError, r"'note'.*non-numeric.*rows 1, 2, 3, 4, 5 and 5 more"),
        (
            "x = [0, 1]",
            "x = [0, 0.5]",
            DataError,
            r"'x' leaves its range.*rows 6, 7, 8, 9, 10",
        ),
        ("a + b * x", "a + c * x", SpecError, r"'c'"),
        ("a + b * x", "a * x", ModelError, r"'b'"),
        ('expression = "a + b * x"', 'python = "line.py:line"', ModelError, r"line\.py' does not exist"),
        ('expression = "a + b * x"', 'python = "line"', ModelError, r"names no function"),
        ('b = "uniform(-5, 5)"', 'b = "uniform(5, -5)"', PriorError, r"'b'.*no mass"),
        ("uniform(-5, 5)", "unifrom(-5, 5)", PriorError, r"did you mean 'uniform'"),
    ],
)
def test_what_the_tables_name_is_checked(spec, old, new, kind, match):
    refused(spec, kind, match, replace=[(old, new)])


@pytest.mark.parametrize(
    ("code", "match"),
    [
        ("def lines(x, a, b):\n    return a\n", r"no function 'line' \(did you mean 'lines'\?\)"),
        ("x = 1\n1 / 0\n", r"cannot be imported: ZeroDivisionError: division by zero \(line 2\)"),
        ("import surely_not_installed\n", r"ModuleNotFoundError.*surely_not_installed"),
        ("def line(x, a, b:\n", r"SyntaxError.*line 1"),
        ("raise SystemExit(3)\n", r"SystemExit: 3"),
        ("line = 3\n", r"no function 'line'"),
    ],
)
def test_a_python_model_that_cannot_be_had(spec, code, match):
    (spec.parent / "line.py").write_text(code)
    refused(spec, ModelError, match, replace=[('expression = "a + b * x"', 'python = "line.py:line"')])


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "no observations"),
        ("x,y\n", "no observations"),
        (ROWS.replace("note", "y"), "more than one column 'y'"),
        (ROWS.replace(",n3", "").replace(",n7", ",n7,8"), "3 columns, but 2 cells in rows 4, 8"),
        (b"\xff\xfe\x00\x01", "UTF-8"),
        (ROWS.replace(",", ";"), "separate its columns by commas"),
        (ROWS.replace(",", "\t"), "separate its columns by commas"),
        ("0.1,1.2\n0.2,1.4\n", "has no header: its first line is '0.1, 1.2'"),
    ],
)
def test_a_csv_file_that_is_none(spec, content, match):
    path = spec.parent / "line.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(spec, DataError, match)


@pytest.mark.parametrize(
    ("cell", "match"),
    [
        ("", "missing"),
        ("NA", "missing"),
        ("nan", "missing"),
        ("inf", "infinite"),
        ("1.5", None),
        ("x", "non-numeric"),
    ],
)
def test_a_cell_that_is_no_number_is_named_by_its_row(spec, cell, match):
    lines = ROWS.splitlines()
    lines[4] = f"0.5,{cell},n3"
    (spec.parent / "line.csv").write_text("\n".join(lines))
    if match is None:
        assert load_problem(spec).y[3] == 1.5
    else:
        refused(spec, DataError, rf"'y'.*{match}.*row 4")


def test_csv_details_that_spreadsheets_leave_behind(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b'\xef\xbb\xbf"x", y \r\n1, 2\r\n\r\n3, 4\r\n')
    assert read_columns(path) == {"x": ["1", "3"], "y": ["2", "4"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform(0, 20)", priors.Uniform(0, 20)),
        ("Uniform( low = 0 , high = 20 )", priors.Uniform(0, 20)),
        ("normal(-1.5, 1e-2)", priors.Normal(-1.5, 0.01)),
        ("truncated_normal(0, 1, -1, inf)", priors.TruncatedNormal(0, 1, -1, math.inf)),
        ("truncated-normal(0, 1, low=-inf, high=2)", priors.TruncatedNormal(0, 1, -math.inf, 2)),
        ("lognormal(log(5), 1.5)", priors.LogNormal(math.log(5), 1.5)),
        ("log-normal(0, 1)", priors.LogNormal(0, 1)),
        ("gamma(2, 3)", priors.Gamma(2, 3)),
        ("beta(2, 3)", priors.Beta(2, 3)),
        ("half_normal(2)", priors.HalfNormal(2)),
        ("HalfNormal(2)", priors.HalfNormal(2)),
        ("uniform(0, 2*pi)", priors.Uniform(0, 2 * math.pi)),
    ],
)
def test_priors_are_read(text, expected):
    assert parse_prior("g", text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "uniform",
        "uniform(0)",
        "uniform(0, 1, 2)",
        "uniform(0, top=1)",
        "uniform(0, 'a')",
        "uniform(0, x)",
        "uniform(0, __import__('os'))",
        "uniform(*[0, 1])",
        "uniform(0, 1)(2)",
        "uniform(0, 1) + 1",
        "uniform(0, 1",
        "uniform(1)(0, 1)",
        "uniform(0, nan)",
        "cauchy(0, 1)",
        "",
        "uniform(" + "(" * 400 + ")",
    ],
)
def test_other_priors_are_refused_in_one_sentence(text):
    with pytest.raises(PriorError) as caught:
        parse_prior("g", text)
    assert "'g'" in str(caught.value)
    assert "\n" not in str(caught.value)
