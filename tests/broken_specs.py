"""Specs that are broken in one way each, and what is to be said of them."""

import json

from tests import line_spec

SPEC, ROWS = line_spec.SPEC, line_spec.ROWS
PYTHON = SPEC.replace(line_spec.EXPRESSION, 'python = "model.py:line"')
JAX = "import jax.numpy as jnp\n"


def spec(*changes, of=SPEC):
    """The files of a case: the spec with some of its text replaced."""
    for old, new in changes:
        assert old in of
        of = of.replace(old, new)
    return {"spec.toml": of}


def formula(text):
    return spec(("a + b * x", text))


def prior(text):
    return spec(('b = "uniform(-5, 5)"', f"b = {json.dumps(text)}"))


def data(text):
    return {"line.csv": text}


def row(number, cells):
    return data(line_spec.csv(*ROWS[: number - 1], cells, *ROWS[number:]))


def python(code):
    return {"spec.toml": PYTHON, "model.py": code}


def line(returned, arguments="x, a, b"):
    return python(f"{JAX}def line({arguments}):\n    return {returned}\n")


# Each case: the files that differ from a sound spec, the key, and what is said of what was received and to be done.
BROKEN = {
    # the file
    "not TOML": (spec(("[data]\n", "[data\n")), "spec", r"not valid TOML.*line 2.*correct"),
    "a key twice": (spec(("[model]", "[data]")), "spec", r"not valid TOML.*correct"),
    "nested without end": ({"spec.toml": "a = " + "[" * 5000}, "spec", r"nested too deep; correct"),
    "a spec of bytes": ({"spec.toml": b"\xff\xfe\x00"}, "spec", r"not UTF-8 text; give a TOML file"),
    # its tables and keys
    "no data": (spec((SPEC[: SPEC.index("[model]")], "")), "data", r"lacks the key 'data'.*add \[data\]"),
    "no model": (spec((SPEC[SPEC.index("[model]") : SPEC.index("[prior]")], "")), "model", r"lacks.*add \[model\]"),
    "no prior": (spec((SPEC[SPEC.index("[prior]") :], "")), "prior", r"lacks.*add \[prior\]"),
    "no file": (spec(('file = "line.csv"', "")), "data.file", r"lacks the key 'file' in \[data\]; add file ="),
    "no response": (spec(('response = "y"', "")), "data.response", r"lacks the key.*add response ="),
    "no inputs": (spec(("[data.inputs]\nx = [0, 1]", "")), "data.inputs", r"lacks the key.*add \[data.inputs\]"),
    "empty inputs": (spec(("x = [0, 1]", "")), "data.inputs", r"wrong value for 'inputs'.*height = \[0, 5\]"),
    "empty prior": (spec((SPEC[SPEC.index("[prior]") :], "[prior]\n")), "prior", r"received \{\}; give a table"),
    "unknown table": (spec(("[prior]", "[priors]")), "priors", r"did you mean 'prior'\?\); the keys there are"),
    "unknown key of data": (spec(("file =", "fiel =")), "data.fiel", r"did you mean 'file'\?\); the keys there are"),
    "unknown key of model": (spec(("expression =", "expresion =")), "model.expresion", r"did you mean 'expression'"),
    "unknown key that resembles none": (
        spec(("[model]", "[model]\nzzz = 1")),
        "model.zzz",
        r"the keys there are python",
    ),
    "a number for text": (spec(('"line.csv"', "3")), "data.file", r"received 3; write it as text in quotes"),
    "a list for text": (spec(('"y"', '["y"]')), "data.response", r"received \['y'\]; write it as text"),
    "text for a table": (
        spec(("[data.inputs]\nx = [0, 1]", 'inputs = "x"')),
        "data.inputs",
        r"received 'x'; give a table",
    ),
    "a number for a table": (
        {"spec.toml": "model = 3\n" + SPEC.replace("[model]\n" + line_spec.EXPRESSION, "")},
        "model",
        r"received 3; make it a table",
    ),
    "a number for a prior": (spec(('b = "uniform(-5, 5)"', "b = 2.5")), "prior.b", r"received 2.5; write it as text"),
    "both models": (spec(("[model]", '[model]\npython = "m.py:f"')), "model", r"both.*give exactly one"),
    "neither model": (spec((line_spec.EXPRESSION, "")), "model", r"neither.*give exactly one"),
    # ranges
    "one end": (spec(("[0, 1]", "[0]")), "data.inputs.x", r"received \[0\]; give two finite numbers"),
    "three ends": (spec(("[0, 1]", "[0, 1, 2]")), "data.inputs.x", r"received \[0, 1, 2\]; give two"),
    "an end in words": (spec(("[0, 1]", '[0, "one"]')), "data.inputs.x", r"received 'one'; give two"),
    "no range at all": (spec(("[0, 1]", "1")), "data.inputs.x", r"received 1; give two finite numbers"),
    "infinite end": (spec(("[0, 1]", "[0, inf]")), "data.inputs.x", r"received inf; give two finite"),
    "an end that is nan": (spec(("[0, 1]", "[nan, 1]")), "data.inputs.x", r"received nan; give two finite"),
    "an end beyond numbers": (spec(("[0, 1]", f"[0, 1{'0' * 400}]")), "data.inputs.x", r"give (two )?finite numbers"),
    "reversed range": (spec(("[0, 1]", "[1, 0]")), "data.inputs.x", r"empty or infinite: received \(1.0, 0.0\); give"),
    "empty range": (spec(("[0, 1]", "[1, 1]")), "data.inputs.x", r"empty or infinite.*give finite numbers low < high"),
    "range too wide": (spec(("[0, 1]", "[-1e308, 1e308]")), "data.inputs.x", r"empty or infinite.*low < high"),
    "data outside": (spec(("[0, 1]", "[0, 0.5]")), "data.inputs.x", r"rows 6, 7, 8, 9, 10: received 0.556; widen"),
    # columns
    "missing file": (spec(("line.csv", "lime.csv")), "data.file", r"lime.csv' does not exist; its path is relative"),
    "a folder": (spec(("line.csv", ".")), "data.file", r"cannot be read: Is a directory; name a CSV file"),
    "a name that no file has": (spec(("line.csv", "\\u0000")), "data.file", r"which no file can have; correct it"),
    "no such response": (spec(('"y"', '"Y"')), "data.response", r"no column 'Y' \(did you mean 'y'\?\).*name one"),
    "no such input": (spec(("x = [", "xx = [")), "data.inputs.xx", r"no column 'xx' \(did you mean 'x'\?\).*name one"),
    "response is an input": (spec(('"y"', '"x"')), "data.response", r"both the response and an input; name two"),
    "response of text": (
        spec(('"y"', '"note"')),
        "data.response",
        r"10 non-numeric values \(rows 1, 2.*drop or correct",
    ),
    "empty file": (data(""), "data.file", r"no observations; give a header and a row"),
    "header alone": (data(line_spec.csv()), "data.file", r"no observations; give"),
    "column twice": (
        data(line_spec.csv(*ROWS).replace("note", "y")),
        "data.file",
        r"more than one column 'y'; keep or",
    ),
    "uneven rows": (row(6, "0.5"), "data.file", r"3 columns, but 1 cells in row 6; give every row"),
    "semicolons": (
        data(line_spec.csv(*ROWS).replace(",", ";")),
        "data.file",
        r"by commas: its header is 'x;y;note'; save",
    ),
    "tabs": (data(line_spec.csv(*ROWS).replace(",", "\t")), "data.file", r"separate its columns by commas.*save it"),
    "no header": (data("0.1,1.2\n0.2,1.4\n0.3,1.5\n0.4,1.6\n"), "data.file", r"first line is '0.1, 1.2'; name the"),
    "another encoding": (data("x,y,é\n".encode("latin-1")), "data.file", r"not CSV text in UTF-8; save it"),
    "UTF-16": (data(line_spec.csv(*ROWS).encode("utf-16")), "data.file", r"not CSV text in UTF-8; save it"),
    "missing cell": (row(2, "0.1,,n"), "data.response", r"1 missing value \(row 2\); drop or correct"),
    "NaN": (row(2, "0.1,NaN,n"), "data.response", r"1 missing value \(row 2\); drop or correct"),
    "text cell": (row(4, "much,1,n"), "data.inputs.x", r"1 non-numeric value \(row 4\); drop or correct"),
    "infinite cell": (row(3, "0.2,-inf,n"), "data.response", r"1 infinite value \(row 3\); drop or correct"),
    "decimal comma": (row(3, '"0,2",1,n'), "data.inputs.x", r"1 non-numeric value \(row 3\); drop or correct"),
    "constant response": (
        data(line_spec.csv(*(f"{i / 9},2,n" for i in range(10)))),
        "data.response",
        r"constant: received 2",
    ),
    "too few rows": (data(line_spec.csv(*ROWS[:3])), "data.file", r"3 observations cannot calibrate 2.*at least 4"),
    # priors
    "misspelt prior": (
        prior("unifrom(0, 1)"),
        "prior.b",
        r"did you mean 'uniform'\?\); the priors are uniform, normal",
    ),
    "no distribution": (prior("0 to 20"), "prior.b", r"is '0 to 20'; write it like 'uniform\(0, 20\)'"),
    "an argument too few": (prior("normal(0)"), "prior.b", r"is 'normal\(0\)'; what can be read is normal\(mean, sd\)"),
    "an argument too many": (prior("uniform(0, 1, 2)"), "prior.b", r"what can be read is uniform\(low, high\)"),
    "an argument of another name": (prior("normal(mu=0, sd=1)"), "prior.b", r"what can be read is normal\(mean, sd\)"),
    "an argument of words": (prior("uniform(zero, one)"), "prior.b", r"each a number"),
    "a prior that is code": (prior("uniform(0, __import__('os'))"), "prior.b", r"what can be read is uniform"),
    "reversed prior": (prior("uniform(5, -5)"), "prior.b", r"no mass: received low = 5.0.*give finite numbers"),
    "improper prior": (prior("uniform(0, inf)"), "prior.b", r"no mass: received.*give finite numbers low < high"),
    "no spread": (prior("normal(0, 0)"), "prior.b", r"no mass: received.*sd = 0.0; give a finite mean and sd > 0"),
    "cut off far away": (
        prior("truncated_normal(0, 1, 60, 61)"),
        "prior.b",
        r"no mass.*give sd > 0 and low < high near",
    ),
    "an extreme prior": (prior("gamma(1e-5, 1)"), "prior.b", r"crowds its mass.*give one that is less extreme"),
    "a taken name": (
        spec(('b = "', 'draw = "'), ("b * x", "draw * x")),
        "prior.draw",
        r"results use it otherwise; rename it",
    ),
    "a name twice": (
        spec(('b = "', 'x = "'), ("a + b * x", "a + x")),
        "prior.x",
        r"both an input and a parameter; rename",
    ),
    # expressions
    "unknown name": (
        formula("a + b * x + height"),
        "model.expression",
        r"uses 'height', but.*x, a, b, the constants pi, e and the functions abs.*add",
    ),
    "near name": (formula("a + b * X"), "model.expression", r"uses 'X' \(did you mean 'x'\?\).*correct the name"),
    "unknown function": (
        formula("a + b * sinn(x)"),
        "model.expression",
        r"'sinn' \(did you mean 'sin'\?\), but.*functions abs.*correct the name",
    ),
    "a column left out": (
        spec(("a + b * x", "a + b * x + t")) | data(line_spec.csv(*ROWS).replace("note", "t").replace(",n", ",")),
        "data.inputs.t",
        r"a column of the data but not an input; add t = \[low, high\]",
    ),
    "a parameter that does nothing": (formula("a + x"), "prior.b", r"does not depend on its parameter 'b'; remove it"),
    "a parameter that cancels": (
        formula("a + x + 0 * b"),
        "prior.b",
        r"does not depend on its parameter 'b'; remove it",
    ),
    "huge power": (formula("a + b * x ** 1000"), "model.expression", r"to the power 1000.*exponents between"),
    "hidden power": (formula("a + b * x ** (50 + 51)"), "model.expression", r"to the power 101.*exponents between"),
    "tower of powers": (
        formula("a + b ** x ** a"),
        "model.expression",
        r"piles powers on powers.*constant powers only",
    ),
    "brackets": (formula("a + (b * x"), "model.expression", r"cannot be read.*check its brackets"),
    "an equation": (formula("y = a + b * x"), "model.expression", r"cannot be read.*check its brackets and signs"),
    "a caret": (formula("a + b * x^2"), "model.expression", r"uses '\^'; write powers with '\*\*'"),
    "an attribute": (formula("a + b * x.T"), "model.expression", r"holds 'x.T', and only.*as a Python function"),
    "an attack": (
        formula("a + b * x + __import__('os').getpid()"),
        "model.expression",
        r"only numbers.*Python function",
    ),
    "empty expression": (formula(""), "model.expression", r"'' cannot be read.*check"),
    "a name of two words": (
        spec(("x = [", '"my x" = ['), ("b * x", "b")) | data(line_spec.csv(*ROWS).replace("x,y", "my x,y")),
        'data.inputs."my x"',
        r"not a single word; rename it, for example to 'my_x'",
    ),
    "an expression that is NaN": (
        formula("b * x + sqrt(a)"),
        "model.expression",
        r"NaN at a = -.*mend it or narrow the prior",
    ),
    "an expression that is infinite": (
        formula("a + b / x"),
        "model.expression",
        r"infinite value at a.*where x = 0\); mend it",
    ),
    # Python functions
    "no such file of Python": ({"spec.toml": PYTHON}, "model.python", r"model.py' does not exist; paths are relative"),
    "no function named": (
        spec(("model.py:line", "model.py"), of=PYTHON),
        "model.python",
        r"names no function; write it like",
    ),
    "no such function": (
        python("def lines(x, a, b):\n    return a\n"),
        "model.python",
        r"did you mean 'lines'.*name a function that",
    ),
    "a function that is a number": (python("line = 3\n"), "model.python", r"no function 'line'.*name a function that"),
    "a file that fails": (
        python("x = 1\n1 / 0\n"),
        "model.python",
        r"ZeroDivisionError: division by zero \(line 2\); mend",
    ),
    "a file that imports nothing there is": (
        python("import surely_not_installed\n"),
        "model.python",
        r"surely_not_installed.*mend",
    ),
    "a file with a slip": (python("def line(x, a, b:\n"), "model.python", r"SyntaxError.*mend it"),
    "a file that leaves": (python("raise SystemExit(3)\n"), "model.python", r"SystemExit: 3.*mend it"),
    "other arguments": (line("a + b * xs", "xs, a, b"), "model.python", r"'x' \(did you mean 'xs'\?\).*rename one or"),
    "an argument too many in Python": (
        line("a + b * x + c", "x, a, b, c"),
        "model.python",
        r"'c' is neither.*add it to",
    ),
    "the wrong shape": (
        line("(a + b * x)[:3]"),
        "model.python",
        r"returns shape \(3,\).*must return one value for each",
    ),
    "returns NaN": (line("jnp.sqrt(a) + b * x"), "model.python", r"returns NaN at a = .*mend it or narrow"),
    "returns integers": (line("(a + b * x).astype(int)"), "model.python", r"of type int64.*return real floating-point"),
    "returns complex numbers": (line("(a + b * x) * 1j"), "model.python", r"of type complex128.*return real"),
    "returns nothing": (line("None"), "model.python", r"returns nothing; end it with 'return'"),
    "uses numpy": (
        python("import numpy as np\ndef line(x, a, b):\n    return a + np.sin(b * x)\n"),
        "model.python",
        r"calls NumPy.*write it with jax.numpy",
    ),
    "uses if": (line("a + b * x if a > 0 else b * x"), "model.python", r"by if, float\(\).*jax.numpy.where instead"),
    "raises": (
        python("def line(x, a, b):\n    raise ValueError('two\\nlines')\n"),
        "model.python",
        r"ValueError: two lines; mend it",
    ),
    "leaves": (python("def line(x, a, b):\n    raise SystemExit(3)\n"), "model.python", r"raised SystemExit.*mend it"),
    "has no derivative": (
        line("a + jnp.sqrt(jnp.abs(b) * x)"),
        "model.python",
        r"derivative.*'a', 'b' is NaN where x = 0; write",
    ),
    "an unused argument": (line("a + x"), "prior.b", r"does not depend on its parameter 'b'; remove it"),
}
