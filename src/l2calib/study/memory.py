"""The memory of a worker: what it keeps from one design to the next, and how it returns the rest."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from pathlib import Path

_ROOM_FOR_PROGRAMS = 1.2e9  # bytes that a worker may have between two designs


def make_room() -> None:
    """Forget compiled programs if they fill the memory; JAX keeps them all, and designs share most of theirs."""
    give_back()
    if _resident_bytes() > _ROOM_FOR_PROGRAMS and "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


def give_back() -> None:
    """What is freed stays with the C library, in pieces, until it is told to return it: half of a worker's memory."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not every C library has it
        if trim is not None:
            trim(0)


def _resident_bytes() -> float:
    """The memory that this process has; where that cannot be known, more than it may."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return math.inf
    return pages * os.sysconf("SC_PAGE_SIZE")
