"""The claim on the wiffle balls (paper, Section 5): two calibrations of the packaged example, compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from l2calib.study.claims.judging import Part, Within
from l2calib.study.claims.paper import SD, SHIFT

if TYPE_CHECKING:
    import pandas as pd

_METHODS = ("gb-l2", "koh")
# What the paper concludes, and half of the last digit's step that it gives.
_CONCLUSION = {"g": (11.0, 0.5), "m": (3.5, 0.25)}
_RECORDED_TO = 0.01
_HEIGHTS = 200


@dataclass(frozen=True, eq=False)
class Wiffle:
    """The posteriors (a row per method and parameter: mean, sd, median) and how far the fitted curves are apart."""

    posteriors: pd.DataFrame
    curve_gap: float | None


def wiffle_evidence(seed: int = 0) -> Wiffle:
    """Calibrate the packaged example by general Bayes L2 and modified Kennedy-O'Hagan: about half a minute."""
    import pandas as pd

    from l2calib.calibration import calibrate
    from l2calib.spec import load_problem

    problem = load_problem("wiffle")
    rows, curves = [], []
    (height,) = problem.input_names
    heights = np.linspace(*problem.inputs[height], _HEIGHTS)
    for method in _METHODS:
        found = calibrate(problem, method=method, seed=seed).rows
        mean = np.array([found[name]["mean"] for name in problem.parameter_names])
        curves.append(np.asarray(problem.predict_model(mean, {height: heights})))
        rows += [
            {"method": method, "parameter": name, "mean": row["mean"], "sd": row["sd"], "median": row["q50"]}
            for name, row in found.items()
        ]
    return Wiffle(pd.DataFrame(rows), float(np.abs(curves[0] - curves[1]).max()))


def no_evidence() -> Wiffle:
    """Nothing calibrated, so nothing to judge."""
    import pandas as pd

    numbers = {name: pd.Series(dtype=float) for name in ("mean", "sd", "median")}
    return Wiffle(
        pd.DataFrame({"method": pd.Series(dtype=object), "parameter": pd.Series(dtype=object), **numbers}), None
    )


def wiffle_balls(wiffle: Wiffle) -> tuple[Part, ...]:
    """The parts of the claim."""
    return (
        Part(
            "a",
            "the posterior means of the two methods agree",
            f"The posterior means of gb-l2 and koh differ by at most {SHIFT} posterior sds (the mean of their two).",
            Within(0, SHIFT),
            _shifts(wiffle),
            ("parameter",),
            "+.3f",
        ),
        Part(
            "b",
            "their posterior sds agree",
            f"The posterior sds differ by at most {SD:.0%}; the number is that of gb-l2 / that of koh.",
            Within(1, SD),
            _spreads(wiffle),
            ("parameter",),
            ".3f",
        ),
        Part(
            "c",
            "their fitted curves are almost indistinguishable",
            f"At the posterior means the two curves are nowhere more than {_RECORDED_TO} s apart, the step to which "
            "the times were recorded.",
            Within(0, _RECORDED_TO),
            _gap(wiffle),
            (),
            ".4f",
        ),
        *(_near(letter, what, wiffle) for letter, what in (("d", "mean"), ("e", "median"))),
    )


def _near(letter: str, what: str, wiffle: Wiffle) -> Part:
    allowed = " and ".join(f"{name} = {centre:g} by at most {step:g}" for name, (centre, step) in _CONCLUSION.items())
    return Part(
        letter,
        f"they are near (11, 3.5) by the posterior {what}",
        f"The posterior {what} differs from {allowed}; the number is the difference as a multiple of that allowance.",
        Within(0, 1),
        _distances(wiffle, what),
        ("method", "parameter"),
        "+.2f",
    )


def _shifts(wiffle: Wiffle) -> pd.DataFrame:
    sides = _sides(wiffle)
    scale = (sides["sd_gb-l2"] + sides["sd_koh"]) / 2
    note = [f"{a:.3f} against {b:.3f}" for a, b in zip(sides["mean_gb-l2"], sides["mean_koh"], strict=True)]
    return sides.assign(value=(sides["mean_gb-l2"] - sides["mean_koh"]) / scale, se=0.0, note=note)


def _spreads(wiffle: Wiffle) -> pd.DataFrame:
    sides = _sides(wiffle)
    note = [f"{a:.3f} against {b:.3f}" for a, b in zip(sides["sd_gb-l2"], sides["sd_koh"], strict=True)]
    return sides.assign(value=sides["sd_gb-l2"] / sides["sd_koh"], se=0.0, note=note)


def _sides(wiffle: Wiffle) -> pd.DataFrame:
    rows = wiffle.posteriors
    left, right = (rows[rows["method"] == name] for name in _METHODS)
    return left.merge(right, on="parameter", suffixes=("_gb-l2", "_koh"))


def _distances(wiffle: Wiffle, what: str) -> pd.DataFrame:
    rows = wiffle.posteriors
    centre, step = (rows["parameter"].map({name: pair[j] for name, pair in _CONCLUSION.items()}) for j in (0, 1))
    note = [f"{value:.3f} against {at:g}" for value, at in zip(rows[what], centre, strict=True)]
    return rows.assign(value=(rows[what] - centre) / step, se=0.0, note=note)


def _gap(wiffle: Wiffle) -> pd.DataFrame:
    import pandas as pd

    gaps = pd.Series([] if wiffle.curve_gap is None else [wiffle.curve_gap], dtype=float)
    return pd.DataFrame({"value": gaps, "se": 0.0 * gaps})
