"""Work for workers that is quick and easy to watch, in a module that they can import."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Errand:
    """A task that leaves a trace in `folder`, and does what its kind says."""

    group: str
    number: int
    folder: str = ""
    kind: str = "echo"

    def __str__(self) -> str:
        return f"errand {self.number} of group {self.group}"


def do(errand: Errand) -> bytes:
    return globals()[f"_{errand.kind.replace('-', '_')}"](errand)


def _echo(errand: Errand) -> bytes:
    return f"{errand.group}{errand.number}".encode()


def _print(errand: Errand) -> bytes:
    print("a model that talks")
    os.write(1, b"below Python too\n")
    return _echo(errand)


def _read(errand: Errand) -> bytes:
    return repr(sys.stdin.read()).encode()


def _pid(errand: Errand) -> bytes:
    return str(os.getpid()).encode()


def _environment(errand: Errand) -> bytes:
    return "\n".join(f"{name}={value}" for name, value in os.environ.items()).encode()


def _raise(errand: Errand) -> bytes:
    raise ZeroDivisionError("division\nby nothing")


def _leave(errand: Errand) -> bytes:
    raise SystemExit


def _die(errand: Errand) -> bytes:
    _trace(errand)
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def _die_twice(errand: Errand) -> bytes:
    if len(_trace(errand)) < 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return _echo(errand)


def _sleep(errand: Errand) -> bytes:
    """Say which process this is, and sleep far longer than any test."""
    _trace(errand)
    time.sleep(60)
    return b""


def _sleep_once(errand: Errand) -> bytes:
    if len(_trace(errand)) == 1:
        time.sleep(60)
    return _echo(errand)


def _trace(errand: Errand) -> list[str]:
    file = Path(errand.folder) / f"{errand.group}{errand.number}"
    with file.open("a") as stream:
        stream.write(f"{os.getpid()}\n")
    return file.read_text().split()
