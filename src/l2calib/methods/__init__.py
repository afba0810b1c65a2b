"""The paper's seven methods by name, in the paper's order, and two relatives of Kennedy-O'Hagan."""

from __future__ import annotations

from l2calib.errors import MethodError, suggest
from l2calib.losses import L2, OLS
from l2calib.methods.general_bayes import GeneralBayes
from l2calib.methods.kennedy_ohagan import KennedyOHagan
from l2calib.methods.method import DensityMethod, DrawingMethod, Fit, Method
from l2calib.methods.nonlinear_regression import NonlinearRegression
from l2calib.methods.projected_l2 import ProjectedL2
from l2calib.scaling import Asymptotic, Bootstrap

PAPER_METHODS: dict[str, DensityMethod | DrawingMethod] = {
    "nlm": NonlinearRegression(),
    "koh": KennedyOHagan(),
    "projected": ProjectedL2(),
    "gb-l2": GeneralBayes(L2(), Asymptotic()),
    "gb-ols": GeneralBayes(OLS(), Asymptotic()),
    "gb-l2-boot": GeneralBayes(L2(), Bootstrap()),
    "gb-ols-boot": GeneralBayes(OLS(), Bootstrap()),
}
METHODS: dict[str, DensityMethod | DrawingMethod] = {
    **PAPER_METHODS,
    "koh-plumlee": KennedyOHagan(orthogonal="parameter"),
    "kennedy-ohagan-plain": KennedyOHagan(orthogonal="none"),
}


def method_named(name: str) -> DensityMethod | DrawingMethod:
    """The method of that name."""
    if name not in METHODS:
        raise MethodError(f"there is no method '{name}'{suggest(name, METHODS)}: the methods are {', '.join(METHODS)}.")
    return METHODS[name]


__all__ = [
    "METHODS",
    "PAPER_METHODS",
    "DensityMethod",
    "DrawingMethod",
    "Fit",
    "GeneralBayes",
    "KennedyOHagan",
    "Method",
    "NonlinearRegression",
    "ProjectedL2",
    "method_named",
]
