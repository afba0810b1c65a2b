"""How hard XLA tries: what runs for milliseconds is not worth optimising for seconds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from l2calib.numerics.arrays import jax

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Compiled(Protocol[P, R_co]):
    """A function that is compiled when it is called with arguments of new shapes, or ahead of that."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def lower(self, *shapes: Any, **named: Any) -> jax.stages.Lowered:
        """Trace it for arguments of known shapes."""
        ...


def quickly_compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """The function, for one use: compiled with the least optimisation when it is called."""
    return cast("Compiled[P, R]", jax.jit(function, compiler_options=_options(0)))


def compiled_for_batches(function: Callable[P, R]) -> Compiled[P, R]:
    """The function, for many uses. More optimisation takes twice the time to compile and gains a fifth at the most."""
    return cast("Compiled[P, R]", jax.jit(function, compiler_options=_options(1)))


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


class Program(Generic[P, R]):
    """A function traced for arguments of known shapes, and compiled in a thread of its own once it is needed.

    Python traces one program while XLA, which needs no Python, compiles another.
    """

    def __init__(self, function: Callable[P, R], *shapes: Any, **named: Any) -> None:
        self._lowered = quickly_compiled(function).lower(*shapes, **named)
        self._compiled: Future[jax.stages.Compiled] | None = None

    @property
    def shapes(self) -> R:
        """What the function returns, with shapes in the place of arrays."""
        return cast("R", self._lowered.out_info)

    @property
    def ready(self) -> bool:
        return self._compiled is not None and self._compiled.done()

    def start(self) -> None:
        """Compile it, without waiting."""
        if self._compiled is None:
            worker = ThreadPoolExecutor(1)
            self._compiled = worker.submit(self._lowered.compile)
            worker.shutdown(wait=False)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        self.start()
        assert self._compiled is not None
        return cast("R", self._compiled.result()(*args, **kwargs))
