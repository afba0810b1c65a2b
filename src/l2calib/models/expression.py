"""Formulas written as text, read without ever being run as Python.

The text is parsed, and every node of its syntax tree must be on a short list: a
number, a declared name, + - * / **, a sign, or a call of a listed function. What
is constant is computed at once and must be finite, so a huge power cannot hide in
it. What comes out is an ordinary function of named arguments that jax can trace.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import math
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax.scipy import special

from l2calib.errors import SpecError, suggest
from l2calib.numerics.arrays import Array, jnp

MAX_LENGTH = 4000
MAX_DEPTH = 200  # well inside the interpreter's own limit, with room for jax below
MAX_EXPONENT = 100.0

CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e}

_ONE_ARGUMENT: tuple[Callable[..., Array], ...] = (
    *(jnp.abs, jnp.sign, jnp.sqrt, jnp.cbrt, jnp.square, jnp.exp, jnp.expm1, jnp.exp2),
    *(jnp.log, jnp.log1p, jnp.log2, jnp.log10, jnp.sin, jnp.cos, jnp.tan, jnp.sinh, jnp.cosh, jnp.tanh),
    *(jnp.arcsin, jnp.arccos, jnp.arctan, jnp.arcsinh, jnp.arccosh, jnp.arctanh),
    *(special.erf, special.erfc, special.expit, special.gammaln),
)
_TWO_ARGUMENTS: tuple[Callable[..., Array], ...] = (jnp.minimum, jnp.maximum, jnp.arctan2, jnp.hypot)
FUNCTIONS: dict[str, tuple[int, Callable[..., Array]]] = {
    **{function.__name__: (1, function) for function in _ONE_ARGUMENT},
    **{function.__name__: (2, function) for function in _TWO_ARGUMENTS},
}
# What they are called in other places.
_ELSEWHERE = {name.replace("arc", "a", 1): name for name in FUNCTIONS if name.startswith("arc")} | {
    "ln": "log",
    "max": "maximum",
    "min": "minimum",
    "fabs": "abs",
}

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


@dataclass(frozen=True)
class _Term:
    """A piece of a formula: how to evaluate it, its value if it is constant, and what powers it holds."""

    evaluate: Callable[[Mapping[str, Any]], Any]
    value: float | None = None
    degree: float = 1.0  # of the highest constant power
    has_open_power: bool = False  # whether something is raised to what is not constant

    @classmethod
    def constant(cls, value: float) -> _Term:
        return cls(lambda _: jnp.asarray(value), value)


def compile_expression(text: str, names: Iterable[str]) -> Callable[..., Array]:
    """Turn a formula into a function that takes `names` as arguments.

    A declared name hides a constant of the same name, so a parameter may be called ``e``.
    """
    declared = tuple(names)
    for name in declared:
        check_name(name)
        if declared.count(name) > 1:
            raise SpecError(f"the name '{name}' is given twice, as an input and as a parameter; rename one of them.")
    term = _Compiler(text, declared).translate()

    def evaluate(*args: Any, **kwargs: Any) -> Array:
        bound = signature.bind(*args, **kwargs)
        return jnp.asarray(term.evaluate(bound.arguments))

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in declared]
    signature = inspect.Signature(parameters)
    evaluate.__signature__ = signature  # type: ignore[attr-defined]
    evaluate.__name__ = "expression"
    evaluate.__doc__ = text
    return evaluate


def names_in(text: str) -> list[str]:
    """Return the names in a formula that are neither functions nor constants, in their order; refuse what is none."""
    names = _free_names(parse(text))
    _Compiler(text, tuple(names)).translate()
    return names


def check_name(name: str) -> None:
    """Raise SpecError unless a formula can hold this name."""
    if keyword.iskeyword(name) or not name.isidentifier():
        trouble = "is a word of Python" if keyword.iskeyword(name) else "is not a single word"
        word = re.sub(r"\W+", "_", name).strip("_")
        example = f", for example to '{word}'" if word.isidentifier() and not keyword.iskeyword(word) else ""
        raise SpecError(f"the name '{name}' cannot be used in an expression because it {trouble}; rename it{example}.")


def parse(text: str) -> ast.expr:
    """Return the syntax tree of a formula, whatever is in it."""
    formula = _on_one_line(text)
    if len(formula) > MAX_LENGTH:
        raise SpecError(
            f"the expression has {len(formula)} characters, and at most {MAX_LENGTH} are read; "
            "write it as a Python function instead."
        )
    if "#" in formula:
        raise SpecError(f"the expression {_shown(formula)} holds a comment; put it outside the quotes.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser warns of doubtful literals, which are refused anyway
            return ast.parse(formula, mode="eval").body
    except (SyntaxError, ValueError) as error:
        where = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        raise SpecError(
            f"the expression {_shown(formula)} cannot be read{where}; check its brackets and signs."
        ) from None
    except (RecursionError, MemoryError):
        raise _too_deep(formula) from None


class _Compiler:
    """Checks and translates one formula; every refusal quotes it."""

    def __init__(self, text: str, declared: tuple[str, ...]) -> None:
        self.text = _on_one_line(text)
        # Python reads names in a normal form, in which a micro sign is a Greek letter.
        self.declared = {unicodedata.normalize("NFKC", name): name for name in declared}

    def translate(self) -> _Term:
        return self.term(parse(self.text), depth=0)

    def term(self, node: ast.expr, depth: int) -> _Term:
        if depth > MAX_DEPTH:
            raise _too_deep(self.text)
        match node:
            case ast.Constant(value=value):
                return self.number(node, value)
            case ast.Name(id=name):
                return self.name(name)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return self.apply(node, _UNARY[type(op)], self.term(operand, depth + 1))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                base, other = self.term(left, depth + 1), self.term(right, depth + 1)
                if isinstance(op, ast.Pow):
                    return self.power(node, base, other)
                return self.apply(node, _BINARY[type(op)], base, other)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(node, name, args, depth)
        raise self.refusal(node)

    def apply(self, node: ast.expr, function: Callable[..., Any], *terms: _Term) -> _Term:
        values = [term.value for term in terms if term.value is not None]
        if len(values) == len(terms):
            return self.folded(node, function, values)
        return _Term(
            lambda given: function(*(term.evaluate(given) for term in terms)),
            degree=max(term.degree for term in terms),
            has_open_power=any(term.has_open_power for term in terms),
        )

    def folded(self, node: ast.expr, function: Callable[..., Any], values: list[float]) -> _Term:
        with np.errstate(all="ignore"):
            value = float(function(*(np.float64(value) for value in values)))
        if not math.isfinite(value):
            raise self.not_finite(node)
        return _Term.constant(value)

    def number(self, node: ast.expr, value: object) -> _Term:
        number = _number(value)
        if number is None:
            raise self.not_finite(node)
        return _Term.constant(number)

    def name(self, name: str) -> _Term:
        if name in self.declared:
            argument = self.declared[name]
            return _Term(lambda values: jnp.asarray(values[argument]))
        if name in CONSTANTS:
            return _Term.constant(CONSTANTS[name])
        unknown = sorted(each for each in _free_names(parse(self.text)) if each not in self.declared)
        listed = ", ".join(repr(each) for each in unknown)
        hint = suggest(unknown[0], self.declared) if len(unknown) == 1 else ""
        raise SpecError(
            f"the expression {_shown(self.text)} uses {listed}{hint}, but {self.known()}; "
            "add what is missing or correct the name."
        )

    def known(self) -> str:
        return (
            f"the inputs and parameters are {', '.join(self.declared.values()) or 'none'}, "
            f"the constants {', '.join(CONSTANTS)} and the functions {', '.join(sorted(FUNCTIONS))}"
        )

    def power(self, node: ast.BinOp, base: _Term, exponent: _Term) -> _Term:
        if exponent.value is None:
            if exponent.has_open_power:
                raise SpecError(
                    f"the expression {_shown(self.text)} piles powers on powers in {self.piece(node)}; "
                    "in an exponent, raise to constant powers only."
                )
            return replace(self.apply(node, operator.pow, base, exponent), has_open_power=True)
        degree = abs(exponent.value) * max(base.degree, 1.0)
        if degree > MAX_EXPONENT:
            raise SpecError(
                f"the expression {_shown(self.text)} raises to the power {degree:g} in all; "
                f"exponents between -{MAX_EXPONENT:g} and {MAX_EXPONENT:g} are allowed."
            )
        if base.value is not None:
            return self.folded(node, operator.pow, [base.value, exponent.value])
        # An integer power has derivatives everywhere, a real one not at zero.
        fixed = int(exponent.value) if exponent.value.is_integer() else exponent.value
        return _Term(lambda values: base.evaluate(values) ** fixed, None, degree, base.has_open_power)

    def call(self, node: ast.Call, name: str, args: list[ast.expr], depth: int) -> _Term:
        if name not in FUNCTIONS:
            raise self.unknown_function(name)
        arity, function = FUNCTIONS[name]
        if len(args) != arity:
            raise SpecError(
                f"the expression {_shown(self.text)} gives '{name}' {len(args)} arguments, and it takes {arity}."
            )
        return replace(self.apply(node, function, *(self.term(arg, depth + 1) for arg in args)), degree=1.0)

    def unknown_function(self, name: str) -> SpecError:
        if name in self.declared:
            return SpecError(f"the expression {_shown(self.text)} calls '{name}', a number; multiply by writing '*'.")
        hint = suggest(_ELSEWHERE.get(name, name), FUNCTIONS)
        return SpecError(
            f"the expression {_shown(self.text)} calls '{name}'{hint}, but {self.known()}; correct the name."
        )

    def refusal(self, node: ast.expr) -> SpecError:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS:
            return SpecError(
                f"the expression {_shown(self.text)} holds {self.piece(node)}; functions need no module here, "
                f"so write '{node.func.attr}'."
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            return SpecError(f"the expression {_shown(self.text)} uses '^'; write powers with '**'.")
        return SpecError(
            f"the expression {_shown(self.text)} holds {self.piece(node)}, and only numbers, names, + - * / ** and "
            "calls of listed functions are read; write it as a Python function instead."
        )

    def not_finite(self, node: ast.expr) -> SpecError:
        return SpecError(
            f"the expression {_shown(self.text)} holds {self.piece(node)}, which is not a finite number; correct it."
        )

    def piece(self, node: ast.expr) -> str:
        return _shown(ast.get_source_segment(self.text, node) or type(node).__name__, 40)


def _free_names(tree: ast.expr) -> list[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    in_order = sorted(names, key=lambda node: (node.lineno, node.col_offset))
    return [name for name in dict.fromkeys(node.id for node in in_order) if name not in CONSTANTS]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _on_one_line(text: str) -> str:
    return " ".join(text.split())  # a formula may be broken over lines


def _shown(text: str, length: int = 80) -> str:
    """Quote a text, cut to a readable length."""
    return repr(text if len(text) <= length else text[: length - 3] + "...")


def _too_deep(text: str) -> SpecError:
    return SpecError(
        f"the expression {_shown(text)} is nested more than {MAX_DEPTH} deep; write it as a Python function instead."
    )
