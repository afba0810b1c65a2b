"""How fast `l2` is beside what it may cost: `python -m benchmarks.speed_of_l2`.

Blocks of 1,000 datasets beside `koh`; a cold `l2calib calibrate wiffle --method l2` beside the import of what everyone
imports; and the memory of a block with two inputs and n = 200. What is compared is run alternately, on idle cores.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.ours import seconds_per_dataset
from benchmarks.processes import peak_gigabytes

IMPORTS = "import jax, scipy.stats, xarray"
MOST_OF_KOH, MOST_OF_IMPORTS, MOST_GIGABYTES = 4.0, 1.4, 2.0
N, BLOCK, BLOCKS, LARGE_N = 100, 1000, 3, 200


def cold_ratio(runs: int) -> tuple[float, float]:
    """The best of so many cold calibrations and of as many imports, in seconds."""
    l2calib = str(Path(sys.executable).parent / "l2calib")
    commands = {
        "calibrate": [l2calib, "calibrate", "wiffle", "--method", "l2"],
        "imports": [sys.executable, "-c", IMPORTS],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(runs):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory() as home:
                began = time.perf_counter()
                environment = {"HOME": home, "XDG_CACHE_HOME": home, "PATH": str(Path(sys.executable).parent)}
                subprocess.run(command, cwd=home, env=environment, capture_output=True, check=True)
                best[name] = min(best[name], time.perf_counter() - began)
    return best["calibrate"], best["imports"]


def block_pair(number: int) -> tuple[float, float]:
    """Seconds per dataset by `l2` and by `koh`, one after the other; what was compiled stays."""
    ours, koh = (seconds_per_dataset(number, N, method, BLOCK, runs=1) for method in ("l2", "koh"))
    return ours, koh


def main() -> int:
    """Measure, print; status 1 where a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed_of_l2", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each command; of blocks three")
    options = parser.parse_args()
    missed = 0
    calibrate, imports = cold_ratio(options.runs)
    missed += calibrate > MOST_OF_IMPORTS * imports
    print(
        f"calibrate wiffle, cold: {calibrate:.2f} s; {IMPORTS}: {imports:.2f} s; ratio {calibrate / imports:.2f} "
        f"(at most {MOST_OF_IMPORTS})",
        flush=True,
    )
    for number in (2, 4):
        pairs = [block_pair(number) for _ in range(BLOCKS)]
        ours, koh = (statistics.median(each) for each in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        missed += ratio > MOST_OF_KOH
        print(
            f"configuration {number}, n = {N}, a block of {BLOCK:,}: l2 {1e3 * ours:.2f} ms a dataset, koh "
            f"{1e3 * koh:.2f} ms; ratio {ratio:.2f} (at most {MOST_OF_KOH:g})",
            flush=True,
        )
    memory = peak_gigabytes(4, LARGE_N, "l2", BLOCK)
    missed += memory > MOST_GIGABYTES
    print(f"two inputs, n = {LARGE_N}, a block of {BLOCK:,}: {memory:.2f} GB (at most {MOST_GIGABYTES:g})")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
