"""Charts as data: what the page's script draws, and the table of the same numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Mark = dict[str, Any]

_DIGITS = {"x": 6, "y": 6, "low": 6, "high": 6, "reach": 2}


@dataclass(frozen=True)
class Axis:
    """A label and a scale; `domain` where it is not what is shown, `include` what must be in sight."""

    label: str
    scale: Literal["linear", "log", "missed", "stretched", "rows"] = "linear"
    domain: tuple[float, float] | None = None
    include: tuple[float, ...] = ()
    ticks: tuple[float, ...] = ()
    centre: float = 0.0
    width: float = 1.0
    bare: bool = False  # without numbers, as for a density

    def as_json(self) -> dict[str, Any]:
        """What differs from the defaults, which the script knows."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        told = {each.name: told[each.name] for each in fields(self) if told[each.name] != each.default}
        return {name: plain(value) if isinstance(value, tuple) else value for name, value in told.items()}


@dataclass(frozen=True)
class Table:
    """Text in rows; the first `names` columns head their rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1


@dataclass(frozen=True)
class Chart:
    """One picture: what it is called, what it shows, and its numbers."""

    caption: str
    label: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    table: Table
    note: str = ""
    shape: Literal["wide", "panel", "square"] = "panel"
    when: dict[str, int] = field(default_factory=dict)  # the choices for which it is shown

    def as_json(self) -> dict[str, Any]:
        return {"x": self.x.as_json(), "y": self.y.as_json(), "marks": list(self.marks), "shape": self.shape}


def curve(method: str | None, x: Iterable[float], y: Iterable[float], **more: Any) -> Mark:
    """A line, with a band if `low` and `high` are given."""
    return _mark("curve", method, x=x, y=y, **more)


def points(method: str | None, x: Iterable[float], y: Iterable[float], **more: Any) -> Mark:
    """Markers."""
    return _mark("points", method, x=x, y=y, **more)


def series(method: str, y: Iterable[float], **more: Any) -> Mark:
    """Joined markers at the ticks of x, beside those of other methods; with bars of length `reach` if given."""
    return _mark("series", method, y=y, **more)


def interval(method: str | None, name: str, y: float, low: float, high: float, **more: Any) -> Mark:
    """A row of its own: a dot on a line."""
    return _mark("interval", method, name=name, y=[y], low=[low], high=[high], **more)


def regions(method: str | None, outer: Sequence[np.ndarray], inner: Sequence[np.ndarray], **more: Any) -> Mark:
    """Closed outlines (m, 2) that hold most of a posterior, and those within them that hold half."""
    rings = {
        name: [[plain(column, 4) for column in ring.T] for ring in each]
        for name, each in (("outer", outer), ("inner", inner))
    }
    return _mark("regions", method, **rings, **more)


def rule(along: Literal["x", "y"], at: float, name: str) -> Mark:
    """A straight line across the picture at one value of an axis."""
    return {"kind": "rule", "along": along, "at": plain([at])[0], "name": name}


def span(low: float, high: float, name: str) -> Mark:
    """A shaded range of y across the picture."""
    return {"kind": "span", "low": low, "high": high, "name": name}


def plain(values: Iterable[float], digits: int = 6) -> list[float | None]:
    """Numbers as JSON holds them, to more digits than a screen shows; None for what is not finite."""
    rounded = [float(f"{value:.{digits}g}") for value in values]
    return [None if not math.isfinite(value) else int(value) if value.is_integer() else value for value in rounded]


def _mark(kind: str, method: str | None, **content: Any) -> Mark:
    numbers = {name: plain(content.pop(name), size) for name, size in _DIGITS.items() if name in content}
    return {"kind": kind, "method": method, **numbers, **content}
