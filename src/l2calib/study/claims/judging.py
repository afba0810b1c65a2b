"""How a claim is judged: cells against a stated limit, cells into groups, groups into parts, parts into a verdict.

A cell is one number of the study, such as the coverage of one method in one configuration at one n, with its Monte
Carlo standard error. Nothing here knows what the number means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["reproduced", "not reproduced", "partly reproduced", "not tested"]
HOLDS, CONTRADICTED, OPEN = "holds", "contradicted", "open"

FALSE_ALARM = 0.05
MOST = 0.9
DECIDED = 0.2


class Statement(Protocol):
    """What is said of the number of a cell."""

    @property
    def presumed(self) -> bool:
        """Whether the estimate on the right side is enough, as where nothing but noise is claimed to differ."""

    def margin(self, value: pd.Series) -> pd.Series:
        """By how much the number is on the statement's side of the limit."""


@dataclass(frozen=True)
class Above:
    """The number is larger than the limit."""

    limit: float
    presumed = False

    def margin(self, value: pd.Series) -> pd.Series:
        return value - self.limit


@dataclass(frozen=True)
class Below:
    """The number is smaller than the limit."""

    limit: float
    presumed = False

    def margin(self, value: pd.Series) -> pd.Series:
        return self.limit - value


@dataclass(frozen=True)
class Within:
    """The number differs from the centre by no more than what counts as negligible."""

    centre: float
    negligible: float
    presumed = True

    def margin(self, value: pd.Series) -> pd.Series:
        return self.negligible - (value - self.centre).abs()


def critical(cells: int) -> float:
    """The standard errors beyond which noise shows with probability FALSE_ALARM in any of so many cells."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * max(cells, 1)))


@dataclass(frozen=True, eq=False)
class Part:
    """One checkable statement of a claim, and the cells that it is checked in.

    `cells` has the columns `value` and `se` and the cells' names. `by` names what the statement must hold for each of,
    such as the method: among many cells, one method that fails everywhere would not be seen.
    """

    letter: str
    text: str
    rule: str
    statement: Statement
    cells: pd.DataFrame
    by: tuple[str, ...] = ("configuration",)
    digits: str = ".3g"

    @cached_property
    def margin(self) -> pd.Series:
        return self.statement.margin(self.cells["value"])

    @cached_property
    def outcome(self) -> pd.Series:
        """For every cell whether the statement holds, is contradicted, or is left open by the noise."""
        import pandas as pd

        margin, reach = self.margin, critical(len(self.cells)) * self.cells["se"]
        holds = margin >= 0 if self.statement.presumed else margin > reach
        outcome = np.select([holds, -margin > reach], [HOLDS, CONTRADICTED], OPEN)
        return pd.Series(outcome, index=margin.index, dtype=object)

    @cached_property
    def groups(self) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
        """The cells with their outcome and margin, group by group."""
        judged = self.cells.assign(outcome=self.outcome, margin=self.margin)
        if not self.by:
            return [] if judged.empty else [((), judged)]
        return [(tuple(map(str, key)), group) for key, group in judged.groupby(list(self.by), sort=False)]

    @cached_property
    def verdict(self) -> Verdict:
        """What all groups that are decided say, if they are not too few."""
        verdicts = [group_verdict(group["outcome"]) for _, group in self.groups]
        tested = set(verdicts) - {"not tested"}
        if not tested or verdicts.count("not tested") > (1 - DECIDED) * len(verdicts):
            return "not tested"
        return tested.pop() if len(tested) == 1 else "partly reproduced"


def group_verdict(outcome: pd.Series) -> Verdict:
    """What nearly all decided cells say, if they are not too few."""
    holds, contradicted = (int((outcome == what).sum()) for what in (HOLDS, CONTRADICTED))
    if holds + contradicted < max(DECIDED * len(outcome), 1):
        return "not tested"
    if holds >= MOST * (holds + contradicted):
        return "reproduced"
    return "not reproduced" if contradicted >= MOST * (holds + contradicted) else "partly reproduced"


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim of the paper and what a study says about it."""

    number: int
    text: str
    parts: tuple[Part, ...]
    looked_at: str

    @cached_property
    def verdict(self) -> Verdict:
        """What all parts say; a claim of which a part is untested is reproduced in part at most."""
        verdicts = {part.verdict for part in self.parts}
        tested = verdicts - {"not tested"}
        if not tested:
            return "not tested"
        if tested == {"not reproduced"}:
            return "not reproduced"
        return "reproduced" if verdicts == {"reproduced"} else "partly reproduced"

    @property
    def rule(self) -> str:
        return " ".join(f"({part.letter}) {part.rule}" for part in self.parts)


def quadrature_sum(one: pd.Series, other: pd.Series) -> pd.Series:
    """The standard error of a sum or difference, as if its terms were independent.

    Methods share their datasets, so their differences are known better than this says: the rules err towards 'open'.
    """
    return (one**2 + other**2) ** 0.5
