"""Work through problems in processes of their own, keep every answer as soon as it is there, and continue later.

A process works on a few problems only: what JAX has compiled for them is of no use to others, and it keeps it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.realistic.judged import Judged, judged
from benchmarks.realistic.measure import Record, judge
from benchmarks.realistic.problems import mix, problem
from benchmarks.realistic.storage import Shelf
from l2calib.display.words import counted, reason_of

_PROBLEMS_PER_PROCESS = 2  # with two inputs, up to a gigabyte each
# Two processes have two cores, and threads of their own would fight for them.
_ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Plan:
    """Which methods on which problems; a method is a name, 'module:object' or an object that can be pickled."""

    folder: Path
    methods: Sequence[object]
    seeds: Sequence[int]
    datasets: int
    one_by_one: bool = False
    revision: str | None = None  # in the place of the methods' own

    def judged(self) -> dict[Shelf, Judged]:
        """What is judged, and where it is kept."""
        several = [judged(each, self.one_by_one) for each in self.methods]
        return {self._shelf(each): each for each in several}

    def _shelf(self, method: Judged) -> Shelf:
        return Shelf(self.folder, method.name, self.revision or method.revision, self.datasets)

    def missing(self) -> list[int]:
        """The problems that some method has not answered."""
        shelves = list(self.judged())
        return [seed for seed in self.seeds if any(shelf.read(seed) is None for shelf in shelves)]

    def answered(self) -> dict[str, dict[int, Record]]:
        """All that is kept, by method and seed."""
        found = {shelf.method: {seed: shelf.read(seed) for seed in self.seeds} for shelf in self.judged()}
        return {name: {s: r for s, r in records.items() if r is not None} for name, records in found.items()}


def seeds_of(half: str, number: int) -> list[int]:
    """The first problems of a half: even seeds are for tuning, odd ones for reporting."""
    return list(range({"tuning": 0, "reporting": 1}[half], 2 * number, 2))


def work(plan: Plan, seed: int) -> list[str]:
    """Answer what is missing of one problem; sentences about what went wrong."""
    wrong, posed = [], problem(seed)
    for shelf, method in plan.judged().items():
        if shelf.read(seed) is not None:
            continue
        try:
            record = judge(posed, method, plan.datasets)
        except Exception as error:  # one problem that a method cannot take does not end a night's run
            wrong.append(f"{shelf.method}, seed {seed}: {reason_of(error):.300}")
        else:
            shelf.write(replace(record, revision=shelf.revision))
    return wrong


def run(plan: Plan, workers: int = 1) -> list[str]:
    """Answer all that is missing, with a line of progress on stderr; sentences about what went wrong."""
    seeds, wrong, began = plan.missing(), [], time.monotonic()
    there = len(plan.seeds) - len(seeds)
    for done, (seed, said) in enumerate(_worked(plan, seeds, workers), start=1):
        wrong += said
        _tell(done, len(seeds), there, seed, time.monotonic() - began, said)
    return wrong


def _worked(plan: Plan, seeds: Sequence[int], workers: int) -> Iterator[tuple[int, list[str]]]:
    os.environ.update({name: value for name, value in _ONE_THREAD.items() if name not in os.environ})
    groups = [seeds[first : first + _PROBLEMS_PER_PROCESS] for first in range(0, len(seeds), _PROBLEMS_PER_PROCESS)]
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(_in_own_process, plan, group) for group in groups]
        try:
            for future in as_completed(running):
                yield from future.result()
        except BrokenProcessPool:
            raise SystemExit("a worker was killed, perhaps for want of memory; run it again to continue.") from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _in_own_process(plan: Plan, seeds: Sequence[int]) -> list[tuple[int, list[str]]]:
    """Several problems in one process that ends with them: a pool that replaces its processes may wait for ever."""
    context = multiprocessing.get_context("spawn")  # JAX does not survive a fork
    with ProcessPoolExecutor(1, context) as pool:
        futures: list[Future[list[str]]] = [pool.submit(work, plan, seed) for seed in seeds]
        return [(seed, future.result()) for seed, future in zip(seeds, futures, strict=True)]


def _tell(done: int, number: int, there: int, seed: int, seconds: float, said: Sequence[str]) -> None:
    left = seconds / done * (number - done)
    drawn = mix(seed)
    line = (
        f"{done} of {counted(number, 'problem')} in {seconds / 60:.1f} min, {there} were there before, "
        f"about {left / 60:.1f} min left; {seed}: {drawn.model.name}, {drawn.design}, {drawn.truth}, n = {drawn.n}"
    )
    print(*said, line, sep="\n", file=sys.stderr, flush=True)
