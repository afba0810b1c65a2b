"""A model that is a Python function which JAX can trace: it is differentiated exactly."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from l2calib.display.words import reason_of
from l2calib.errors import ModelError, suggest
from l2calib.models.model import check_distinct
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.compile import Compiled, quickly_compiled

_ROWS = 128  # thetas at once: calls cost little beside them, and few are not many times too many


@dataclass(frozen=True, eq=False)
class JaxFunction:
    """A function of the inputs and the parameters by name, seen as eta(x, theta) of arrays."""

    function: Callable[..., Any]
    input_names: tuple[str, ...]
    parameter_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ModelError(f"the model is not a function: received {self.function!r}; give a callable.")
        check_distinct(self.input_names, self.parameter_names)
        for fault in argument_faults(self.function, self.input_names, self.parameter_names):
            raise fault

    def __eq__(self, other: object) -> bool:
        """The same function, seen in the same way: what was compiled for one serves the other."""
        return isinstance(other, JaxFunction) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        return id(self.function), self.input_names, self.parameter_names  # a callable object may not be hashable

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function).parameters)

    @property
    def text(self) -> str:
        """The function's own, or what it is if it has none."""
        try:
            return inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(self.function)))
        except (OSError, TypeError):
            return repr(self.function)

    def __call__(self, x: Array, theta: Array) -> Array:
        return jnp.broadcast_to(self._raw(x, theta), (x.shape[0],))

    def values(self, x: np.ndarray, thetas: np.ndarray) -> np.ndarray:
        (values,) = _rows(self, x, thetas, slopes=False)
        return values

    def values_and_slopes(self, x: np.ndarray, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = _rows(self, x, thetas, slopes=True)
        return values, slopes

    def shape_fault(self, x: np.ndarray, theta: np.ndarray) -> ModelError | None:
        try:
            shape = jax.eval_shape(self._raw, x, theta).shape
        except (Exception, SystemExit) as error:  # the function is the user's, so anything may come out of it
            return _untraceable(error)
        if shape in ((), (len(x),)):
            return None
        return ModelError(
            f"the model returns shape {shape} for {len(x)} values of its inputs; "
            f"it must return one value for each, shape ({len(x)},)."
        )

    def _raw(self, x: Array, theta: Array) -> Array:
        """What the function returns, whatever its shape."""
        inputs = {name: x[:, j] for j, name in enumerate(self.input_names)}
        parameters = {name: theta[j] for j, name in enumerate(self.parameter_names)}
        returned = self.function(**inputs, **parameters)
        if returned is None:
            raise ModelError("the model returns nothing; end it with 'return' and the modelled values.")
        values = jnp.asarray(returned)
        if not jnp.issubdtype(values.dtype, jnp.floating):
            raise ModelError(
                f"the model returns values of type {values.dtype}, which have no derivatives; "
                "return real floating-point numbers."
            )
        return values.astype(float)


@functools.lru_cache(maxsize=64)
def _program(model: JaxFunction, slopes: bool) -> Compiled[[np.ndarray, np.ndarray], tuple[Array, ...]]:
    """The model at points, for rows of theta; and its slopes, if they are wanted."""

    def twice(x: Array, theta: Array) -> tuple[Array, Array]:
        value = model(x, theta)
        return value, value

    def look(x: Array, thetas: Array) -> tuple[Array, ...]:
        if not slopes:
            return (jax.vmap(model, (None, 0))(x, thetas),)
        slope, value = jax.vmap(jax.jacfwd(twice, 1, has_aux=True), (None, 0))(x, thetas)
        return value, slope

    return cast("Compiled[[np.ndarray, np.ndarray], tuple[Array, ...]]", quickly_compiled(look))


def _rows(model: JaxFunction, x: np.ndarray, thetas: np.ndarray, slopes: bool) -> tuple[np.ndarray, ...]:
    """Always for so many thetas at once, the last of them filled up: one program for each set of points."""
    program, parts = _program(model, slopes), []
    for begin in range(0, len(thetas), _ROWS):
        part = thetas[begin : begin + _ROWS]
        padded = np.concatenate([part, np.broadcast_to(part[-1], (_ROWS - len(part), part.shape[1]))])
        parts.append([np.asarray(each)[: len(part)] for each in program(x, padded)])
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def _untraceable(error: BaseException) -> ModelError:
    """What is wrong with a function that raised this while it was traced."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, jax.errors.TracerArrayConversionError):
        sentence = "the model calls NumPy on its arguments, which cannot be differentiated; write it with jax.numpy."
    elif isinstance(error, jax.errors.ConcretizationTypeError):
        sentence = (
            "the model needs the value of an argument, by if, float() or the math module; "
            "write it with jax.numpy, and with jax.numpy.where instead of if."
        )
    else:
        sentence = f"the model raised {reason_of(error):.200}; mend it before calibrating."
    fault = ModelError(sentence)
    fault.__cause__ = error
    return fault


def argument_faults(
    function: Callable[..., Any], input_names: Sequence[str], parameter_names: Sequence[str]
) -> Iterator[ModelError]:
    """Every name that the function does not take, and every argument that would be left without a value."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        yield ModelError(
            f"the arguments of the model have no names: received {function!r:.60}; "
            "wrap it in a function of the inputs and the parameters."
        )
        return
    named = [a for a in arguments if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)]
    takes_anything = any(a.kind is a.VAR_KEYWORD for a in arguments)
    accepted = [a.name for a in named]
    given = [*input_names, *parameter_names]
    strangers = [] if takes_anything else [name for name in given if name not in accepted]
    for name in strangers:
        kind = "input" if name in input_names else "parameter"
        yield ModelError(
            f"the model has no argument for the {kind} '{name}'{suggest(name, accepted)}: "
            f"its arguments are {', '.join(accepted) or 'without names'}; rename one or the other."
        )
    for argument in named:
        # An argument that a stranger resembles is the same mistake, seen from the other side.
        needed = argument.default is argument.empty and argument.name not in given
        if needed and not suggest(argument.name, strangers):
            yield ModelError(
                f"the model's argument '{argument.name}' is neither an input nor a parameter"
                f"{suggest(argument.name, given)}: received {', '.join(given)}; "
                "add it to the inputs or to the prior."
            )
