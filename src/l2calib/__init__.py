"""Bayesian L2 calibration of mathematical models, with uncertainty that can be trusted though the model is wrong."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from l2calib.calibration import calibrate, calibrate_batch, compare
    from l2calib.engines.integrate import Integrate
    from l2calib.engines.nuts import NUTS
    from l2calib.errors import CalibrationFailed, L2CalibError, Status
    from l2calib.estimates import Estimate, L2Target, estimate, target
    from l2calib.losses import L2, OLS
    from l2calib.methods.catalogue import METHODS
    from l2calib.methods.general_bayes import GeneralBayes
    from l2calib.methods.kennedy_ohagan import KennedyOHagan
    from l2calib.methods.l2 import ProjectedBias
    from l2calib.methods.method import Density, DensityOfRows, Fit, Method, Prepared, Sampler, Smoothing, Workload
    from l2calib.methods.nonlinear_regression import NonlinearRegression
    from l2calib.methods.projected_l2 import ProjectedL2
    from l2calib.posterior.band import Band
    from l2calib.problem.distributions import Beta, Gamma, HalfNormal, LogNormal, Normal, TruncatedNormal, Uniform
    from l2calib.problem.experiment import Experiment
    from l2calib.problem.measure import Quadrature, gauss_legendre, sobol
    from l2calib.problem.prior import Prior
    from l2calib.problem.problem import Problem
    from l2calib.process.correlation import Matern, SquaredExponential
    from l2calib.results.batch import Batch
    from l2calib.results.calibration import Calibration
    from l2calib.results.comparison import Comparison
    from l2calib.results.files import load
    from l2calib.results.prediction import Prediction
    from l2calib.scalings.asymptotic import Asymptotic
    from l2calib.scalings.bootstrap import Bootstrap
    from l2calib.smoothers.gcv import GCV

# Names are imported when they are first used: `import l2calib` and the command line's help cost no JAX.
_HOMES = {
    "calibration": ("calibrate", "calibrate_batch", "compare"),
    "engines.integrate": ("Integrate",),
    "engines.nuts": ("NUTS",),
    "errors": ("CalibrationFailed", "L2CalibError", "Status"),
    "estimates": ("Estimate", "L2Target", "estimate", "target"),
    "losses": ("L2", "OLS"),
    "methods.catalogue": ("METHODS",),
    "methods.general_bayes": ("GeneralBayes",),
    "methods.kennedy_ohagan": ("KennedyOHagan",),
    "methods.l2": ("ProjectedBias",),
    "methods.method": ("Density", "DensityOfRows", "Fit", "Method", "Prepared", "Sampler", "Smoothing", "Workload"),
    "methods.nonlinear_regression": ("NonlinearRegression",),
    "methods.projected_l2": ("ProjectedL2",),
    "posterior.band": ("Band",),
    "problem.distributions": ("Beta", "Gamma", "HalfNormal", "LogNormal", "Normal", "TruncatedNormal", "Uniform"),
    "problem.experiment": ("Experiment",),
    "problem.measure": ("Quadrature", "gauss_legendre", "sobol"),
    "problem.prior": ("Prior",),
    "problem.problem": ("Problem",),
    "process.correlation": ("Matern", "SquaredExponential"),
    "results.batch": ("Batch",),
    "results.calibration": ("Calibration",),
    "results.comparison": ("Comparison",),
    "results.files": ("load",),
    "results.prediction": ("Prediction",),
    "scalings.asymptotic": ("Asymptotic",),
    "scalings.bootstrap": ("Bootstrap",),
    "smoothers.gcv": ("GCV",),
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
    "Density",
    "DensityOfRows",
    "Estimate",
    "Experiment",
    "Fit",
    "Gamma",
    "GeneralBayes",
    "HalfNormal",
    "Integrate",
    "KennedyOHagan",
    "L2CalibError",
    "L2Target",
    "LogNormal",
    "Matern",
    "Method",
    "NonlinearRegression",
    "Normal",
    "Prediction",
    "Prepared",
    "Prior",
    "Problem",
    "ProjectedBias",
    "ProjectedL2",
    "Quadrature",
    "Sampler",
    "Smoothing",
    "SquaredExponential",
    "Status",
    "TruncatedNormal",
    "Uniform",
    "Workload",
    "calibrate",
    "calibrate_batch",
    "compare",
    "estimate",
    "gauss_legendre",
    "load",
    "sobol",
    "target",
]
