"""Formulas that nobody wrote: they agree with NumPy, or they are refused."""

import ast
import math
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from l2calib.errors import SpecError
from l2calib.models.expression import FUNCTIONS, MAX_DEPTH, compile_expression

# Operations that IEEE arithmetic rounds in one way only, so that the two evaluations agree to the last bit.
_EXACT = {
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "square": np.square,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
_LEAVES = st.one_of(st.sampled_from(["x", "y", "pi", "e"]), st.floats(0.1, 10).map(repr), st.integers(0, 9).map(str))


def _calls(inner, arity):
    names = sorted(name for name in _EXACT if FUNCTIONS[name][0] == arity)
    return st.tuples(st.sampled_from(names), *[inner] * arity).map(lambda t: f"{t[0]}({', '.join(t[1:])})")


_FORMULAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from("+-"), inner).map("".join),
        st.tuples(inner, st.sampled_from(["0", "1", "2", "(4 / 2)", "-1"])).map(lambda t: f"({t[0]}) ** {t[1]}"),
        _calls(inner, 1),
        _calls(inner, 2),
    ),
    max_leaves=12,
)


class _InNumpy(ast.NodeVisitor):
    """Evaluates a formula in NumPy, node by node, and remembers whether a constant piece of it is not finite."""

    def __init__(self, **values):
        self.values = {name: np.float64(value) for name, value in values.items()}
        self.finite_constants = True

    def of(self, text):
        with np.errstate(all="ignore"):
            return self.visit(ast.parse(text, mode="eval").body)

    def visit(self, node):
        value = super().visit(node)
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if not used & {"x", "y"} and not np.isfinite(value):
            self.finite_constants = False
        return value

    def visit_Constant(self, node):
        return np.float64(node.value)

    def visit_Name(self, node):
        return self.values[node.id]

    def visit_UnaryOp(self, node):
        return -self.visit(node.operand) if isinstance(node.op, ast.USub) else +self.visit(node.operand)

    def visit_BinOp(self, node):
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow):
            # A power of two or less is a product, and one of minus one a quotient.
            return {0: np.float64(1), 1: left, 2: left * left, -1: 1 / left}[int(right)]
        return {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}[type(node.op)](
            left, right
        )

    def visit_Call(self, node):
        return _EXACT[node.func.id](*map(self.visit, node.args))


@settings(max_examples=200, deadline=None)
@given(_FORMULAS, st.floats(0.1, 3), st.floats(0.1, 3))
def test_formulas_agree_with_numpy_to_the_last_bit(text, x, y):
    numpy = _InNumpy(x=x, y=y, pi=math.pi, e=math.e)
    expected = numpy.of(text)
    if numpy.finite_constants:
        np.testing.assert_array_equal(float(compile_expression(text, ["x", "y"])(x=x, y=y)), expected)
    else:
        with pytest.raises(SpecError, match="not a finite number"):
            compile_expression(text, ["x", "y"])


_THEIRS = {name: getattr(special, name, None) or getattr(np, name) for name in FUNCTIONS}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_is_the_one_of_its_name(name):
    arity, _ = FUNCTIONS[name]
    x = np.linspace(1.05, 3.0, 40) if name == "arccosh" else np.linspace(0.05, 0.95, 40)
    arguments = {"x": x} if arity == 1 else {"x": x, "y": x[::-1]}
    ours = compile_expression(f"{name}({', '.join(arguments)})", arguments)(**arguments)
    # Both are accurate to a few units in the last place, which a function of moderate slope keeps.
    np.testing.assert_allclose(ours, _THEIRS[name](*arguments.values()), rtol=1e-13, atol=1e-15)


_HARMLESS = st.sampled_from(["x", "1", "x + 1", "sin(x)"])
_FORBIDDEN = st.one_of(
    _HARMLESS.map(lambda t: f"({t}).__class__"),
    _HARMLESS.map(lambda t: f"({t})[0]"),
    _HARMLESS.map(lambda t: f"({t})({t})"),
    _HARMLESS.map(lambda t: f"(lambda: {t})"),
    _HARMLESS.map(lambda t: f"[{t} for x in ({t},)]"),
    _HARMLESS.map(lambda t: f"{{x: {t} for x in ()}}"),
    _HARMLESS.map(lambda t: f"sum({t} for x in ())"),
    _HARMLESS.map(lambda t: f"(x := {t})"),
    _HARMLESS.map(lambda t: f"f'{{{t}}}'"),
    _HARMLESS.map(lambda t: f"(await {t})"),
    _HARMLESS.map(lambda t: f"(yield {t})"),
    _HARMLESS.map(lambda t: f"sin(*{t})"),
    _HARMLESS.map(lambda t: f"sin(**{t})"),
    _HARMLESS.map(lambda t: f"sin(x={t})"),
    _HARMLESS.map(lambda t: f"[*{t}]"),
    _HARMLESS.map(lambda t: f"({t}, {t})"),
    _HARMLESS.map(lambda t: f"({t} if {t} else {t})"),
    _HARMLESS.map(lambda t: f"({t} < {t})"),
    _HARMLESS.map(lambda t: f"({t} or {t})"),
    _HARMLESS.map(lambda t: f"(not {t})"),
    _HARMLESS.map(lambda t: f"(x ** ({t}) ** x ** x)"),
    st.sampled_from(["eval", "exec", "open", "getattr", "__import__", "print", "jnp", "evaluate"]).map("{}(x)".format),
    st.sampled_from(
        ["__builtins__", "__name__", "jnp", "self", "sin", "True", "None", "...", "'a'", "b'a'", "1j", "1e999"]
    ),
    st.integers(101, 10**6).map("x ** {}".format),
    st.integers(101, 10**6).map("x ** -({} / 1)".format),
    st.integers(11, 10**4).map(lambda n: f"(x ** {n}) ** {n}"),
    st.integers(309, 3000).map(lambda n: "1" + "0" * n),
    st.integers(MAX_DEPTH + 1, 1500).map(lambda n: "-" * n + "x"),
)
_AROUND = st.sampled_from(
    ["{}", "1 + {}", "{} * x", "sin({})", "-{}", "maximum(x, {})", "2 ** {}", "({}) ** 2", "x / ({})"]
)


@settings(max_examples=400, deadline=None)
@given(_FORBIDDEN, _AROUND, _AROUND)
def test_what_is_not_arithmetic_is_refused_wherever_it_is(forbidden, inner, outer):
    with pytest.raises(SpecError) as caught:
        compile_expression(outer.format(inner.format(forbidden)), ["x"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


_TOKENS = st.lists(
    st.sampled_from(
        [*"xy123.,:;()[]{}+-*/%@!~^&|<>=#'\"\\\n", "**", ":=", "lambda ", " if ", " for ", " in ", "sin", "e5", "0x"]
    ),
    max_size=30,
).map("".join)


_ALLOWED = (ast.expr_context, ast.operator, ast.unaryop, ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)


@settings(max_examples=400, deadline=None)
@given(_TOKENS)
def test_any_tokens_compile_to_arithmetic_or_are_refused(text):
    try:
        function = compile_expression(text, ["x", "y"])
    except SpecError:
        return
    tree = ast.parse(" ".join(text.split()), mode="eval").body
    assert all(isinstance(node, _ALLOWED) for node in ast.walk(tree))
    assert function(x=1.5, y=2.5).dtype == np.float64


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_either_compiles_or_is_refused(text):
    said = ""
    try:
        compile_expression(text, ["x", "y"])
    except SpecError as error:
        said = str(error)
    assert "\n" not in said
