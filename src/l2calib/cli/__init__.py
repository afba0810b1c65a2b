"""The command line: parse, call, print.

Only typer is imported to show the help; everything else waits until it is needed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from l2calib.cli import study
from l2calib.cli.check import SpecArgument, check
from l2calib.cli.init import init
from l2calib.cli.report import report
from l2calib.cli.terminal import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    failures_as_sentences,
    printable,
    say,
    show,
    silent_stdout,
    stopped_by_interrupt,
    unprintable,
)
from l2calib.errors import SpecError
from l2calib.methods.catalogue import COMPARED, DEFAULT_METHOD, DEFAULT_SINCE, FORMER_DEFAULT, method_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from l2calib.problem.problem import Problem
    from l2calib.results.calibration import Calibration

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
app.add_typer(study.app, name="study")
app.command()(init)
app.command()(check)
app.command()(report)

_Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"{', '.join(COMPARED[:-1])} or {COMPARED[-1]}; may be given more than once.",
        show_default=DEFAULT_METHOD,
    ),
]
_Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The source of all randomness.", min=0)]
_Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Write JSON, a NetCDF file per method and figures here."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def main() -> None:
    """Run the command line, and leave with its exit status."""
    try:
        status = app(prog_name="l2calib", standalone_mode=False)
    except typer.TyperException as error:
        say(f"{error.format_message().rstrip('.')}; see 'l2calib --help'.")
        status = BAD_INPUT
    except OSError as error:  # only the help and the version are printed outside of a command
        say(str(unprintable(error)))
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
def calibrate(
    spec: SpecArgument, method: _Methods = None, seed: _Seed = 0, out: _Out = None, json: _Json = False
) -> None:
    """Calibrate the model of SPEC by one method or several."""
    _answer(spec, method, seed, out, json)


@app.command()
def compare(spec: SpecArgument, seed: _Seed = 0, out: _Out = None, json: _Json = False) -> None:
    """Calibrate it by l2 and every method of the paper, side by side."""
    _answer(spec, COMPARED, seed, out, json)


app.command()(study.design)


def _answer(spec: str, methods: Sequence[str] | None, seed: int, out: str | None, json: bool) -> None:
    with failures_as_sentences():
        if out == "":  # a variable of the shell that was never set; as a path it would be the current folder
            raise SpecError("the folder for the results has no name: received an empty --out; name one.")
        folder = None if out is None else Path(out)
        from l2calib.cli.output import as_json, tables

        with silent_stdout():
            with stopped_by_interrupt():
                results, files = _calibrate(spec, methods, seed, folder)
            text = as_json(spec, seed, results)
            if folder is not None:
                from l2calib.cli.files import write

                write(folder, {"results.json": text, **files}, results)
        for result in results:
            if not methods:
                say(f"by {result.method}, the default since {DEFAULT_SINCE}; before it was --method {FORMER_DEFAULT}.")
            for sentence in (*result.messages, *result.notes):
                say(f"note on {result.method}: {sentence}")
        show(text if json else printable(tables(results)))


def _calibrate(
    spec: str, methods: Sequence[str] | None, seed: int, out: Path | None
) -> tuple[list[Calibration], dict[str, str]]:
    """The results, and what is to be written beside them."""
    from l2calib.calibration import calibrate
    from l2calib.spec import load_problem

    chosen = [method_named(name) for name in dict.fromkeys(methods or [DEFAULT_METHOD])]
    problem = load_problem(spec)
    source = None if out is None else _origin(spec, problem, out)
    results: list[Calibration] = []
    with _progress() as show:
        for method in chosen:
            show(f"calibrating by {method.name} ({len(results) + 1} of {len(chosen)})")
            results.append(calibrate(problem, method=method, seed=seed))
    if source is None:
        return results, {}
    from l2calib.cli.output import run_json

    source["default_since"] = None if methods else DEFAULT_SINCE  # of the method, if the user chose none
    return results, {"run.json": run_json(source, seed, results)}


def _origin(spec: str, problem: Problem, out: Path) -> dict[str, Any]:
    from l2calib.cli.files import check_writable
    from l2calib.cli.provenance import origin

    check_writable(out)
    return origin(spec, problem)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A spinner on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield status.update
