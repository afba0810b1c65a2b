"""What every test relies on."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from l2calib import cli


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
