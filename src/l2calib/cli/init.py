"""`l2calib init`: from a table of data to a spec that passes the check, by options or by questions."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from l2calib.cli.terminal import BAD_INPUT, failures_as_sentences, say, show, silent_stdout, stopped_by_interrupt
from l2calib.errors import InputError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from l2calib.cli.interview import Answers
    from l2calib.spec.reading import Reading

_T = TypeVar("_T")
_Columns = dict[str, list[str]]


def init(
    data: Annotated[str, typer.Argument(metavar="DATA.csv", help="The observations, with a header.")],
    response: Annotated[
        str | None, typer.Option("--response", metavar="NAME", help="The column that the model predicts.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME[=LOW:HIGH]",
            help="A column that the model depends on, and its range; may be given more than once.",
            show_default="the range of the data",
        ),
    ] = None,
    expression: Annotated[
        str | None, typer.Option("--expression", metavar="TEXT", help="The model as a formula, like 'a + b * x'.")
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", metavar="FILE.py:FUNCTION", help="The model as a Python function.")
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior",
            metavar="NAME=DISTRIBUTION",
            help="The prior of a parameter, like 'g=uniform(0, 20)'; may be given more than once.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="SPEC.toml", help="Where to write it.", show_default="DATA.toml"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a spec for DATA.csv; on a terminal, what is not given is asked for."""
    with failures_as_sentences():
        with stopped_by_interrupt():
            columns = _columns(data)
        target = _target(data, out, force)
        given = _given(columns, response, inputs, expression, python, prior)
        compose = _interactively if sys.stdin.isatty() else _at_once
        text = compose(columns, given, data, target)
        from l2calib.cli.files import write_text

        write_text(target, text, "the spec")
        show(str(target))
        say(f"'{target}' passes the check; next: l2calib calibrate {shlex.quote(str(target))} --out results")


def _columns(data: str) -> _Columns:
    from l2calib.spec.columns import read_columns

    if not Path(data).exists():
        raise SpecError(f"the data file '{data}' does not exist; correct its path.")
    return read_columns(Path(data))


def _target(data: str, out: str | None, force: bool) -> Path:
    if out == "":  # a variable of the shell that was never set; as a path it would be the current folder
        raise SpecError("the file for the spec has no name: received an empty --out; name one.")
    target = Path(data).with_suffix(".toml") if out is None else Path(out)
    if not os.access(target.parent, os.W_OK | os.X_OK):  # said before the questions, not after them
        raise SpecError(f"the folder '{target.parent}' is not there or not writable; make it, or name another file.")
    if target.is_dir():
        raise SpecError(f"the spec cannot be written as '{target}', which is a folder; name a file with --out.")
    if target.resolve() == Path(data).resolve():
        raise SpecError(f"the spec cannot be written as '{target}', which is the data; name another file with --out.")
    if (target.exists() or target.is_symlink()) and not force:
        raise SpecError(f"'{target}' is there already; name another file with --out, or overwrite it with --force.")
    return target


def _given(
    columns: Mapping[str, Sequence[str]],
    response: str | None,
    inputs: list[str] | None,
    expression: str | None,
    python: str | None,
    prior: list[str] | None,
) -> Answers:
    from l2calib.cli.interview import Answers
    from l2calib.models.kinds import kind_meant_by

    if expression is not None and python is not None:
        raise SpecError("both --expression and --python were given; a spec has one model, so give one.")
    if expression is not None and kind_meant_by(expression).key != "expression":
        raise SpecError(f"--expression must be a formula: received '{expression}'; name a function with --python.")
    if python is not None and kind_meant_by(python).key != "python":
        raise SpecError(
            f"--python must name a function of a Python file: received '{python}'; write model.py:function."
        )
    return Answers(
        response,
        expression if python is None else python,
        _by_name("--input", [_named_range(each, columns) for each in inputs or []]),
        _by_name("--prior", [_named_prior(each) for each in prior or []]),
    )


def _by_name(option: str, pairs: list[tuple[str, _T]]) -> dict[str, _T]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"{option} was given {names.count(name)} times for '{name}'; give it once.")
    return dict(pairs)


def _named_range(text: str, columns: Mapping[str, Sequence[str]]) -> tuple[str, str | None]:
    name, equals, limits = text.rpartition("=")
    return (name, limits) if equals and text not in columns else (text, None)


def _named_prior(text: str) -> tuple[str, str]:
    name, equals, distribution = (part.strip() for part in text.partition("="))
    if not (name and equals and distribution):
        raise SpecError(f"--prior must be like 'g=uniform(0, 20)': received '{text}'.")
    return name, distribution


