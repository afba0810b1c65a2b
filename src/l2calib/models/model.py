"""The mathematical model eta(x; theta): a plain function of named inputs and parameters, in physical units."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from l2calib.errors import ModelError, suggest
from l2calib.numerics.arrays import Array, jax, jnp
from l2calib.numerics.compile import quickly_compiled


@dataclass(frozen=True, eq=False)
class Model:
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
        return isinstance(other, Model) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return id(self.function), self.input_names, self.parameter_names  # a callable object may not be hashable

    def __call__(self, x: Array, theta: Array) -> Array:
        """eta at the rows of x (m, k), for one theta (p,): an array (m,)."""
        return jnp.broadcast_to(self._raw(x, theta), (x.shape[0],))

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

    def check(self, x: np.ndarray, thetas: np.ndarray) -> None:
        """Raise ModelError unless eta is finite, of the right shape and moved by every parameter at these thetas."""
        for fault in self.faults(x, thetas):
            raise fault

    def faults(self, x: np.ndarray, thetas: np.ndarray) -> Iterator[ModelError]:
        """What `check` raises for: the first of these, and all that do not follow from another."""
        try:
            self._check_shape(x, thetas[0])
        except ModelError as error:
            yield error
            return
        values = np.asarray(quickly_compiled(jax.vmap(self, (None, 0)))(jnp.asarray(x), jnp.asarray(thetas)))
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            found = "NaN" if np.isnan(values[row]).any() else "an infinite value"
            column = int(np.argmin(np.isfinite(values[row])))
            theta, inputs = _named(self.parameter_names, thetas[row]), _named(self.input_names, x[column])
            yield ModelError(f"the model returns {found} at {theta} (where {inputs}); mend it or narrow the prior.")
        if finite.any():
            yield from self._slope_faults(x, thetas[finite])

    def _slope_faults(self, x: np.ndarray, thetas: np.ndarray) -> Iterator[ModelError]:
        slopes = np.asarray(quickly_compiled(jax.vmap(jax.jacfwd(self, 1), (None, 0)))(x, thetas))
        undefined = np.isnan(slopes).all(axis=0)  # (points, p)
        names = [repr(name) for j, name in enumerate(self.parameter_names) if undefined[:, j].any()]
        if names:
            # One infinite slope is enough to spoil the others, so they are one fault.
            inputs = _named(self.input_names, x[int(np.argmax(undefined.any(axis=1)))])
            by = f"parameter{'s' if len(names) > 1 else ''} {', '.join(names)}"
            yield ModelError(
                f"the derivative of the model by its {by} is NaN where {inputs}; "
                "write the model so that it can be differentiated there, or leave that value out of the range."
            )
        for j, name in enumerate(self.parameter_names):
            if not np.any(slopes[..., j] != 0):
                yield unused_parameter(name)

    def _check_shape(self, x: np.ndarray, theta: np.ndarray) -> None:
        try:
            shape = jax.eval_shape(self._raw, x, theta).shape
        except jax.errors.TracerArrayConversionError as error:
            raise ModelError(
                "the model calls NumPy on its arguments, which cannot be differentiated; write it with jax.numpy."
            ) from error
        except jax.errors.ConcretizationTypeError as error:
            raise ModelError(
                "the model needs the value of an argument, by if, float() or the math module; "
                "write it with jax.numpy, and with jax.numpy.where instead of if."
            ) from error
        except ModelError:
            raise
        except (Exception, SystemExit) as error:
            reason = " ".join(str(error).split())[:200]
            raise ModelError(
                f"the model raised {type(error).__name__}: {reason}; mend it before calibrating."
            ) from error
        if shape not in ((), (len(x),)):
            raise ModelError(
                f"the model returns shape {shape} for {len(x)} values of its inputs; "
                f"it must return one value for each, shape ({len(x)},)."
            )


def check_distinct(input_names: Sequence[str], parameter_names: Sequence[str]) -> None:
    """Raise ModelError when a name is given to an input and to a parameter."""
    for name in sorted(set(input_names) & set(parameter_names)):
        raise ModelError(f"'{name}' is both an input and a parameter; rename one of them.")


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


def unused_parameter(name: str) -> ModelError:
    """What is wrong with a parameter that moves nothing."""
    return ModelError(f"the model does not depend on its parameter '{name}'; remove it from the prior.", about=name)


def _named(names: tuple[str, ...], values: np.ndarray) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values, strict=True))
