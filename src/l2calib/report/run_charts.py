"""The charts of a run, each with its numbers: curves, bias, posteriors of one and two parameters, intervals by method.

The bias that is drawn is that of docs/decisions/0009.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from l2calib.methods.catalogue import labels_of
from l2calib.numerics.spread import kronecker
from l2calib.report.charts import Axis, Chart, Mark, Table, curve, interval, points, regions, rule
from l2calib.report.densities import outlines, scattered, view
from l2calib.report.words import rounded, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from l2calib.posterior.band import Band
    from l2calib.report.run_files import Found, Profile, Run

_ROWS = 25  # of the table of a curve
_PAIRS = 6
_DUST = 150
_SUMMARY = {"mean": "mean", "sd": "sd", "q2.5": "2.5%", "q50": "50%", "q97.5": "97.5%"}


def curve_chart(run: Run, name: str, when: dict[str, int]) -> Chart:
    """The model along one input; with a single input, with the data."""
    single = len(run.inputs) == 1
    observed = points(None, run.columns[name], run.columns[run.response], name="observed")
    others = "" if single else " The other inputs are at the middle of their ranges."
    return Chart(
        f"{run.response} against {name}"
        + (": the data and the calibrated model" if single else ": the calibrated model"),
        f"{run.response} against {name}: the calibrated model with its 95% band" + (", and the data" if single else ""),
        Axis(name, domain=run.inputs[name]),
        Axis(run.response),
        [*([observed] if single else []), *(_along(each, name, "model") for each in run.found)],
        _curve_table(run, name, "model"),
        f"Lines: the posterior mean of the model; bands: its 95% intervals at each {name}.{others}",
        shape="wide",
        when=when,
    )


def bias_chart(run: Run, name: str, when: dict[str, int]) -> Chart:
    """The estimated system less the model, along one input."""
    others = "" if len(run.inputs) == 1 else " The other inputs are at the middle of their ranges."
    return Chart(
        f"Bias along {name}: system less model",
        f"Estimated bias of the model along {name}, with its 95% band",
        Axis(name, domain=run.inputs[name]),
        Axis(f"bias of {run.response}", include=(0.0,)),
        [rule("y", 0.0, "no bias"), *(_along(each, name, "bias") for each in run.found)],
        _curve_table(run, name, "bias"),
        "Above the line the system is larger than the model, below it smaller. "
        f"Bands: 95% intervals at each {name}.{others}",
        shape="wide",
        when=when,
    )


def _along(found: Found, name: str, what: str) -> Mark:
    profile = found.profiles[name]
    band: Band = getattr(profile, what)
    return curve(found.method, profile.x, band.mean, low=band.low, high=band.high, what=what)


def _curve_table(run: Run, name: str, what: str) -> Table:
    names = labels_of(each.method for each in run.found)
    x = run.found[0].profiles[name].x
    chosen = np.unique(np.linspace(0, len(x) - 1, _ROWS).round().astype(int))
    bands: list[Band] = [getattr(each.profiles[name], what) for each in run.found]
    rows = [[short(x[i]), *(_cell(band, i) for band in bands)] for i in chosen]
    return Table([name, *(names[each.method] for each in run.found)], rows)


def _cell(band: Band, i: int) -> str:
    sd = float(band.high[i] - band.low[i]) / 4
    mean, low, high = (rounded(float(part[i]), sd) for part in band)
    return f"{mean} ({low} to {high})"


def fit_chart(run: Run) -> Chart:
    """Observed against fitted, where there are several inputs."""
    y = run.columns[run.response]
    shown = np.concatenate([y, *(each.fitted.mean for each in run.found)])
    ends = [float(np.nanmin(shown)), float(np.nanmax(shown))]
    names = labels_of(each.method for each in run.found)
    rows = [[str(i + 1), short(y[i]), *(_cell(each.fitted, i) for each in run.found)] for i in range(len(y))]
    return Chart(
        "Observed against fitted",
        f"Observed {run.response} against the {run.response} that the calibrated model gives",
        Axis(f"fitted {run.response}"),
        Axis(f"observed {run.response}"),
        [curve(None, ends, ends, name="observed = fitted"), *(points(e.method, e.fitted.mean, y) for e in run.found)],
        Table(["observation", "observed", *(names[each.method] for each in run.found)], rows),
        "On the dotted line the model at its posterior mean gives what was observed.",
        shape="square",
    )


def marginal_chart(run: Run, name: str) -> Chart:
    """The posterior density of one parameter by each method, with the prior."""
    low, high = view(each.marginals[name] for each in run.found)
    first = run.found[0].marginals[name]
    grid = np.linspace(low, high, 60)
    prior = curve(None, grid, np.interp(grid, first.value, first.prior), name="prior")
    marks = [_density(each, name, low, high) for each in run.found]
    return Chart(
        name,
        f"Posterior density of {name}, with its prior",
        Axis(name, domain=(low, high)),
        Axis("density", bare=True, include=(0.0,)),
        [prior, *marks],
        summary_table(run, [name]),
        f"Dotted grey: the prior, {run.origin['prior'][name]}.",
    )


def _density(found: Found, name: str, low: float, high: float) -> Mark:
    value, density, _ = found.marginals[name]
    inside = (value >= low) & (value <= high)
    return curve(found.method, value[inside], density[inside])


def joint_charts(run: Run) -> list[Chart]:
    """Pairs of parameters: all of them, or of many those that are most correlated."""
    pairs = sorted(combinations(run.parameters, 2), key=lambda pair: -abs(_correlation(run.found[0], *pair)))
    chosen = set(pairs[:_PAIRS])
    return [_joint(run, *pair) for pair in combinations(run.parameters, 2) if pair in chosen]


def _joint(run: Run, x: str, y: str) -> Chart:
    views = [view(each.marginals[name] for each in run.found) for name in (x, y)]
    shares = kronecker(_DUST, 2)
    dust = [
        scattered(run.found[0].marginals[name], shown, shares[:, j])
        for j, (name, shown) in enumerate(zip((x, y), views, strict=True))
    ]
    names = labels_of(each.method for each in run.found)
    rows = [[names[each.method], short(_correlation(each, x, y), 2)] for each in run.found]
    return Chart(
        f"{x} and {y}",
        f"Joint posterior of {x} and {y}: regions that hold 95% and 50%",
        Axis(x, domain=views[0]),
        Axis(y, domain=views[1]),
        [
            points(None, *dust, small=True, name="prior"),
            *(regions(e.method, *outlines(e.draws[x], e.draws[y], *views)) for e in run.found),
            *(points(e.method, [e.parameters[x]["mean"]], [e.parameters[y]["mean"]]) for e in run.found),
        ],
        Table(["method", "correlation"], rows),
        "Outlines hold 95% of the posterior, shaded regions 50%; markers are means, small dots draws from the prior.",
        shape="square",
    )


def _correlation(found: Found, x: str, y: str) -> float:
    return float(np.corrcoef(found.draws[x], found.draws[y])[0, 1])


def interval_chart(run: Run, name: str) -> Chart:
    """The 95% interval of one parameter, a row per method."""
    rows = [(each.method, each.parameters[name]) for each in run.found]
    marks = [interval(method, method, row["mean"], row["q2.5"], row["q97.5"]) for method, row in rows]
    return Chart(
        name,
        f"Posterior mean and 95% interval of {name} by each method",
        Axis(name),
        Axis("", "rows"),
        marks,
        summary_table(run, [name]),
    )


def summary_table(run: Run, parameters: Sequence[str]) -> Table:
    """Mean, sd and quantiles by method and parameter."""
    names = labels_of(each.method for each in run.found)
    rows = [
        [names[each.method], name, *(rounded(row[column], row["sd"]) for column in _SUMMARY)]
        for each in run.found
        for name in parameters
        for row in [each.parameters[name]]
    ]
    return Table(["method", "parameter", *_SUMMARY.values()], rows, names=2)


def excluded(profile: Profile) -> list[tuple[float, float, str]]:
    """Where the band of the bias does not hold zero: from, to, and whether the system lies above or below the model."""
    side = np.where(profile.bias.low > 0, 1, np.where(profile.bias.high < 0, -1, 0))
    starts = np.flatnonzero(np.diff(side, prepend=0) * (side != 0))
    ends = [start + int(np.argmax(np.append(side[start:] != side[start], True))) - 1 for start in starts]
    return [
        (float(profile.x[a]), float(profile.x[b]), "above" if side[a] > 0 else "below")
        for a, b in zip(starts, ends, strict=True)
    ]
