"""The array library of an argument: formulas over it are written once, for NumPy and for JAX.

In NumPy they are computed at once, for one dataset; in JAX they are traced, mapped over datasets and compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from scipy import special

from l2calib.numerics.arrays import jax

AnyArray: TypeAlias = Any  # of NumPy or of JAX: their types have nothing in common that a type checker knows
State = TypeVar("State")


def namespace_of(array: Any) -> ModuleType:
    """NumPy of what is NumPy's and of plain numbers, jax.numpy of a JAX array, traced or not."""
    find = getattr(array, "__array_namespace__", None)
    namespace: ModuleType = np if find is None else find()
    return namespace


def special_of(array: Any) -> ModuleType:
    """Special functions in the library of an array."""
    functions: ModuleType = special if namespace_of(array) is np else jax.scipy.special
    return functions


class Loops(Protocol):
    """Loops as `jax.lax` has them; a step of `scan` returns its carry and a tuple of arrays."""

    def while_loop(
        self, unsettled: Callable[[State], AnyArray], step: Callable[[State], State], start: State, /
    ) -> State: ...

    def fori_loop(self, first: int, end: int, step: Callable[[Any, State], State], start: State, /) -> State: ...

    def scan(
        self, step: Callable[[State, AnyArray], tuple[State, tuple[AnyArray, ...]]], start: State, each: AnyArray, /
    ) -> tuple[State, tuple[AnyArray, ...]]: ...

    def map(self, function: Callable[[AnyArray], AnyArray], each: AnyArray, /) -> AnyArray: ...


class _Plain:
    """Those of Python, which do at once what `jax.lax` only writes down."""

    def while_loop(
        self, unsettled: Callable[[State], AnyArray], step: Callable[[State], State], start: State, /
    ) -> State:
        state = start
        while unsettled(state):
            state = step(state)
        return state

    def fori_loop(self, first: int, end: int, step: Callable[[Any, State], State], start: State, /) -> State:
        state = start
        for count in range(first, end):
            state = step(count, state)
        return state

    def scan(
        self, step: Callable[[State, AnyArray], tuple[State, tuple[AnyArray, ...]]], start: State, each: AnyArray, /
    ) -> tuple[State, tuple[AnyArray, ...]]:
        state, found = start, []
        for one in each:
            state, seen = step(state, one)
            found.append(seen)
        return state, tuple(np.stack(part) for part in zip(*found, strict=True))

    def map(self, function: Callable[[AnyArray], AnyArray], each: Iterable[AnyArray], /) -> AnyArray:
        return np.stack([function(one) for one in each])


_PLAIN = _Plain()


def loops_of(array: Any) -> Loops:
    """The loops that go with the library of an array."""
    return _PLAIN if namespace_of(array) is np else cast("Loops", jax.lax)


def log_sum_exp(values: AnyArray, axis: int) -> AnyArray:
    """The log of the sum of exp(values); minus infinity where all of them are."""
    xp = namespace_of(values)
    largest = xp.max(values, axis=axis, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, 0.0)
    return xp.log(xp.sum(xp.exp(values - largest), axis=axis)) + xp.squeeze(largest, axis)


def softmax(values: AnyArray) -> AnyArray:
    """exp(values) with a sum of one along the last axis."""
    xp = namespace_of(values)
    parts = xp.exp(values - xp.max(values, axis=-1, keepdims=True))
    return parts / xp.sum(parts, axis=-1, keepdims=True)


def largest(values: AnyArray, keep: int) -> tuple[AnyArray, AnyArray]:
    """The `keep` largest values along the last axis and their indices, the largest first."""
    if namespace_of(values) is np:
        order = np.argsort(-values, axis=-1, kind="stable")[..., :keep]
        return np.take_along_axis(values, order, axis=-1), order
    return cast("tuple[AnyArray, AnyArray]", tuple(jax.lax.top_k(values, keep)))


def placed(values: AnyArray, index: AnyArray, new: AnyArray) -> AnyArray:
    """Rows of values with new ones at some places (R, K) of each."""
    if namespace_of(values) is np:
        values = values.copy()
        np.put_along_axis(values, index, new, axis=1)
        return values
    return values.at[np.arange(len(index))[:, None], index].set(new)
