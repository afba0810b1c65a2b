"""Charts as data: what the page's script draws, and the table of the same numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Mark = dict[str, Any]


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
        return {name: plain(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}


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
    """Markers, with bars if `low` and `high` are given; `joined` by a thin line if so said."""
    return _mark("points", method, x=x, y=y, **more)


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
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in map(float, values)]


def _mark(kind: str, method: str | None, **content: Any) -> Mark:
    numbers = {name: plain(content.pop(name)) for name in ("x", "y", "low", "high") if content.get(name) is not None}
    kept = {name: value for name, value in content.items() if value is not None}
    return {"kind": kind, "method": method, **numbers, **kept}
