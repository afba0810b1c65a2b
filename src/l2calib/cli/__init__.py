"""The command line: parse, call, print.

Only typer is imported to show the help; everything else waits until it is needed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from l2calib.errors import InputError, L2CalibError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from l2calib.result import Calibration

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_INTERRUPTION = "interrupted before it was done; nothing was written."

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

_Spec = Annotated[str, typer.Argument(help="A TOML file, or the name of a packaged example: wiffle.", metavar="SPEC")]
_Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="nlm, koh, projected, gb-l2, gb-ols, gb-l2-boot or gb-ols-boot; may be given more than once.",
        show_default="gb-l2",
    ),
]
_Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The source of all randomness.", min=0)]
_Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Write results.json, a NetCDF file per method and figures here."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def main() -> None:
    """Run the command line, and leave with its exit status."""
    try:
        status = app(prog_name="l2calib", standalone_mode=False)
    except typer.TyperException as error:
        _say(f"{error.format_message().rstrip('.')}; see 'l2calib --help'.")
        status = BAD_INPUT
    except OSError as error:  # only the help and the version are printed outside of a command
        _say(str(_unprintable(error)))
        status = FAILED
    if status == INTERRUPTED:
        os._exit(status)
    sys.exit(status)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"l2calib {version('l2calib')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Bayesian calibration of computer models, aimed at the L2 target."""


@app.command()
def calibrate(spec: _Spec, method: _Methods = None, seed: _Seed = 0, out: _Out = None, json: _Json = False) -> None:
    """Calibrate the model of SPEC by one method or several."""
    _answer(spec, method or ["gb-l2"], seed, out, json)


@app.command()
def compare(spec: _Spec, seed: _Seed = 0, out: _Out = None, json: _Json = False) -> None:
    """Calibrate it by every method of the paper, side by side."""
    _answer(spec, None, seed, out, json)


def _answer(spec: str, methods: list[str] | None, seed: int, out: str | None, json: bool) -> None:
    with _failures_as_sentences():
        if out == "":  # a variable of the shell that was never set; as a path it would be the current folder
            raise SpecError("the folder for the results has no name: received an empty --out; name one.")
        folder = None if out is None else Path(out)
        from l2calib.cli.output import as_json

        with _silent_stdout():
            with _stopped_by_interrupt():
                results = _calibrate(spec, methods, seed, folder)
            text = as_json(spec, seed, results)
            if folder is not None:
                from l2calib.cli.files import write

                write(folder, text, results)
        for result in results:
            for sentence in result.status.sentences():
                _say(f"note on {result.method}: {sentence}")
        _print(text if json else _table(results))


def _table(results: list[Calibration]) -> str:
    from rich.console import Console

    from l2calib.cli.output import tables

    # A pipe has no width, and a table cut to a guessed one would lose digits.
    console = Console(width=None if sys.stdout.isatty() else 120)
    with console.capture() as captured:
        console.print(tables(results))
    return captured.get().rstrip("\n")


def _print(text: str) -> None:
    try:
        typer.echo(text)
    except OSError as error:
        raise _unprintable(error) from None


def _unprintable(error: OSError) -> L2CalibError:
    # What is left in the buffer cannot be printed either, and Python would try again when it ends.
    with contextlib.suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return L2CalibError(f"the answer cannot be printed: {error.strerror or error}.")


@contextlib.contextmanager
def _stopped_by_interrupt() -> Iterator[None]:
    """Ctrl-C ends the process at once: an exception thrown through the frames of the compiler crashes it."""

    def stop(*_: object) -> None:
        if sys.stderr.isatty():
            typer.echo("\r\x1b[K\x1b[?25h", err=True, nl=False)  # the spinner's line away, the cursor back
        _say(_INTERRUPTION)
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
def _silent_stdout() -> Iterator[None]:
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


def _calibrate(spec: str, methods: list[str] | None, seed: int, out: Path | None) -> list[Calibration]:
    from l2calib.calibration import calibrate
    from l2calib.cli.files import check_writable
    from l2calib.methods import PAPER_METHODS, method_named
    from l2calib.spec import load_problem

    chosen = [method_named(name) for name in dict.fromkeys(methods or PAPER_METHODS)]
    problem = load_problem(spec)
    if out is not None:
        check_writable(out)
    results: list[Calibration] = []
    with _progress() as show:
        for method in chosen:
            show(f"calibrating by {method.name} ({len(results) + 1} of {len(chosen)})")
            results.append(calibrate(problem, method=method, seed=seed))
    return results


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A spinner on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update


@contextlib.contextmanager
def _failures_as_sentences() -> Iterator[None]:
    try:
        yield
    except L2CalibError as error:
        _say(str(error))
        raise typer.Exit(BAD_INPUT if isinstance(error, InputError) else FAILED) from None
    except KeyboardInterrupt:
        _say(_INTERRUPTION)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # the last line of defence: no user is shown a traceback unasked
        if os.environ.get("L2CALIB_TRACEBACK"):
            raise
        _say(f"failed unexpectedly with {type(error).__name__}: {error}; set L2CALIB_TRACEBACK=1 to see where.")
        raise typer.Exit(FAILED) from None


def _say(sentence: str) -> None:
    typer.echo(f"l2calib: {' '.join(sentence.split())}", err=True)
