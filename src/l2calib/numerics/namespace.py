"""The array library of an argument: formulas over it are written once, for NumPy and for JAX."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def namespace_of(array: Any) -> ModuleType:
    """NumPy of a NumPy array, jax.numpy of a JAX array, traced or not."""
    namespace: ModuleType = array.__array_namespace__()
    return namespace
