"""Claims as Markdown: a table of verdicts, and for each claim the rules and the figures behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from l2calib.display.numbers import short
from l2calib.study.claims.judging import (
    CONTRADICTED,
    DECIDED,
    FALSE_ALARM,
    HOLDS,
    MOST,
    OPEN,
    Claim,
    Part,
    critical,
    group_verdict,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

_NAMES = ("configuration", "n", "errors", "method", "parameter")
_LISTED = 8  # of more groups, those that hold in every cell are told together
_LABELS = {"configuration": "configuration ", "n": "n = "}
_METHOD = f"""\
How a verdict is reached. A claim is split into parts, and a part is one statement about many cells: one number of the
study each, such as the coverage of one method at one configuration, n, error law and parameter. A number counts as
shown to lie beyond a limit when it does so by more than z Monte Carlo standard errors, with z from the normal law such
that noise alone would show anything in any of a part's cells with probability {FALSE_ALARM:g} at most (Bonferroni).
Differences between methods are judged as if the methods had seen different datasets, which errs towards "open".

- A cell is *contradicted* where the number is shown to lie on the wrong side of the limit.
- It *holds* where the number is shown to lie on the right side. Where the paper says that things are the same, the
  limit is the largest difference that counts as negligible, and the estimate on the right side is enough.
- It is *open* otherwise.

The cells of a part form groups, the rows of its table. A group is reproduced if at least {MOST:.0%} of its cells that
are not open hold, not reproduced if at least {MOST:.0%} are contradicted, partly reproduced in between, and not tested
if more than {1 - DECIDED:.0%} of its cells are open. A part has the verdict that its tested groups share, and is partly
reproduced if they differ, so that one method that fails everywhere is not outvoted; it is not tested if the study has
no such cells, or if more than {1 - DECIDED:.0%} of its groups are not tested. A claim is reproduced if all its parts
are, not reproduced if no tested part is, even partly, and partly reproduced otherwise, also where a part is not
tested."""


def as_markdown(claims: Sequence[Claim]) -> str:
    """The table of verdicts, then the evidence claim by claim."""
    verdicts = [[str(claim.number), claim.text, claim.verdict, _part_verdicts(claim)] for claim in claims]
    sections = [_table(["claim", "what the paper says", "verdict", "parts"], verdicts), _METHOD]
    for claim in claims:
        title = f"## {claim.number}. {claim.text}\n\n**{claim.verdict.capitalize()}.** {claim.looked_at}"
        sections += [title, evidence(claim)]
    return "\n\n".join(sections) + "\n"


def evidence(claim: Claim) -> str:
    """Each part with its rule, its counts, and its figures by group."""
    return "\n\n".join(_part(part) for part in claim.parts)


def _part_verdicts(claim: Claim) -> str:
    return "; ".join(f"{part.letter} {part.verdict}" for part in claim.parts)


def _part(part: Part) -> str:
    head = f"({part.letter}) **{part.text}: {part.verdict}.** Rule: {part.rule}"
    if part.cells.empty:
        return f"{head}\n\n{counts(part)}"
    return f"{head}\n\n{counts(part)}\n\n{_table(*by_group(part))}"


def counts(part: Part) -> str:
    """In how many cells a part holds, and its worst cell, in sentences."""
    if part.cells.empty:
        return "The study has no cells for this."
    outcome = part.outcome
    holds, against, left = (int((outcome == what).sum()) for what in (HOLDS, CONTRADICTED, OPEN))
    counted = f"Holds in {holds}, contradicted in {against}, open in {left} of {len(outcome)}"
    counted += f" (z = {critical(len(outcome)):.2f})." if _noisy(part) else "."
    if part.verdict == "not tested":
        counted += " Too few are decided for a verdict: more replications would tell."
    return f"{counted} Worst cell: {_cell(_worst(part.cells, part.margin), part, _NAMES)}."


def by_group(part: Part) -> tuple[list[str], list[list[str]]]:
    """The figures of a part group by group, as the head and the rows of a table."""
    if all(len(group) == 1 for _, group in part.groups):
        rows = [[*key, group_verdict(cell["outcome"]), _cell(cell.iloc[0], part, ())] for key, cell in part.groups]
        return [*part.by, "verdict", "number"], rows
    figures = ["verdict", "holds", "contradicted", "open", "lowest", "median", "highest", "contradicted at"]
    clean = [group for _, group in part.groups if (group["outcome"] == HOLDS).all()]
    together = len(clean) > 1 and len(part.groups) > _LISTED
    told = [(key, group) for key, group in part.groups if not (together and (group["outcome"] == HOLDS).all())]
    rows = [[*key, *_figures(group, part, part.by)] for key, group in told]
    if together:
        import pandas as pd

        others = f"{len(clean)} others" if told else f"all {len(clean)}"
        rows.append([others, *[""] * (len(part.by) - 1), *_figures(pd.concat(clean), part, ())])
    return [*part.by, *figures, "worst cell"], rows


def _figures(group: pd.DataFrame, part: Part, known: Sequence[str]) -> list[str]:
    outcome = group["outcome"]
    counts = [str(int((outcome == what).sum())) for what in (HOLDS, CONTRADICTED, OPEN)]
    spread = [format(float(group["value"].quantile(q)), part.digits) for q in (0, 0.5, 1)]
    worst = _worst(group, group["margin"])
    names = [name for name in _NAMES if name not in known]
    return [group_verdict(outcome), *counts, *spread, _contradicted_sizes(group), _cell(worst, part, names)]


def _worst(cells: pd.DataFrame, margin: pd.Series) -> pd.Series:
    return cells.iloc[int(margin.fillna(-float("inf")).to_numpy().argmin())]


def _contradicted_sizes(group: pd.DataFrame) -> str:
    against = group[group["outcome"] == CONTRADICTED]
    if "n" not in group or against.empty:
        return ""
    sizes = sorted(set(against["n"]))
    if len(sizes) > 1 and len(sizes) == group["n"].nunique():
        return "every n"
    return "n = " + ", ".join(map(str, sizes))


def _cell(cell: pd.Series, part: Part, names: Sequence[str]) -> str:
    """A cell by what tells it from others, with its number, its standard error and what it is a number against."""
    told = [name for name in names if name in cell and len(set(part.cells[name])) > 1]
    where = ", ".join(f"{_LABELS.get(name, '')}{cell[name]}" for name in told)
    number = format(float(cell["value"]), part.digits)
    remarks = [f"se {_error(float(cell['se']), part)}"] if _noisy(part) else []
    remarks += [cell["note"]] if "note" in cell else []
    return (f"{where}: " if where else "") + number + (f" ({', '.join(remarks)})" if remarks else "")


def _error(se: float, part: Part) -> str:
    return f"{short(100 * se, 2)}%" if part.digits.endswith("%") else short(se, 2)


def _noisy(part: Part) -> bool:
    return bool((part.cells["se"] != 0).any())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(text.replace("|", r"\|") for text in line) + " |" for line in lines)
