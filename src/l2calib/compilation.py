"""How hard XLA tries: what runs for milliseconds is not worth optimising for seconds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from l2calib.arrays import jax


def quickly_compiled(function: Callable[..., Any]) -> Any:
    """The function, for one use: compiled with the least optimisation when it is called."""
    return jax.jit(function, compiler_options=_options(0))


def compiled_for_batches(function: Callable[..., Any]) -> Any:
    """The function, for many uses. More optimisation takes twice the time to compile and gains a fifth at the most."""
    return jax.jit(function, compiler_options=_options(1))


@functools.cache
def _options(level: int) -> dict[str, bool | int]:
    """A level of optimisation, and the older of XLA's two generators of code, which is quicker itself.

    XLA refuses an option that it does not know, and its names come and go, so it is asked first.
    """
    plain: dict[str, bool | int] = {"xla_backend_optimization_level": level}
    quicker = plain | {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=quicker)()
    except jax.errors.JaxRuntimeError:
        return plain
    return quicker


class Program:
    """A function traced for arguments of known shapes, and compiled in a thread of its own once it is needed.

    Python traces one program while XLA, which needs no Python, compiles another.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._lowered = quickly_compiled(function).lower(*arguments)
        self._compiled: Future[Any] | None = None

    @property
    def shapes(self) -> Any:
        """Of what the function returns."""
        return self._lowered.out_info

    @property
    def ready(self) -> bool:
        return self._compiled is not None and self._compiled.done()

    def start(self) -> None:
        """Compile it, without waiting."""
        if self._compiled is None:
            worker = ThreadPoolExecutor(1)
            self._compiled = worker.submit(self._lowered.compile)
            worker.shutdown(wait=False)

    def __call__(self, *arguments: Any) -> Any:
        self.start()
        assert self._compiled is not None
        return self._compiled.result()(*arguments)
