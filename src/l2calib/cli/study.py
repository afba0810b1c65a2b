"""The commands of a simulation study (paper, Section 4): run it, continue it, and look at what came out."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from l2calib.cli.terminal import failures_as_sentences, printable, say, show, silent_stdout, stopped_by_interrupt
from l2calib.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from l2calib.designs import Levels
    from l2calib.study.configurations import Configuration
    from l2calib.study.plan import Cell, Plan
    from l2calib.study.runner import Crew

app = typer.Typer(add_completion=False, rich_markup_mode=None, help="Run simulation studies and summarise them.")

_Configurations = Annotated[
    str | None, typer.Option("--configurations", metavar="LIST", help="Like 1,2.", show_default="all")
]
_Sizes = Annotated[
    str | None, typer.Option("--sizes", metavar="LIST", help="Numbers of observations.", show_default="20,40,...,200")
]
_Errors = Annotated[
    str | None,
    typer.Option("--errors", metavar="LIST", help="Error laws of normal, t and skew-normal.", show_default="all"),
]
_Methods = Annotated[
    str | None, typer.Option("--methods", metavar="LIST", help="Like gb-l2,koh.", show_default="all seven")
]
_Replications = Annotated[int, typer.Option("--replications", metavar="N", help="Datasets of each kind.", min=1)]
_Levels = Annotated[str, typer.Option("--levels", metavar="endpoints|midpoints", help="Levels of the designs.")]
_Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The source of all randomness.", min=0)]
_Block = Annotated[int, typer.Option("--block", metavar="N", help="Datasets calibrated and stored together.", min=1)]
_Out = Annotated[str, typer.Option("--out", metavar="DIR", help="The study's folder; a study in it is continued.")]
_Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Processes on this machine.", min=1, show_default="one per processor"),
]
_Scheduler = Annotated[
    str | None, typer.Option("--scheduler", metavar="ADDRESS", help="A Dask cluster, instead of --workers.")
]
_PlanOnly = Annotated[bool, typer.Option("--plan", help="Only say what would be done.")]
_Place = Annotated[
    str, typer.Argument(metavar="DIR", help="A study's folder, or a CSV or Parquet file of its summary.")
]


@app.command()
def paper(
    out: _Out,
    configurations: _Configurations = None,
    sizes: _Sizes = None,
    errors: _Errors = None,
    methods: _Methods = None,
    replications: _Replications = 20_000,
    levels: _Levels = "endpoints",
    seed: _Seed = 1,
    block: _Block = 1000,
    workers: _Workers = None,
    scheduler: _Scheduler = None,
    plan: _PlanOnly = False,
) -> None:
    """Run the simulation study of the paper, or what is missing of it."""
    lists = {"configurations": configurations, "sizes": sizes, "errors": errors, "methods": methods}
    numbers = {"replications": replications, "levels": levels, "seed": seed, "block": block}
    _answer(None, lists, numbers, out, workers, scheduler, plan)


@app.command()
def run(
    file: Annotated[str, typer.Argument(metavar="FILE.py", help="A Python file that defines `configurations`.")],
    out: _Out,
    configurations: _Configurations = None,
    sizes: _Sizes = None,
    errors: _Errors = None,
    methods: _Methods = None,
    replications: _Replications = 20_000,
    levels: _Levels = "endpoints",
    seed: _Seed = 1,
    block: _Block = 1000,
    workers: _Workers = None,
    scheduler: _Scheduler = None,
    plan: _PlanOnly = False,
) -> None:
    """Run the same study on configurations of one's own."""
    lists = {"configurations": configurations, "sizes": sizes, "errors": errors, "methods": methods}
    numbers = {"replications": replications, "levels": levels, "seed": seed, "block": block}
    _answer(file, lists, numbers, out, workers, scheduler, plan)


@app.command()
def summary(
    place: _Place,
    also: Annotated[
        list[str] | None, typer.Option("--with", metavar="DIR", help="Another study or summary beside it; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write it too, as .csv or .parquet.")] = None,
) -> None:
    """Summarise a study: a row per configuration, size, error law, method and parameter."""
    with failures_as_sentences():
        frame = _summary(place)
        if also:
            from l2calib.study.summary import together

            frame = together([frame, *map(_summary, also)])
        if out is not None:
            from l2calib.study.summary import write_summary

            write_summary(frame, _path(out))
        from l2calib.cli.output import summary_json, summary_table

        show(summary_json(place, frame) if json else printable(summary_table(frame)))


@app.command()
def figures(
    place: _Place, out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where the figures go.")]
) -> None:
    """Draw the figures of the paper from a study."""
    with failures_as_sentences():
        folder = _path(out)
        frame = _summary(place)
        from l2calib.study.figures import write_figures

        for path in write_figures(frame, folder):
            show(str(path))


@app.command()
def claims(place: _Place) -> None:
    """Test the claims of the paper on a study, as a table in Markdown."""
    with failures_as_sentences():
        frame = _summary(place)
        from l2calib.study.claims import as_markdown, claims_table, wiffle_evidence

        with silent_stdout():
            wiffle = wiffle_evidence()
        show(as_markdown(claims_table(frame, wiffle)))


