"""How fast the paper's study runs, and how long the whole of it would take: `python -m benchmarks.study`.

Three of the ten sizes are run with normal errors, two blocks of every method in every configuration: the first
compiles, the second is timed. Between these sizes a calibration's time is taken for a power of n; the error laws cost
the same. Methods that smooth alike share the choice of rho: in the table its time is a part of each one's, in the
projection it is counted once, as it is spent.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from benchmarks.processes import ROOT
from benchmarks.table import write_between_markers
from l2calib.methods.catalogue import PAPER_METHODS
from l2calib.study.plan import PAPER_SIZES, Cell
from l2calib.study.storage import Archive

CONFIGURATIONS = ("1", "2", "3", "4")
SIZES = (20, 100, 200)
LAWS, REPLICATIONS = 3, 20_000
QUICK_METHODS = ("nlm", "gb-l2", "gb-ols")
GOALS = {"the three quick methods": 0.5, "all seven methods": 8.0}  # hours
MOST_MEMORY = 6.0  # gigabytes


@dataclass(frozen=True)
class Cost:
    """Seconds of one core: per calibration, and once for every worker that meets the design and the method."""

    calibration: float
    choice: float  # of rho, a part of the calibration
    compilation: float
    preparation: float


Costs = dict[tuple[str, str], dict[int, Cost]]


def run(folder: Path, block: int, workers: int) -> tuple[float, float]:
    """Wall seconds, and the largest memory of all processes together, in gigabytes."""
    command = [str(Path(sys.executable).parent / "l2calib"), "study", "paper", "--out", str(folder)]
    command += ["--sizes", ",".join(map(str, SIZES)), "--errors", "normal", "--replications", str(2 * block)]
    command += ["--block", str(block), "--workers", str(workers)]
    began, largest = time.perf_counter(), 0.0
    with tempfile.TemporaryDirectory() as cache:  # a cold one: what is compiled is counted
        process = subprocess.Popen(command, env={**os.environ, "XDG_CACHE_HOME": cache})
        while process.poll() is None:
            largest = max(largest, _gigabytes(process.pid))
            time.sleep(0.5)
    if process.returncode:
        raise SystemExit(process.returncode)
    return time.perf_counter() - began, largest


def _gigabytes(pid: int) -> float:
    total = 0
    try:
        parent = psutil.Process(pid)
        for each in (parent, *parent.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total / 1e9


def costs(folder: Path) -> Costs:
    """What the blocks say of themselves."""
    archive = Archive.at(folder)
    found: Costs = defaultdict(dict)
    for configuration in CONFIGURATIONS:
        for method in PAPER_METHODS:
            for n in SIZES:
                first, second = (archive.block(Cell(configuration, n, "normal", method, each))[1] for each in range(2))
                found[configuration, method][n] = Cost(
                    (second["seconds"] - second["seconds_compiling"]) / second["rows"],
                    second["seconds_choosing"] / second["rows"],
                    first["seconds_compiling"] + second["seconds_compiling"],
                    first["seconds_preparing"],
                )
    return found


def projected_hours(found: Costs, methods: tuple[str, ...], workers: int) -> dict[str, float]:
    """Of the whole study by these methods: in all, and for what part of it."""
    spent = {"calibrating": 0.0, "compiling": 0.0, "preparing": 0.0}
    for configuration in CONFIGURATIONS:
        several = [found[configuration, method] for method in methods]
        # Of a choice that was shared, every method tells the same time to the last digit.
        choices = {tuple(by_size[n].choice for n in SIZES) for by_size in several if by_size[SIZES[0]].choice}
        own = [[by_size[n].calibration - by_size[n].choice for n in SIZES] for by_size in several]
        for known in (*own, *choices):
            seconds = np.exp(np.interp(np.log(PAPER_SIZES), np.log(SIZES), np.log(known)))
            spent["calibrating"] += LAWS * REPLICATIONS * float(seconds.sum())
        for by_size in several:
            for name, attribute in (("compiling", "compilation"), ("preparing", "preparation")):
                known = [getattr(by_size[n], attribute) for n in SIZES]
                spent[name] += float(np.interp(PAPER_SIZES, SIZES, known).sum())
    hours = {name: seconds / 3600 / workers for name, seconds in spent.items()}
    return {"in all": sum(hours.values()), **hours}


def markdown(found: Costs, wall: float, memory: float, workers: int, block: int) -> str:
    """Calibrations per second, and the projection."""
    heads = [f"{configuration}, n = {n}" for configuration in CONFIGURATIONS for n in SIZES]
    lines = [f"| method | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for method in PAPER_METHODS:
        rates = [workers / found[c, method][n].calibration for c in CONFIGURATIONS for n in SIZES]
        rounded = [f"{float(f'{rate:.2g}'):,.0f}" for rate in rates]
        lines.append(f"| {method} | {' | '.join(rounded)} |")
    whole = f"120 cells, {REPLICATIONS:,} replications"
    lines += ["", f"| {whole} | hours | calibrating | compiling | preparing | goal | met |"]
    lines.append("|---" * 7 + "|")
    for (name, goal), methods in zip(GOALS.items(), (QUICK_METHODS, PAPER_METHODS), strict=True):
        hours = projected_hours(found, methods, workers)
        figures = " | ".join(f"{value:.2f}" for value in hours.values())
        lines.append(f"| {name} | {figures} | at most {goal:g} | {'yes' if hours['in all'] <= goal else 'no'} |")
    met = "yes" if memory <= MOST_MEMORY else "no"
    lines += ["", f"Peak memory of all processes: {memory:.2f} GB (goal: at most {MOST_MEMORY:g}; met: {met})."]
    machine = f"{platform.machine()}, Python {platform.python_version()}, blocks of {block:,}"
    lines.append(
        f"Calibrations per second of {workers} workers together, by configuration and n; one run of {wall / 60:.0f} "
        f"minutes ({machine})."
    )
    return "\n".join(lines)


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study", description=__doc__)
    parser.add_argument("--block", type=int, default=1000, help="small blocks are a smoke test: they measure nothing")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write", action="store_true", help="put the tables into docs/study.md as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        wall, memory = run(folder, options.block, options.workers)
        table = markdown(costs(folder), wall, memory, options.workers, options.block)
    print(table)
    if options.write:
        write_between_markers(ROOT / "docs" / "study.md", table)


if __name__ == "__main__":
    main()
