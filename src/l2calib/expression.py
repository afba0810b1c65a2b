"""Formulas written as text, read without ever being run as Python.

The text is parsed, and every node of its syntax tree must be on a short list: a
number, a declared name, + - * / **, a sign, or a call of a listed function. What
comes out is an ordinary function of named arguments that jax can trace.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jax.scipy import special

from l2calib.arrays import Array, jnp
from l2calib.errors import SpecError, suggest

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

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}

_Term = Callable[[Mapping[str, Any]], Any]


def compile_expression(text: str, names: Iterable[str]) -> Callable[..., Array]:
    """Turn a formula into a function that takes `names` as arguments.

    A declared name hides a constant of the same name, so a parameter may be called ``e``.
    """
    declared = tuple(names)
    _check_names(declared)
    term = _Compiler(text, declared).translate()

    def evaluate(*args: Any, **kwargs: Any) -> Array:
        bound = signature.bind(*args, **kwargs)
        return jnp.asarray(term(bound.arguments))

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in declared]
    signature = inspect.Signature(parameters)
    evaluate.__signature__ = signature  # type: ignore[attr-defined]
    evaluate.__name__ = "expression"
    evaluate.__doc__ = text
    return evaluate


def _check_names(declared: tuple[str, ...]) -> None:
    for name in declared:
        if keyword.iskeyword(name) or not name.isidentifier():
            trouble = "is a word of Python" if keyword.iskeyword(name) else "is not a single word"
            raise SpecError(f"the name '{name}' cannot be used in an expression because it {trouble}; rename it.")
        if declared.count(name) > 1:
            raise SpecError(f"the name '{name}' is given twice, as an input and as a parameter; rename one of them.")


class _Compiler:
    """Checks and translates one formula; every refusal quotes it."""

    def __init__(self, text: str, declared: tuple[str, ...]) -> None:
        self.text = " ".join(text.split())  # a formula may be broken over lines
        self.declared = declared

    def translate(self) -> _Term:
        return self.term(self.parse(), depth=0)

    def parse(self) -> ast.expr:
        if len(self.text) > MAX_LENGTH:
            raise SpecError(
                f"the expression has {len(self.text)} characters, and at most {MAX_LENGTH} are read; "
                "write it as a Python function instead."
            )
        if "#" in self.text:
            raise SpecError(f"the expression {_shown(self.text)} holds a comment; put it outside the quotes.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the parser warns of doubtful literals, which are refused anyway
                return ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError) as error:
            where = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
            raise SpecError(
                f"the expression {_shown(self.text)} cannot be read{where}; check its brackets and signs."
            ) from None
        except (RecursionError, MemoryError):
            raise _too_deep(self.text) from None

    def term(self, node: ast.expr, depth: int) -> _Term:
        if depth > MAX_DEPTH:
            raise _too_deep(self.text)
        match node:
            case ast.Constant(value=value):
                return self.constant(value)
            case ast.Name(id=name):
                return self.name(name)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return _apply(_UNARY[type(op)], self.term(operand, depth + 1))
            case ast.BinOp(left=left, op=ast.Pow(), right=right) if (exponent := _literal(right)) is not None:
                return self.power(self.term(left, depth + 1), exponent)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _apply(_BINARY[type(op)], self.term(left, depth + 1), self.term(right, depth + 1))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, args, depth)
        raise self.refusal(node)

    def constant(self, value: object) -> _Term:
        number = _number(value)
        if number is None:
            raise SpecError(f"the expression {_shown(self.text)} holds {value!r:.40}, which is not a finite number.")
        return lambda _: jnp.asarray(number)

    def name(self, name: str) -> _Term:
        if name in self.declared:
            return lambda values: jnp.asarray(values[name])
        if name in CONSTANTS:
            number = CONSTANTS[name]
            return lambda _: jnp.asarray(number)
        unknown = sorted(self.unknown_names())
        listed = ", ".join(repr(each) for each in unknown)
        hint = suggest(unknown[0], self.declared) if len(unknown) == 1 else ""
        raise SpecError(
            f"the expression {_shown(self.text)} uses {listed}{hint}, but the inputs and parameters are "
            f"{', '.join(self.declared) or 'none'}."
        )

    def unknown_names(self) -> set[str]:
        tree = self.parse()
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}
        return names - set(self.declared) - set(CONSTANTS)

    def power(self, base: _Term, exponent: float) -> _Term:
        if abs(exponent) > MAX_EXPONENT:
            raise SpecError(
                f"the expression {_shown(self.text)} raises to the power {exponent:g}; "
                f"exponents between -{MAX_EXPONENT:g} and {MAX_EXPONENT:g} are allowed."
            )
        # An integer power has derivatives everywhere, a real one not at zero.
        fixed = int(exponent) if exponent.is_integer() else exponent
        return lambda values: base(values) ** fixed

    def call(self, name: str, args: list[ast.expr], depth: int) -> _Term:
        if name not in FUNCTIONS:
            raise SpecError(
                f"the expression {_shown(self.text)} calls '{name}'{suggest(name, FUNCTIONS)}; "
                f"the functions are {', '.join(sorted(FUNCTIONS))}."
            )
        arity, function = FUNCTIONS[name]
        if len(args) != arity:
            raise SpecError(
                f"the expression {_shown(self.text)} gives '{name}' {len(args)} arguments, and it takes {arity}."
            )
        return _apply(function, *(self.term(arg, depth + 1) for arg in args))

    def refusal(self, node: ast.expr) -> SpecError:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            return SpecError(f"the expression {_shown(self.text)} uses '^'; write powers with '**'.")
        piece = ast.get_source_segment(self.text, node) or type(node).__name__
        return SpecError(
            f"the expression {_shown(self.text)} holds {_shown(piece)}, and only numbers, names, + - * / ** and "
            "calls of listed functions are read; write it as a Python function instead."
        )


def _apply(function: Callable[..., Any], *terms: _Term) -> _Term:
    return lambda values: function(*(term(values) for term in terms))


def _literal(node: ast.expr) -> float | None:
    """Return the value of a number with or without a sign, else None."""
    match node:
        case ast.UnaryOp(op=op, operand=ast.Constant(value=value)) if type(op) in _UNARY:
            number = _number(value)
            return None if number is None else float(_UNARY[type(op)](number))
        case ast.Constant(value=value):
            return _number(value)
    return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _shown(text: str) -> str:
    """Quote a text, cut to a readable length."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _too_deep(text: str) -> SpecError:
    return SpecError(
        f"the expression {_shown(text)} is nested more than {MAX_DEPTH} deep; write it as a Python function instead."
    )
