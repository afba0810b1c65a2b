"""What all commands share: how they print, how they fail, and how they are interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from l2calib.display.words import one_line, reason_of
from l2calib.errors import InputError, L2CalibError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_INTERRUPTION = "interrupted before it was done; nothing was written."


def printable(answer: RenderableType) -> str:
    """Tables and the like as text, as wide as the terminal."""
    from rich.console import Console

    # A pipe has no width, and a table cut to a guessed one would lose digits.
    console = Console(width=None if sys.stdout.isatty() else 200)
    with console.capture() as captured:
        console.print(answer)
    return captured.get().rstrip("\n")


def show(text: str) -> None:
    """Print the answer to stdout."""
    try:
        typer.echo(text)
    except OSError as error:
        raise unprintable(error) from None


def unprintable(error: OSError) -> L2CalibError:
    """What to raise when stdout does not take the answer."""
    # What is left in the buffer cannot be printed either, and Python would try again when it ends.
    with contextlib.suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return L2CalibError(f"the answer cannot be printed: {error.strerror or error}.")


@contextlib.contextmanager
def stopped_by_interrupt() -> Iterator[None]:
    """Ctrl-C ends the process at once: an exception thrown through the frames of the compiler crashes it."""

    def stop(*_: object) -> None:
        if sys.stderr.isatty():
            typer.echo("\r\x1b[K\x1b[?25h", err=True, nl=False)  # the spinner's line away, the cursor back
        say(_INTERRUPTION)
        os._exit(INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    listens = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if listens:
        signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if listens:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def silent_stdout() -> Iterator[None]:
    """What a model prints while it runs, in Python or below it, is not part of the answer: it goes to stderr."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed, so nothing below Python can print to it
        kept = None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


@contextlib.contextmanager
def failures_as_sentences() -> Iterator[None]:
    """Leave a command that fails with its status, and one sentence on stderr."""
    try:
        yield
    except typer.Exit:  # it has been said
        raise
    except L2CalibError as error:
        say(str(error))
        raise typer.Exit(BAD_INPUT if isinstance(error, InputError) else FAILED) from None
    except KeyboardInterrupt:
        say(_INTERRUPTION)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # the last line of defence: no user is shown a traceback unasked
        if os.environ.get("L2CALIB_TRACEBACK"):
            raise
        say(f"failed unexpectedly with {reason_of(error)}; set L2CALIB_TRACEBACK=1 to see where.")
        raise typer.Exit(FAILED) from None


def say(sentence: str) -> None:
    """Tell people, on stderr, what is not part of the answer."""
    typer.echo(f"l2calib: {one_line(sentence)}", err=True)
