"""Work through problems in processes of their own, keep every part as soon as it is there, and continue later.

A process has one problem and one method, so that what JAX compiles for them serves all parts, and ends with them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from benchmarks.named.parts import PartShelf, joined, measured, parts_of
from benchmarks.realistic.judged import Judged, judged
from benchmarks.realistic.measure import Record
from l2calib.display.words import reason_of

# Two processes have two cores, and threads of their own would fight for them.
_ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Plan:
    """Which methods on which problems; a method is a name, 'module:object' or an object that can be pickled."""

    folder: Path
    methods: Sequence[object]
    problems: Sequence[str]
    datasets: int
    revision: str | None = None  # in the place of the methods' own

    def shelf(self, method: Judged, problem: str) -> PartShelf:
        return PartShelf(self.folder, method.name, self.revision or method.revision, problem)

    def missing(self, method: object, problem: str) -> list[range]:
        """The parts that a method has not answered."""
        shelf = self.shelf(judged(method), problem)
        return [part for part in parts_of(self.datasets) if shelf.read(part) is None]

    def kept(self) -> list[Record]:
        """All that is kept, a record for each problem and method that has answered some of it."""
        shelves = [self.shelf(judged(method), problem) for problem in self.problems for method in self.methods]
        found = [[shelf.read(part) for part in parts_of(self.datasets)] for shelf in shelves]
        there = [[record for record in records if record is not None] for records in found]
        return [joined(records) for records in there if records]


def work(plan: Plan, method: object, problem: str) -> None:
    """Answer what is missing of one problem by one method, with a line of progress on stderr for every part."""
    answering = judged(method)
    shelf = plan.shelf(answering, problem)
    for part in plan.missing(method, problem):
        record = measured(problem, answering, part, shelf.revision)
        shelf.write(record)
        each = record.seconds / len(part)
        _tell(f"{shelf.method}, {problem}: datasets {part.start} to {part.stop - 1}, {each:.2f} s each")


def run(plan: Plan, workers: int = 1) -> list[str]:
    """Answer all that is missing; sentences about what went wrong."""
    os.environ.update({name: value for name, value in _ONE_THREAD.items() if name not in os.environ})
    waiting = [(method, problem) for problem in plan.problems for method in plan.methods]
    waiting = [each for each in waiting if plan.missing(*each)]
    wrong, number, began = [], len(waiting), time.monotonic()
    try:
        for done, (label, code) in enumerate(_ended(plan, waiting, workers), start=1):
            if code:
                wrong.append(f"{label}: its process ended with {code}; run it again to continue.")
            _tell(f"{label}: ended, {done} of {number} in {(time.monotonic() - began) / 60:.1f} min")
    except KeyboardInterrupt:
        raise SystemExit("stopped; run it again to continue.") from None
    return wrong


def _ended(plan: Plan, waiting: list[tuple[object, str]], workers: int) -> Iterator[tuple[str, int | None]]:
    """The name and the exit code of each process, as it ends; so many work at a time."""
    context = multiprocessing.get_context("spawn")  # JAX does not survive a fork
    running: dict[int, tuple[str, SpawnProcess]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            method, problem = waiting.pop(0)
            process = context.Process(target=_in_own_process, args=(plan, method, problem), daemon=True)
            process.start()
            running[process.sentinel] = f"{judged(method).name}, {problem}", process
        for sentinel in connection.wait(list(running)):
            label, process = running.pop(sentinel)
            process.join()
            yield label, process.exitcode


def _in_own_process(plan: Plan, method: object, problem: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(plan, method, problem)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # one problem that a method cannot take does not end a night's run
        _tell(f"{judged(method).name}, {problem}: {reason_of(error):.300}")
        sys.exit(1)


def _end_with_parent() -> None:
    """Compute nothing for a parent that was killed, since its successor would compute the same."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
