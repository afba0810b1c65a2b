"""A Dask cluster as a crew: every thread of every Dask worker is a slot.

Dask moves requests and replies about, and knows who is there. The work itself is done in a child process of the Dask
worker, of the same kind as on one machine, so that its bits are the same.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import queue
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from l2calib.display.words import reason_of
from l2calib.errors import L2CalibError, SpecError
from l2calib.study.block import versions
from l2calib.study.runner import Broken, Event, Lost, Note, Ready
from l2calib.study.workers import Worker, WorkerDied, outcome, request

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

T = TypeVar("T")
Slot = tuple[str, int]

_DIED = b"x"
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_CONNECT = 10
_SECONDS_TO_PART = 5
_SECONDS_WITHOUT_WORKERS = 30


class ClusterCrew(Generic[T]):
    """The workers at a Dask scheduler, also those that come later; what one that leaves worked on is lost."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = _connect(address)
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._run = uuid.uuid4().hex
        self._slots: set[Slot] = set()
        self._begun = False  # until then a worker that cannot be used ends the run, later it is only left out
        self._refused: set[str] = set()
        self._futures: dict[Slot, Any] = {}
        self._failed: dict[Slot, str] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def start(self, work: Callable[[T], bytes]) -> None:
        self._work = work
        self._watcher.start()

    def hand(self, slot: Hashable, package: T) -> None:
        address, index = cast("Slot", slot)
        try:
            with self._lock:
                future = self._client.submit(
                    _compute, self._run, index, request(self._work, package), workers=[address], pure=False
                )
                self._futures[address, index] = future
            future.add_done_callback(lambda done: self._take(slot, done))
        except Exception as error:  # Dask's errors have no common parent
            self.events.put(Broken(self._gone(error)))

    def stop(self) -> None:
        self._ended.set()
        # Whoever does not answer is not waited for.
        parting = threading.Thread(target=self._part, daemon=True)
        parting.start()
        parting.join(_SECONDS_TO_PART)

    def _part(self) -> None:
        with self._lock:
            futures = list(self._futures.values())
            self._futures.clear()
        try:
            if self._client.status == "running":
                self._client.cancel(futures)
                self._client.run(_end, self._run, on_error="ignore")
            self._client.close(timeout=1)
        except Exception:  # the scheduler is gone, and with it whatever could be said to it
            logging.getLogger(__name__).debug("the scheduler cannot be left properly", exc_info=True)

    def _take(self, slot: Any, future: Any) -> None:
        """Pass a reply on; in Dask's own thread."""
        try:
            kind, said = future.result()
        except BaseException as error:  # being cancelled is none of the usual exceptions
            kind, said = _DIED, f"Dask failed with {reason_of(error)}".encode()
        with self._lock:
            if self._futures.get(slot) is not future:  # given up meanwhile
                return
            del self._futures[slot]
            if kind == _DIED:
                self._failed[slot] = said.decode()
                return
        self.events.put(outcome(slot, kind, said))

    def _watch(self) -> None:
        """Look again and again at who is there."""
        seen = time.monotonic()
        try:
            while not self._ended.is_set():
                threads = self._client.nthreads()
                self._say_goodbye(threads)
                self._welcome(threads)
                seen = time.monotonic() if self._slots else seen
                self._check_patience(seen)
                self._ended.wait(_SECONDS_BETWEEN_LOOKS)
        except L2CalibError as error:
            self.events.put(Broken(str(error)))
        except Exception as error:
            self.events.put(Broken(self._gone(error)))

    def _say_goodbye(self, threads: dict[str, int]) -> None:
        with self._lock:
            lost = {slot: "its Dask worker left" for slot in self._slots if slot[0] not in threads} | self._failed
            futures = [future for slot in lost if (future := self._futures.pop(slot, None)) is not None]
            self._failed.clear()
        self._slots -= lost.keys()
        for slot, reason in lost.items():
            self.events.put(Lost(slot, reason))
        if futures:
            self._client.cancel(futures)

    def _welcome(self, threads: dict[str, int]) -> None:
        known = {address for address, _ in self._slots} | self._refused
        for sentence in self._objections([address for address in threads if address not in known]):
            if not self._begun:
                raise L2CalibError(sentence)
            self.events.put(Note(sentence))
        usable = ((address, index) for address in threads.keys() - self._refused for index in range(threads[address]))
        for slot in sorted(set(usable) - self._slots):
            self._begun = True
            self._slots.add(slot)
            self.events.put(Ready(slot))

    def _objections(self, newcomers: list[str]) -> Iterable[str]:
        """Refuse workers whose bits might differ."""
        if not newcomers:
            return
        ours = versions()
        for address, theirs in self._client.run(versions, workers=newcomers, on_error="return").items():
            if theirs != ours:
                self._refused.add(address)
                yield f"the Dask worker at {address} cannot be used: {_difference(ours, theirs)}"

    def _check_patience(self, seen: float) -> None:
        if time.monotonic() - seen > _SECONDS_WITHOUT_WORKERS:
            raise L2CalibError(
                f"the Dask scheduler at {self._address} has had no usable workers for {_SECONDS_WITHOUT_WORKERS} "
                f"seconds; start some, for instance with 'dask worker {self._address}'."
            )

    def _gone(self, error: Exception) -> str:
        return (
            f"the Dask scheduler at {self._address} does not answer any more ({type(error).__name__}); "
            "what was finished is kept."
        )


