"""How a study goes: a bar on a terminal, silence elsewhere, and in any case a sentence at the end."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from l2calib.cli.terminal import say

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from l2calib.study.pace import Pace
    from l2calib.study.plan import Cell

_WINDOW = 60.0  # seconds over which the speed is taken
_SHOWN_LABELS = 3


class StudyProgress:
    """Blocks done of all, calibrations per second, time left, and what is worked on; a context manager.

    `there` blocks of `total` were computed before, and a block holds `size` calibrations; `pace` knows what they take.
    """

    def __init__(self, total: int, there: int, size: int, pace: Pace) -> None:
        self.total, self.there, self._size, self._pace = total, there, size, pace
        self.finished, self._workers = 0, 0
        self._left, self._left_known = "", -math.inf
        self._under_way: dict[Cell, None] = {}  # a set that keeps its order
        self._arrivals: deque[float] = deque()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> StudyProgress:
        self._started = time.monotonic()
        if sys.stderr.isatty() and not os.environ.get("CI") and self.there < self.total:
            self._show_bar()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def started(self, cell: Cell) -> None:
        self._under_way[cell] = None
        self._workers = len(self._under_way)
        self._update()

    def done(self, cell: Cell) -> None:
        self.finished += 1
        del self._under_way[cell]
        self._arrivals.append(time.monotonic())
        self._update()

    def note(self, sentence: str) -> None:
        say(sentence)

    def closing(self) -> str:
        """What was done, when all is."""
        blocks = "1 block was" if self.finished == 1 else f"{self.finished:,} blocks were"
        return f"{blocks} done in {duration(time.monotonic() - self._started)}, {self.there:,} were there already."

    def _show_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._bar = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} blocks"),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=self.total, completed=self.there, speed="", left="")
        self._bar.start()

    def _update(self) -> None:
        if self._bar is None or self._task is None:
            return
        labels = list(dict.fromkeys(_label(cell) for cell in self._under_way))
        more = " ..." if len(labels) > _SHOWN_LABELS else ""
        self._bar.update(
            self._task,
            completed=self.there + self.finished,
            description=", ".join(labels[:_SHOWN_LABELS]) + more,
            speed=f"{self._speed():,.0f} calibrations/s",
            left=self._time_left(),
        )

    def _time_left(self) -> str:
        """In words, taken anew every second, since it takes a few milliseconds."""
        now = time.monotonic()
        if now - self._left_known > 1:
            left = self._pace.seconds_left(self._workers)
            self._left = "" if left is None else f"about {duration(left)} left"
            self._left_known = now if self._left else -math.inf
        return self._left

    def _speed(self) -> float:
        now = time.monotonic()
        while self._arrivals and self._arrivals[0] < now - _WINDOW:
            self._arrivals.popleft()
        span = min(_WINDOW, now - self._started)
        return len(self._arrivals) * self._size / span if span > 0 else 0.0


def _label(cell: Cell) -> str:
    return f"{cell.configuration}/n={cell.n}/{cell.method}"


def duration(seconds: float) -> str:
    """In words, to the second."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
