"""The rows of the report, and the place in the README where they go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEADINGS = ("what", "l2calib", "competitor", "ratio", "goal", "met")


@dataclass(frozen=True)
class Row:
    """One comparison. ``met`` is None where no goal was set."""

    what: str
    ours: str
    competitor: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        met = {True: "yes", False: "no", None: ""}[self.met]
        return self.what, self.ours, self.competitor, self.ratio, self.goal, met


def absolute(what: str, value: float, limit: float, unit: str) -> Row:
    """A measurement that has an upper limit of its own."""
    return Row(what, f"{value:.3g} {unit}", goal=f"at most {limit:g} {unit}", met=value <= limit)


def relative(what: str, ours: float, competitor: str, theirs: float, goal: float | None) -> Row:
    """Seconds per dataset against a competitor's seconds, with a ratio to reach."""
    ratio = theirs / ours
    return Row(
        what,
        f"{1e3 * ours:.3g} ms",
        f"{competitor}: {theirs:,.3g} s" if theirs < 1000 else f"{competitor}: {theirs:,.0f} s",
        f"{float(f'{ratio:.2g}'):,.0f}",
        "" if goal is None else f"at least {goal:,.0f}",
        None if goal is None else ratio >= goal,
    )


def markdown(rows: list[Row], machine: str) -> str:
    """The table, with a line on where and how it was taken."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    lines += [f"| {' | '.join(row.cells())} |" for row in rows]
    return "\n".join([*lines, "", machine])


def between_markers(text: str, table: str, what: str = "benchmark") -> str:
    """A page with this between its markers, `<!-- what:begin -->` and `<!-- what:end -->`."""
    begin, end = f"<!-- {what}:begin -->", f"<!-- {what}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"the page must hold '{begin}' and '{end}' once each; the table was not written.")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"


def write_between_markers(page: Path, table: str) -> None:
    """Replace what stands between the markers of a benchmark."""
    page.write_text(between_markers(page.read_text(encoding="utf-8"), table), encoding="utf-8")
