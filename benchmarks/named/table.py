"""The table of what was measured: a row for every problem, method and parameter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.realistic.measure import Record

HEADINGS = (
    "problem",
    "n",
    "method",
    "parameter",
    "datasets",
    "coverage",
    "length",
    "spread",
    "sd / spread",
    "far",
    "ok",
    "failed",
    "seconds",
)
_LEGEND = (
    "Coverage is that of 95% intervals, with its binomial standard error, and length their median; both, and the next "
    "two, are of datasets that did not fail. Spread: half of what is between the 16th and 84th percentiles of the "
    "posterior mean; sd / spread: the median posterior sd beside it. Far: the share of all datasets with a posterior "
    "mean more than five posterior standard deviations from theta_L2 in some parameter; ok: the share of all with "
    "status ok. Seconds are of the processor, per dataset, with compilation."
)


def markdown(records: Sequence[Record]) -> str:
    """A table of what is kept."""
    if not records:
        return "Nothing is kept."
    rows = [row for record in records for row in _rows(record)]
    lines = [HEADINGS, ("---",) * len(HEADINGS), *rows]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", _LEGEND])


def _rows(record: Record) -> list[list[str]]:
    found, there = record.scores, record.datasets - record.scores.failed
    rows = []
    for j, parameter in enumerate(record.parameters):
        covered = found.coverage[j]
        error = np.sqrt(covered * (1 - covered) / there) if there else np.nan
        rows.append(
            [
                record.model,
                str(record.observations),
                record.method,
                parameter,
                str(record.datasets),
                f"{covered:.3f} ± {error:.3f}",
                f"{found.median_length[j]:.4g}",
                f"{found.sampling_spread[j]:.4g}",
                f"{found.median_sd[j] / found.sampling_spread[j]:.2f}",
                f"{found.far:.4f}",
                f"{found.ok / record.datasets:.3f}",
                str(found.failed),
                f"{record.seconds / record.datasets:.2f}",
            ]
        )
    return rows
