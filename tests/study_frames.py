"""Summaries of studies that nobody ran, made to have whatever pattern a test needs."""

import numpy as np
import pandas as pd

SIZES = tuple(range(20, 201, 20))
METHODS = ("nlm", "koh", "projected", "gb-l2", "gb-ols", "gb-l2-boot", "gb-ols-boot")
LAWS = ("normal", "t", "skew-normal")
TARGETS = {
    "1": {"theta1": 0.2, "theta2": 0.3},
    "2": {"theta1": 1.8772},
    "3": {"theta1": 3.5653},
    "4": {"theta1": 0.2, "theta2": 0.3, "theta3": 0.8},
}
SCALES = {"1": (0.02, 0.02), "2": (0.026,), "3": (0.035,), "4": (0.033, 0.039, 0.5)}


def paper_like(configurations="1234", sizes=SIZES, errors=LAWS, methods=METHODS, replications=20_000):
    """A summary in which every claim of the paper holds."""
    rows = [
        _row(configuration, n, law, method, parameter, replications)
        for configuration in configurations
        for n in sizes
        for law in errors
        for method in methods
        for parameter in TARGETS[configuration]
    ]
    return pd.DataFrame(rows)


def _row(configuration, n, law, method, parameter, replications):
    j = list(TARGETS[configuration]).index(parameter)
    target = TARGETS[configuration][parameter]
    spread = SCALES[configuration][j] / np.sqrt(n)
    inexact = configuration != "1"
    bias = 0.3 * spread * 20 / n
    inflation, coverage = 1.0, 0.95
    if method == "nlm" and inexact:
        inflation, coverage = 4.0, 0.999
    elif method == "projected":
        inflation, coverage = 1.5, 0.99
    elif method.startswith("gb-ols") and configuration in "23":
        bias = 60 * spread / n
        coverage = 0.95 - 14 / n
    elif method.startswith("gb-l2") and configuration == "4":
        coverage = 0.9
        bias *= 0.5 if parameter == "theta1" else 2
    seconds = 1e-4 * n / 20 * {"koh": 50, "projected": 4}.get(method, 1) * (10 if method.endswith("boot") else 1)
    return {
        "configuration": configuration,
        "n": n,
        "errors": law,
        "method": method,
        "parameter": parameter,
        "replications": replications,
        "failed": 0,
        "mean_posterior_mean": target + bias,
        "mean_posterior_sd": inflation * spread,
        "coverage": coverage,
        "coverage_se": np.sqrt(coverage * (1 - coverage) / replications),
        "bias": bias,
        "sampling_sd": spread,
        "mean_length": 2 * 1.96 * inflation * spread,
        "seconds_per_calibration": seconds,
        "bias_se": spread / np.sqrt(replications),
        "mean_posterior_sd_se": 0.1 * inflation * spread / np.sqrt(replications),
        "interpolated": 0,
        "coverage_otherwise": coverage,
        "target": target,
        "statuses": "",
        "levels": "endpoints",
        "seed": 1,
    }
