"""The page of a run: the answer first, then the pictures, what to know before relying on it, and how to repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from l2calib.display.words import counted, listed
from l2calib.methods.catalogue import labels_of
from l2calib.report.charts import Table
from l2calib.report.diagnostics import Note, boundary_note, design_note, error_notes, merged, modes_note
from l2calib.report.methods import prose
from l2calib.report.run_charts import (
    bias_chart,
    curve_chart,
    excluded,
    fit_chart,
    interval_chart,
    joint_charts,
    marginal_chart,
    summary_table,
)
from l2calib.report.words import NOTHING, capitalised, rounded, short
from l2calib.spec.priors import parse_prior

if TYPE_CHECKING:
    from collections.abc import Mapping

    from l2calib.report.run_files import Found, Profile, Run

_NAMED = 3  # methods whose answers are told one by one


def run_page(run: Run) -> dict[str, Any]:
    """What the template of a run is filled with."""
    several = len(run.inputs) > 1
    pairs = joint_charts(run)
    return {
        "title": f"Calibration: {run.origin['spec']['name']}",
        "sentence": subject(run),
        "answers": [answer(run, name) for name in run.parameters],
        "methods": list(labels_of(each.method for each in run.found)),
        "choosers": [{"name": "input", "legend": "Along the input", "options": list(run.inputs)}] if several else [],
        "inputs": [_along(run, name, {"input": i} if several else {}) for i, name in enumerate(run.inputs)],
        "fit": fit_chart(run) if several else None,
        "marginals": [marginal_chart(run, name) for name in run.parameters],
        "joints": pairs,
        "pairs_left_out": len(run.parameters) * (len(run.parameters) - 1) // 2 - len(pairs),
        "intervals": [interval_chart(run, name) for name in run.parameters] if len(run.found) > 1 else [],
        "summary": summary_table(run, run.parameters),
        "besides": _besides(run),
        "notes": _notes(run),
        "origin": run.origin,
    }


def subject(run: Run) -> str:
    """What was calibrated, against what, and by which methods."""
    methods = listed([prose(each.method) for each in run.found])
    since = run.origin.get("default_since")  # in the files of an earlier version there is no such key
    if since is not None:
        methods = f"{listed([each.method for each in run.found])}, the default since {since} ({methods})"
    number = len(run.columns[run.response])
    noun = "parameter" if len(run.parameters) == 1 else "parameters"
    return (
        f"A model of {run.response} as a function of {listed(list(run.inputs))}, with the {noun} "
        f"{listed(run.parameters)}, calibrated against {counted(number, 'observation')} from "
        f"{run.origin['data']['file']} by {methods}."
    )


def answer(run: Run, name: str) -> str:
    """One parameter in a sentence: by the first method, and what the others say."""
    first, *others = run.found
    row = first.parameters[name]
    sentence = f"{name} is {rounded(row['mean'], row['sd'])}, 95% interval {_interval(row)}"
    if not others:
        return f"{sentence}."
    sentence += f", by {prose(first.method)}"
    if len(others) < _NAMED:
        said = [f"{_mean(each, name)} ({_interval(each.parameters[name])}) by {prose(each.method)}" for each in others]
        return f"{sentence}; {listed(said)}."
    means = sorted(each.parameters[name]["mean"] for each in others)
    low, high = (rounded(mean, row["sd"]) for mean in (means[0], means[-1]))
    between = f"all put it at {low}" if low == high else f"put it between {low} and {high}"
    return f"{sentence}; the other {len(others)} methods {between}."


def _mean(found: Found, name: str) -> str:
    row = found.parameters[name]
    return rounded(row["mean"], row["sd"])


def _interval(row: dict[str, float]) -> str:
    return f"{rounded(row['q2.5'], row['sd'])} to {rounded(row['q97.5'], row['sd'])}"


def _along(run: Run, name: str, when: dict[str, int]) -> dict[str, Any]:
    return {
        "name": name,
        "when": when,
        "curve": curve_chart(run, name, {}),
        "bias": bias_chart(run, name, {}),
        "sentences": bias_sentences({prose(each.method): each.profiles[name] for each in run.found}, name),
    }


def bias_sentences(profiles: Mapping[str, Profile], name: str) -> list[str]:
    """Where along an input the model is shown to be wrong; methods that say the same say it together."""
    holders: dict[str, list[str]] = {}
    for method, profile in profiles.items():
        holders.setdefault(_where_wrong(profile, name), []).append(method)
    if len(holders) == 1:
        return [f"The {sentence}" for sentence in holders]
    return [f"By {listed(methods)}, the {sentence}" for sentence, methods in holders.items()]


def _where_wrong(profile: Profile, name: str) -> str:
    parts = excluded(profile)
    if not parts:
        return f"band holds zero all along {name}: these data do not show the model to be wrong there."
    where = [_part(profile, *each, name) for each in parts]
    return f"band excludes zero {listed(where)}: there the model is shown to be wrong."


def _part(profile: Profile, low: float, high: float, side: str, name: str) -> str:
    width = float(profile.x[-1] - profile.x[0])
    if low == profile.x[0] and high == profile.x[-1]:
        return f"all along {name} (the system lies {side} the model)"
    return f"for {name} from {rounded(low, width)} to {rounded(high, width)} (the system lies {side} the model)"


def _besides(run: Run) -> Table:
    """What each method learnt beside the parameters."""
    names = labels_of(each.method for each in run.found)
    rows = []
    for each in run.found:
        rho, theta = each.answer["rho"], each.answer["theta_hat"]
        rows.append(
            [
                names[each.method],
                ", ".join(short(value) for value in theta.values()) if theta else NOTHING,
                short(each.answer["gamma"]),
                short(each.answer["sigma2"]),
                ", ".join(short(value, 3) for value in rho["psi"]) if rho else NOTHING,
                short(rho["kappa"], 3) if rho else NOTHING,
                each.answer["engine"],
                each.answer["status"],
                short(each.answer["seconds"], 3),
            ]
        )
    estimate = f"estimate ({', '.join(run.parameters)})"
    return Table(["method", estimate, "gamma", "sigma2", "psi", "kappa", "engine", "status", "seconds"], rows)


def _notes(run: Run) -> list[tuple[str, Note]]:
    supports = {name: parse_prior(name, text).support for name, text in run.origin["prior"].items()}
    by_method = {prose(each.method): _notes_on(each, supports) for each in run.found}
    errors = error_notes([(each.numerical_error, each.answer["engine"]) for each in run.found])
    together = [*errors, design_note(run.inputs, run.columns)]
    notes = [*((capitalised(methods), note) for methods, note in merged(by_method)), *(("", note) for note in together)]
    return sorted(notes, key=lambda pair: not pair[1].care)


def _notes_on(found: Found, supports: dict[str, tuple[float, float]]) -> list[Note]:
    shapes = [
        note
        for name, marginal in found.marginals.items()
        for note in (boundary_note(name, marginal, supports[name]), modes_note(name, marginal))
        if note is not None
    ]
    return [*(Note(message, care=True) for message in found.messages), *shapes]
