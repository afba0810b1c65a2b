"""`l2calib check`: what a spec asks for, or everything that is wrong with it."""

from __future__ import annotations

import json as jsons
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from l2calib.cli.terminal import BAD_INPUT, failures_as_sentences, say, show, silent_stdout, stopped_by_interrupt
from l2calib.display.words import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from l2calib.spec.mistakes import Mistake

_Description = dict[str, Any]
SpecArgument = Annotated[
    str, typer.Argument(help="A TOML file, or the name of a packaged example: wiffle.", metavar="SPEC")
]


def check(
    spec: SpecArgument,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Say in words what SPEC asks for, or list every mistake in it."""
    with failures_as_sentences():
        with silent_stdout(), stopped_by_interrupt():
            mistakes, description = _checked(spec)
        if json:
            show(_as_json(spec, mistakes, description))
        elif description is not None:
            show(_laid_out(description))
        else:
            show("\n".join(one_line(mistake.sentence) for mistake in mistakes))
        for warning in description["warnings"] if description is not None else []:
            say(f"warning: {warning['sentence']}")
        if mistakes:
            say(f"{counted(len(mistakes), 'mistake')} in '{spec}'; mend and check again.")
            raise typer.Exit(BAD_INPUT)


def _checked(spec: str) -> tuple[list[Mistake], _Description | None]:
    from l2calib.spec.description import describe
    from l2calib.spec.reading import read_spec

    reading = read_spec(spec)
    return reading.mistakes, None if reading.problem is None else describe(reading)


def _as_json(spec: str, mistakes: Sequence[Mistake], description: _Description | None) -> str:
    listed = [{"key": each.key, "sentence": one_line(each.sentence)} for each in mistakes]
    answer = {"spec": spec, "ok": not listed, "mistakes": listed, "description": description}
    return jsons.dumps(answer, indent=2, allow_nan=False)


def _laid_out(description: _Description) -> str:
    """Headings and sentences in two columns, as wide as the terminal; a pipe has no width."""
    from l2calib.spec.description import in_words

    lines = in_words(description)
    margin = max(len(heading) for heading, _ in lines) + 2
    width = max(shutil.get_terminal_size().columns, margin + 20) if sys.stdout.isatty() else sys.maxsize
    return "\n".join(
        textwrap.fill(sentence, width, initial_indent=heading.ljust(margin), subsequent_indent=" " * margin)
        for heading, sentence in lines
    )
