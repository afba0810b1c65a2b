"""Priors written as text, like `uniform(0, 20)`: the laws of docs/decisions/0001."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

from l2calib.errors import PriorError, SpecError, suggest
from l2calib.models.expression import compile_expression, parse
from l2calib.problem import distributions as catalogue

if TYPE_CHECKING:
    from l2calib.problem.distributions import Distribution

_PRIORS: dict[str, type[Distribution]] = {
    "uniform": catalogue.Uniform,
    "normal": catalogue.Normal,
    "truncated_normal": catalogue.TruncatedNormal,
    "lognormal": catalogue.LogNormal,
    "gamma": catalogue.Gamma,
    "beta": catalogue.Beta,
    "half_normal": catalogue.HalfNormal,
}


def parse_prior(parameter: str, text: str) -> Distribution:
    """Read a prior such as ``uniform(0, 20)``, ``half-normal(2)`` or ``normal(mean=0, sd=log(2))``."""
    whole = re.fullmatch(r"\s*([A-Za-z][\w -]*?)\s*\((.*)\)\s*", text, re.DOTALL)
    if whole is None:
        raise PriorError(f"the prior of '{parameter}' is {text!r:.80}; write it like 'uniform(0, 20)'.")
    name, arguments = whole.groups()
    plain = {_squeezed(known): known for known in _PRIORS}
    if _squeezed(name) not in plain:
        raise PriorError(
            f"the prior of '{parameter}' names '{name}'{suggest(name, _PRIORS)}; the priors are {', '.join(_PRIORS)}."
        )
    kind = _PRIORS[plain[_squeezed(name)]]
    signature = inspect.signature(kind)
    try:
        bound = signature.bind(*_positional(arguments), **_by_name(arguments))
    except (ValueError, TypeError, RecursionError, SpecError):
        raise PriorError(
            f"the prior of '{parameter}' is {text!r:.80}; what can be read is {_form(plain[_squeezed(name)])}, "
            "each a number."
        ) from None
    try:
        return kind(*bound.args, **bound.kwargs)
    except PriorError as error:
        raise PriorError(f"the prior of '{parameter}' is {text!r:.80}: {error}") from None


def prior_forms() -> list[str]:
    """How each prior is written, with the names of its arguments."""
    return [_form(name) for name in _PRIORS]


def _form(name: str) -> str:
    return f"{name}({', '.join(inspect.signature(_PRIORS[name]).parameters)})"


def _call(arguments: str) -> ast.Call:
    call = parse(f"f({arguments})")
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TypeError(arguments)
    return call


def _positional(arguments: str) -> list[float]:
    return [_constant(argument) for argument in _call(arguments).args]


def _by_name(arguments: str) -> dict[str, float]:
    return {str(keyword.arg): _constant(keyword.value) for keyword in _call(arguments).keywords}


def _constant(node: ast.expr) -> float:
    text = ast.unparse(node)
    return float(text) if text in {"inf", "-inf"} else float(compile_expression(text, ())())


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()
