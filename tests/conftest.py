"""What every test relies on."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile

import pytest
from xdist.scheduler import LoadFileScheduling

from l2calib import cli

# What takes longest, so that none of it is left for one worker at the end.
LONGEST_FIRST = (
    "test_against_oracles.py",
    "test_conformance.py",
    "test_guide.py",
    "test_study_cli.py",
    "test_cli.py",
    "test_numerical_error.py",
    "test_problem.py",
    "test_smoother.py",
    "test_examples.py",
)
_PROGRAMS = pytest.StashKey[str]()


def pytest_configure(config):
    """Compile a program once for both workers of a run and for every process that a test starts.

    The folder is made for this run, so that no run rests on what an earlier one compiled.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # without bytecode a process takes twice as long to start
    # Two workers have two cores; BLAS would take both for each.
    for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    # Tracing makes millions of small objects that live on: looking through them takes a tenth of all time.
    gc.set_threshold(30_000, 20, 50)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = config.stash[_PROGRAMS] = tempfile.mkdtemp(prefix="l2calib-programs-")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def pytest_unconfigure(config):
    if _PROGRAMS in config.stash:
        shutil.rmtree(config.stash[_PROGRAMS], ignore_errors=True)


def pytest_collection_modifyitems(items):
    order = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def pytest_xdist_make_scheduler(config, log):
    """Whole files, in their order: what a file computes for several of its tests is computed by one worker."""
    if config.option.dist != "load":
        return None
    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_addoption(parser):
    parser.addoption("--method", action="append", metavar="FILE.py:CLASS", help="try a method in test_conformance.py")


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive():
    """Shells start background jobs with Ctrl-C ignored, and children inherit it; the tests of interrupts send it."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run(monkeypatch, capsys):
    """Call the entry point in this process; return the exit status, stdout and stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["l2calib", *map(str, arguments)])
        monkeypatch.setattr(os, "_exit", sys.exit)
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        return left.value.code or 0, captured.out, captured.err

    return call
