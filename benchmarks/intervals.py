"""How good the intervals of a study are: `python -m benchmarks.intervals DIR`.

For every cell and parameter of a study that was run: coverage; the median length of the intervals and the spread of the
posterior means (half the distance from their 16% to their 84% quantile), both beside those of an oracle, who knows the
variance of the errors and the sandwich, sigma^2 V^-1 W V^-1 / n; and the share of datasets whose theta-hat is in
another basin of the true distance than theta_L2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize

from l2calib.problem.experiment import Experiment
from l2calib.study.configurations import Configuration, paper_configurations
from l2calib.study.plan import Cell
from l2calib.study.storage import Archive

Z = 1.959964
GOOD, BEARABLE = (0.93, 0.97), (0.915, 0.985)
LONGEST = {20: 1.25, 40: 1.15}
LONGEST_BEYOND = 1.10
MOST_ASTRAY = 0.015
_NEAR = 3.0  # oracle's sd: what is not so far is in the target's basin
_SAME = 1e-3  # as a share of the prior's range


class Basin(NamedTuple):
    """The distance between the model and the system of a configuration, to descend by."""

    experiment: Experiment
    mu: np.ndarray
    target: np.ndarray
    limits: np.ndarray  # (p, 2)

    @classmethod
    def of(cls, configuration: Configuration, design: np.ndarray) -> Basin:
        experiment = configuration.experiment(design)
        mu = experiment.node_span.project(configuration.system_at(experiment.quadrature.nodes))
        ends = experiment.prior.quantile(np.tile([[0.0], [1.0]], experiment.parameters))
        return cls(experiment, mu, configuration.target.theta, ends.T)

    def has(self, theta: np.ndarray) -> bool:
        """Whether the way down from theta leads to the target."""
        coordinates, width = self.experiment.node_span.coordinates, np.ptp(self.limits, axis=1)
        found = optimize.least_squares(
            lambda at: coordinates.values(at[None])[0] - self.mu,
            np.clip(theta, self.limits[:, 0] + 1e-9 * width, self.limits[:, 1] - 1e-9 * width),
            lambda at: coordinates.with_slopes(at[None])[1][0],
            bounds=self.limits.T,
            x_scale=width,
        )
        return bool((np.abs(found.x - self.target) < _SAME * width).all())


def oracle_sd(configuration: Configuration, n: int) -> np.ndarray:
    """Of every parameter (p,)."""
    target = configuration.target
    inverse = np.linalg.inv(target.V)
    return np.sqrt(np.diag(4 * configuration.sigma2 * inverse @ target.slopes @ inverse) / n)


def rows(archive: Archive, cells: Iterable[tuple[Configuration, int, str, str, int]]) -> Iterator[dict[str, Any]]:
    """One for every parameter of every cell that is there."""
    for configuration, n, errors, method, blocks in cells:
        tables = []
        for block in range(blocks):
            cell = Cell(configuration.name, n, errors, method, block)
            if archive.path(cell).is_file():
                tables.append(archive.read(cell).to_pandas())
        if tables:
            yield from _of_cell(archive, configuration, (n, errors, method), pd.concat(tables))


def _of_cell(
    archive: Archive, configuration: Configuration, key: tuple[int, str, str], table: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    n, errors, method = key
    design = archive.stored_design(len(configuration.box.names), n)
    assert design is not None
    basin, sd = Basin.of(configuration, design), oracle_sd(configuration, n)
    hats = table[[f"{name}_hat" for name in configuration.parameters]].to_numpy()
    far = (np.abs(hats - configuration.target.theta) > _NEAR * sd).any(axis=1)
    astray = sum(not basin.has(theta) for theta in hats[far]) / len(table)
    for j, name in enumerate(configuration.parameters):
        low, high, mean = (table[f"{name}_{what}"].to_numpy() for what in ("q2.5", "q97.5", "mean"))
        theta = configuration.target.theta[j]
        yield {
            "configuration": configuration.name,
            "n": n,
            "errors": errors,
            "method": method,
            "parameter": name,
            "datasets": len(table),
            "coverage": float(((low <= theta) & (theta <= high)).mean()),
            "median_length": float(np.median(high - low)),
            "length_over_oracle": float(np.median(high - low) / (2 * Z * sd[j])),
            "spread_over_oracle": float(np.diff(np.quantile(mean, (0.16, 0.84)))[0] / 2 / sd[j]),
            "astray": astray,
            "ok": float((table["status"] == 0).mean()),
        }


def longest(n: int) -> float:
    """How many times the oracle's the median length and the spread may be."""
    return LONGEST.get(n, LONGEST_BEYOND)


def verdict(frame: pd.DataFrame) -> list[str]:
    """What was asked for, and what there is."""
    outside = ~frame["coverage"].between(*GOOD)
    beyond = ~frame["coverage"].between(*BEARABLE)
    allowed = frame["n"].map(longest)
    long, wide = frame["length_over_oracle"] > allowed, frame["spread_over_oracle"] > allowed
    lengths, spreads, later = frame["length_over_oracle"], frame["spread_over_oracle"], frame["n"] >= 60
    sentences = [
        f"{len(frame)} coverages: {outside.sum()} outside {GOOD} (allowed: 8), {beyond.sum()} outside {BEARABLE}.",
        *(
            f"{what} over the oracle's: {wrong.sum()} too high; {most.max():.3f}, from 60 on {most[later].max():.3f}."
            for what, wrong, most in (("Median length", long, lengths), ("Spread of the means", wide, spreads))
        ),
        f"Astray: at most {frame['astray'].max():.2%} of the datasets of a cell (allowed: {MOST_ASTRAY:.1%}).",
    ]
    for what, wrong in (("coverage", outside), ("length_over_oracle", long), ("spread_over_oracle", wide)):
        for row in frame[wrong].to_dict("records"):
            cell = f"configuration {row['configuration']}, n = {row['n']}, {row['errors']}, {row['parameter']}"
            sentences.append(f"  {what} {row[what]:.3f}: {cell}")
    return sentences


def main() -> int:
    """Read, judge, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.intervals", description=__doc__)
    parser.add_argument("folder", type=Path, help="of a study of the paper's configurations")
    parser.add_argument("--method", default="l2")
    parser.add_argument("--out", type=Path, help="a CSV file for the whole table")
    options = parser.parse_args()
    archive, known = Archive.at(options.folder), paper_configurations()
    cells = [
        (known[name], n, errors, method, -(-replications // archive.record.block))
        for (name, n, errors, method), replications in archive.record.asked().items()
        if method == options.method
    ]
    frame = pd.DataFrame(rows(archive, cells))
    if frame.empty:
        parser.error(f"there is nothing by {options.method} in {options.folder}.")
    if options.out is not None:
        frame.to_csv(options.out, index=False)
    worst = frame.groupby(["configuration", "n"]).agg(
        lowest=("coverage", "min"),
        highest=("coverage", "max"),
        length=("length_over_oracle", "max"),
        spread=("spread_over_oracle", "max"),
        astray=("astray", "max"),
        ok=("ok", "min"),
    )
    print(worst.round(4).to_string())
    print(*verdict(frame), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