def design(
    n: Annotated[int, typer.Argument(metavar="N", help="Points.")],
    k: Annotated[int, typer.Argument(metavar="K", help="Inputs.")],
    levels: Annotated[
        str, typer.Option("--levels", metavar="midpoints|endpoints", help="Levels of each input.")
    ] = "midpoints",
    seed: _Seed = 0,
    continuous: Annotated[bool, typer.Option("--continuous", help="Move the points off the levels at last.")] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write it here instead.")] = None,
) -> None:
    """Print a maximum projection design of N points in K inputs, in the unit cube, as CSV."""
    with failures_as_sentences():
        from l2calib.cli.output import design_csv
        from l2calib.designs import maxpro_design

        file = None if out is None else _path(out)
        with stopped_by_interrupt():
            text = design_csv(maxpro_design(n, k, levels=cast("Levels", levels), seed=seed, continuous=continuous))
        if file is None:
            show(text.rstrip("\n"))
        else:
            from l2calib.cli.files import write_text

            write_text(file, text, "the design")


def _answer(
    file: str | None,
    lists: Mapping[str, str | None],
    numbers: Mapping[str, Any],
    out: str,
    workers: int | None,
    scheduler: str | None,
    plan_only: bool,
) -> None:
    with failures_as_sentences():
        folder = _path(out)
        if workers is not None and scheduler is not None:
            raise SpecError(
                "both --workers and --scheduler were given; a study runs on this machine or on a cluster, so give one."
            )
        from l2calib.study.workers import cache_of_programs

        for name, value in cache_of_programs().items():
            os.environ.setdefault(name, value)  # before JAX is imported here, to compute the targets
        with silent_stdout(), stopped_by_interrupt():
            plan = _plan(file, lists, numbers)
        if plan_only:
            from l2calib.cli.output import plan_table

            show(printable(plan_table(_counted(plan, folder))))
        else:
            with silent_stdout():
                _run(plan, folder, workers, scheduler)


def _plan(file: str | None, lists: Mapping[str, str | None], numbers: Mapping[str, Any]) -> Plan:
    from l2calib.study.configurations import chosen, load_configurations, paper_configurations
    from l2calib.study.plan import Plan

    asked: dict[str, Any] = {name: _listed(name, text) for name, text in lists.items() if text is not None}
    if "sizes" in asked:
        asked["sizes"] = [_whole(each) for each in asked["sizes"]]
    known: Mapping[str, Configuration] = paper_configurations() if file is None else load_configurations(file)
    wanted = chosen(known, asked.pop("configurations", list(known)))
    return Plan(wanted, **asked, **numbers)


def _run(plan: Plan, folder: Path, workers: int | None, scheduler: str | None) -> None:
    from l2calib.cli.progress import StudyProgress
    from l2calib.study.block import compute_block
    from l2calib.study.pace import Pace
    from l2calib.study.runner import Interrupted
    from l2calib.study.runner import run as hand_out
    from l2calib.study.storage import Store

    crew = _crew(workers, scheduler)
    try:
        with stopped_by_interrupt():
            store = Store.open(folder, plan, shlex.join(["l2calib", *sys.argv[1:]]))
            cells = plan.cells()
            pace = Pace(cells, {name: len(each.parameters) for name, each in plan.configurations.items()})
            missing = store.missing(cells, pace.took)

        def keep(cell: Cell, data: bytes) -> None:
            pace.took(cell, store.write(cell, data))

        with store, StudyProgress(len(cells), len(cells) - len(missing), plan.block, pace) as progress:
            for sentence in store.problems:
                progress.note(sentence)
            hand_out(missing, compute_block, crew, keep, progress, pack=store.task)
    except Interrupted as error:
        kept = progress.there + progress.finished
        say(f"interrupted with {kept:,} of {progress.total:,} blocks in '{folder}'; the same command continues it.")
        raise typer.Exit(128 + error.number) from None
    finally:
        crew.stop()
    say(progress.closing())


def _counted(plan: Plan, folder: Path) -> list[tuple[str, str, int, int]]:
    """By configuration and method, the blocks of a plan and how many of them are there."""
    from collections import Counter

    from l2calib.study.storage import Archive

    cells = Counter((cell.configuration, cell.method) for cell in plan.cells())
    there: Counter[tuple[str, str]] = Counter()
    if folder.exists() and any(folder.iterdir()):
        archive = Archive.at(folder)
        archive.record.refuse_another(plan, folder)
        there.update((cell.configuration, cell.method) for cell in plan.cells() if archive.path(cell).exists())
    return [(*key, blocks, there[key]) for key, blocks in cells.items()]


def _crew(workers: int | None, scheduler: str | None) -> Crew[Any]:
    if scheduler is not None:
        from l2calib.study.cluster import ClusterCrew

        return ClusterCrew(scheduler)
    from l2calib.study.workers import LocalCrew, processors

    return LocalCrew(workers or processors())


def _summary(place: str) -> pd.DataFrame:
    from l2calib.study.summary import load_summary

    frame = load_summary(_path(place))
    for sentence in frame.attrs.get("problems", []):
        say(sentence)
    return frame


def _listed(name: str, text: str) -> list[Any]:
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise SpecError(f"--{name} must be a list with commas, like 20,100 or nlm,koh: received '{text}'.")
    return items


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise SpecError(f"--sizes must be whole numbers, like 20,100: received '{text}' among them.")
    return int(text)


def _path(text: str) -> Path:
    if not text:  # a variable of the shell that was never set; as a path it would be the current folder
        raise SpecError("a folder or file has no name: received an empty one; name it.")
    return Path(text)
