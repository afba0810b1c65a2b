"""Colours that can be seen on the page's two backgrounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LIGHT, DARK = ("#fdfdfb", "#1d2125"), ("#15181b", "#e8e6e1")  # a background and the ink on it, as in the style sheet
_MARKS = 3.0  # the contrast that WCAG asks of graphics


def legible(colour: str, background: str, ink: str) -> str:
    """The colour, moved towards the ink until it stands out from the background."""
    mixes = (_mixed(colour, ink, step / 20) for step in range(21))
    return next((mix for mix in mixes if contrast(mix, background) >= _MARKS), ink)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def palette(colours: Iterable[str]) -> list[dict[str, str]]:
    """Each colour as it is drawn on the light page and on the dark one."""
    return [{"light": legible(each, *LIGHT), "dark": legible(each, *DARK)} for each in colours]


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _mixed(colour: str, other: str, share: float) -> str:
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
