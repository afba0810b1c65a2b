"""Bayesian L2 calibration of mathematical models, with uncertainty that can be trusted though the model is wrong."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from l2calib.calibration import Batch, Calibration, Comparison, calibrate, calibrate_batch, compare
    from l2calib.distributions import Beta, Gamma, HalfNormal, LogNormal, Normal, TruncatedNormal, Uniform
    from l2calib.engines.integrate import Integrate
    from l2calib.engines.nuts import NUTS
    from l2calib.errors import CalibrationFailed, L2CalibError, Status
    from l2calib.experiment import Experiment, Problem
    from l2calib.frequentist import Estimate, L2Target, estimate, target
    from l2calib.losses import L2, OLS
    from l2calib.methods import METHODS, GeneralBayes, KennedyOHagan, NonlinearRegression, ProjectedL2
    from l2calib.predicted import Prediction
    from l2calib.prediction import Band
    from l2calib.quadrature import Quadrature, gauss_legendre, sobol
    from l2calib.result import load
    from l2calib.scaling import Asymptotic, Bootstrap
    from l2calib.smoother import GCV

# Names are imported when they are first used: `import l2calib` and the command line's help cost no JAX.
_HOMES = {
    "calibration": ("Batch", "Calibration", "Comparison", "calibrate", "calibrate_batch", "compare"),
    "engines.integrate": ("Integrate",),
    "engines.nuts": ("NUTS",),
    "errors": ("CalibrationFailed", "L2CalibError", "Status"),
    "experiment": ("Experiment", "Problem"),
    "frequentist": ("Estimate", "L2Target", "estimate", "target"),
    "losses": ("L2", "OLS"),
    "methods": ("METHODS", "GeneralBayes", "KennedyOHagan", "NonlinearRegression", "ProjectedL2"),
    "distributions": ("Beta", "Gamma", "HalfNormal", "LogNormal", "Normal", "TruncatedNormal", "Uniform"),
    "predicted": ("Prediction",),
    "prediction": ("Band",),
    "quadrature": ("Quadrature", "gauss_legendre", "sobol"),
    "result": ("load",),
    "scaling": ("Asymptotic", "Bootstrap"),
    "smoother": ("GCV",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _HOME_OF:
        return getattr(importlib.import_module(f"l2calib.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'l2calib' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF])


__all__ = [
    "GCV",
    "L2",
    "METHODS",
    "NUTS",
    "OLS",
    "Asymptotic",
    "Band",
    "Batch",
    "Beta",
    "Bootstrap",
    "Calibration",
    "CalibrationFailed",
    "Comparison",
    "Estimate",
    "Experiment",
    "Gamma",
    "GeneralBayes",
    "HalfNormal",
    "Integrate",
    "KennedyOHagan",
    "L2CalibError",
    "L2Target",
    "LogNormal",
    "NonlinearRegression",
    "Normal",
    "Prediction",
    "Problem",
    "ProjectedL2",
    "Quadrature",
    "Status",
    "TruncatedNormal",
    "Uniform",
    "calibrate",
    "calibrate_batch",
    "compare",
    "estimate",
    "gauss_legendre",
    "load",
    "sobol",
    "target",
]
