"""`l2calib check`: every mistake at once, each with its key and its remedy; or what will be calibrated, in words."""

import json
import re
import sys

import pytest

from l2calib.errors import InputError
from l2calib.spec import load_problem, read_spec
from l2calib.spec.description import prior_in_words
from l2calib.spec.priors import parse_prior
from tests import line_spec
from tests.broken_specs import BROKEN, ROWS, SPEC, data, formula, line, python, row, spec


def put(folder, files):
    line_spec.write(folder)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "spec.toml"


@pytest.fixture(autouse=True)
def _no_bytecode(monkeypatch):
    """A file that changes twice within a second would be taken for its old self."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.mark.parametrize("case", BROKEN)
def test_a_mistake_is_found_with_its_key_and_its_remedy(run, tmp_path, case):
    files, key, said = BROKEN[case]
    path = put(tmp_path, files)
    status, out, err = run("check", path)
    assert status == 2
    assert "Traceback" not in out + err
    (sentence,) = out.splitlines()
    assert sentence.startswith(f"{key}: ")
    assert sentence.endswith(".")
    assert re.search(said, sentence), sentence
    assert err == f"l2calib: 1 mistake in '{path}'; mend and check again.\n"


HALF_SOUND = SPEC.replace('file = "line.csv"', 'file = "lime.csv"').replace("a + b * x", "a + sqrt(b) * x")
SEVERAL = {
    "one of each kind": (
        {
            "spec.toml": """
            colour = "red"
            [data]
            file = "line.csv"
            response = "note"
            [data.inputs]
            x = [1, 0]
            height = [0, 1]
            [model]
            expression = "a + b * x +"
            [prior]
            a = "unifrom(0, 1)"
            b = 3
            """
        },
        ["colour", "prior.b", "data.inputs.x", "data.inputs.height", "data.response", "prior.a", "model.expression"],
    ),
    "a missing file hides no NaN": ({"spec.toml": HALF_SOUND}, ["data.file", "model.expression"]),
    "every column": (
        data("x,y,note,x\n0.1,1\n0.2,2,n,0.2\n"),
        ["data.file", "data.file"],
    ),
    "every prior": (
        spec(("uniform(-5, 5)", "uniform(5, -5)")),
        ["prior.a", "prior.b"],
    ),
    "every parameter that does nothing": (formula("x"), ["prior.a", "prior.b"]),
    "NaN, and a parameter that does nothing": (
        line("jnp.sqrt(a) + 0 * b + x"),
        ["model.python", "prior.b"],
    ),
    "arguments that resemble nothing": (
        line("height + width", "height, width"),
        ["model.python"] * 5,
    ),
    "cells and a range": (
        row(2, "0.1,,n") | spec(("[0, 1]", "[0, 0.5]")),
        ["data.inputs.x", "data.response"],
    ),
    "a range and a parameter that does nothing": (
        spec(("[0, 1]", "[1, 0]"), ("a + b * x", "a * x")),
        ["data.inputs.x", "prior.b"],
    ),
    "few rows and a misspelt prior": (
        data(line_spec.csv(*ROWS[:3])) | spec(('b = "uniform', 'b = "unifrom')),
        ["data.file", "prior.b"],
    ),
}


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("[model]", "[modle]", ["modle"]),
        ("[data]", "[dta]", ["dta"]),
        ("[data.inputs]", "[dat.inputs]", ["dat"]),
        ("[model]", "", ["data.inputs.expression", "model"]),
        ("[prior]", "", ["model.a", "model.b", "prior"]),
        ("x = [0, 1]", 'x = [0, 1]\nb = "uniform(0, 1)"', ["data.inputs.b"]),
    ],
)
def test_what_follows_from_another_mistake_is_not_listed(tmp_path, old, new, keys):
    path = put(tmp_path, spec((old, new)))
    assert [mistake.key for mistake in read_spec(path).mistakes] == keys


def test_a_key_in_the_wrong_table_is_sent_to_its_own(tmp_path):
    path = put(tmp_path, spec(("[data]\n", "")))
    assert [mistake.sentence for mistake in read_spec(path).mistakes] == [
        "file: there is an unknown key 'file' at the top level; it belongs in [data].",
        "response: there is an unknown key 'response' at the top level; it belongs in [data].",
    ]


@pytest.mark.parametrize("case", SEVERAL)
def test_all_mistakes_are_found_at_once(run, tmp_path, case):
    files, keys = SEVERAL[case]
    path = put(tmp_path, files)
    status, out, err = run("check", path, "--json")
    answer = json.loads(out)
    assert status == 2
    assert list(answer) == ["spec", "ok", "mistakes", "description"]
    assert (answer["spec"], answer["ok"], answer["description"]) == (str(path), False, None)
    assert sorted(mistake["key"] for mistake in answer["mistakes"]) == sorted(keys)
    for mistake in answer["mistakes"]:
        assert mistake["sentence"].startswith(mistake["key"] + ": ")
    assert f"{len(keys)} mistakes" in err


def test_other_commands_raise_the_first_and_count_the_others(run, tmp_path):
    path = put(tmp_path, SEVERAL["every prior"][0])
    with pytest.raises(InputError) as caught:
        load_problem(path)
    status, out, err = run("calibrate", path)
    assert (status, out, err) == (2, "", f"l2calib: {caught.value}\n")
    assert err.startswith("l2calib: prior.a: ")
    assert err.endswith(f"(1 more mistake is listed by 'l2calib check {path}').\n")


def test_a_spec_that_is_not_there(run):
    status, out, err = run("check", "wifle", "--json")
    (mistake,) = json.loads(out)["mistakes"]
    assert (status, mistake["key"]) == (2, "spec")
    assert "did you mean 'wiffle'?" in mistake["sentence"]
    assert "1 mistake in 'wifle'" in err


def test_a_sound_spec_is_described_in_words(run):
    status, out, err = run("check", "wiffle")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "response    time, 63 observations",
        (
            "input       height in [0.175, 4.275]: 21 values from 0.178 to 4.272, 100% of the range; "
            "the widest gap is from 1.958 to 2.67"
        ),
        "replicates  21 different settings of the inputs, 3 observations at each",
        "model       the Python function fall_time(height, g, m) of model.py",
        "parameters  g: uniform between 0 and 20 (90% of it between 1 and 19)",
        "            m: uniform between 0 and 20 (90% of it between 1 and 19)",
        "method      l2 (a bias projected at theta, its smoothness and size integrated) unless --method names another",
        (
            "target      theta_L2: the g and m for which the model is closest to the system, "
            "in mean square over height in [0.175, 4.275]"
        ),
    ]


def test_a_sound_spec_is_described_as_data(run, tmp_path):
    path = put(tmp_path, {"line.csv": line_spec.csv(*ROWS, *ROWS, "0.0,1,again")})
    status, out, err = run("check", path, "--json")
    answer = json.loads(out)
    assert (status, err, answer["ok"], answer["mistakes"]) == (0, "", True, [])
    told = answer["description"]
    assert (told["response"], told["observations"], told["method"]) == ("y", 21, "l2")
    assert told["inputs"]["x"]["range"] == told["inputs"]["x"]["data"] == [0, 1]
    assert told["replicates"] == {"settings": 10, "fewest": 2, "most": 3}
    assert told["model"] == {"kind": "expression", "text": "a + b * x", "arguments": "x, a, b"}
    assert list(told["prior"]) == ["a", "b"]
    assert told["warnings"] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("uniform(0, 20)", "uniform between 0 and 20 (90% of it between 1 and 19)"),
        ("normal(1, 2)", "normal with mean 1 and standard deviation 2 (90% of it between -2.29 and 4.29)"),
        ("truncated_normal(0, 1, 0, inf)", "cut to [0, inf] (90% of it between 0.06271 and 1.96)"),
        ("lognormal(0, 1)", "its logarithm has mean 0 and standard deviation 1 (90% of it between 0.193 and 5.18)"),
        ("gamma(1, 2)", "gamma with shape 1 and rate 2 (90% of it between 0.02565 and 1.498)"),
        ("beta(1, 1)", "beta(1, 1) on [0, 1] (90% of it between 0.05 and 0.95)"),
        ("half_normal(1)", "mean 0 and standard deviation 1 (90% of it between 0.06271 and 1.96)"),
    ],
)
def test_priors_are_told_in_words(text, words):
    assert prior_in_words(parse_prior("g", text)).endswith(words)


def wide(*rows):
    return {"line.csv": "\n".join(["x,y,t", *rows])}


LINE = [f"{i / 29},{1 + i / 15 + 0.05 * (-1) ** i},{i % 3}" for i in range(30)]


@pytest.mark.parametrize(
    ("files", "key", "said"),
    [
        (spec(("[0, 1]", "[0, 2]")) | wide(*LINE), "data.inputs.x", r"\[0, 1\], 50% of the range \[0, 2\].*narrow it"),
        (wide(*LINE[:17]) | spec(("[0, 1]", "[0, 0.6]")), "data.file", r"17 observations are few for 2 parameters"),
        (
            spec(("a + b * x", "a + log(b) * x"), ('b = "uniform(-5, 5)"', 'b = "normal(2, 1)"')) | wide(*LINE),
            "model.expression",
            r"not finite for about 2\.[0-9]% of the prior, for example at a = .*narrow the prior",
        ),
        (
            spec(('b = "uni', 't = "uni'), ("b * x", "t * x")) | wide(*LINE),
            "prior.t",
            r"'t' is a parameter here, but also a column.*add t = \[low, high\]",
        ),
        (line("a + b * x + t", "x, a, b, t=1.0") | wide(*LINE), "model.python", r"argument 't' keeps its default"),
        (
            spec(("x = [0, 1]", "x = [0, 1]\nt = [0, 2]")) | wide(*LINE),
            "data.inputs.t",
            r"does not use 't'.*leave it out",
        ),
    ],
)
def test_what_will_hurt_is_a_warning(run, tmp_path, files, key, said):
    status, out, err = run("check", put(tmp_path, files), "--json")
    assert status == 0
    (warning,) = json.loads(out)["description"]["warnings"]
    assert warning["key"] == key
    assert re.match(rf"{re.escape(key)}: .*{said}", warning["sentence"]), warning
    assert err == f"l2calib: warning: {warning['sentence']}\n"


def test_what_a_model_prints_stays_out_of_the_answer(run, tmp_path):
    files = python("print('hello')\ndef line(x, a, b):\n    return a + b * x\n")
    status, out, err = run("check", put(tmp_path, files), "--json")
    assert (status, json.loads(out)["ok"]) == (0, True)
    assert "hello" in err
