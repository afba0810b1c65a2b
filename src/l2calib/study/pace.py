"""How much longer a study takes. Blocks differ a thousandfold, so those that are left are not like those that are done.

What a block of one configuration and method takes is known once one of a near size is done. Before that it is guessed:
from the method and the number of parameters, and from how far such guesses were off for what is done.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from l2calib.methods.catalogue import cost_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from l2calib.study.plan import Cell

_PER_PARAMETER = 3.0  # roughly, from the study's benchmark: it matters only until something is known
_LEAST = 1e-3  # seconds: no block takes less


class _Done(NamedTuple):
    """Blocks of one configuration, method and n: how many, their seconds, and those spent once, as on programs."""

    blocks: int = 0
    seconds: float = 0.0
    once: float = 0.0

    @property
    def block(self) -> float:
        """The seconds of one."""
        return max(self.seconds / self.blocks, _LEAST)


class Pace:
    """What is left of `cells`, by what the others took; `parameters` says how many each configuration has."""

    def __init__(self, cells: Iterable[Cell], parameters: Mapping[str, int]) -> None:
        self._parameters = parameters
        self._left = Counter((cell.configuration, cell.method, cell.n) for cell in cells)
        self._done: dict[tuple[str, str], dict[int, _Done]] = {}  # by configuration and method, and by n

    def took(self, cell: Cell, known: Mapping[str, Any]) -> None:
        """A block is done, now or before; `known` is what its file says."""
        self._left[cell.configuration, cell.method, cell.n] -= 1
        sizes = self._done.setdefault((cell.configuration, cell.method), {})
        before = sizes.get(cell.n, _Done())
        sizes[cell.n] = _Done(
            before.blocks + 1,
            before.seconds + known["seconds"] - known["seconds_compiling"],
            before.once + known["seconds_compiling"] + known["seconds_preparing"],
        )

    def seconds_left(self, workers: int) -> float | None:
        """Until so many workers are through; None before anything is known."""
        if not self._done:
            return None
        guessed, once = self._guessed(), self._once()
        work = 0.0
        for (configuration, method, n), number in self._left.items():
            if number > 0:
                sizes = self._done.get((configuration, method), {})
                nearest = min(sizes, key=lambda size: abs(math.log(size / n)), default=None)
                block = guessed[configuration, method] if nearest is None else sizes[nearest].block
                work += number * block + (0.0 if n in sizes else once[method])
        return work / max(workers, 1)

    def _guessed(self) -> dict[tuple[str, str], float]:
        """The seconds of a block by configuration and method, right on average for what is done of the configuration.

        Or for what is done of any, where nothing of it is.
        """
        off: dict[str, list[float]] = defaultdict(list)
        for kind, sizes in self._done.items():
            off[kind[0]] += [math.log(each.block / self._guess(*kind)) for each in sizes.values()]
        anywhere = [each for several in off.values() for each in several]
        return {
            (configuration, method): self._guess(configuration, method)
            * math.exp(fmean(off.get(configuration, anywhere)))
            for configuration, method, _ in self._left
        }

    def _once(self) -> dict[str, float]:
        """The seconds that a worker spends when it meets a method at a new design."""
        spent: dict[str, list[float]] = defaultdict(list)
        for (_, method), sizes in self._done.items():
            spent[method] += [each.once for each in sizes.values()]
        anywhere = [each for several in spent.values() for each in several]
        return {method: fmean(spent.get(method, anywhere)) for _, method, _ in self._left}

    def _guess(self, configuration: str, method: str) -> float:
        return cost_of(method) * _PER_PARAMETER ** self._parameters[configuration]
