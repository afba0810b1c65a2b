"""What can only be measured from outside: the shell's view, and the memory of a process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

_BATCH = """
import resource
from benchmarks.cases import datasets
from tests.problems import experiment
import l2calib as l2
l2.calibrate_batch(experiment({number}, {n}), datasets({number}, {n}, {batch}), "{method}", seed=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def peak_gigabytes(number: int, n: int, method: str, batch: int) -> float:
    """The largest resident size of a fresh process that runs one batch."""
    code = _BATCH.format(number=number, n=n, method=method, batch=batch)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def cold_seconds(arguments: list[str], runs: int) -> float:
    """The median time of a shell command, each run with an empty home and so without caches."""
    command = [str(Path(sys.executable).parent / "l2calib"), *arguments]
    times = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as home:
            environment = {**os.environ, "HOME": home, "XDG_CACHE_HOME": home}
            began = time.perf_counter()
            subprocess.run(command, cwd=home, env=environment, capture_output=True, check=True)
            times.append(time.perf_counter() - began)
    return statistics.median(times)
