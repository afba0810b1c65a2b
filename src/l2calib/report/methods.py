"""The methods on a page: their names in plain text, and their looks for its script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from l2calib.methods.catalogue import labels_of, styles_of
from l2calib.report.colours import palette

if TYPE_CHECKING:
    from collections.abc import Iterable


def prose(method: str) -> str:
    """A method's name within a sentence, where its comma would mislead."""
    return labels_of([method])[method].replace(",", "")


def looks(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By method its label, its colours on the two backgrounds, its dashes and its marker."""
    styles = styles_of(methods)
    named = labels_of(styles)
    return {
        name: {
            "label": named[name],
            "dashes": list(style.dashes),
            "marker": style.marker,
            "hollow": style.hollow,
            "variable": f"--method-{i}",
            **colours,
        }
        for i, ((name, style), colours) in enumerate(
            zip(styles.items(), palette(each.colour for each in styles.values()), strict=True)
        )
    }
