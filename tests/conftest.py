"""What every test relies on."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def _interrupts_arrive():
    """Shells start background jobs with Ctrl-C ignored, and children inherit it; the tests of interrupts send it."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
