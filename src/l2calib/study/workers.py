"""Worker processes: one kind computes every task wherever it runs, so that its bits are the same (docs/decisions/0008).

A worker is ``python -m l2calib.study.workers``, which reads requests from stdin and writes replies to stdout, each a
length and that many bytes. It needs nothing of the program that started it, which may itself be a daemon that may not
have children of `multiprocessing`; and when that program dies, however it does, stdin ends and the worker with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import queue
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

from l2calib.display.words import one_line, reason_of
from l2calib.errors import L2CalibError
from l2calib.study.memory import give_back
from l2calib.study.runner import Broken, Done, Event, Lost, Raised, Ready

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

_LENGTH = struct.Struct(">Q")
_DONE, _RAISED = b"d", b"r"
# One thread and one kind of device, known before JAX and BLAS are loaded: sums are then always taken in the same order.
_ONE_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "NPROC": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_CACHE_OPTIONS = ("JAX_ENABLE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_", "JAX_PERSISTENT_CACHE_")


class WorkerDied(L2CalibError):
    """A worker process ended without a reply; the message is a clause."""


class Worker:
    """A process that works on one task at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "l2calib.study.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            process_group=0,  # Ctrl-C is for the program that started it
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def reply(self, request: bytes) -> tuple[bytes, bytes]:
        """Send a request and wait for the reply: its kind and what it says."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _write(self._process.stdin, request)
            answer = _read(self._process.stdout)
        except OSError:
            answer = None
        if answer is None:
            raise WorkerDied(self._cause_of_death())
        return answer[:1], answer[1:]

    def kill(self) -> None:
        """End it, from whichever thread; the thread that waits for a reply gets none."""
        self._process.kill()

    def bury(self) -> None:
        """End it and free what belongs to it; for the thread that asks for replies."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # a request that could not be sent
                pipe.close()

    def _cause_of_death(self) -> str:
        self.bury()
        status = self._process.returncode
        if status == -signal.SIGKILL:
            return "it was killed, as systems do when memory runs out"
        if status < 0:
            return f"it was ended by {signal.Signals(-status).name}"
        return f"it left with exit status {status}"


def request(work: Callable[[T], bytes], task: T) -> bytes:
    """What a worker is sent; the function travels by its name."""
    return pickle.dumps((work, task))


def outcome(slot: Hashable, kind: bytes, said: bytes) -> Done | Raised:
    """A reply as an event."""
    return Done(slot, said) if kind == _DONE else Raised(slot, said.decode())


class LocalCrew(Generic[T]):
    """A number of workers on this machine, one slot each; a worker that dies is replaced."""

    def __init__(self, workers: int) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._slots = range(workers)
        self._requests: list[queue.SimpleQueue[bytes | None]] = [queue.SimpleQueue() for _ in self._slots]
        self._threads: list[threading.Thread] = []
        self._workers: dict[int, Worker] = {}
        self._stopped = False
        self._lock = threading.Lock()

    def start(self, work: Callable[[T], bytes]) -> None:
        self._work = work
        for slot in self._slots:
            thread = threading.Thread(target=self._tend, args=(slot,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def hand(self, slot: Hashable, package: T) -> None:
        assert isinstance(slot, int)
        self._requests[slot].put(request(self._work, package))

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for worker in list(self._workers.values()):
                worker.kill()
        for line in self._requests:
            line.put(None)
        for thread in self._threads:
            thread.join()

    def _tend(self, slot: int) -> None:
        """Pass requests and replies on, for one slot."""
        self.events.put(Ready(slot))
        while (asked := self._requests[slot].get()) is not None:
            try:
                worker = self._worker(slot)
                kind, said = worker.reply(asked)
            except WorkerDied as error:
                self._workers.pop(slot, None)
                self.events.put(Lost(slot, str(error)))
                self.events.put(Ready(slot))
            except OSError as error:  # no processes or no memory left
                self.events.put(Broken(f"no worker process can be started: {error.strerror or error}."))
            else:
                self.events.put(outcome(slot, kind, said))
        if slot in self._workers:
            self._workers[slot].bury()

    def _worker(self, slot: int) -> Worker:
        """The worker of a slot, started when it is first needed."""
        with self._lock:
            if self._stopped:
                raise WorkerDied("the run has ended")
            if slot not in self._workers:
                self._workers[slot] = Worker()
            return self._workers[slot]


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def environment() -> dict[str, str]:
    """The environment of a worker: this one's, but nothing in it that changes what JAX computes."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("JAX_") or name.startswith(_CACHE_OPTIONS)
    }
    return cache_of_programs() | kept | _ONE_THREAD


def cache_of_programs() -> dict[str, str]:
    """Variables that make JAX keep compiled programs for other processes: compiling takes longer than many a block."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        # Code made for one processor may crash another, and a home may be shared.
        folder = home / "l2calib" / "xla" / _processor()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or none that can be written to
        return {}
    if not os.access(folder, os.W_OK | os.X_OK):
        return {}
    return {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        known = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    except OSError:
        known = [platform.platform(), platform.processor()]
    return hashlib.sha256("\n".join([platform.machine(), *known]).encode()).hexdigest()[:16]


def serve() -> None:
    """Answer requests until there are no more; the life of a worker."""
    # The pipes are kept for the protocol: what a model prints goes to stderr, and it has nothing to read.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, waiting), daemon=True).start()
    _ignore_broken_caches()
    while True:
        answer = _answer(waiting.get())
        try:
            _write(replies, answer)
        except OSError:
            os._exit(0)
        give_back()


def _listen(requests: BinaryIO, waiting: queue.SimpleQueue[bytes]) -> None:
    """Hear at once, also in the middle of a task, that nobody is left to work for."""
    while (asked := _read(requests)) is not None:
        waiting.put(asked)
    os._exit(0)


def _answer(asked: bytes) -> bytes:
    try:
        work, task = pickle.loads(asked)  # noqa: S301 - from the program that started this one
        return _DONE + bytes(work(task))
    except (Exception, SystemExit) as error:  # a model is the user's, so anything may come out of it
        if os.environ.get("L2CALIB_TRACEBACK"):
            import traceback

            traceback.print_exc()
        return _RAISED + _sentence(error).encode()


def _sentence(error: BaseException) -> str:
    return one_line(str(error)) if isinstance(error, L2CalibError) else f"{reason_of(error)}."


def _ignore_broken_caches() -> None:
    """A program that cannot be read from the cache, or written to it, is compiled: no matter for a warning."""
    import warnings

    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache")


def _write(stream: Any, data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _read(stream: Any) -> bytes | None:
    """The next message, None at the end of the stream or in the middle of a message that was cut off."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data: bytes = stream.read(length)
    return data if len(data) == length else None


if __name__ == "__main__":
    serve()
