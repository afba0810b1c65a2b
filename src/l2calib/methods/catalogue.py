"""The methods by name: what each is called, how it looks wherever it is drawn, and about what it costs.

The one list of them. It imports no method: each is built when it is asked for, so that the command line can
name them all without waiting for JAX.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal, NamedTuple

from l2calib.errors import MethodError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from l2calib.methods.method import AnyMethod

    METHODS: dict[str, AnyMethod]


class Style(NamedTuple):
    """A label (with mathtext), a colour, the dashes of a curve and the marker of a point, as matplotlib names it."""

    label: str
    colour: str  # told apart by colour-blind readers too: the Okabe-Ito palette, and a violet as far from it as can be
    dashes: tuple[float, ...]
    marker: str
    hollow: bool = False


class Entry(NamedTuple):
    """A method of the catalogue; `cost` is that of a calibration in a batch, roughly, in those of the quickest."""

    build: Callable[..., AnyMethod]  # it takes its options, if it has any
    cost: float
    style: Style | None = None  # the default and the paper's methods have one of their own


def _regression() -> AnyMethod:
    from l2calib.methods.nonlinear_regression import NonlinearRegression

    return NonlinearRegression()


def _kennedy_ohagan(orthogonal: Literal["estimate", "parameter", "none"]) -> AnyMethod:
    from l2calib.methods.kennedy_ohagan import KennedyOHagan

    return KennedyOHagan(orthogonal=orthogonal)


def _projected() -> AnyMethod:
    from l2calib.methods.projected_l2 import ProjectedL2

    return ProjectedL2()


def _general_bayes(loss: Literal["l2", "ols"], scaling: Literal["asymptotic", "bootstrap"]) -> AnyMethod:
    from l2calib.losses import L2, OLS
    from l2calib.methods.general_bayes import GeneralBayes
    from l2calib.scalings.asymptotic import Asymptotic
    from l2calib.scalings.bootstrap import Bootstrap

    return GeneralBayes(L2() if loss == "l2" else OLS(), Asymptotic() if scaling == "asymptotic" else Bootstrap())


def _projected_bias(*options: str) -> AnyMethod:
    from l2calib.methods.l2 import ProjectedBias
    from l2calib.process.correlation import Matern, SquaredExponential

    matern = [smoothness for option, smoothness in _MATERN.items() if option in options]
    return ProjectedBias(
        Matern(matern[0]) if matern else SquaredExponential(), "literal" if "literal" in options else "volume"
    )


_MATERN = {"matern52": 2.5, "matern32": 1.5}
_COSTLY = 20.0  # such as modified Kennedy-O'Hagan, and what is not in the catalogue
_OWN = {"l2": Entry(_projected_bias, _COSTLY, Style("projected bias, $L^2$", "#8200D9", (12, 1.5, 2.5, 1.5), "*"))}
_PAPER = {
    "nlm": Entry(_regression, 1.0, Style("non-linear regression", "#000000", (1, 1.2), "o")),
    "koh": Entry(
        functools.partial(_kennedy_ohagan, "estimate"),
        _COSTLY,
        Style("modified Kennedy-O'Hagan", "#D55E00", (5, 2), "s"),
    ),
    "projected": Entry(_projected, 12.0, Style("projected $L^2$", "#009E73", (6, 1.5, 1, 1.5), "^")),
    "gb-l2": Entry(
        functools.partial(_general_bayes, "l2", "asymptotic"),
        1.0,
        Style("general Bayes, $L^2$", "#0072B2", (), "D"),
    ),
    "gb-ols": Entry(
        functools.partial(_general_bayes, "ols", "asymptotic"),
        1.0,
        Style("general Bayes, OLS", "#E69F00", (8, 2), "v"),
    ),
    "gb-l2-boot": Entry(
        functools.partial(_general_bayes, "l2", "bootstrap"),
        12.0,
        Style("general Bayes, $L^2$, bootstrap", "#56B4E9", (3, 1.5), "D", hollow=True),
    ),
    "gb-ols-boot": Entry(
        functools.partial(_general_bayes, "ols", "bootstrap"),
        12.0,
        Style("general Bayes, OLS, bootstrap", "#CC79A7", (4, 1, 1, 1, 1, 1), "v", hollow=True),
    ),
}
# What may follow the name after plus signs: of each pair of brackets one at the most.
_OPTIONS: dict[str, tuple[tuple[str, ...], ...]] = {"l2": (("literal",), tuple(_MATERN))}
CATALOGUE = (
    _OWN
    | _PAPER
    | {
        "koh-plumlee": Entry(functools.partial(_kennedy_ohagan, "parameter"), _COSTLY),
        "kennedy-ohagan-plain": Entry(functools.partial(_kennedy_ohagan, "none"), _COSTLY),
    }
)
PAPER_METHODS = tuple(_PAPER)  # in the paper's order
DEFAULT_METHOD = "l2"
DEFAULT_SINCE = "0.2"  # the version of l2calib; before it was FORMER_DEFAULT
FORMER_DEFAULT = "gb-l2"
DEFAULT_IN_WORDS = "a bias projected at theta, its smoothness and size integrated"
COMPARED = (DEFAULT_METHOD, *PAPER_METHODS)  # side by side, where none are named
_SPARE_MARKERS = "PX<>hp"


@functools.cache
def _built() -> dict[str, AnyMethod]:
    return {name: entry.build() for name, entry in CATALOGUE.items()}


def __getattr__(name: str) -> object:
    if name == "METHODS":
        return _built()
    raise AttributeError(f"module 'l2calib.methods.catalogue' has no attribute '{name}'")


def method_named(name: str) -> AnyMethod:
    """The method of that name, which may have options: `l2+literal`."""
    base, *options = name.split("+")
    if base not in CATALOGUE:
        near = suggest(name, CATALOGUE)
        raise MethodError(f"there is no method '{name}'{near}: the methods are {', '.join(CATALOGUE)}.")
    return _with_options(base, tuple(options)) if options else _built()[base]


@functools.cache
def _with_options(base: str, options: tuple[str, ...]) -> AnyMethod:
    known = _OPTIONS.get(base, ())
    listed = [f"'{base}+{option}'" for choices in known for option in choices]
    for option in options:
        if not any(option in choices for choices in known):
            there_are = f"there are {', '.join(listed)}" if listed else "it has none"
            raise MethodError(f"'{base}' has no option '{option}'{suggest(option, sum(known, ()))}: {there_are}.")
    for choices in known:
        if sum(option in choices for option in options) > 1:
            raise MethodError(f"only one of {', '.join(choices)} goes with '{base}': received '{'+'.join(options)}'.")
    return CATALOGUE[base].build(*options)


def cost_of(name: str) -> float:
    """About what a calibration by this method costs, in those of the quickest."""
    base = name.partition("+")[0]
    return CATALOGUE[base].cost if base in CATALOGUE else _COSTLY


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """The style of each method: the default, then those of the paper in its order; others take what these leave."""
    found = set(methods)
    styles = {name: entry.style for name, entry in CATALOGUE.items() if entry.style is not None}
    others = sorted(found - styles.keys())
    left = [styles[name] for name in PAPER_METHODS if name not in found] or list(styles.values())
    spare = {
        name: left[i % len(left)]._replace(
            label=name.replace("$", r"\$"), marker=_SPARE_MARKERS[i % len(_SPARE_MARKERS)], hollow=False
        )
        for i, name in enumerate(others)
    }
    return {name: style for name, style in styles.items() if name in found} | spare


def labels_of(methods: Iterable[str]) -> dict[str, str]:
    """What each method is called in plain text, in the order of `styles_of`."""
    return {name: style.label.replace("$L^2$", "L²").replace(r"\$", "$") for name, style in styles_of(methods).items()}
