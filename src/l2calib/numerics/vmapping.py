"""How functions of one dataset are computed for many, where what `vmap` would do by itself fills no cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from l2calib.numerics.arrays import jax, jnp


def computed_together(together: Callable[..., Any]) -> Callable[..., Any]:
    """The function of one dataset of which `together` computes a batch.

    Its first argument is shared by all datasets; the others, and what it returns, have the datasets along their first
    axis.
    """

    @jax.custom_batching.custom_vmap
    def one(shared: Any, *arrays: Any) -> Any:
        return jax.tree.map(lambda array: array[0], together(shared, *(array[None] for array in arrays)))

    @one.def_vmap
    def many(size: int, batched: Any, shared: Any, *arrays: Any) -> tuple[Any, Any]:
        assert not any(jax.tree.leaves(batched[0]))
        rows = [
            array if has_rows else jnp.broadcast_to(array, (size, *array.shape))
            for array, has_rows in zip(arrays, batched[1:], strict=True)
        ]
        found = together(shared, *rows)
        return found, jax.tree.map(lambda _: True, found)

    return one


def one_after_the_other(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which takes the datasets of a batch in turn."""
    in_turn: Callable[..., Any] = jax.custom_batching.sequential_vmap(function)
    return in_turn
