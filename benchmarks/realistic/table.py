"""Tables of what was measured, over the problems that all methods have answered.

Coverage is that of 95% intervals, averaged over a problem's parameters and then over problems. Problems are drawn
independently, so the standard error of such a mean is the standard deviation over problems by the root of their number:
it holds what differs between problems as well as what differs between datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.realistic.designs import SHARES
from benchmarks.realistic.measure import Record
from benchmarks.realistic.problems import LAWS, TRUTHS

Answered = Mapping[str, Mapping[int, Record]]  # by method and seed

_LOW_COVERAGE, _MANY_FAR, _SHOWN = 0.80, 0.10, 6
HEADINGS = (
    "method",
    "coverage",
    "problems below 0.80",
    "far",
    "far and ok",
    "problems with over 10% far",
    "failed",
    "sd / sampling sd",
    "sd / sampling spread",
    "length",
    "length / oracle's",
    "ok",
    "ok where near",
    "seconds",
)
_SIZES: dict[str, Callable[[Record], bool]] = {
    "n < 20": lambda record: record.observations < 20,
    "n = 20 to 40": lambda record: 20 <= record.observations <= 40,
    "n > 40": lambda record: record.observations > 40,
}


def _being(attribute: str, value: str) -> Callable[[Record], bool]:
    return lambda record: bool(getattr(record, attribute) == value)


GROUPS: dict[str, Callable[[Record], bool]] = {
    "all": lambda _: True,
    **_SIZES,
    **{("exact" if truth == "exact" else f"wrong by {truth}"): _being("truth", truth) for truth in TRUTHS},
    **{f"{design} design": _being("design", design) for design in SHARES},
    **{f"{law} errors": _being("law", law) for law in LAWS},
    "one input": lambda record: record.inputs == 1,
    "two inputs": lambda record: record.inputs == 2,
}


def markdown(answered: Answered) -> str:
    """The table of methods, coverage by kind of problem, and where it is lowest."""
    shared = sorted(set.intersection(*(set(records) for records in answered.values()))) if answered else []
    if not shared:
        return "No problem has been answered by all methods."
    methods = {name: [records[seed] for seed in shared] for name, records in answered.items()}
    return "\n".join([*_methods(methods), "", *_groups(methods), "", _legend(methods), "", *_lowest(methods)])


def _methods(methods: Mapping[str, Sequence[Record]]) -> list[str]:
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    first = next(iter(methods.values()))
    return lines + [f"| {' | '.join(_row(name, records, first))} |" for name, records in methods.items()]


def _row(name: str, records: Sequence[Record], first: Sequence[Record]) -> list[str]:
    found = [record.scores for record in records]
    covered, datasets = coverages(records), sum(record.datasets for record in records)
    low = int((covered < _LOW_COVERAGE).sum())
    far = np.array([each.far for each in found])
    lengths = [
        each.scores.median_length / other.scores.median_length for each, other in zip(records, first, strict=True)
    ]
    near = sum(each.near for each in found)
    return [
        name,
        with_error(covered, records[0].datasets),
        f"{low} ({low / len(records):.0%})",
        with_error(far, records[0].datasets, 4),
        f"{np.mean([each.far_but_ok for each in found]):.4f}",
        str(int((far > _MANY_FAR).sum())),
        str(sum(each.failed for each in found)),
        f"{_median([each.mean_sd / each.sampling_sd for each in found]):.2f}",
        f"{_median([each.median_sd / each.sampling_spread for each in found]):.2f}",
        f"{_median(lengths):.3f}",
        f"{_median([each.relative_length for each in found]):.2f}",
        f"{sum(each.ok for each in found) / datasets:.2f}",
        f"{sum(each.near_and_ok for each in found) / near:.2f}" if near else "",
        f"{np.median([record.seconds for record in records]):.1f}",
    ]


def _groups(methods: Mapping[str, Sequence[Record]]) -> list[str]:
    lines = [f"| coverage | problems | {' | '.join(methods)} |", "|---" * (len(methods) + 2) + "|"]
    for label, belongs in GROUPS.items():
        chosen = {name: [record for record in records if belongs(record)] for name, records in methods.items()}
        number = len(next(iter(chosen.values())))
        if number:
            entries = [with_error(coverages(records), records[0].datasets) for records in chosen.values()]
            lines.append(f"| {label} | {number} | {' | '.join(entries)} |")
    return lines


def _legend(methods: Mapping[str, Sequence[Record]]) -> str:
    records = next(iter(methods.values()))
    return (
        f"{len(records)} problems that all methods have answered, {records[0].datasets} datasets each. "
        "Far: the posterior mean is more than five posterior standard deviations from theta_L2 in some parameter; "
        f"near: at most two in all. Lengths are beside those of {next(iter(methods))}, and of least squares about "
        "theta_L2 with sigma known; they and the ratios are medians over problems and parameters. "
        "Seconds are of the processor, for the median problem, with compilation."
    )


def _lowest(methods: Mapping[str, Sequence[Record]]) -> list[str]:
    """The problems on which each method covers least, as a list."""
    lines = []
    for name, records in methods.items():
        known = [record for record in records if np.isfinite(record.scores.coverage).all()]
        low = [record for record in known if record.scores.coverage.mean() < _LOW_COVERAGE]
        low.sort(key=lambda record: float(record.scores.coverage.mean()))
        shown = [_described(record) for record in low[:_SHOWN]] + ["..."] * (len(low) > _SHOWN)
        lines.append(f"- {name}, below {_LOW_COVERAGE:.2f}: {'; '.join(shown) or 'none'}")
    return lines


def _described(record: Record) -> str:
    kind = f"{record.model}, {record.design}, {record.truth}, {record.law}, n = {record.observations}"
    return f"{record.seed} ({kind}: {record.scores.coverage.mean():.2f})"


def coverages(records: Sequence[Record]) -> np.ndarray:
    """By problem, averaged over its parameters; without those that have no answers."""
    several = np.array([record.scores.coverage.mean() for record in records])
    return several[np.isfinite(several)]


def with_error(values: np.ndarray, datasets: int, digits: int = 3) -> str:
    """The mean over problems and its standard error; of one problem alone, the binomial one."""
    if not len(values):
        return ""
    mean = float(values.mean())
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.sqrt(mean * (1 - mean) / datasets)
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def _median(by_problem: Sequence[np.ndarray]) -> float:
    values = np.concatenate(by_problem)
    return float(np.median(values[np.isfinite(values)])) if np.isfinite(values).any() else float("nan")
