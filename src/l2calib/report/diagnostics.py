"""What to know before relying on a run, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import signal

from l2calib.display.words import listed
from l2calib.report.densities import mass
from l2calib.report.words import short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from l2calib.report.run_files import Marginal

_TAIL = 0.005
_CUT = 0.2  # of the peak: a normal density has fallen to 0.04 at that quantile
_PROMINENT = 0.15
_DRAWING = ("draws", "nuts")
_NEGLIGIBLE, _SMALL = 0.01, 0.05
_UNEVEN = 0.1


class Note(NamedTuple):
    """A sentence, and whether it asks for care."""

    text: str
    care: bool


def boundary_note(parameter: str, marginal: Marginal, support: tuple[float, float]) -> Note | None:
    """Whether the posterior of a parameter is cut off by an end of its prior's support."""
    ends = [(side, end) for side, end in zip(("lower", "upper"), support, strict=True) if math.isfinite(end)]
    for side, end in ends:
        if _cut_off(marginal, end, upper=side == "upper"):
            return Note(
                f"The posterior of {parameter} is cut off by the {side} end of its prior, {short(end)}: "
                "the prior decides how far it reaches, so widen it if values beyond are possible.",
                care=True,
            )
    return None


def _cut_off(marginal: Marginal, end: float, *, upper: bool) -> bool:
    value, density = marginal.value, marginal.density
    ends = [_TAIL, 1 - _TAIL if upper else _TAIL, 1 - _TAIL]
    low, tail, high = np.interp(ends, mass(value, density), value)
    return bool(abs(tail - end) < 0.05 * (high - low) and np.interp(tail, value, density) > _CUT * np.nanmax(density))


def modes_note(parameter: str, marginal: Marginal) -> Note | None:
    """Whether the posterior of a parameter has several peaks."""
    density = np.concatenate([[0.0], marginal.density, [0.0]])  # so that a peak at an end is one too
    peaks = signal.find_peaks(density, prominence=_PROMINENT * density.max())[0] - 1
    if len(peaks) < 2:
        return None
    where = listed([short(float(marginal.value[peak]), 3) for peak in peaks])
    return Note(
        f"The posterior of {parameter} has {len(peaks)} peaks, near {where}: its mean and standard deviation describe "
        "none of them, so look at the picture.",
        care=True,
    )


def error_notes(found: Sequence[tuple[float | None, str]]) -> list[Note]:
    """How much the numbers owe to the computation: of (error, engine) the largest error, drawn and integrated apart."""
    drawn = [error for error, engine in found if engine in _DRAWING]
    integrated = [error for error, engine in found if engine not in _DRAWING]
    kinds = (("numerical error", integrated), ("Monte Carlo error of the posterior mean", drawn))
    return [_error_note(what, errors) for what, errors in kinds if errors]


def _error_note(what: str, errors: Sequence[float | None]) -> Note:
    known = [error for error in errors if error is not None and math.isfinite(error)]
    if len(known) < len(errors):
        return Note(f"The {what} is not known.", care=True)
    size = f"The {what} is {'at most ' if len(known) > 1 else ''}{short(max(known), 2)} posterior standard deviations"
    if max(known) < _NEGLIGIBLE:
        return Note(f"{size}, which is negligible.", care=False)
    if max(known) < _SMALL:
        return Note(f"{size}, which is small.", care=False)
    return Note(f"{size}, which can be seen in the digits shown.", care=True)


def design_note(inputs: Mapping[str, tuple[float, float]], columns: Mapping[str, np.ndarray]) -> Note:
    """How evenly the observations cover the box, and what that does to methods that weight by them."""
    excess = {name: unevenness(columns[name], low, high) for name, (low, high) in inputs.items()}
    worst = max(excess, key=lambda name: excess[name])
    if excess[worst] <= _UNEVEN:
        return Note(
            "The observations cover the ranges of the inputs about evenly, so methods that weight by the observations "
            "(OLS and non-linear regression) aim at about the same target as the others.",
            care=False,
        )
    low, high, share = widest_gap(columns[worst], *inputs[worst])
    gap = f" None lies between {short(low)} and {short(high)}, {share:.0%} of the range." if share > _UNEVEN else ""
    return Note(
        f"The observations cover the range of {worst} unevenly: {excess[worst]:.0%} of them would have to move to "
        f"spread them evenly.{gap} OLS and non-linear regression fit best where the observations are dense, so they "
        "aim at another target than the L² methods, which weight the whole range alike.",
        care=True,
    )


def unevenness(x: np.ndarray, low: float, high: float) -> float:
    """The share of points that must move to spread them evenly: Kolmogorov's distance, less that of the best spread."""
    share = np.sort((x - low) / (high - low))
    n = len(share)
    steps = np.arange(n + 1) / n
    distance = max(float((steps[1:] - share).max()), float((share - steps[:-1]).max()))
    return max(distance - 0.5 / n, 0.0)


def widest_gap(x: np.ndarray, low: float, high: float) -> tuple[float, float, float]:
    """The ends of the widest part of the range without a point, and its share of the range."""
    places = np.unique(np.concatenate([[low], x, [high]]))
    widest = int(np.diff(places).argmax())
    left, right = float(places[widest]), float(places[widest + 1])
    return left, right, (right - left) / (high - low)


def merged(notes: Mapping[str, list[Note]]) -> list[tuple[str, Note]]:
    """Notes by method as (methods, note), each note once; without a name where it holds for all of several or one."""
    holders: dict[Note, list[str]] = {}
    for method, found in notes.items():
        for note in found:
            holders.setdefault(note, []).append(method)
    return [("" if len(held) == len(notes) else listed(held), note) for note, held in holders.items()]
