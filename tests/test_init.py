"""`l2calib init`: a spec from options or answers, which passes the check and says what was meant."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l2calib.spec import load_problem
from l2calib.spec.writing import Draft, spec_text
from tests import line_spec

TABLE = line_spec.csv(*line_spec.ROWS, *line_spec.ROWS)
PRIORS = ["--prior", "a=uniform(-5, 5)", "--prior", "b = normal(mean=0, sd=3)"]
LINE = ["--response", "y", "--input", "x=0:2", "--expression", "a + b * x", *PRIORS]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "line.csv"
    path.write_text(TABLE)
    return path


def test_the_options_suffice_and_the_spec_passes_the_check(run, table):
    status, out, err = run("init", table, *LINE)
    written = table.with_suffix(".toml")
    assert (status, out) == (0, f"{written}\n")
    assert f"next: l2calib calibrate {written} --out results" in err
    spec = tomllib.loads(written.read_text())
    assert spec["data"] == {"file": "line.csv", "response": "y", "inputs": {"x": [0, 2]}}
    assert spec["model"] == {"expression": "a + b * x"}
    assert spec["prior"] == {"a": "uniform(-5, 5)", "b": "normal(mean=0, sd=3)"}
    status, out, _ = run("check", written, "--json")
    assert (status, json.loads(out)["ok"]) == (0, True)


def test_the_range_of_the_data_is_the_range_unless_told(run, table):
    assert run("init", table, *["x" if each == "x=0:2" else each for each in LINE])[0] == 0
    assert load_problem(table.with_suffix(".toml")).inputs == {"x": (0.0, 1.0)}


def test_paths_are_relative_to_the_spec(run, table, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "specs").mkdir()
    (tmp_path / "models" / "lines.py").write_text("print('hello')\ndef line(x, a, b=1.0):\n    return a + b * x\n")
    monkeypatch.chdir(tmp_path / "models")
    options = ["--response", "y", "--input", "x", "--python", "lines.py:line", "--prior", "a=uniform(-5, 5)"]
    status, out, err = run("init", "../line.csv", *options, "--out", "../specs/line.toml")
    assert (status, out) == (0, "../specs/line.toml\n")
    assert "hello" in err
    spec = tomllib.loads((tmp_path / "specs" / "line.toml").read_text())
    assert (spec["data"]["file"], spec["model"]["python"]) == ("../line.csv", "../models/lines.py:line")
    assert load_problem(tmp_path / "specs" / "line.toml").parameter_names == ("a",)


def test_what_will_hurt_is_said_at_once(run, table):
    status, _, err = run("init", table, *["x=0:9" if each == "x=0:2" else each for each in LINE])
    assert status == 0
    assert "warning: data.inputs.x: the data lie in [0, 1], 11% of the range [0, 9]" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "needs --response NAME, --input NAME=LOW:HIGH, --expression TEXT or --python FILE.py:FUNCTION, --prior"),
        (LINE[2:], "needs --response NAME; add what is missing"),
        ([*LINE[:2], *LINE[4:]], "needs --input NAME=LOW:HIGH; add"),
        (LINE[:4] + PRIORS, "needs --expression TEXT or --python FILE.py:FUNCTION; add"),
        (LINE[:-2], "needs --prior 'b=DISTRIBUTION'; add"),
        (LINE[:-4], "needs --prior 'a=DISTRIBUTION', --prior 'b=DISTRIBUTION'; add"),
        ([*LINE, "--python", "model.py:line"], "both --expression and --python"),
        ([*LINE[:4], "--python", "line", *PRIORS], "write model.py:function"),
        ([*LINE[:4], "--python", "no.py:line", *PRIORS], "no.py' does not exist"),
        (["--response", "Y", *LINE[2:]], "no column 'Y' (did you mean 'y'?)"),
        ([*LINE[:3], "z", *LINE[4:]], "no column 'z'"),
        ([*LINE[:3], "z=0:1", *LINE[4:]], "no column 'z'"),
        ([*LINE[:3], "x=0;1", *LINE[4:]], "the range of 'x' is '0;1'; write it like 0:5"),
        ([*LINE[:3], "x=1:0", *LINE[4:]], "empty or infinite"),
        ([*LINE[:3], "x=0:0.5", *LINE[4:]], "leaves its range"),
        ([*LINE[:3], "note", *LINE[4:]], "non-numeric"),
        ([*LINE[:5], "a + b * x.T", *LINE[6:]], "holds 'x.T'"),
        ([*LINE[:5], "b * x", *LINE[6:]], "does not depend on its parameter 'a'"),
        ([*LINE[:5], "2 * x", *LINE[6:]], "names nothing but columns of the data; name what is to be calibrated"),
        ([*LINE, "--prior", "c"], "--prior must be like 'g=uniform(0, 20)': received 'c'"),
        ([*LINE[:-2], "--prior", "b=unifrom(0, 1)"], "did you mean 'uniform'?"),
        ([*LINE, "--prior", "b=uniform(0, 1)"], "--prior was given 2 times for 'b'; give it once"),
        ([*LINE, "--input", "x"], "--input was given 2 times for 'x'; give it once"),
        ([*LINE[:5], "lines.py:line", *PRIORS], "name a function with --python"),
        ([*LINE, "--prior", "c=uniform(0, 1)"], "does not depend on its parameter 'c'"),
        ([*LINE[:5], "sqrt(a) + b * x", *LINE[6:]], "model.expression: the model returns NaN at a = -"),
        ([*LINE, "--out", ""], "received an empty --out"),
        ([*LINE, "--out", "."], "which is a folder"),
        ([*LINE, "--out", "nowhere/line.toml"], "'nowhere' is not there or not writable; make it"),
        ([*LINE, "--out", "line.csv", "--force"], "which is the data"),
    ],
)
def test_options_that_do_not_lead_to_a_spec(run, table, options, said, monkeypatch):
    monkeypatch.chdir(table.parent)
    status, out, err = run("init", "line.csv", *options)
    assert (status, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert [path.name for path in table.parent.iterdir()] == ["line.csv"]


@pytest.mark.parametrize(("name", "said"), [("none.csv", "does not exist"), (".", "Is a directory"), ("", "directory")])
def test_data_that_cannot_be_read(run, tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("init", name, *LINE)
    assert (status, out) == (2, "")
    assert said in err


def test_a_name_that_is_no_text_is_refused(run, table):
    unreadable = table.with_name(os.fsdecode(b"line\xff.csv"))
    table.rename(unreadable)
    status, out, err = run("init", unreadable, *LINE, "--out", table.with_name("spec.toml"))
    assert (status, out) == (2, "")
    assert "is not UTF-8 text, which a spec must be" in err


def test_nothing_is_overwritten_unless_forced(run, table):
    written = table.with_suffix(".toml")
    written.write_text("mine")
    status, _, err = run("init", table, *LINE)
    assert (status, written.read_text()) == (2, "mine")
    assert f"'{written}' is there already; name another file with --out, or overwrite it with --force." in err
    assert run("init", table, *LINE, "--force")[0] == 0
    assert tomllib.loads(written.read_text())["data"]["response"] == "y"


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
_DRAFTS = st.builds(
    Draft,
    file=_TEXTS,
    response=_TEXTS,
    inputs=st.dictionaries(_TEXTS, st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=4),
    kind=st.sampled_from(["python", "expression"]),
    model=_TEXTS,
    prior=st.dictionaries(_TEXTS, _TEXTS, min_size=1, max_size=4),
)


@settings(max_examples=300, deadline=None)
@given(_DRAFTS)
def test_what_is_written_reads_back_to_the_same_values(draft):
    text = spec_text(draft)
    assert tomllib.loads(text.encode().decode()) == {
        "data": {
            "file": draft.file,
            "response": draft.response,
            "inputs": {name: list(limits) for name, limits in draft.inputs.items()},
        },
        "model": {draft.kind: draft.model},
        "prior": dict(draft.prior),
    }


class Terminal:
    """The command on a pseudo-terminal, which answers a question once it has been asked."""

    def __init__(self, *arguments, cwd, stdout=None):
        self.master, slave = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            [str(Path(sys.executable).with_name("l2calib")), *arguments],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            cwd=cwd,
            env=os.environ | {"TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
        )
        os.close(slave)

    def read_until(self, wanted, seconds=120):
        """Read on until this appears, and return what came before it."""
        ends = time.monotonic() + seconds
        while wanted not in self.text:
            ready, _, _ = select.select([self.master], [], [], max(0.0, ends - time.monotonic()))
            assert ready, f"no {wanted!r} in {self.text!r}"
            self.text += self._read()
        before, _, self.text = self.text.partition(wanted)
        return before

    def answer(self, question, typed):
        before = self.read_until(f"{question}\r\n> ")
        os.write(self.master, f"{typed}\n".encode())
        return before

    def interrupt(self):
        """Send Ctrl-C until it is heard: a prompt of Python's is deaf while it is being drawn.

        This terminal controls no session, so the signal is sent in its stead.
        """
        time.sleep(0.5)
        for _ in range(6):
            os.killpg(self.process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
                return

    def leave(self):
        status = self.process.wait(120)
        while select.select([self.master], [], [], 0.2)[0] and (more := self._read()):
            self.text += more
        os.close(self.master)
        return status, self.text

    def _read(self):
        try:
            return os.read(self.master, 4096).decode()
        except OSError:  # the other end is closed
            return ""


@pytest.fixture
def started():
    """Start the command on a terminal; it does not outlive the test."""
    terminals = []

    def start(*arguments, **options):
        terminals.append(Terminal(*arguments, **options))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.process.kill()
        with terminal.process:
            pass


def test_a_terminal_is_asked_until_the_spec_is_right(started, table):
    response = "Response, the column that the model predicts"
    model = "Model, a formula like a + b * x, or FILE.py:FUNCTION"
    limits = "Range of x over which the model is to be good, LOW:HIGH [0:1]"
    terminal = started("init", "line.csv", cwd=table.parent)
    assert "20 rows and the columns\r\n  x: 0 to 1\r\n  y: 1.05 to 2.95\r\n  note: not all numbers" in terminal.answer(
        response, "note"
    )
    assert "column 'note' has 20 non-numeric values" in terminal.answer(response, "y")
    terminal.answer(model, "a + b * x.T")
    assert "holds 'x.T'" in terminal.answer(model, "2 * x")
    assert "names nothing but columns" in terminal.answer(model, "sqrt(a) + b * x")
    terminal.answer("Inputs, the columns that the model depends on, separated by commas [x]", "x, y")
    assert "'y' is the response already" in terminal.answer(
        "Inputs, the columns that the model depends on, separated by commas [x]", ""
    )
    terminal.answer(limits, "0")
    assert "write it like 0:5" in terminal.answer(limits, "")
    assert "Parameters: a, b. A prior is one of uniform(low, high), " in terminal.answer("Prior of a", "")
    assert "this needs an answer" in terminal.answer("Prior of a", "uniform(-5, 5)")
    terminal.answer("Prior of b", "normal(0, 3)")
    # The square root of a negative number is found by the check, and the answers are suggested again.
    assert "model.expression: the model returns NaN at a = -" in terminal.answer(f"{response} [y]", "")
    terminal.answer(f"{model} [sqrt(a) + b * x]", "")
    terminal.answer("Inputs, the columns that the model depends on, separated by commas [x]", "")
    terminal.answer(limits, "0:1.25")
    terminal.answer("Prior of a [uniform(-5, 5)]", "uniform(0, 5)")
    terminal.answer("Prior of b [normal(0, 3)]", "")
    status, text = terminal.leave()
    assert status == 0
    assert "next: l2calib calibrate line.toml --out results" in text
    problem = load_problem(table.with_suffix(".toml"))
    assert problem.inputs == {"x": (0.0, 1.25)}
    assert problem.parameter_names == ("a", "b")


def test_only_what_is_missing_is_asked_and_a_pipe_gets_the_answer_alone(started, table):
    terminal = started("init", "line.csv", *LINE[:-2], cwd=table.parent, stdout=subprocess.PIPE)
    assert "Response" not in terminal.answer("Prior of b", "normal(0, 3)")
    assert terminal.process.stdout.read() == b"line.toml\n"
    assert terminal.leave()[0] == 0


@pytest.mark.parametrize(("key", "status"), [("\x04", 2), ("\x03", 130)])
def test_leaving_early_writes_nothing(started, table, key, status):
    terminal = started("init", "line.csv", *LINE[:-2], cwd=table.parent)
    terminal.read_until("Prior of b\r\n> ")
    if key == "\x03":
        terminal.interrupt()
    else:
        os.write(terminal.master, key.encode())
    left, text = terminal.leave()
    assert left == status
    assert "nothing was written" in text
    assert "Traceback" not in text
    assert [path.name for path in table.parent.iterdir()] == ["line.csv"]