def _at_once(columns: _Columns, given: Answers, data: str, target: Path) -> str:
    """The text of the spec from the options alone."""
    from l2calib.cli.interview import Answers, Interview

    interview = Interview(columns, _as_suggested, tell=lambda _: None)
    with silent_stdout(), stopped_by_interrupt():
        interview.check(given)
        _refuse_gaps(given)
        text, reading = _drafted(interview.conduct(given, Answers()), data, target)
    if reading.mistakes:
        for mistake in reading.mistakes:
            say(mistake.sentence)
        raise typer.Exit(BAD_INPUT)
    _warn(reading)
    return text


def _as_suggested(_: str, suggestion: str | None, parse: Callable[[str], _T]) -> _T:
    return parse(suggestion or "")


def _refuse_gaps(given: Answers) -> None:
    from l2calib.cli.interview import parameters_of

    gaps = []
    if given.response is None:
        gaps.append("--response NAME")
    if not given.inputs:
        gaps.append("--input NAME=LOW:HIGH")
    if given.model is None:
        gaps.append("--expression TEXT or --python FILE.py:FUNCTION")
    if given.model is not None and given.inputs:
        names = parameters_of(given.model, list(given.inputs), given)
        gaps += [f"--prior '{name}=DISTRIBUTION'" for name in names if name not in given.prior]
    elif not given.prior:
        gaps.append("--prior NAME=DISTRIBUTION")
    if gaps:
        raise SpecError(f"there is no terminal to ask on, so init needs {', '.join(gaps)}; add what is missing.")


def _interactively(columns: _Columns, given: Answers, data: str, target: Path) -> str:
    """The text of the spec from options and answers; the questions come again until the check is passed."""
    from l2calib.cli.interview import Answers, Interview

    interview = Interview(columns, _ask, _tell)
    with stopped_by_interrupt():
        interview.check(given)
    _tell(_table_in_words(data, columns))
    before = Answers()
    while True:
        answers = interview.conduct(given, before)
        with silent_stdout(), stopped_by_interrupt():
            text, reading = _drafted(answers, data, target)
        if not reading.mistakes:
            _warn(reading)
            return text
        for mistake in reading.mistakes:
            say(mistake.sentence)
        _tell("The questions come again, with your answers as suggestions; Ctrl-C leaves without writing.")
        given, before = Answers(), answers


def _drafted(answers: Answers, data: str, target: Path) -> tuple[str, Reading]:
    from l2calib.cli.interview import draft
    from l2calib.spec.reading import read_text
    from l2calib.spec.writing import spec_text

    text = spec_text(draft(answers, Path(data), target.parent))
    if any("\ud800" <= sign <= "\udfff" for sign in text):  # what is left of bytes that are not UTF-8
        raise SpecError("a name, a path or the model is not UTF-8 text, which a spec must be; rename or rewrite it.")
    return text, read_text(text, target.parent)


def _warn(reading: Reading) -> None:
    from l2calib.spec.cautions import cautions

    for caution in cautions(reading):
        say(f"warning: {caution.sentence}")


def _table_in_words(data: str, columns: Mapping[str, Sequence[str]]) -> str:
    rows = len(next(iter(columns.values())))
    told = [f"  {name}: {_column_in_words(columns, name)}" for name in columns]
    return "\n".join([f"'{data}' has {rows} rows and the columns", *told])


def _column_in_words(columns: Mapping[str, Sequence[str]], name: str) -> str:
    from l2calib.models.expression import check_name
    from l2calib.problem.data import column

    try:
        values = column(columns, name)
    except InputError:
        return "not all numbers"
    told = f"{values.min():g} to {values.max():g}"
    try:
        check_name(name)
    except InputError:
        return f"{told} (to be an input, rename it to a single word)"
    return told


def _ask(question: str, suggestion: str | None, parse: Callable[[str], _T]) -> _T:
    hint = "" if suggestion is None else f" [{suggestion}]"
    while True:
        _tell(f"{question}{hint}")  # on a line of its own, so that a long one does not crowd the answer
        typed = _typed("> ").strip() or suggestion
        try:
            if typed is None:
                raise SpecError("this needs an answer; Ctrl-C leaves without writing.")
            with silent_stdout():
                return parse(typed)
        except InputError as error:
            say(str(error))


def _typed(prompt: str) -> str:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # gives input() a line that can be edited
    try:
        # What is asked is not part of the answer, which may be going to a file.
        with contextlib.nullcontext() if sys.stdout.isatty() else contextlib.redirect_stdout(sys.stderr):
            return input(prompt)
    except EOFError:
        raise SpecError("the questions were not answered to their end; nothing was written.") from None


def _tell(text: str) -> None:
    typer.echo(text, err=True)
