"""Handing tasks out to a crew and taking the results in; what the tasks compute is no matter here.

A crew works in the background and tells of what happens as events in a queue; only `run`, in the caller's thread, acts
on them, so that results are taken in one at a time and signals cannot fall between two of them.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from l2calib.errors import L2CalibError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

_ATTEMPTS = 3


class Task(Protocol):
    """A piece of work; its `str` names it in sentences."""

    @property
    def group(self) -> Hashable:
        """What shares a compiled program: a worker that has done one task of a group does the next sooner."""


@dataclass(frozen=True)
class Ready:
    """A slot is there and waits for a task."""

    slot: Hashable


@dataclass(frozen=True)
class Done:
    """A slot has done its task, and waits for the next."""

    slot: Hashable
    data: bytes


@dataclass(frozen=True)
class Raised:
    """The work itself failed, as it would anywhere."""

    slot: Hashable
    reason: str


@dataclass(frozen=True)
class Lost:
    """A slot is gone, with what it worked on; it comes back, if at all, as ready."""

    slot: Hashable
    reason: str


@dataclass(frozen=True)
class Note:
    """Something that people should know, though the run goes on."""

    sentence: str


@dataclass(frozen=True)
class Broken:
    """The crew as a whole cannot go on."""

    reason: str


@dataclass(frozen=True)
class Signal:
    """The process was asked to end."""

    number: int


Event = Ready | Done | Raised | Lost | Note | Broken | Signal
T = TypeVar("T", bound=Task)
P = TypeVar("P")
T_contra = TypeVar("T_contra", contravariant=True)


class Crew(Protocol[P]):
    """Slots that each work on one task at a time, here or elsewhere."""

    @property
    def events(self) -> queue.SimpleQueue[Event]: ...

    def start(self, work: Callable[[P], bytes]) -> None:
        """Begin, so that `Ready` events come."""

    def hand(self, slot: Hashable, package: P) -> None:
        """Give a slot that waits its next task, packed, without waiting for it."""

    def stop(self) -> None:
        """End all work at once; what arrives later is of no interest."""


class Progress(Protocol[T_contra]):
    """Whoever wants to know how it goes."""

    def started(self, task: T_contra) -> None: ...

    def done(self, task: T_contra) -> None: ...

    def note(self, sentence: str) -> None: ...


class Interrupted(L2CalibError):
    """A signal ended the run; what was finished is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}; what was finished is kept.")
        self.number = number


@dataclass
class _Job(Generic[T]):
    task: T
    lost: int = 0


class _Board(Generic[T]):
    """What waits, who works on what, and who gets which task next."""

    def __init__(self, tasks: Sequence[T]) -> None:
        self._waiting: dict[Hashable, deque[_Job[T]]] = {}
        self._working: dict[Hashable, _Job[T]] = {}
        self._last_group: dict[Hashable, Hashable] = {}
        self._idle: dict[Hashable, None] = {}  # a set that keeps its order
        for task in tasks:
            self._waiting.setdefault(task.group, deque()).append(_Job(task))

    @property
    def unfinished(self) -> bool:
        return bool(self._waiting or self._working)

    def ready(self, slot: Hashable) -> None:
        self._idle[slot] = None

    def finish(self, slot: Hashable) -> T | None:
        """Take the task of a slot as finished; None if the slot has none, being given up before."""
        job = self._working.pop(slot, None)
        return None if job is None else job.task

    def lose(self, slot: Hashable) -> _Job[T] | None:
        """Forget a slot, and put what it worked on first in its group's line."""
        self._idle.pop(slot, None)
        self._last_group.pop(slot, None)
        job = self._working.pop(slot, None)
        if job is not None:
            job.lost += 1
            self._waiting.setdefault(job.task.group, deque()).appendleft(job)
        return job

    def assignments(self) -> Iterator[tuple[Hashable, T]]:
        """Give every idle slot a task, as long as there are tasks."""
        while self._idle and self._waiting:
            # A slot whose group has tasks left goes first, so that nobody else takes them.
            slot = next((each for each in self._idle if self._last_group.get(each) in self._waiting), None)
            slot = next(iter(self._idle)) if slot is None else slot
            del self._idle[slot]
            job = self._next_job(slot)
            self._working[slot] = job
            self._last_group[slot] = job.task.group
            yield slot, job.task

    def _next_job(self, slot: Hashable) -> _Job[T]:
        group = self._last_group.get(slot)
        if group not in self._waiting:
            taken = {job.task.group for job in self._working.values()}
            untouched = [each for each in self._waiting if each not in taken]
            group = untouched[0] if untouched else max(self._waiting, key=lambda each: len(self._waiting[each]))
        line = self._waiting[group]
        job = line.popleft()
        if not line:
            del self._waiting[group]
        return job