def _connect(address: str) -> Any:
    try:
        distributed: Any = importlib.import_module("distributed")  # in part without types
    except ImportError:
        raise SpecError("a Dask cluster needs a further package; run: pip install 'l2calib[distributed]'.") from None
    # What it logs is said here in one sentence, or is of no interest to who runs a study.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    async def knock() -> None:
        options = distributed.Security().get_connection_args("client")
        (await distributed.comm.connect(address, timeout=_SECONDS_TO_CONNECT, **options)).abort()

    try:
        # A client that never connected is not easily got rid of, so there is none before the scheduler answers.
        asyncio.run(knock())
        return distributed.Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except Exception as error:  # Dask's errors have no common parent
        raise SpecError(
            f"no Dask scheduler answers at '{address}' ({reason_of(error)}); "
            "give the address that 'dask scheduler' prints, like tcp://127.0.0.1:8786."
        ) from None


def _difference(ours: dict[str, str], theirs: dict[str, str] | BaseException) -> str:
    if isinstance(theirs, BaseException):
        return f"it fails with {reason_of(theirs)}; install l2calib {ours['l2calib']} there."
    wrong = [f"{package} {theirs.get(package)} instead of {ours[package]}" for package in ours]
    wrong = [each for each, package in zip(wrong, ours, strict=True) if theirs.get(package) != ours[package]]
    return f"it has {', '.join(wrong)}; install the same versions everywhere."


# What follows runs in the Dask workers.


class _Place:
    """A worker process, started when it is first needed and kept for the next task."""

    def __init__(self) -> None:
        self.run = ""
        self._busy = threading.Lock()
        self._worker: Worker | None = None

    def reply(self, run: str, asked: bytes) -> tuple[bytes, bytes]:
        with self._busy:
            self.run = run
            self._worker = self._worker or Worker()
            try:
                return self._worker.reply(asked)
            except WorkerDied as error:
                self._worker = None
                return _DIED, str(error).encode()

    def clear(self) -> None:
        worker = self._worker
        if worker is not None:
            worker.kill()  # so that whoever waits for it does not keep the place
        with self._busy:
            if self._worker is not None:
                self._worker.bury()
                self._worker = None


_places: dict[int, _Place] = {}
_ended_runs: set[str] = set()


def _compute(run: str, index: int, asked: bytes) -> tuple[bytes, bytes]:
    if run in _ended_runs:
        return _DIED, b"the run has ended"
    return _places.setdefault(index, _Place()).reply(run, asked)


def _end(run: str) -> None:
    _ended_runs.add(run)
    for place in list(_places.values()):
        if place.run == run:
            place.clear()
