"""How each method looks, wherever it is drawn: told apart by colour, by dashes and by marker."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Style(NamedTuple):
    """A label (with mathtext), a colour, the dashes of a curve and the marker of a point, as matplotlib names it."""

    label: str
    colour: str  # the Okabe-Ito palette: told apart by colour-blind readers too
    dashes: tuple[float, ...]
    marker: str
    hollow: bool = False


STYLES = {
    "nlm": Style("non-linear regression", "#000000", (1, 1.2), "o"),
    "koh": Style("modified Kennedy-O'Hagan", "#D55E00", (5, 2), "s"),
    "projected": Style("projected $L^2$", "#009E73", (6, 1.5, 1, 1.5), "^"),
    "gb-l2": Style("general Bayes, $L^2$", "#0072B2", (), "D"),
    "gb-ols": Style("general Bayes, OLS", "#E69F00", (8, 2), "v"),
    "gb-l2-boot": Style("general Bayes, $L^2$, bootstrap", "#56B4E9", (3, 1.5), "D", hollow=True),
    "gb-ols-boot": Style("general Bayes, OLS, bootstrap", "#CC79A7", (4, 1, 1, 1, 1, 1), "v", hollow=True),
}
_SPARE_MARKERS = "PX*<>hp"


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """The style of each method, those of the paper first and in its order; others take what is left."""
    found = set(methods)
    others = sorted(found - STYLES.keys())
    left = [style for name, style in STYLES.items() if name not in found] or list(STYLES.values())
    spare = {
        name: left[i % len(left)]._replace(
            label=name.replace("$", r"\$"), marker=_SPARE_MARKERS[i % len(_SPARE_MARKERS)], hollow=False
        )
        for i, name in enumerate(others)
    }
    return {name: STYLES[name] for name in STYLES if name in found} | spare