def run(
    tasks: Sequence[T],
    work: Callable[[P], bytes],
    crew: Crew[P],
    finished: Callable[[T, bytes], None],
    progress: Progress[T],
    pack: Callable[[T], P],
) -> None:
    """Have `work` done on what `pack` makes of every task, and hand each result to `finished` as it arrives.

    Whatever ends the run early, results that have arrived by then are handed over before the exception is raised.
    """
    desk = _Desk(_Board(tasks), finished, progress)
    with _signals_as_events(crew.events):
        try:
            if tasks:
                crew.start(work)
            while desk.board.unfinished:
                desk.act(crew.events.get())
                for slot, task in desk.board.assignments():
                    progress.started(task)
                    crew.hand(slot, pack(task))
        except BaseException:
            crew.stop()
            for event in _arrived(crew.events):
                if isinstance(event, Done):
                    with contextlib.suppress(Exception):  # what is raised already says more
                        desk.act(event)
            raise
        crew.stop()


@dataclass(frozen=True)
class _Desk(Generic[T]):
    """Where events are dealt with."""

    board: _Board[T]
    finished: Callable[[T, bytes], None]
    progress: Progress[T]

    def act(self, event: Event) -> None:
        match event:
            case Ready(slot):
                self.board.ready(slot)
            case Done(slot, data):
                self._take_in(slot, data)
            case Raised(slot, reason):
                raise L2CalibError(f"{self.board.finish(slot)} failed: {reason}")
            case Lost(slot, reason):
                _give_up_if_hopeless(self.board.lose(slot), reason)
            case Note(sentence):
                self.progress.note(sentence)
            case Broken(reason):
                raise L2CalibError(reason)
            case Signal(number):
                raise Interrupted(number)

    def _take_in(self, slot: Hashable, data: bytes) -> None:
        task = self.board.finish(slot)
        if task is not None:
            self.board.ready(slot)
            self.finished(task, data)
            self.progress.done(task)


def _give_up_if_hopeless(job: _Job[T] | None, reason: str) -> None:
    if job is not None and job.lost >= _ATTEMPTS:
        raise L2CalibError(
            f"{job.task} was given up after {_ATTEMPTS} attempts, in each of which its worker was lost, "
            f"the last time because {reason}; what was finished is kept."
        )


def _arrived(events: queue.SimpleQueue[Event]) -> Iterator[Event]:
    with contextlib.suppress(queue.Empty):
        while True:
            yield events.get_nowait()


@contextlib.contextmanager
def _signals_as_events(events: queue.SimpleQueue[Event]) -> Iterator[None]:
    """Ctrl-C and SIGTERM wait their turn, so that no file is left half written; asked twice, they do not wait."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    usual = (signal.default_int_handler, signal.SIG_DFL)
    if threading.current_thread() is not threading.main_thread():
        before = {}
    before = {number: handler for number, handler in before.items() if handler in usual}

    def announce(number: int, _: object) -> None:
        events.put(Signal(number))  # the one kind of queue that a handler may write to
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, announce)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
