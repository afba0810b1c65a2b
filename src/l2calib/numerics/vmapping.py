"""How functions of one dataset are computed for many, where what `vmap` would do by itself fills no cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

from l2calib.numerics.arrays import Array, jax, jnp

P = ParamSpec("P")
R = TypeVar("R")
Shared = TypeVar("Shared")


def computed_together(together: Callable[Concatenate[Shared, P], R]) -> Callable[Concatenate[Shared, P], R]:
    """The function of one dataset of which `together` computes a batch.

    Its first argument is shared by all datasets; the others, and what it returns, have the datasets along their first
    axis.
    """
    for_batches = cast("Callable[..., R]", together)

    @jax.custom_batching.custom_vmap
    def one(shared: Shared, *arrays: Array) -> R:
        first: R = jax.tree.map(lambda array: array[0], for_batches(shared, *(array[None] for array in arrays)))
        return first

    @one.def_vmap
    def many(size: int, batched: tuple[object, ...], shared: Shared, *arrays: Array) -> tuple[R, R]:
        assert not any(jax.tree.leaves(batched[0]))
        rows = [
            array if has_rows else jnp.broadcast_to(array, (size, *array.shape))
            for array, has_rows in zip(arrays, batched[1:], strict=True)
        ]
        found = for_batches(shared, *rows)
        return found, jax.tree.map(lambda _: True, found)

    return cast("Callable[Concatenate[Shared, P], R]", one)


def one_after_the_other(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which takes the datasets of a batch in turn."""
    return cast("Callable[P, R]", jax.custom_batching.sequential_vmap(function))
