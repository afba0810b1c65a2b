"""A real Dask scheduler and workers on loopback, started for a test and ended with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOOPBACK = ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]


class Cluster:
    """Processes that a test may start and kill; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self._log = (folder / "cluster.log").open("w")
        self._processes: list[subprocess.Popen[bytes]] = []
        # An address of the machine itself is asked of the network otherwise, to no use here.
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self._file))
        self.address = self._address()

    def worker(self, threads: int = 1, **environment: str) -> subprocess.Popen[bytes]:
        options = ["--nworkers", "1", "--nthreads", str(threads), "--no-nanny", "--death-timeout", "30"]
        return self._start("worker", self.address, *options, **environment)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        self._log.close()

    def _start(self, what: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", what, *options, *LOOPBACK],
            stdout=self._log,
            stderr=self._log,
            cwd=self._file.parent,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        )
        self._processes.append(process)
        return process

    def _address(self) -> Any:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self._file.exists() and (text := self._file.read_text()):
                return json.loads(text)["address"]
            time.sleep(0.05)
        raise AssertionError("the scheduler did not start")
